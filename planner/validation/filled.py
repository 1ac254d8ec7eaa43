"""What a published run does not say, and the default that is taken for it."""

from __future__ import annotations

from collections.abc import Iterator

from planner.lazy import dataclass

DECISIVE = frozenset({"tp", "pp", "act_ckpt", "attention", "grad_accum", "zero", "n_layers"})
"""Inputs that move a prediction where a default stands in for what the source does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """One choice made for what a row leaves open."""

    inputs: tuple[str, ...]
    """What is left open: an input, or those of the layout that are chosen together."""
    taken: str
    """What is taken for it, in words."""

    @property
    def text(self) -> str:
        """The sentence of an answer's `filled`."""
        return f"{', '.join(self.inputs)}: {self.taken}"

    @property
    def decisive(self) -> bool:
        """Whether it widens the range of the prediction, by one step however many of its inputs decide."""
        return not DECISIVE.isdisjoint(self.inputs)


class Filled:
    """The defaults of one row by what they stand for, in the order in which they were first taken."""

    def __init__(self) -> None:
        self._defaults: dict[tuple[str, ...], Default] = {}

    def take(self, *inputs: str, as_: str) -> None:
        """Take a default; one that was taken before for the same inputs no longer holds."""
        self._defaults[inputs] = Default(inputs=inputs, taken=as_)

    def __iter__(self) -> Iterator[Default]:
        return iter(self._defaults.values())

"""Defaults taken for what a published run leaves open."""

from __future__ import annotations

from collections.abc import Iterator

from planner.lazy import dataclass

DECISIVE = frozenset({"tp", "pp", "act_ckpt", "attention", "grad_accum", "zero", "n_layers"})
"""Inputs that affect a prediction noticeably when a default replaces what the source does not state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """One default taken for what a row leaves open."""

    inputs: tuple[str, ...]
    """The open inputs: a single one, or those of the layout that are chosen together."""
    taken: str
    """The value taken, in words."""

    @property
    def text(self) -> str:
        """Sentence for an answer's `filled`."""
        return f"{', '.join(self.inputs)}: {self.taken}"

    @property
    def decisive(self) -> bool:
        """Whether it widens the range of the prediction; it does so only once, however many inputs are decisive."""
        return not DECISIVE.isdisjoint(self.inputs)


class Filled:
    """The defaults of one row by the inputs that they replace, in the order in which they were first taken."""

    def __init__(self) -> None:
        self._defaults: dict[tuple[str, ...], Default] = {}

    def take(self, *inputs: str, as_: str) -> None:
        """Take a default; it replaces one taken before for the same inputs."""
        self._defaults[inputs] = Default(inputs=inputs, taken=as_)

    def __iter__(self) -> Iterator[Default]:
        return iter(self._defaults.values())

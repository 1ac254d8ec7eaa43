"""The declaration of an input of the question: its name, how it is read, and its help."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Generic, TypeVar

from planner.lazy import dataclass

T_co = TypeVar("T_co", covariant=True)


class InputGroup(StrEnum):
    """The section of the help in which an input is shown."""

    MODEL = "The model"
    TRAINING = "The training"
    TUNING = "The data and the fine-tuning"
    MACHINES = "The machines"
    LAYOUT = "The layout (searched where not given)"
    MONEY = "Money, power, carbon"
    EVIDENCE = "Evidence"


LIST_METAVARS = ("LIST", ",...")
"""Endings of the metavars of flags that take several values, separated by commas."""


def flag_of(name: str) -> str:
    """Return the long flag of an input by its name, for example `--seq-len` for `seq_len`."""
    return f"--{name.replace('_', '-')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Input(Generic[T_co]):
    """One input of the question."""

    name: str
    """Name in Python, in the answer and in `mpplan.toml`, for example `seq_len`."""
    group: InputGroup
    metavar: str | None
    """Placeholder of the value in the help, often its unit; None for a switch, which takes no value."""
    help: str
    """The help, in full sentences."""
    parse: Callable[[str, str], T_co]
    """Reads the text; its second argument names the input in an error."""
    default: str | None = None
    """The default in words; None where there is none, or where it goes without saying."""
    choices: Callable[[], Iterable[str]] | None = None
    """Returns the names that a shell offers after the flag."""
    echoes_text: bool = False
    """Whether the answer repeats the text as typed, with its unit, instead of the value."""

    @property
    def flag(self) -> str:
        """The long flag, for example `--seq-len`."""
        return flag_of(self.name)

    @property
    def is_switch(self) -> bool:
        """Whether the flag takes no value."""
        return self.metavar is None

    @property
    def takes_several(self) -> bool:
        """Whether the flag takes several values, separated by commas."""
        return self.metavar is not None and self.metavar.endswith(LIST_METAVARS)

    @property
    def help_text(self) -> str:
        """The help, including the default."""
        return self.help if self.default is None else f"{self.help} Default: {self.default}."

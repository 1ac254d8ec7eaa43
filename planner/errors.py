"""Errors that carry what the user should do next and the exit code of the command."""

from __future__ import annotations

import copyreg
from typing import TypeAlias

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """Text for a reader, as a key with values; `reports.text.messages` words it in each language.

    Nothing in the planner or in pricing writes a sentence that a report shows: they emit messages. A value may itself
    be a message (the note inside an assumption).
    """

    key: str
    """For example `assumption.tokens`; the tables of `reports/text/messages/` have a sentence for it."""
    values: tuple[tuple[str, MessageValue], ...] = ()
    """What the sentence names, by name, in the unit that the name ends in; the wording rounds."""

    @classmethod
    def of(cls, key: str, /, **values: MessageValue) -> Message:
        """A message with its values by name."""
        return cls(key, tuple(values.items()))

    def __str__(self) -> str:
        """The key and its values, for logs and debuggers; readers get the wording."""
        return " ".join((self.key, *(f"{name}={value}" for name, value in self.values)))


MessageValue: TypeAlias = "str | int | float | Message | tuple[str | int | float | Message, ...]"
"""A value of a message: text, a number, a message, or several of these, which are worded as a list."""


class MpplanError(Exception):
    """A mistake that the user can mend; shown as `error:` and `hint:`, never as a traceback.

    What `mpplan.estimate` and `mpplan.to_document` raise is worded in English: `str(error)`, `message` and `hint` are
    text there. `key` and `values` are for programs, and stay as they are.
    """

    exit_code = 1
    """The exit code of the command (docs/exit-codes.md)."""
    message: str | Message
    """One sentence without a full stop; a message until somebody words it."""
    hint: str | Message | None
    """The next action, or None where there is nothing useful to say; a message until somebody words it."""
    told: Message | None
    """The message as it was told, worded or not; None where it was plain text from the start."""
    advised: Message | None
    """The same of the hint."""

    def __init__(self, message: str | Message, *, hint: str | Message | None = None) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint
        self.told = message if isinstance(message, Message) else None
        self.advised = hint if isinstance(hint, Message) else None

    @property
    def key(self) -> str | None:
        """What names the mistake for a program, for example `error.too_dear`; None where there is text alone."""
        return None if self.told is None else self.told.key

    @property
    def values(self) -> dict[str, MessageValue]:
        """What the message names, by name, in the unit that the name ends in; empty where there is text alone."""
        return {} if self.told is None else dict(self.told.values)

    def __reduce__(self) -> tuple[object, ...]:
        """For pickle and copy: without `__init__`, whose arguments differ between the classes and are not all kept."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InternalError(MpplanError):
    """What mpplan made breaks a rule that always holds: our fault, said with what to report (exit 1)."""

    exit_code = 1


class UsageError(MpplanError):
    """A flag or a name is wrong, a file is missing, an output cannot be written, a layout is inconsistent (exit 2)."""

    exit_code = 2


class InputFileError(MpplanError):
    """A file was found but its content is invalid; the message says `file:line: key: what was expected` (exit 3)."""

    exit_code = 3


class CannotMeasureError(MpplanError):
    """This machine cannot measure what was asked (exit 4)."""

    exit_code = 4
    message: str
    hint: str | None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)


class IncompleteError(MpplanError):
    """A price or a measurement is missing and `--strict` was given (exit 5)."""

    exit_code = 5


class UnstableError(MpplanError):
    """The measurement is not to be trusted and `--strict` was given (exit 6)."""

    exit_code = 6


class LimitError(MpplanError):
    """The answer crosses `--max-cost`, `--max-days` or `--max-energy` (exit 7)."""

    exit_code = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class EnoughBudget:
    """What a refusal for want of money says would do."""

    usd: int
    """A budget that holds at the confidence, rounded up."""
    gpus: int
    """The GPUs of the plan that costs so much."""
    safe: bool
    """Whether that plan's risk of running out of memory is within what the question allows."""


class NoPlanError(MpplanError):
    """Nothing feasible: the message says what is short and by how much, the hint what would fit (exit 8)."""

    exit_code = 8
    told: Message
    advised: Message
    enough: EnoughBudget | None
    """The budget that would do where only money is short; None where something else is."""

    def __init__(self, message: Message, *, hint: Message, enough: EnoughBudget | None = None) -> None:
        super().__init__(message, hint=hint)
        self.enough = enough

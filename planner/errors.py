"""Errors with a hint to the user's next action and the exit code of the command."""

from __future__ import annotations

import copyreg
from typing import TypeAlias

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """Text for a reader, as a key with values; `reports.text.messages` translates it into each language.

    The planner and pricing never write sentences that a report shows; they emit messages. A value may itself be a
    message (the note inside an assumption).
    """

    key: str
    """Key of a sentence in the tables of `reports/text/messages/`, for example `assumption.tokens`."""
    values: tuple[tuple[str, MessageValue], ...] = ()
    """Values in the sentence by name, in the unit with which the name ends; the wording rounds them."""

    @classmethod
    def of(cls, key: str, /, **values: MessageValue) -> Message:
        """A message with its values by name."""
        return cls(key, tuple(values.items()))

    def __str__(self) -> str:
        """The key and its values, for logs and debuggers; readers see the sentence instead."""
        return " ".join((self.key, *(f"{name}={value}" for name, value in self.values)))


MessageValue: TypeAlias = "str | int | float | Message | tuple[str | int | float | Message, ...]"
"""A value of a message: text, a number, a message, or several of these, which are shown as a list."""


class MpplanError(Exception):
    """A mistake that the user can correct; shown as `error:` and `hint:`, never as a traceback.

    Errors raised by `mpplan.estimate` and `mpplan.to_document` are translated into English, so that `str(error)`,
    `message` and `hint` are text. `key` and `values` are for programs and are not translated.
    """

    exit_code = 1
    """The exit code of the command (docs/exit-codes.md)."""
    message: str | Message
    """One sentence without a full stop; a `Message` until it is translated into text."""
    hint: str | Message | None
    """The next action, or None if there is nothing useful to say; a `Message` until it is translated into text."""
    original_message: Message | None
    """The original `Message` of `message`, kept after translation; None if it was plain text."""
    original_hint: Message | None
    """The original `Message` of `hint`, kept after translation; None if it was plain text."""

    def __init__(self, message: str | Message, *, hint: str | Message | None = None) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint
        self.original_message = message if isinstance(message, Message) else None
        self.original_hint = hint if isinstance(hint, Message) else None

    @property
    def key(self) -> str | None:
        """Key that identifies the mistake for a program, for example `error.too_dear`; None for plain text."""
        return None if self.original_message is None else self.original_message.key

    @property
    def values(self) -> dict[str, MessageValue]:
        """Values of the message by name, in the unit with which the name ends; empty for plain text."""
        return {} if self.original_message is None else dict(self.original_message.values)

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickle and copy without `__init__`, whose arguments differ between classes and are not all kept."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InternalError(MpplanError):
    """A result of mpplan violates an invariant: a bug, shown with the details to report (exit 1)."""

    exit_code = 1


class UsageError(MpplanError):
    """A flag or a name is wrong, a file is missing, an output cannot be written, a layout is inconsistent (exit 2)."""

    exit_code = 2


class InputFileError(MpplanError):
    """A file was found but its content is invalid; the message says `file:line: key: what was expected` (exit 3)."""

    exit_code = 3


class CannotMeasureError(MpplanError):
    """This machine cannot perform the requested measurement (exit 4)."""

    exit_code = 4
    message: str
    hint: str | None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)


class IncompleteError(MpplanError):
    """A price or a measurement is missing and `--strict` was given (exit 5)."""

    exit_code = 5


class UnstableError(MpplanError):
    """The measurement is not reliable and `--strict` was given (exit 6)."""

    exit_code = 6


class LimitError(MpplanError):
    """The answer exceeds `--max-cost`, `--max-days` or `--max-energy` (exit 7)."""

    exit_code = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class EnoughBudget:
    """A budget that would be enough, for an error about too little money."""

    usd: int
    """A budget that is enough with the requested confidence, rounded up."""
    gpus: int
    """The number of GPUs of the plan with that cost."""
    safe: bool
    """Whether that plan's risk of running out of memory is within the limit of the question."""


class NoPlanError(MpplanError):
    """No plan is feasible: the message says what is short and by how much, the hint what would fit (exit 8)."""

    exit_code = 8
    original_message: Message
    original_hint: Message
    enough: EnoughBudget | None
    """A budget that would be enough if only money is short; None if something else is."""

    def __init__(self, message: Message, *, hint: Message, enough: EnoughBudget | None = None) -> None:
        super().__init__(message, hint=hint)
        self.enough = enough

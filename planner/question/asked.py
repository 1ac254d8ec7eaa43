"""The question as typed, and the values read from it, each noted with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeVar

from planner.errors import Message
from planner.lazy import dataclass
from planner.question.input import Input
from planner.question.inputs import find_input

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputValue:
    """The value of one input, with its source."""

    value: object
    """A string, number, bool, list or None: plain JSON; or a message."""
    source: str
    """flag, environment, file, default, catalogue, derived or record."""
    note: Message | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The question as typed.

    Raises:
        UsageError: a name is not that of an input; near names are offered.
    """

    texts: Mapping[str, str]
    """What was typed, by the name of the input; an input that was not given is absent."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """`flag`, `file` or `environment` by the name of the input; one without an entry counts as `flag`."""

    def __post_init__(self) -> None:
        for name in self.texts:
            find_input(name)

    def text(self, item: Input[object]) -> str | None:
        """What was typed for an input, None where nothing was."""
        text = self.texts.get(item.name)
        return text.strip() if text is not None else None

    def source(self, item: Input[object]) -> str:
        """Where the text of an input came from; `default` where nothing was typed."""
        return self.sources.get(item.name, "flag") if item.name in self.texts else "default"


_NOT_TYPED = {"file": "the configuration file", "environment": "the environment"}
"""What an error names instead of a flag that nobody typed, by the source of the text."""


class Reader:
    """Reads the inputs of a question and keeps every value with its source."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.inputs: dict[str, InputValue] = {}
        """By name, in the order in which they were first noted."""

    def text(self, item: Input[object]) -> str | None:
        """What was typed for an input, None where nothing was; nothing is noted."""
        return self.ask.text(item)

    def value(self, item: Input[T]) -> T | None:
        """Read an input and note it; None where nothing was typed.

        Raises:
            UsageError: the text cannot be read.
        """
        text = self.ask.text(item)
        return None if text is None else self._read(item, text)

    def value_or_default(self, item: Input[T]) -> T:
        """Read an input, or the default that its declaration names, and note it.

        Raises:
            UsageError: the text cannot be read.
        """
        text = self.ask.text(item)
        if text is None:
            assert item.default is not None, f"{item.name} has no default"
            text = item.default
        return self._read(item, text)

    def note(self, item: Input[object], value: object, source: str | None = None, note: Message | None = None) -> None:
        """Keep a value with its source, which is where the text came from unless another is given."""
        self.inputs[item.name] = InputValue(value=value, source=source or self.ask.source(item), note=note)

    def _read(self, item: Input[T], text: str) -> T:
        where = _NOT_TYPED.get(self.ask.source(item))
        value = item.parse(text, item.flag if where is None else f"{item.name} in {where}")
        self.note(item, text if item.echoes_text else value)
        return value

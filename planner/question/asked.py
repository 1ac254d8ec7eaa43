"""The question as typed, and a reader that records each value with its source."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import date
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, TypeVar

from planner.errors import Message, UsageError
from planner.lazy import dataclass
from planner.question.cost_inputs import PRICE_LIKE
from planner.question.input import Input
from planner.question.inputs import GPU, MODEL, find_input
from planner.question.parsers import parse_text
from planner.text import shortened

T = TypeVar("T")

FROM_THE_USER = ("flag", "environment", "file")
"""Sources of an input that mean that the user gave it."""
SOURCES = (*FROM_THE_USER, "default", "catalogue", "derived", "record")
"""All sources that the value of an input may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputValue:
    """The value of one input, with its source."""

    value: object
    """Plain JSON (a string, number, bool, list or None), or a message."""
    source: str
    """One of `SOURCES`: flag, environment, file, default, catalogue, derived or record."""
    note: Message | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The question as typed.

    Raises:
        UsageError: a name is not that of an input (near names are offered), or the text for a name or a file is empty.
    """

    texts: Mapping[str, str]
    """Typed text by the name of the input; an input that was not given is absent."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """One of `SOURCES` by the name of the input: how the user gave it, or what chose the text for the user. An input
    without an entry counts as `flag`."""

    def __post_init__(self) -> None:
        for name in self.texts:
            item = find_input(name)
            if item.parse is parse_text and not self.text(item):
                raise UsageError(f"{self.called(item)}: no {_kind_of_text(item)} given", hint=_empty_text_hint(item))

    def text(self, item: Input[object]) -> str | None:
        """Return the text that was typed for an input; None where there is none."""
        text = self.texts.get(item.name)
        return text.strip() if text is not None else None

    def source(self, item: Input[object]) -> str:
        """Return where the text of an input came from; `default` where nothing was typed."""
        return self.sources.get(item.name, "flag") if item.name in self.texts else "default"

    def called(self, item: Input[object]) -> str:
        """Return the name of a given input in an error: its flag, or its name and the place of the text."""
        where = _NOT_TYPED.get(self.source(item))
        return item.flag if where is None else f"{item.name} in {where}"


_NOT_TYPED = {"file": "the configuration file", "environment": "the environment"}
"""The place that an error names instead of a flag that the user did not type, by the source of the text."""

_KIND_OF_TEXT = {"FILE": "file", "N|FILE": "number or file", "PATH": "path", "RATE": "rate", "ZONE|G": "zone or number"}
"""The kind of text that an input takes, by its metavar, where that is not a name."""


def _kind_of_text(item: Input[object]) -> str:
    return _KIND_OF_TEXT.get(item.metavar or "", "name")


def _empty_text_hint(item: Input[object]) -> str:
    """Return the hint for an input whose text is empty."""
    listing = {GPU.name: "gpus", PRICE_LIKE.name: "gpus", MODEL.name: "models"}.get(item.name)
    return "leave it out where there is none" if listing is None else f"`mpplan {listing}` lists the catalogue"


class Reader:
    """Reads the inputs of a question and keeps every value with its source."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.inputs: dict[str, InputValue] = {}
        """Values by the name of the input, in the order in which they were first recorded."""

    def text(self, item: Input[object]) -> str | None:
        """Return the text that was typed for an input, without recording it; None where there is none."""
        return self.ask.text(item)

    def value(self, item: Input[T]) -> T | None:
        """Read an input and record it; None where nothing was typed.

        Raises:
            UsageError: the text cannot be read.
        """
        text = self.ask.text(item)
        return None if text is None else self._read(item, text)

    def value_or_default(self, item: Input[T]) -> T:
        """Read an input, or the default that its declaration names, and record it.

        Raises:
            UsageError: the text cannot be read.
        """
        text = self.ask.text(item)
        if text is None:
            assert item.default is not None, f"{item.name} has no default"
            text = item.default
        return self._read(item, text)

    def note(self, item: Input[object], value: object, source: str | None = None, note: Message | None = None) -> None:
        """Record a value with its source, by default the source of the input's text."""
        self.inputs[item.name] = InputValue(value=value, source=source or self.ask.source(item), note=note)

    def _read(self, item: Input[T], text: str) -> T:
        value = item.parse(text, self.ask.called(item))
        self.note(item, text if item.echoes_text else value)
        return value


def text_of(item: Input[object], value: object) -> str:
    """Return the text that would follow the flag for a Python value; for a switch, a yes or a no.

    Args:
        item: the input.
        value: text, a number, a day, a path, a numpy scalar or an array of no dimension; several of them for an input
            that takes several.

    Raises:
        UsageError: the value could not follow the flag.
    """
    try:
        value = _plain(value)
        if isinstance(value, bool) and item.is_switch:
            return "yes" if value else "no"
        text = _text_of_one(value)
        if text is None and isinstance(value, Iterable) and not isinstance(value, Mapping | bytes | bytearray):
            text = _text_of_several(item, value)
    except (TypeError, ValueError, OverflowError):  # the class of the value may raise these by itself
        text = None
    if text is not None:
        return text
    hint = f"give what you would write after {item.flag}"
    if isinstance(value, bytes | bytearray):
        raise UsageError(f"{item.name}: bytes are not text", hint=f"decode them: {hint}")
    raise UsageError(f"{item.name}: {_quoted(value)} is neither text nor a number", hint=hint)


def _plain(value: Any) -> Any:
    """Return a Python value for a numpy scalar or an array of no dimension, and the text of a day."""
    if getattr(value, "ndim", None) == 0 and callable(getattr(value, "item", None)):
        is_moment = getattr(getattr(value, "dtype", None), "kind", "") == "M"  # `item` may count nanoseconds
        value = str(value) if is_moment else value.item()
        return value[:DAY_LENGTH] if is_moment else value
    return value.isoformat()[:DAY_LENGTH] if isinstance(value, date) else value


DAY_LENGTH = len("2026-11-20")
"""Length of the part of a moment's text that is the day."""


def _text_of_one(value: object) -> str | None:
    """Return the text of a single value; None where it is not a single value."""
    if isinstance(value, str):
        return str.__str__(value)  # for a member of an enumeration its text, not its name
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return None


def _text_of_several(item: Input[object], values: Iterable[object]) -> str | None:
    """Return the values joined by commas; None where one has no text.

    Raises:
        UsageError: the input takes a single value.
    """
    if not item.takes_several:
        raise UsageError(f"{item.name} takes one value, not several", hint="ask once for each of them")
    texts = [_text_of_one(_plain(value)) for value in values]
    return None if None in texts else ",".join(filter(None, texts))


def _quoted(value: object) -> str:
    """Return a value as an error shows it; its class where it has no text."""
    try:
        return f"`{shortened(str(value))}`"
    except Exception:  # str() of any class may raise anything
        return f"a value of class {type(value).__name__}"

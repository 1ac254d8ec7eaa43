"""Word messages: the planner and pricing emit a key with values, which becomes a sentence in each language.

`en.py` and `zh.py` have one template per key, filled by `str.format`. `_Template` adds format specifications to those
of Python: three significant figures without an exponent (`sig`), flags (`flag`), uncertain inputs (`driver`), GPUs
(`gpu`), precisions (`precision`), probabilities (`chance`), days in the unit that fits (`duration`) or as typed
(`time`), years in days (`years_in_days`), every quantity with a unit ladder (`tokens`, `params` …), every noun with a
plural (`providers`), and lists (`and`, `semicolon`, `space`; commas otherwise).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from string import Formatter
from typing import Any

from planner.errors import Message, UsageError
from planner.lazy import dataclass
from planner.question.input import flag_of
from planner.units import DAY_S, parse_duration_s, write_duration
from reports.text.clean import clean
from reports.text.language import Words, words_for
from reports.text.names import pretty_gpu
from reports.text.numbers import magnitude, with_minus

YEAR_DAYS = 365
"""Number of days in a year, as messages count them."""
SIBLING = "_message"
"""Suffix of the field with the message of a worded field: the message of `x` is in `x_message`."""


@lru_cache
def templates(lang: str) -> Mapping[str, str]:
    """Return the templates of a language by key."""
    table: Mapping[str, str] = import_module(f"reports.text.messages.{lang}").TEMPLATES
    return table


def word(message: Message | Mapping[str, Any] | str, lang: str = "en") -> str:
    """Word a message as a sentence.

    Args:
        message: a message, or its JSON form `{"key", "values"}`; text is returned unchanged.
        lang: one of `reports.text.language.LANGUAGES`.

    Raises:
        KeyError: the language has no template for the key, or a value in the template is missing.
    """
    if isinstance(message, str):
        return message
    key, values = (message.key, dict(message.values)) if isinstance(message, Message) else _parts(message)
    words = words_for(lang)
    return words.typeset(_Template(words).vformat(templates(lang)[key], (), values))


def _parts(message: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    return message["key"], message["values"]


def is_message(value: object) -> bool:
    """Return whether a JSON value has the form of a message."""
    return isinstance(value, Mapping) and value.keys() == {"key", "values"} and isinstance(value["values"], Mapping)


CHANCE = "chance"
"""Format specification of a probability, optionally followed by a number of decimals."""


class _Template(Formatter):
    """`str.format` with messages, lists and quantities as values."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._forms: dict[str, Callable[[Any], str]] = {
            "flag": lambda name: flag_of(str(name)),
            "driver": lambda name: words.name("driver", str(name)),
            "gpu": lambda name: pretty_gpu(str(name)),
            "precision": lambda name: str(name).upper(),
            "duration": self._duration,
            "time": lambda days: write_duration(float(days) * DAY_S),
            "years_in_days": self._years_in_days,
            "sig": lambda value: f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}",
        }

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, list | tuple):
            each = format_spec if format_spec in ("gpu", "precision") else ""
            return self._list([self.format_field(inner, each) for inner in value], format_spec)
        if isinstance(value, Message) or is_message(value):
            return word(value, self._words.lang)
        if format_spec in self._forms:
            return self._forms[format_spec](value)
        if format_spec.startswith(CHANCE):
            return self._chance(float(value), int(format_spec.removeprefix(CHANCE) or 0))
        if self._words.has_ladder(format_spec):
            return self._words.value(format_spec, float(value))
        if self._words.has(f"{format_spec}.other"):
            return self._words.count(format_spec, int(value))
        text = str(super().format_field(value, format_spec))
        return with_minus(text) if format_spec and not isinstance(value, str) else text

    def _chance(self, ratio: float, decimals: int) -> str:
        """Format a probability; decimals are given if it would otherwise look equal to one that it is compared with."""
        return f"{ratio:.{decimals}%}" if decimals else self._words.chance(ratio)

    def _duration(self, days: Any) -> str:
        """Format a time in days, or a time as typed, for example `30d`."""
        if not isinstance(days, str):
            return self._words.duration(float(days))
        try:
            return self._words.duration(parse_duration_s(days, "duration") / DAY_S)
        except UsageError:  # it was left out of a copy
            return days

    def _years_in_days(self, years: Any) -> str:
        """Format years in days, with about as many digits as the answer uses for the same time."""
        days = float(years) * YEAR_DAYS
        ladder = self._words.ladder("days")
        return self._words.number(days, days, days, ladder[-1], decimals=1 - magnitude(days)).text

    def _list(self, parts: list[str], format_spec: str) -> str:
        if format_spec == "and":
            return self._words.join(parts)
        if format_spec == "space":
            return " ".join(parts)
        return self._words("list.semicolon" if format_spec == "semicolon" else "list.comma").join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A worded field of a document."""

    text: str
    foreign: bool = False
    """True if the text is English in a report of another language, because the key is newer than the tables."""


def sentence(document: Mapping[str, Any], field: str, lang: str) -> Sentence:
    """Word a field of a cleaned document: from its message if the tables have the key, else use its English text."""
    message = document.get(f"{field}{SIBLING}")
    return _worded(message, document.get(field), lang)


def sentences(document: Mapping[str, Any], field: str, lang: str) -> list[Sentence]:
    """Word a field that holds a list of texts, as `sentence` does for a single text."""
    return [_worded(message, text, lang) for text, message in with_messages(document, field)]


def with_messages(document: Mapping[str, Any], field: str) -> list[tuple[Any, Any]]:
    """Return the texts of a list field, each with its message, or None for a text without one."""
    texts = document.get(field) or []
    messages = document.get(f"{field}{SIBLING}") or [None] * len(texts)
    return list(zip(texts, messages, strict=True))


def as_fields(field: str, worded: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    """Return texts with their messages as fields of a document; without texts, there is no message field."""
    messages = {f"{field}{SIBLING}": [message for _, message in worded]} if worded else {}
    return {field: [text for text, _ in worded], **messages}


def _worded(message: Any, text: object, lang: str) -> Sentence:
    if is_message(message):
        try:
            return Sentence(text=word(message, lang))
        except (KeyError, ValueError, TypeError):  # the document is newer, or was written by hand
            pass
    return Sentence(text=clean(text), foreign=lang != "en" and bool(text))

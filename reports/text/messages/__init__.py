"""The wording of messages: what the planner and pricing emit as a key with values, as a sentence in each language.

`en.py` and `zh.py` have one template per key, filled by `str.format`. Beside Python's format specifications there are
those of `_Template`: three significant figures without an exponent (`sig`), flags (`flag`), uncertain inputs
(`driver`), GPUs (`gpu`), precisions (`precision`), probabilities (`chance`), days told in the unit that fits
(`duration`) and as they are typed (`time`), years told in days (`years_in_days`), every quantity with a ladder of units
(`tokens`, `params` …), every noun with a plural (`providers`), and lists (`and`, `semicolon`, `space`; commas
otherwise).
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
from reports.text.numbers import magnitude

YEAR_DAYS = 365
"""Days of the years of a message."""
SIBLING = "_message"
"""A worded field `x` of a document has its message beside it, as `x_message`."""


@lru_cache
def templates(lang: str) -> Mapping[str, str]:
    """The templates of a language by key."""
    table: Mapping[str, str] = import_module(f"reports.text.messages.{lang}").TEMPLATES
    return table


def word(message: Message | Mapping[str, Any] | str, lang: str = "en") -> str:
    """A message as a sentence.

    Args:
        message: a message, or its JSON shape `{"key", "values"}`; text is given back as it is.
        lang: one of `reports.text.language.LANGUAGES`.

    Raises:
        KeyError: the language has no template for the key, or a value that the template names is missing.
    """
    if isinstance(message, str):
        return message
    key, values = (message.key, dict(message.values)) if isinstance(message, Message) else _parts(message)
    words = words_for(lang)
    return words.typeset(_Template(words).vformat(templates(lang)[key], (), values))


def _parts(message: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    return message["key"], message["values"]


def is_message(value: object) -> bool:
    """Whether a JSON value has the shape of a message."""
    return isinstance(value, Mapping) and value.keys() == {"key", "values"} and isinstance(value["values"], Mapping)


CHANCE = "chance"
"""Format of a probability, with a number of decimals behind it if any."""


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
            each = "gpu" if format_spec == "gpu" else ""
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
        return str(super().format_field(value, format_spec))

    def _chance(self, ratio: float, decimals: int) -> str:
        """A probability; decimals are there where without them it would read like one that it is compared with."""
        return f"{ratio:.{decimals}%}" if decimals else self._words.chance(ratio)

    def _duration(self, days: Any) -> str:
        """A time in days, or as it was typed: `30d`."""
        if not isinstance(days, str):
            return self._words.duration(float(days))
        try:
            return self._words.duration(parse_duration_s(days, "duration") / DAY_S)
        except UsageError:  # left out of a copy
            return days

    def _years_in_days(self, years: Any) -> str:
        """Years in days, to about as many digits as the answer tells the same time with."""
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
    """True where it is English in a report of another language: the key is newer than the tables."""


def sentence(document: Mapping[str, Any], field: str, lang: str) -> Sentence:
    """A field of a cleaned document in a language: from its message where the tables have it, else its English text."""
    message = document.get(f"{field}{SIBLING}")
    return _worded(message, document.get(field), lang)


def sentences(document: Mapping[str, Any], field: str, lang: str) -> list[Sentence]:
    """The same for a field that holds a list of texts."""
    return [_worded(message, text, lang) for text, message in with_messages(document, field)]


def with_messages(document: Mapping[str, Any], field: str) -> list[tuple[Any, Any]]:
    """The texts of a field that holds a list of them, each with its message; None where it has none."""
    texts = document.get(field) or []
    messages = document.get(f"{field}{SIBLING}") or [None] * len(texts)
    return list(zip(texts, messages, strict=True))


def as_fields(field: str, worded: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    """Texts with their messages as the fields of a document; without any, there is no field of messages."""
    messages = {f"{field}{SIBLING}": [message for _, message in worded]} if worded else {}
    return {field: [text for text, _ in worded], **messages}


def _worded(message: Any, text: object, lang: str) -> Sentence:
    if is_message(message):
        try:
            return Sentence(text=word(message, lang))
        except (KeyError, ValueError, TypeError):  # a newer document, or one that was written by hand
            pass
    return Sentence(text=clean(text), foreign=lang != "en" and bool(text))

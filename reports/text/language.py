"""Words and number formats of one language: `Words`, made from a table in `strings/`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any

from planner.errors import UsageError
from planner.lazy import dataclass
from planner.units import DAY_S, HOUR_S, MINUTE_S
from reports.text.clean import clean
from reports.text.numbers import MINUS, Ladder, Rung, decimals_for, grouped, rung_for, shared_rung
from reports.text.typeset import typeset

LANGUAGES = ("en", "zh")
"""Languages of the report; each is a file of `strings/` with the same keys."""


LEAST_CHANCE = 0.01
"""The smallest probability, and the smallest distance from certainty, that a thousand draws can resolve."""


TIMES = (("days", DAY_S), ("hours", HOUR_S), ("minutes", MINUTE_S), ("seconds", 1.0))
"""Units of time in ordinary use, with their lengths in seconds."""
ONE_UNIT_FROM = 0.9995
"""Fraction of a unit from which a value reads as one unit."""
PLAIN_BELOW = 100
"""Times below this many units have three significant figures; larger ones are whole numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number as displayed everywhere: rounded once, with its range and its unit."""

    text: str
    """Middle with its unit, `$2.31 million`; begins with `≥` if it is a lower bound."""
    full: str
    """Middle with its unit and its range, for use in a sentence."""
    bare: str
    """Middle without its unit, for a column whose header shows the unit."""
    low: str
    """Low with its unit."""
    high: str
    """High with its unit: the figure to budget with."""
    span: str
    """`1.98–2.71` in the unit of the middle; empty if there is no range."""
    value: float
    """The middle as in the document, for sorting and drawing."""
    at_least: bool = False
    """True for a lower bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A piece of a sentence."""

    text: str
    strong: bool = False
    """True for a figure."""
    span: bool = False
    """True for the range of a figure: kept on one line, in a quieter style."""


class Words:
    """Sentences, labels and numbers of one language."""

    __slots__ = ("_ladders", "_text", "lang")

    def __init__(self, lang: str, text: Mapping[str, str], ladders: Mapping[str, Ladder]) -> None:
        self.lang = lang
        self._text = text
        self._ladders = ladders

    def __call__(self, key: str, /, **values: object) -> str:
        """Return the sentence or label of a key, with its values filled in.

        Raises:
            KeyError: the table lacks the key or a value is missing, which is a bug.
        """
        text = self._text[key]
        return self.typeset(text.format(**values)) if values else text

    def typeset(self, text: str) -> str:
        """Correct the spaces in a sentence composed of pieces, by the rules of the language."""
        return typeset(text) if self.lang == "zh" else text

    def has(self, key: str) -> bool:
        """Return whether the table has a key, since names from the document may be newer than the table."""
        return key in self._text

    def name(self, group: str, key: str) -> str:
        """Return the label `group.key`; if the table has none, the key itself with spaces."""
        full = f"{group}.{key}"
        return self._text[full] if full in self._text else clean(key).replace("_", " ")

    def count(self, key: str, number: int) -> str:
        """Return a count in words: `key.none`, `key.one`, `key.two` if the table has it, or `key.other`."""
        form = {0: "none", 1: "one", 2: "two"}.get(number, "other")
        if form == "two" and not self.has(f"{key}.two"):
            form = "other"
        return self._text[f"{key}.{form}"].format(n=f"{number:,}")

    def duration(self, days: float) -> str:
        """Format a time in the largest unit that it fills: `1 hour`, `14.9 days`."""
        units = [(unit, days * DAY_S / unit_s) for unit, unit_s in TIMES]
        unit, size = next(((unit, size) for unit, size in units if size >= ONE_UNIT_FROM), units[-1])
        text = f"{size:.3g}" if size < PLAIN_BELOW else f"{size:,.0f}"
        return self._text[f"duration.{unit}.{'one' if text == '1' else 'other'}"].format(n=text)

    def has_ladder(self, quantity: str) -> bool:
        """Return whether a quantity has a unit ladder."""
        return quantity in self._ladders

    def ladder(self, quantity: str) -> Ladder:
        """Return the unit ladder of a quantity."""
        return self._ladders[quantity]

    def head(self, name: str, rung: Rung) -> str:
        """Return the header of a column: a name and the column's unit."""
        return self._text["column.unit"].format(name=name, unit=rung.column) if rung.column else name

    def join(self, parts: list[str]) -> str:
        """Join a list in words: `a, b and c`."""
        if len(parts) < 2:
            return "".join(parts)
        return self._text["list.comma"].join(parts[:-1]) + self._text["list.and"] + parts[-1]

    def spans(self, key: str, /, **values: str | Figure) -> tuple[Span, ...]:
        """Return a sentence split into pieces, with its figures strong."""
        marked: dict[str, object] = {
            name: strong(value.text) + self.ranged(value) if isinstance(value, Figure) else value
            for name, value in values.items()
        }
        return split_spans(self.typeset(self._text[key].format(**marked)))

    def ranged(self, figure: Figure) -> str:
        """Return the range that follows a figure in a sentence, marked for `split_spans`; empty if there is none."""
        return f"\x04{self._text['range'].format(figure.span)}\x03" if figure.span else ""

    def number(
        self, low: float, mid: float, high: float, rung: Rung, *, at_least: bool = False, decimals: int | None = None
    ) -> Figure:
        """Return a figure in a given unit. Its range determines the number of decimals, unless they are given."""
        scaled = (low / rung.per, mid / rung.per, high / rung.per)
        if decimals is None:
            decimals = max(min(decimals_for(*scaled), rung.decimals), rung.least)
        if rung.cents and decimals > 0:
            decimals = 2
        texts = [grouped(value, decimals) for value in scaled]
        exact = texts[0] == texts[1] == texts[2]
        if exact and "." in texts[1] and rung.least < 0:
            texts = [texts[1].removesuffix(".00") if rung.cents else texts[1].rstrip("0").rstrip(".")] * 3
        joint = "range.signed" if low < 0 else "range.joint"
        bound = self._text["at_least"] if at_least else "{}"
        text = bound.format(_signed(rung.text, texts[1]))
        span = "" if exact else self._text[joint].format(low=texts[0], high=texts[2])
        return Figure(
            text=text,
            full=text + self._text["range"].format(span) if span else text,
            bare=bound.format(texts[1]),
            low=bound.format(_signed(rung.text, texts[0])),
            high=bound.format(_signed(rung.text, texts[2])),
            span=span,
            value=mid,
            at_least=at_least,
        )

    def figure(
        self, quantity: str, estimate: Any, rung: Rung | None = None, *, decimals: int | None = None
    ) -> Figure | None:
        """Return the figure of an estimate (`low mid high at_least`) or of a plain number; None for None."""
        if estimate is None:
            return None
        if isinstance(estimate, Mapping):
            low, mid, high = float(estimate["low"]), float(estimate["mid"]), float(estimate["high"])
            at_least = bool(estimate.get("at_least"))
        else:
            low = mid = high = float(estimate)
            at_least = False
        unit = rung or rung_for(self._ladders[quantity], mid, high)
        if quantity == "money" and isinstance(estimate, Mapping) and low == mid == high == 0 and not at_least:
            return self._under_a_cent(self._ladders[quantity][0])
        return self.number(low, mid, high, unit, at_least=at_least, decimals=decimals)

    def _under_a_cent(self, rung: Rung) -> Figure:
        """Return the figure of a cost that rounds to 0, because documents have whole cents and no run costs nothing."""
        bare = self._text["less_than"].format("0.01")
        text = self._text["less_than"].format(rung.text.format("0.01"))
        return Figure(text=text, full=text, bare=bare, low=text, high=text, span="", value=0.0)

    def value(self, quantity: str, value: float) -> str:
        """Format a single number with its unit."""
        return self.number(value, value, value, rung_for(self._ladders[quantity], value)).text

    def chance(self, ratio: float) -> str:
        """Format a probability 0..1 in percent; draws resolve no value closer than `LEAST_CHANCE` to 0 or 1."""
        if ratio < LEAST_CHANCE:
            return self._text["chance.below"].format(self.value("percent", LEAST_CHANCE))
        if ratio > 1.0 - LEAST_CHANCE:
            return self._text["chance.above"].format(self.value("percent", 1.0 - LEAST_CHANCE))
        return self.value("percent", round(ratio, 2))

    def fixed(self, size: float, rung: Rung, decimals: int) -> str:
        """Format a part of a total with its table's decimals; a part that would round to zero becomes `less than`."""
        least = 10.0**-decimals
        scaled = size / rung.per
        if 0 < scaled < least / 2:
            return self._text["less_than"].format(grouped(least, decimals))
        return grouped(scaled, decimals)

    def shared(self, quantity: str, estimates: list[Any]) -> Rung:
        """Return one unit for all numbers of a column."""
        ends = [
            (float(e["mid"]), float(e["high"])) if isinstance(e, Mapping) else (float(e), float(e))
            for e in estimates
            if e is not None
        ]
        return shared_rung(self._ladders[quantity], ends)


def _signed(unit: str, number: str) -> str:
    """Format a number with its unit; a minus precedes both."""
    return MINUS + unit.format(number[1:]) if number.startswith(MINUS) else unit.format(number)


def strong(text: str) -> str:
    """Mark a text as a figure for `split_spans`."""
    return f"\x02{text}\x03"


_MARKED = re.compile("([\x02\x04])([^\x03]*)\x03")


def split_spans(text: str) -> tuple[Span, ...]:
    """Split a sentence at the marks set by `strong` and `Words.ranged`."""
    spans, at = [], 0
    for match in _MARKED.finditer(text):
        if match.start() > at:
            spans.append(Span(text=text[at : match.start()]))
        inner = match[2]
        spans.append(Span(text=inner, strong=match[1] == "\x02", span=match[1] == "\x04"))
        at = match.end()
    if at < len(text):
        spans.append(Span(text=text[at:]))
    return tuple(spans)


@lru_cache
def words_for(lang: str) -> Words:
    """Return the words of a language.

    Raises:
        UsageError: there is no such language.
    """
    if lang not in LANGUAGES:
        raise UsageError(f"the report has no language `{lang}`", hint=f"use one of: {', '.join(LANGUAGES)}")
    table = import_module(f"reports.text.strings.{lang}")
    return Words(lang, table.TEXT, table.LADDERS)

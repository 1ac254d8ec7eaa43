"""Parsers of the text of an input. A parser takes the text, and the name (flag) of the input for an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from types import MappingProxyType

from planner.errors import UsageError
from planner.rows import near_names
from planner.units import parse_count, parse_watts, signed_count, without_commas

LARGEST_WHOLE = 10**8
"""Largest number of GPUs, sequences in a step or tokens in a sequence: a larger one is a slip."""

NO_ALIASES: Mapping[str, str] = MappingProxyType({})


def parse_text(text: str, what: str) -> str:
    """Return the text itself: the name of a row, a place or a file, which is looked up later."""
    return text


def parse_method(text: str, what: str) -> str:
    """Return the id of a training method, given its id or another name: `full`, `QLoRA`.

    Raises:
        UsageError: there is no such method.
    """
    from planner.training.method import METHOD_ROWS, load_methods

    row = METHOD_ROWS.get(text)
    return one_of(load_methods)(text if row is None else row.id, what)


def parse_amount(text: str, what: str) -> float:
    """Return a number of tokens, images or sequences as people write it: `1.5T`, `115M`.

    Raises:
        UsageError: the text is not a count of at least one.
    """
    value = parse_count(text, what)
    if value < 1:
        raise UsageError(f"{what}: `{text}` must be at least 1", hint="write it like `1.5T`, `300B`, `115M` or `15000`")
    return value


def parse_usd(text: str, what: str) -> float:
    """Return an amount in USD as people write it: `$2M`, `500k`.

    Raises:
        UsageError: the text is not a positive amount.
    """
    return parse_count(text.lstrip("$"), what, like="`2M`, `500k` or `15000`")


def parse_date(text: str, what: str) -> date:
    """Return a day in ISO 8601.

    Raises:
        UsageError: the text is not a day of the calendar in this form.
    """
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{what}: `{text}` is not a date", hint="write it like 2026-11-20") from error


def parse_switch(text: str, what: str) -> bool:
    """Return whether a switch is on: `yes` or `no`, as it is written in a mapping.

    Raises:
        UsageError: the text is neither.
    """
    return one_of(lambda: ("yes", "no"), {"true": "yes", "false": "no"})(text, what) == "yes"


AUTO = "auto"
"""Text that leaves a value to a search."""


def is_auto(text: str | None) -> bool:
    """Return whether an input is left to a search."""
    return (text or "").strip().lower() == AUTO


def parse_power_limit(text: str, what: str) -> float | None:
    """Return a power limit per GPU in watts (`500`, `500W`), or None for `auto`.

    Raises:
        UsageError: the text is neither.
    """
    if text.lower() == AUTO:
        return None
    hint = "write it in watts, like `500` or `500W`, or `auto`"
    without_commas(text, what, hint=hint)
    try:
        return parse_watts(text, what)
    except UsageError as error:
        raise UsageError(f"{what}: `{text}` is not a power above 0", hint=hint) from error


def _example(what: str, *values: str) -> str:
    """Return a hint that shows how a value is written."""
    return f"for example {_written(what, *values)}"


def _written(what: str, *values: str) -> str:
    """Return alternative values as they would be typed, each after the flag if `what` is one."""
    return ", or ".join(f"{what} {value}" if what.startswith("-") else value for value in values)


def whole_number(low: int = 1, high: int = LARGEST_WHOLE, example: int = 8) -> Callable[[str, str], int]:
    """Return a parser of whole numbers in `[low, high]`, as people write counts: `4096`, `4k`.

    Hints show the example.
    """

    def parse(text: str, what: str) -> int:
        like = str(max(low, min(example, high)))
        hint = _example(what, like)
        without_commas(text, what, hint=f"give one number, {hint}", whole=True)
        value = signed_count(text, what, like=f"`{like}`")
        if value > high:
            raise UsageError(f"{what}: `{text}` must be at most {high:,}", hint=hint)
        if value < low or value != int(value):
            raise UsageError(f"{what}: `{text}` must be a whole number of at least {low}", hint=hint)
        return int(value)

    return parse


def number(low: float, *, above: bool = False, example: str = "2.5") -> Callable[[str, str], float]:
    """Return a parser of finite numbers of at least `low`, or above it; `$` and thousands separators are allowed."""

    def parse(text: str, what: str) -> float:
        hint = _example(what, example)
        try:
            value = float(without_commas(text.lstrip("$"), what, hint=hint))
        except ValueError as error:
            raise UsageError(f"{what}: `{text}` is not a number", hint=hint) from error
        if not math.isfinite(value):
            raise UsageError(f"{what}: `{text}` is not a finite number", hint=hint)
        if not (low < value if above else low <= value):
            bound = f"greater than {low:g}" if above else f"at least {low:g}"
            raise UsageError(f"{what}: `{text}` must be {bound}", hint=hint)
        return value

    return parse


def one_of(names: Callable[[], Iterable[str]], aliases: Mapping[str, str] = NO_ALIASES) -> Callable[[str, str], str]:
    """Return a parser of a choice, in upper or lower case.

    Args:
        names: loads the names that are allowed.
        aliases: other spellings of some of them.
    """

    def parse(text: str, what: str) -> str:
        allowed = tuple(names())
        value = aliases.get(text.lower(), text.lower())
        if value not in allowed:
            near = near_names(value, allowed, 1)
            offer = f"did you mean `{near[0]}`? " if near else ""
            raise UsageError(f"{what}: unknown `{text}`", hint=f"{offer}choose one of {', '.join(allowed)}")
        return value

    return parse


def probability(example: int) -> Callable[[str, str], float]:
    """Return a parser of probabilities as people write them: `5%`, `0.05`.

    Hints show the example, in percent.
    """

    def parse(text: str, what: str) -> float:
        hint = _example(what, f"{example}%", f"{example / 100:g}")
        try:
            value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError as error:
            raise UsageError(f"{what}: `{text}` is not a probability", hint=hint) from error
        if not 0.0 < value < 1.0:
            if 1.0 < value < 100.0 and not text.endswith("%"):
                hint = f"write {_written(what, f'{value:g}%', f'{value / 100:g}')}"
            raise UsageError(f"{what}: `{text}` must be above 0 and below 1 (100%)", hint=hint)
        return value

    return parse

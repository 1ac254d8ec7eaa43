"""Reader of the user's TOML files (own.toml, quote.toml …); an error reads `file:line: key: what was expected`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from planner.errors import InputFileError, Message, UsageError
from planner.files import read_text
from planner.lazy import dataclass
from planner.rows import LARGEST_AMOUNT, near_names, parse_decimal
from planner.text import one_line, shortened
from pricing.base.listing import listed

LARGEST_BYTES = 2**20
"""Size limit of a settings file written by a person."""
MOST_CHARACTERS = 1000
"""Length limit of a text in it."""
LARGEST_PARSED = 1e21
"""Limit of a size in bytes or a duration in seconds: a thousand million terabytes."""
DEEPEST = 16
"""Limit on nested tables and lists; none of these files has more than three levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlFile:
    """A parsed TOML file with typed access to its keys, given as `table.key`."""

    name: str
    """File name as shown in errors."""
    text: str
    """Content of the file, in which the line of a key is found."""
    values: dict[str, Any]
    """Values by table and key; numbers with a point are Decimal."""

    def fail(self, key: str, expected: str, hint: str | Message | None = None) -> InputFileError:
        """Return the error for a key, with its line number; line 1 where the file lacks the key."""
        last = re.escape(key.rsplit(".", 1)[-1])
        match = re.search(rf"^[ \t]*\[?\[?[\w.\"-]*{last}\b", self.text, flags=re.MULTILINE)
        line = self.text.count("\n", 0, match.start()) + 1 if match else 1
        return InputFileError(
            f"{self.name}:{line}: {shortened(key)}: {expected}", hint=hint or "docs/pricing.md lists the keys"
        )

    def get(self, key: str) -> Any:
        """Return the value of `table.key`; None where it is missing."""
        value: Any = self.values
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        """Return a number in `[low, high]`; `default` where the key is missing.

        Raises:
            InputFileError: missing without a default, not a number, or out of bounds.
        """
        value = self.get(key)
        if value is None and default is not None:
            return float(default)
        figure = _figure(value)
        if figure is None or not low <= float(figure) <= high:
            expected = f"expected a number from {low:g} to {high:g}"
            raise self.fail(key, f"{expected}, found {_shown(value)}", _unquoted(key, value))
        return float(figure)

    def whole(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """Return a whole number in `[low, high]`; `default` where the key is missing.

        Raises:
            InputFileError: missing without a default, not a whole number, or out of bounds.
        """
        number = self.number(key, low, high, default)
        if not number.is_integer():
            raise self.fail(key, f"expected a whole number from {low} to {high}, found {_shown(self.get(key))}")
        return int(number)

    def amount(self, key: str, default: Decimal | None = None) -> Decimal:
        """Return an exact amount from 0 to `LARGEST_AMOUNT`; `default` where the key is missing.

        Raises:
            InputFileError: missing without a default, not a number, negative, or above `LARGEST_AMOUNT`.
        """
        value = self.get(key)
        if value is None and default is not None:
            return default
        figure = _figure(value)
        if figure is None or not 0 <= figure <= LARGEST_AMOUNT:
            expected = f"expected an amount of at least 0 and at most {LARGEST_AMOUNT:g}"
            raise self.fail(key, f"{expected}, found {_shown(value)}", _unquoted(key, value))
        return figure

    def parsed(self, key: str, parse: Callable[[str, str], float], default: float = 0.0) -> float:
        """Return a size or a duration with a unit, read by a parser of `planner.units`; `default` where it is missing.

        Raises:
            InputFileError: it cannot be parsed, or exceeds `LARGEST_PARSED`.
        """
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, str | int | Decimal) or isinstance(value, bool):
            raise self.fail(key, f"expected text with a unit, found {_shown(value)}")
        try:
            number = parse(str(value)[:MOST_CHARACTERS], key)
        except (UsageError, ValueError) as error:
            hint = error.hint if isinstance(error, UsageError) else None
            raise self.fail(key, f"expected a number with a unit, found {_shown(value)}", hint) from None
        if number > LARGEST_PARSED:
            raise self.fail(key, f"expected a smaller number, found {_shown(value)}")
        return number

    def word(self, key: str, allowed: Iterable[str], default: str | None = None, like: str | None = None) -> str:
        """Return one of the `allowed` words; `default` where the key is missing.

        Args:
            key: `table.key`.
            allowed: the words.
            default: the word where the key is missing.
            like: description of the expected words, where there are too many to list.

        Raises:
            InputFileError: missing without a default, or another word.
        """
        value = self.get(key)
        if value is None and default is not None:
            return default
        words = tuple(allowed)
        if value not in words:
            near = near_names(value, words) if isinstance(value, str) else []
            expected = f"expected {like or f'one of {listed(words)}'}, found {_shown(value)}"
            raise self.fail(key, expected, f"did you mean {listed(near)}?" if near else None)
        return str(value)

    def text_of(self, key: str, default: str | None = None) -> str:
        """Return a non-empty text on one line; `default` where the key is missing.

        Raises:
            InputFileError: missing without a default, not a text, or longer than `MOST_CHARACTERS`.
        """
        value = self.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not one_line(value):
            raise self.fail(key, f"expected text, found {_shown(value)}")
        if len(value) > MOST_CHARACTERS:
            raise self.fail(key, f"expected at most {MOST_CHARACTERS} characters, found {len(value)}")
        return one_line(value)

    def day(self, key: str) -> date | None:
        """Return a date (`2026-08-28`, quoted or not); None where it is missing.

        Raises:
            InputFileError: the value is not a date.
        """
        value = self.get(key)
        if value is None or type(value) is date:
            return value
        try:
            return date.fromisoformat(str(value))
        except ValueError:
            raise self.fail(key, f"expected a date such as 2026-08-28, found {_shown(value)}") from None

    def only(self, known: Iterable[str]) -> None:
        """Check that the file has no keys other than these (`table.key`), and no tables other than theirs.

        Raises:
            InputFileError: it has an unknown key or table; similar ones are suggested.
        """
        allowed = tuple(known)
        tables = tuple(dict.fromkeys(key.rpartition(".")[0] for key in allowed if "." in key))
        for key in _keys(self.values, ""):
            is_table = self.get(key) == {}
            if key not in allowed and not (is_table and key in tables):
                near = near_names(key, tables if is_table else allowed)
                raise self.fail(key, "unknown key", f"did you mean {listed(near)}?" if near else None)


def _figure(value: Any) -> Decimal | None:
    """Return a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    figure = Decimal(value)
    return figure if figure.is_finite() else None


def _unquoted(key: str, value: Any) -> str | None:
    """Return how to write a number that is wrongly in quotes; None where the value is not one."""
    figure = parse_decimal(value) if isinstance(value, str) else None
    if figure is None:
        return None
    return f"a number stands without quotes: {key.rsplit('.', 1)[-1]} = {figure:f}"


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    try:
        return f"`{shortened(str(value))}`"
    except ValueError:  # a hexadecimal number with thousands of digits has no decimal text
        return "a number of thousands of digits"


def _is_too_deep(values: dict[str, Any]) -> bool:
    """Return whether tables or lists are nested more than `DEEPEST` levels deep."""
    level: list[Any] = [values]
    for _ in range(DEEPEST):
        tables = (value.values() if isinstance(value, dict) else value for value in level)
        level = [inner for table in tables for inner in table if isinstance(inner, dict | list)]
    return bool(level)


def _keys(values: dict[str, Any], prefix: str) -> Iterable[str]:
    """Yield the keys of values and of empty tables, each as `table.key`."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def read_toml(path: Path) -> TomlFile:
    """Read a TOML file; numbers with a point become Decimal.

    Raises:
        UsageError: it is missing or cannot be read.
        InputFileError: it is not a regular file, is larger than `LARGEST_BYTES`, or is not TOML in UTF-8.
    """
    text = read_text(path, str(path), most_bytes=LARGEST_BYTES)
    return TomlFile(name=str(path), text=text, values=parse_toml(text, str(path), Decimal))


def parse_toml(text: str, name: str, number: Callable[[str], Any]) -> dict[str, Any]:
    """Return the tables of a TOML text.

    Args:
        text: content of the file.
        name: name of the file, for errors.
        number: reads a number with a point or an exponent.

    Raises:
        InputFileError: it is not TOML, is nested too deeply, or has a number with too many digits.
    """
    try:
        values = tomllib.loads(text, parse_float=number)
        if not _is_too_deep(values):
            return values
        raise RecursionError
    except tomllib.TOMLDecodeError as error:
        position = re.search(r"\(at line (\d+)", str(error))
        line = position[1] if position else max(len(text.splitlines()), 1)
        reason = shortened(str(error).split(" (at")[0])
        raise InputFileError(f"{name}:{line}: not TOML: {reason}", hint="see toml.io for the syntax") from error
    except RecursionError:
        reason, hint = "tables or lists are nested too deeply", "no key needs more than a few levels"
    except (ValueError, ArithmeticError):  # Python reads whole numbers of at most 4,300 digits
        reason, hint = "a number has too many digits", "write it as people do, like 2.5e6"
    raise InputFileError(f"{name}:1: {reason}", hint=hint)

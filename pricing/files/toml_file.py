"""Reader of the user's TOML files (own.toml, quote.toml …); an error says `file:line: key: what was expected`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from planner.errors import InputFileError, Message
from planner.rows import near_names, read_text
from pricing.base.listing import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlFile:
    """A parsed TOML file with typed access to its keys, given as `table.key`."""

    name: str
    """File name as shown in errors."""
    text: str
    """Content of the file, to find the line of a key."""
    values: dict[str, Any]
    """Values by table and key; numbers with a point are Decimal."""

    def fail(self, key: str, expected: str, hint: str | Message | None = None) -> InputFileError:
        """The error for a key, with its line number; line 1 where the file lacks the key."""
        last = re.escape(key.rsplit(".", 1)[-1])
        match = re.search(rf"^[ \t]*\[?\[?[\w.\"-]*{last}\b", self.text, flags=re.MULTILINE)
        line = self.text.count("\n", 0, match.start()) + 1 if match else 1
        return InputFileError(f"{self.name}:{line}: {key}: {expected}", hint=hint or "docs/pricing.md lists the keys")

    def get(self, key: str) -> Any:
        """The value of `table.key`, None where it is missing."""
        value: Any = self.values
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        """A number in `[low, high]`; `default` where the key is missing.

        Raises:
            InputFileError: missing without a default, not a number, or out of bounds.
        """
        value = self.get(key)
        if value is None and default is not None:
            return default
        if not _is_finite(value) or not low <= value <= high:
            raise self.fail(key, f"expected a number from {low:g} to {high:g}, found {_shown(value)}")
        return float(value)

    def amount(self, key: str, default: Decimal | None = None) -> Decimal:
        """An exact amount of at least 0; `default` where the key is missing.

        Raises:
            InputFileError: missing without a default, not a number, or negative.
        """
        value = self.get(key)
        if value is None and default is not None:
            return default
        if not _is_finite(value) or not 0 <= value <= MOST_AMOUNT:
            raise self.fail(key, f"expected an amount of at least 0, found {_shown(value)}")
        return Decimal(value)

    def word(self, key: str, allowed: Iterable[str], default: str | None = None) -> str:
        """One of the `allowed` words; `default` where the key is missing.

        Raises:
            InputFileError: missing without a default, or another word.
        """
        value = self.get(key)
        if value is None and default is not None:
            return default
        if value not in tuple(allowed):
            raise self.fail(key, f"expected one of {listed(allowed)}, found {_shown(value)}")
        return str(value)

    def text_of(self, key: str, default: str | None = None) -> str:
        """A text that is not empty; `default` where the key is missing.

        Raises:
            InputFileError: missing without a default, or not a text.
        """
        value = self.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value.strip():
            raise self.fail(key, f"expected a text, found {_shown(value)}")
        return value.strip()

    def day(self, key: str) -> date | None:
        """A date (`2026-08-28`, quoted or not), None where it is missing.

        Raises:
            InputFileError: the value is not a date.
        """
        value = self.get(key)
        if value is None or type(value) is date:
            return value
        try:
            return date.fromisoformat(str(value))
        except ValueError:
            raise self.fail(key, f"expected a date such as 2026-08-28, found `{value}`") from None

    def only(self, known: Iterable[str]) -> None:
        """Check that the file has no other keys than these (`table.key`).

        Raises:
            InputFileError: it has an unknown key; similar ones are offered.
        """
        allowed = tuple(known)
        for key in _keys(self.values, ""):
            if key not in allowed:
                near = near_names(key, allowed)
                raise self.fail(key, "unknown key", f"did you mean {listed(near)}?" if near else None)


def _is_finite(value: Any) -> bool:
    """Whether a value is a number, neither `nan` nor `inf`."""
    return value.is_finite() if isinstance(value, Decimal) else isinstance(value, int) and not isinstance(value, bool)


MOST_AMOUNT = Decimal("1e15")
"""More than anything costs; a larger amount is a slip, and beyond what is added up exactly."""


def _shown(value: Any) -> str:
    text = str(value)
    return "nothing" if value is None else f"`{text[:LONGEST_SHOWN]}{'…' if len(text) > LONGEST_SHOWN else ''}`"


LONGEST_SHOWN = 60
"""Characters of a value that an error repeats."""


def _keys(values: dict[str, Any], prefix: str) -> Iterable[str]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def read_toml(path: Path) -> TomlFile:
    """Read a TOML file; numbers with a point become Decimal.

    Raises:
        UsageError: it is missing or cannot be read.
        InputFileError: it is not TOML in UTF-8.
    """
    text = read_text(path, str(path))
    try:
        values = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:  # beside wrong syntax: integers of 5,000 digits, deep nesting
        position = re.search(r"\(at line (\d+)", str(error))
        line = position[1] if position else str(text.count("\n") + 1)
        reason = str(error).split(" (at")[0]
        raise InputFileError(f"{path}:{line}: not TOML: {reason}", hint="see toml.io for the syntax") from error
    return TomlFile(name=str(path), text=text, values=values)

"""Catalogue rows: a CSV file becomes typed values, or an error that names `file:line: key: what was expected`.

Also here because every catalogue needs it: names compared without case and punctuation (`compact`) and the near names
of a misspelt one (`near_names`).
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TypeVar

from planner.errors import InputFileError, UsageError

CATALOG = Path(__file__).parent / "catalog"
"""Folder of the rows that ship with the package."""

T = TypeVar("T")

_BETWEEN_DIGITS = re.compile(r"(?<=[0-9])[^a-z0-9]+(?=[0-9])")
_PUNCTUATION = re.compile(r"[^a-z0-9.]+|(?<![0-9])\.|\.(?![0-9])")
_YES_NO = {"yes": True, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a CSV file, with typed access to its cells. An empty cell means that the value is unknown."""

    file: str
    """File name as shown in errors."""
    line: int
    """Line number in the file, the header being line 1."""
    cells: Mapping[str, str]

    def fail(self, key: str, expected: str) -> InputFileError:
        """The error for a cell that is not what it should be."""
        return InputFileError(
            f"{self.file}:{self.line}: {key}: expected {expected}, found `{self.cells.get(key, '')}`",
            hint=f"correct column `{key}` in line {self.line} of {self.file}",
        )

    def cell(self, key: str) -> str:
        """The cell as it stands, stripped; empty where nothing is written."""
        if key not in self.cells:
            raise InputFileError(
                f"{self.file}:1: {key}: expected a column of this name", hint=f"add a column `{key}` to {self.file}"
            )
        return self.cells[key]

    def opt_text(self, key: str) -> str | None:
        """Text of a cell; None where it is empty."""
        return self.cell(key) or None

    def text(self, key: str) -> str:
        """Text of a cell that must not be empty."""
        value = self.cell(key)
        if not value:
            raise self.fail(key, "a text")
        return value

    def opt_number(self, key: str, *, low: float = 0.0, high: float = float("inf")) -> float | None:
        """A finite number in `[low, high]`; None where the cell is empty."""
        text = self.cell(key)
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high or value == float("inf"):
            raise self.fail(key, f"a number {_bounds(low, high)}")
        return value

    def number(self, key: str, *, low: float = 0.0, high: float = float("inf")) -> float:
        """A finite number in `[low, high]` that must be there."""
        value = self.opt_number(key, low=low, high=high)
        if value is None:
            raise self.fail(key, f"a number {_bounds(low, high)}")
        return value

    def opt_integer(self, key: str, *, low: int = 0, high: int = 10**15) -> int | None:
        """A whole number in `[low, high]`; None where the cell is empty."""
        text = self.cell(key)
        if not text:
            return None
        try:
            value = int(text)
        except ValueError:
            raise self.fail(key, f"a whole number {_bounds(low, high)}") from None
        if not low <= value <= high:
            raise self.fail(key, f"a whole number {_bounds(low, high)}")
        return value

    def integer(self, key: str, *, low: int = 0, high: int = 10**15) -> int:
        """A whole number in `[low, high]` that must be there."""
        value = self.opt_integer(key, low=low, high=high)
        if value is None:
            raise self.fail(key, f"a whole number {_bounds(low, high)}")
        return value

    def flag(self, key: str) -> bool:
        """`yes` or `no`."""
        value = _YES_NO.get(self.cell(key))
        if value is None:
            raise self.fail(key, "`yes` or `no`")
        return value

    def choice(self, key: str, options: Iterable[str]) -> str:
        """One of the given words."""
        options = tuple(options)
        value = self.cell(key)
        if value not in options:
            raise self.fail(key, "one of " + ", ".join(f"`{one}`" for one in options))
        return value

    def words(self, key: str) -> tuple[str, ...]:
        """Texts separated by semicolons; empty where the cell is."""
        return tuple(word.strip() for word in self.cell(key).split(";") if word.strip())


def _bounds(low: float, high: float) -> str:
    if high in (float("inf"), 10**15):
        return f"of at least {low:g}"
    return f"between {low:g} and {high:g}"


def read_rows(path: Path, columns: Iterable[str] = ()) -> list[Row]:
    """Read a CSV file with a header line (UTF-8, comma, `"` quotes).

    Args:
        path: the file.
        columns: columns that must be there even if the file has no lines; any other is checked when it is asked for.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is not UTF-8, lacks a column, or a line has more cells than the header.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot read {path}: {reason}", hint="check the path and its permissions") from None
    except UnicodeDecodeError:
        raise InputFileError(f"{path.name}:1: expected text in UTF-8", hint="save the file as UTF-8") from None
    reader = csv.reader(StringIO(text, newline=""))
    header = next(reader, None)
    if not header:
        raise InputFileError(f"{path.name}:1: expected a header line, found nothing", hint="name the columns in line 1")
    missing = [column for column in columns if column not in header]
    if missing:
        raise InputFileError(
            f"{path.name}:1: {missing[0]}: expected a column of this name",
            hint=f"add the missing columns: {', '.join(missing)}",
        )
    rows = []
    for values in reader:
        if not any(values):
            continue
        line = reader.line_num
        if len(values) != len(header):
            raise InputFileError(
                f"{path.name}:{line}: expected {len(header)} cells, found {len(values)}",
                hint="quote cells that contain a comma",
            )
        rows.append(Row(file=path.name, line=line, cells=dict(zip(header, map(str.strip, values), strict=True))))
    return rows


def keyed(rows: Iterable[Row], build: Callable[[Row], T]) -> dict[str, T]:
    """Rows by their `id`, in file order.

    Raises:
        InputFileError: an id stands twice.
    """
    found: dict[str, T] = {}
    for row in rows:
        key = row.text("id")
        if key in found:
            raise row.fail("id", "an id that no other line has")
        found[key] = build(row)
    return found


def compact(name: str) -> str:
    """A name without case and punctuation: `Llama 3.1 70B`, `llama-3-1-70b` and `llama3.1-70b` become one text.

    What parts two digits stays, as a point: `gpt-3-1.3b` is not `gpt-3-13b`.
    """
    return _PUNCTUATION.sub("", _BETWEEN_DIGITS.sub(".", name.casefold()))


def near_names(name: str, names: Iterable[str], limit: int = 3) -> list[str]:
    """Names close to a misspelt one, best first: those that contain it or start like it, then the most similar."""
    wanted = compact(name)
    by_compact = {compact(one): one for one in names}
    close = difflib.get_close_matches(wanted, by_compact, n=limit, cutoff=0.6)
    if len(wanted) >= 2:
        inside = sorted((one for one in by_compact if wanted in one), key=len)
        close = list(dict.fromkeys(inside + close))
    return [by_compact[one] for one in close[:limit]]


def unknown_name(what: str, name: str, names: Iterable[str], listing: str) -> UsageError:
    """The error for a name that no row has, with near names and the command that lists them all."""
    near = near_names(name, names)
    offer = f"did you mean {', '.join(f'`{one}`' for one in near)}? " if near else ""
    return UsageError(f"unknown {what} `{name}`", hint=f"{offer}`{listing}` lists them all")

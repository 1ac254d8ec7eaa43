"""The reader of every CSV data file: a line becomes a typed `Row`, or an error `file:line: key: what was expected`.

`Catalogue` holds the rows of one file by id and finds them by name, ignoring case and punctuation (`compact`). The
error for an unknown name offers similar ones (`near_names`).
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Generic, TypeVar

from planner.errors import InputFileError, UsageError
from planner.files import read_text
from planner.lazy import dataclass
from planner.text import shortened

CATALOG = Path(__file__).parent / "catalog"
"""Folder of the data files that ship with the planner."""

T = TypeVar("T")

_BETWEEN_DIGITS = re.compile(r"(?<=[0-9])[^a-z0-9]+(?=[0-9])")
_PUNCTUATION = re.compile(r"[^a-z0-9.]+|(?<![0-9])\.|\.(?![0-9])")
_MAY_BE_THOUSANDS = re.compile(r"[1-9][0-9]{0,2},[0-9]{3}")
_YES_NO = {"yes": True, "no": False}

LARGEST_AMOUNT = 10**15
"""Largest number in a cell; its inverse is the smallest above zero. Within these limits exact sums stay exact."""


class CellError(InputFileError):
    """The content of a cell is invalid; `column` and `expected` are the same for every line with this mistake."""

    def __init__(self, place: str, key: str, expected: str, found: str, hint: str) -> None:
        super().__init__(f"{place}: {key}: expected {expected}, found `{shortened(found)}`", hint=hint)
        self.column = key
        """Heading of the column."""
        self.expected = expected
        """Description of valid contents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a CSV file, with typed access to its cells; an empty cell means that the value is unknown.

    Every accessor raises `InputFileError` if the cell does not have the requested type.
    """

    file: str
    """File name as shown in errors."""
    line: int | None
    """Line number in the file, where the header is line 1; None for values that are not from a file."""
    cells: Mapping[str, str]
    """Text by column."""

    def fail(self, key: str, expected: str) -> CellError:
        """The error for a cell with invalid content."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        line = "" if self.line is None else f" in line {self.line}"
        hint = f"correct column `{key}`{line} of {self.file}"
        return CellError(place, key, expected, self.cells.get(key, ""), hint)

    def cell(self, key: str) -> str:
        """The text of a cell without surrounding blanks; may be empty."""
        if key not in self.cells:
            raise InputFileError(
                f"{self.file}:1: {key}: expected a column of this name", hint=f"add a column `{key}` to {self.file}"
            )
        return self.cells[key]

    def opt_text(self, key: str) -> str | None:
        """Text of a cell; None if it is empty."""
        return self.cell(key) or None

    def text(self, key: str) -> str:
        """Text of a cell that must not be empty."""
        value = self.cell(key)
        if not value:
            raise self.fail(key, "text")
        return value

    def opt_number(self, key: str, *, low: float = 0.0, high: float = float("inf")) -> float | None:
        """A finite number in `[low, high]`; None if the cell is empty."""
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
        """A finite number in `[low, high]`; the cell must not be empty."""
        value = self.opt_number(key, low=low, high=high)
        if value is None:
            raise self.fail(key, f"a number {_bounds(low, high)}")
        return value

    def opt_integer(self, key: str, *, low: int = 0, high: int = 10**15) -> int | None:
        """A whole number in `[low, high]`; None if the cell is empty."""
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
        """A whole number in `[low, high]`; the cell must not be empty."""
        value = self.opt_integer(key, low=low, high=high)
        if value is None:
            raise self.fail(key, f"a whole number {_bounds(low, high)}")
        return value

    def decimal(self, key: str, *, above_zero: bool = False, high: float = LARGEST_AMOUNT) -> Decimal:
        """An exact decimal number of at least 0 (or above 0) and at most `high`; see `parse_decimal`."""
        if may_be_thousands(self.cell(key)):
            raise self.fail(key, "a number with a point as decimal mark and none for thousands")
        value = parse_decimal(self.cell(key))
        if value is None or value < 0 or (above_zero and value == 0) or value > high:
            low = "above 0" if above_zero else "of at least 0"
            top = "" if high == LARGEST_AMOUNT else f" and at most {high:g}"
            raise self.fail(key, f"a decimal number {low}{top}")
        return value

    def day(self, key: str) -> date:
        """A day, written as an ISO 8601 date."""
        try:
            return date.fromisoformat(self.cell(key))
        except ValueError:
            raise self.fail(key, "an ISO date such as 2026-08-28") from None

    def flag(self, key: str) -> bool:
        """`yes` or `no` as a Boolean."""
        value = _YES_NO.get(self.cell(key))
        if value is None:
            raise self.fail(key, "`yes` or `no`")
        return value

    def choice(self, key: str, options: Iterable[str]) -> str:
        """One of the given words."""
        options = tuple(options)
        value = self.cell(key)
        if value not in options:
            raise self.fail(key, "one of " + ", ".join(f"`{option}`" for option in options))
        return value

    def words(self, key: str) -> tuple[str, ...]:
        """Texts separated by semicolons; empty if the cell is empty."""
        return tuple(word.strip() for word in self.cell(key).split(";") if word.strip())


def _bounds(low: float, high: float) -> str:
    if high in (float("inf"), 10**15):
        return f"of at least {low:g}"
    return f"between {low:g} and {high:g}"


def may_be_thousands(text: str) -> bool:
    """Whether the comma of a number may separate thousands, as in `1,100`: it then stands for 1.1 or for 1100."""
    return _MAY_BE_THOUSANDS.fullmatch(text.strip()) is not None


def parse_decimal(text: str) -> Decimal | None:
    """Read a plain decimal number (point or comma as decimal mark, no thousands separators); None if it is invalid.

    Invalid too: a comma that may separate thousands, and what no amount can be (infinite, or out of `LARGEST_AMOUNT`).
    """
    plain = text.strip()
    if plain.count(",") == 1 and "." not in plain:
        plain = plain.replace(",", ".")
    try:
        value = Decimal(plain)
    except InvalidOperation:
        return None
    if may_be_thousands(text) or not value.is_finite():
        return None
    return value if value == 0 or Decimal(1) / LARGEST_AMOUNT <= abs(value) <= LARGEST_AMOUNT else None


def parse_rows(text: str, name: str, columns: Iterable[str] = (), *, left_out: int = 0) -> Iterator[Row]:
    """Read CSV text with a header line (comma, `"` quotes); blank lines are skipped.

    Args:
        text: content of the file.
        name: the file's name, for errors.
        columns: columns that must exist even if the file has no lines; any other is checked when it is accessed.
        left_out: number of lines after the header that were removed from the text, to correct the line numbers.

    Raises:
        InputFileError: a column is missing, or (during iteration) a line has too few or too many cells.
    """
    reader = csv.reader(StringIO(text, newline=""))
    header = read_header(reader, name, columns)

    def rows() -> Iterator[Row]:
        try:
            for cells in reader:
                if not any(cells):
                    continue
                line = reader.line_num + left_out
                if len(cells) != len(header):
                    raise miscounted(name, line, len(header), len(cells))
                values = dict(zip(header, map(str.strip, cells), strict=True))
                yield Row(file=name, line=line, cells=values)
        except csv.Error as error:
            raise not_csv(name, reader.line_num + left_out, error) from None

    return rows()


def read_header(reader: Iterator[list[str]], name: str, columns: Iterable[str] = ()) -> list[str]:
    """The column names in the first line of a CSV file.

    Raises:
        InputFileError: there is no header line, or it lacks one of `columns`.
    """
    try:
        header = next(reader, None)
    except csv.Error as error:
        raise not_csv(name, 1, error) from None
    if not header:
        raise InputFileError(f"{name}:1: expected a header line, found nothing", hint="name the columns in line 1")
    missing = [column for column in columns if column not in header]
    if missing:
        raise InputFileError(
            f"{name}:1: {missing[0]}: expected a column of this name",
            hint=f"add the missing columns: {', '.join(missing)}",
        )
    return header


def miscounted(name: str, line: int, expected: int, found: int) -> InputFileError:
    """The error for a line with too few or too many cells."""
    return InputFileError(
        f"{name}:{line}: expected {expected} cells, found {found}", hint="quote cells that contain a comma"
    )


def not_csv(name: str, line: int, error: csv.Error) -> InputFileError:
    """The error for a line that is not valid CSV."""
    return InputFileError(f"{name}:{line}: not CSV: {error}", hint="check the quotes")


def read_rows(path: Path, columns: Iterable[str] = (), *, name: str | None = None) -> list[Row]:
    """Read a CSV file with a header line (UTF-8, comma, `"` quotes).

    Args:
        path: the file.
        columns: columns that must exist even if the file has no lines; any other is checked when it is accessed.
        name: name of the file in errors; None for the last part of its path.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: the file is not UTF-8 or lacks a column, or a line has too few or too many cells.
    """
    display_name = path.name if name is None else name
    return list(parse_rows(read_text(path, display_name), display_name, columns))


def keyed(rows: Iterable[Row], build: Callable[[Row], T], key: str = "id") -> dict[str, T]:
    """Build a value from each row; return the values by the text of the column `key`, in file order.

    Raises:
        InputFileError: a key is empty or occurs twice.
    """
    by_key: dict[str, T] = {}
    for row in rows:
        text = row.text(key)
        if text in by_key:
            raise row.fail(key, f"{'an' if key == 'id' else 'a'} {key} that no other line has")
        by_key[text] = build(row)
    return by_key


class Catalogue(Generic[T]):
    """The contents of one data file, by id and by name; the file is read, and a value built, on first access.

    A row is found by its id, by the names in its `aliases` column (separated by semicolons, if the file has the column)
    and by the names of the `aliases` function, ignoring case and punctuation.
    """

    def __init__(
        self,
        path: Path,
        build: Callable[[Row], T],
        *,
        what: str = "row",
        listing: str = "",
        aliases: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Declare a catalogue; nothing is read yet.

        Args:
            path: the CSV file; its `id` column must be unique.
            build: makes the value of a row.
            what: kind of the rows in the error for an unknown name, such as `GPU` or `model`.
            listing: the command that lists the names; if empty, the error names all ids.
            aliases: returns further names, each with the id to which it refers.
        """
        self._path = path
        self._build = build
        self._what = what
        self._listing = listing
        self._aliases = aliases
        self._built: dict[str, T] = {}

    @cached_property
    def _rows(self) -> dict[str, Row]:
        return keyed(read_rows(self._path), lambda row: row)

    @cached_property
    def by_id(self) -> dict[str, T]:
        """Every value by id, in file order.

        Raises:
            InputFileError: a row is wrong.
        """
        return {id_: self._value(id_) for id_ in self._rows}

    def _value(self, id_: str) -> T:
        if id_ not in self._built:
            self._built[id_] = self._build(self._rows[id_])
        return self._built[id_]

    @cached_property
    def _names(self) -> dict[str, str]:
        """Every name as written, with the id to which it refers."""
        rows = [(id_, row) for id_, row in self._rows.items() if "aliases" in row.cells]
        in_file = {name: id_ for id_, row in rows for name in row.words("aliases")}
        return {**self._aliases(), **in_file, **{name: name for name in self._rows}}

    @cached_property
    def _by_compact_name(self) -> dict[str, str]:
        return {compact(name): id_ for name, id_ in self._names.items()}

    def get(self, name: str) -> T | None:
        """The value for an id or another name; None if no row has it."""
        if name in self._rows:  # avoids reading the other names
            return self._value(name)
        id_ = self._by_compact_name.get(compact(name))
        return None if id_ is None else self._value(id_)

    def find(self, name: str) -> T:
        """The value for an id or another name.

        Raises:
            UsageError: no row has the name; the ids of similar names are offered.
        """
        value = self.get(name)
        if value is None:
            similar = dict.fromkeys(self._names[near] for near in near_names(name, self._names, limit=9))
            raise _unknown(self._what, name, list(similar)[:3], self._listing or ", ".join(self._rows))
        return value


def compact(name: str) -> str:
    """A name without case and punctuation: `Llama 3.1 70B`, `llama-3-1-70b` and `llama3.1-70b` become the same text.

    A separator between two digits is kept as a point, so that `gpt-3-1.3b` differs from `gpt-3-13b`.
    """
    return _PUNCTUATION.sub("", _BETWEEN_DIGITS.sub(".", name.casefold()))


def near_names(name: str, names: Iterable[str], limit: int = 3, cutoff: float = 0.6) -> list[str]:
    """Known names close to a misspelt one, best first: names that contain it, then the most similar ones (difflib)."""
    misspelt = compact(name)
    by_compact = {compact(known): known for known in names}
    close = difflib.get_close_matches(misspelt, by_compact, n=limit, cutoff=cutoff)
    if len(misspelt) >= 2:
        inside = sorted((known for known in by_compact if misspelt in known), key=len)
        close = list(dict.fromkeys(inside + close))
    return [by_compact[known] for known in close[:limit]]


def unknown_name(what: str, name: str, names: Iterable[str], listing: str) -> UsageError:
    """The error for an unknown name, with similar names and the command or call that lists all names."""
    return _unknown(what, name, near_names(name, names), listing)


def _unknown(what: str, name: str, similar: Iterable[str], listing: str) -> UsageError:
    suggestions = ", ".join(f"`{near}`" for near in similar)
    offer = f"did you mean {suggestions}? " if suggestions else ""
    where_listed = f"`{listing}` lists them all" if listing.startswith(("mpplan ", "help(")) else f"there are {listing}"
    return UsageError(f"unknown {what} `{name}`", hint=f"{offer}{where_listed}")

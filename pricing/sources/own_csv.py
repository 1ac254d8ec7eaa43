"""Imports the user's own price list: CSV with comma, semicolon or tab, with or without a byte-order mark.

The columns may be in any order. `gpu` and one of `price_per_gpu_h` and `price_per_instance_h` (with
`gpus_per_instance`) are required; where `provider`, `region`, `instance`, `commitment`, `currency`, `seller`, `date`,
`source` or `notes` is missing, the value given on the command line or a default is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from io import BytesIO
from typing import TYPE_CHECKING

from planner.csv_table import separator_of
from planner.errors import InputFileError, UsageError
from planner.hardware.catalogue import find_gpu
from planner.lazy import dataclass
from planner.rows import LARGEST_AMOUNT, may_be_thousands, parse_decimal
from planner.text import one_line, shortened
from planner.units import today
from pricing.base.listing import listed
from pricing.base.money import CURRENCIES, plain
from pricing.book.rows import (
    COMMITMENTS,
    HIGHEST_PER_GPU_H,
    HIGHEST_PLAUSIBLE_PER_GPU_H,
    MOST_CHARACTERS,
    SELLERS,
    PriceRow,
)
from pricing.sources.skypilot import Imported

if TYPE_CHECKING:
    import pandas as pd

KNOWN = (
    "gpu",
    "price_per_gpu_h",
    "price_per_instance_h",
    "gpus_per_instance",
    "provider",
    "region",
    "instance",
    "commitment",
    "currency",
    "seller",
    "date",
    "source",
    "notes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallbacks:
    """Values used for columns that the file lacks."""

    provider: str | None
    """None where the file must have the column."""
    currency: str
    day: date
    source: str


def read_frame(content: bytes, name: str) -> pd.DataFrame:
    """Read a CSV with every cell as text, empty where blank; the separator is detected from the header.

    Args:
        content: the file.
        name: its name, for errors.

    Raises:
        InputFileError: it is empty, not UTF-8, names a column twice, or a line has too many cells.
    """
    import pandas as pd

    try:
        header = content.partition(b"\n")[0].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(f"{name}:1") from error
    if not header.strip():
        raise InputFileError(f"{name}:1: header: expected column names", hint=f"the columns are {listed(KNOWN, 20)}")
    separator = separator_of(header)
    try:
        frame = pd.read_csv(BytesIO(content), sep=separator, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(f"{name}:{_line_not_utf8(content)}") from error
    except ValueError as error:  # pandas raises subclasses of ValueError
        reason = shortened(str(error).replace("Error tokenizing data. C error: ", ""), 200)
        raise InputFileError(f"{name}: not a CSV: {reason}", hint="see docs/pricing.md") from error
    if not isinstance(frame.index, pd.RangeIndex):  # the first column was read as row names
        raise InputFileError(
            f"{name}:2: expected {len(frame.columns)} cells, found more", hint="remove the cells after the last column"
        )
    frame.columns = [str(column).strip() for column in frame.columns]
    if not frame.columns.is_unique:
        twice = shortened(str(frame.columns[frame.columns.duplicated()][0]))
        raise InputFileError(f"{name}:1: {twice}: expected one column of this name", hint="rename or drop one")
    return frame


def _not_utf8(place: str) -> InputFileError:
    return InputFileError(f"{place}: encoding: expected UTF-8", hint="save it as CSV UTF-8")


def _line_not_utf8(content: bytes) -> int:
    """Return the first line with a byte that is not UTF-8."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1
    return 1


def read_own_csv(frame: pd.DataFrame, name: str, fallbacks: Fallbacks, *, skip_invalid: bool = False) -> Imported:
    """Return the rows of a price list with the columns described in the module docstring.

    Each distinct cell of a column is read once, so a million rows cost about as much as their distinct values.

    Args:
        frame: the file, every cell as text.
        name: the file's name, for errors.
        fallbacks: values of missing columns.
        skip_invalid: leave invalid rows out and count them by reason, rather than refuse the file.

    Raises:
        InputFileError: a required column is missing, or a row is invalid.
    """
    _check_columns(frame, name, fallbacks)
    columns, faults = _columns(frame, fallbacks)
    skipped = {}
    bad = sorted({at for lines in faults.values() for at in lines})
    if bad and not skip_invalid:
        expected, lines = min(faults.items(), key=lambda fault: fault[1][0])
        named = "it" if len(bad) == 1 else f"lines {listed((str(at + 2) for at in bad), 20)}"
        raise InputFileError(
            f"{name}:{lines[0] + 2}: {expected}", hint=f"correct {named}, or leave such rows out with --skip-invalid"
        )
    for expected, lines in faults.items():
        skipped[expected] = len(lines)
    lost = set(bad)
    rows = tuple(_row(columns, at, fallbacks) for at in range(len(frame)) if at not in lost)
    return Imported(rows=rows, skipped=skipped)


def _check_columns(frame: pd.DataFrame, name: str, fallbacks: Fallbacks) -> None:
    have = set(frame.columns)
    unknown = [column for column in frame.columns if column not in KNOWN]
    if unknown:
        raise InputFileError(f"{name}:1: {unknown[0]}: unknown column", hint=f"the columns are {listed(KNOWN, 20)}")
    prices = {"price_per_gpu_h", "price_per_instance_h"} & have
    if "gpu" not in have or len(prices) != 1:
        expected = "expected `gpu` and one of `price_per_gpu_h`, `price_per_instance_h`"
        raise InputFileError(f"{name}:1: header: {expected}", hint=f"the columns are {listed(KNOWN, 20)}")
    if "price_per_instance_h" in have and "gpus_per_instance" not in have:
        raise InputFileError(
            f"{name}:1: gpus_per_instance: expected this column with price_per_instance_h",
            hint="give the number of GPUs of an instance",
        )
    if "provider" not in have and not fallbacks.provider:
        raise InputFileError(f"{name}:1: provider: expected this column", hint="or give --provider")


Faults = dict[str, list[int]]


def _columns(frame: pd.DataFrame, fallbacks: Fallbacks) -> tuple[dict[str, list[object]], Faults]:
    """Return every column with its values by row, and the indices of invalid rows by what was expected."""
    faults: Faults = {}
    price = "price_per_gpu_h" if "price_per_gpu_h" in frame.columns else "price_per_instance_h"
    readers: dict[str, tuple[Callable[[str], object | None], str, object]] = {
        "gpu": (_gpu, "expected a GPU of the catalogue", None),
        price: (_price, "expected a price above 0", None),
        "gpus_per_instance": (_count, "expected a count of 1 or more", 1),
        "provider": (_text, "expected a name", fallbacks.provider),
        "region": (_optional, _TOO_LONG, ""),
        "instance": (_optional, _TOO_LONG, ""),
        "commitment": (_one_of(COMMITMENTS), f"expected one of {listed(COMMITMENTS)}", "on-demand"),
        "currency": (_one_of(CURRENCIES), "expected an ISO 4217 code", fallbacks.currency),
        "seller": (_one_of(SELLERS), f"expected one of {listed(SELLERS)}", "provider"),
        "date": (_day, f"expected a date such as 2026-08-28, not after today ({today()} in UTC)", fallbacks.day),
        "source": (_text, "expected where the price is from", fallbacks.source),
        "notes": (_optional, _TOO_LONG, ""),
    }
    columns: dict[str, list[object]] = {}
    for column, (read, expected, default) in readers.items():
        if column not in frame.columns:
            columns[column] = [default] * len(frame)
            continue
        values = {cell: read(cell) for cell in frame[column].unique()}
        columns[column] = [values[cell] for cell in frame[column]]
        wrong = {
            cell: f"{column}: {expected}, found `{shortened(cell)}`{_remark(column, price, cell)}"
            for cell, value in values.items()
            if value is None
        }
        for at, cell in enumerate(frame[column]):
            if cell in wrong:
                faults.setdefault(wrong[cell], []).append(at)
    _per_gpu_price(columns, price, faults)
    return columns, faults


def _per_gpu_price(columns: dict[str, list[object]], price: str, faults: Faults) -> None:
    per_instance = price == "price_per_instance_h"
    prices: list[object] = []
    for at, (amount, count, currency) in enumerate(
        zip(columns[price], columns["gpus_per_instance"], columns["currency"], strict=True)
    ):
        value = None
        if isinstance(amount, Decimal) and isinstance(count, int):
            value = plain(amount / count) if per_instance else amount
            if not 0 < value <= HIGHEST_PER_GPU_H:
                faults.setdefault(f"{price}: expected a price of at least 0.0001 per GPU-hour", []).append(at)
            elif currency == "USD" and value > HIGHEST_PLAUSIBLE_PER_GPU_H:
                text = f"{price}: {value} USD per GPU-hour is not plausible; is it per instance, or in cents?"
                faults.setdefault(text, []).append(at)
        prices.append(value)
    columns["price_per_gpu_h"] = prices


def _row(columns: dict[str, list[object]], at: int, fallbacks: Fallbacks) -> PriceRow:
    cell = {column: values[at] for column, values in columns.items()}
    day, price, count = cell["date"], cell["price_per_gpu_h"], cell["gpus_per_instance"]
    assert isinstance(day, date) and isinstance(price, Decimal) and isinstance(count, int)  # noqa: PT018
    return PriceRow(
        id="new",
        gpu=str(cell["gpu"]),
        provider=str(cell["provider"]).lower(),
        region=str(cell["region"]),
        instance=str(cell["instance"]),
        gpus_per_instance=count,
        commitment=str(cell["commitment"]),
        price_per_gpu_h=price,
        currency=str(cell["currency"]),
        seller=str(cell["seller"]),
        date_earliest=day,
        date_latest=day,
        date_basis="stated in the file" if day != fallbacks.day else "day given on import",
        source=str(cell["source"]),
        notes=str(cell["notes"]),
    )


def _gpu(cell: str) -> str | None:
    try:
        return find_gpu(cell).id
    except UsageError:
        return None


def _remark(column: str, price: str, cell: str) -> str:
    """Return what to append to the error in a cell; empty where nothing more is known."""
    if column == "gpu":
        return _candidates(cell)
    if column == price and may_be_thousands(cell):
        return ": write it with a point as decimal mark and none for thousands"
    return ""


def _candidates(cell: str) -> str:
    """Return the GPUs that a name may mean, to append to an error; empty where none is similar."""
    try:
        find_gpu(cell)
    except UsageError as error:
        named = str(error.hint or "").partition("?")[0]
        return f": {named}" if "`" in named and "`mpplan gpus`" not in named else ""
    return ""


def _price(cell: str) -> Decimal | None:
    amount = parse_decimal(cell)
    return amount if amount is not None and amount > 0 else None


def _count(cell: str) -> int | None:
    digits = cell.strip()
    valid = digits.isascii() and digits.isdigit() and len(digits) <= len(str(LARGEST_AMOUNT))
    return int(digits) if valid and 1 <= int(digits) <= LARGEST_AMOUNT else None


def _text(cell: str) -> str | None:
    return _optional(cell) or None


_TOO_LONG = f"expected at most {MOST_CHARACTERS} characters"


def _optional(cell: str) -> str | None:
    return one_line(cell) if len(cell) <= MOST_CHARACTERS else None


def _day(cell: str) -> date | None:
    try:
        day = date.fromisoformat(cell.strip())
    except ValueError:
        return None
    return day if day <= today() else None


def _one_of(allowed: frozenset[str] | tuple[str, ...]) -> Callable[[str], str | None]:
    return lambda cell: cell.strip() if cell.strip() in allowed else None


def file_source(content: bytes, name: str) -> str:
    """Return the source of imported rows: the file's name and the first digits of its SHA-256."""
    return f"{name} sha256:{hashlib.sha256(content).hexdigest()[:12]}"

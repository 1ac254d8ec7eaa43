"""The table that nccl-tests prints: its header, its rows, and checks of their consistency.

Columns are found by the names in the header, which differ between versions and collectives (NVIDIA/nccl-tests
`src/util.cu`, before 2025 `src/common.cu`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

from planner.errors import InputFileError
from planner.lazy import dataclass
from planner.units import GB, MICRO

USED = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")
"""Collectives for which the planner has an equation."""
ROOTED = "a collective with a root"
"""Common name for broadcast, reduce, gather and scatter, for which the planner has no equation."""
RUN_AGAIN = "run it again to its end, like `all_reduce_perf -b 8 -e 8G -f 2 -g 1`, and keep all that it prints"
LEAST_TIME_US = 1e-3
"""Least time that is accepted. nccl-tests prints two decimals, and a damaged digit can make a time from which no
bandwidth can be computed."""
LONGEST_SIZE = 15
"""Most digits of a message size."""
TIME_RATIO, FACTOR_RATIO, ROUNDED_GB_PER_S = 0.06, 0.003, 0.02
"""Tolerances for bandwidths, due to rounding in print: a time above 10 s has two digits, a bandwidth two decimals."""


def invalid(place: str, what: str, hint: str = RUN_AGAIN) -> InputFileError:
    """Return the error for a place, given as `file:line`."""
    return InputFileError(f"{place}: {what}", hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row: the times of one message size."""

    place: str
    """`file:line`."""
    size_bytes: int
    redop: str
    root: int
    """Root rank; -1 if the collective has none."""
    time_s: float
    """Out-of-place time."""
    algorithm_gb_per_s: float
    bus_gb_per_s: float
    checked: tuple[bool, ...]
    """Whether the results were verified: out of place, in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table while it is being read."""

    place: str
    """`file:line` of its header."""
    names: tuple[str, ...]
    """Names of its columns. The time columns appear twice, out of place first."""
    rows: list[TableRow] = field(default_factory=list)

    def read(self, place: str, cells: Sequence[str]) -> None:
        """Read a row; the row of an empty message (fewer bytes than ranks) is left out.

        Raises:
            InputFileError: a cell is missing or invalid, or the results were wrong.
        """
        width = len(self.names)
        if not width <= len(cells) <= width + 2:  # a time stamp has two cells
            raise invalid(place, f"expected {width} columns, found {len(cells)}: the table is damaged or cut off")
        if len(cells[0]) > LONGEST_SIZE:
            raise invalid(place, f"size: expected a number of bytes, found `{cells[0][:LONGEST_SIZE]}...`")
        if int(cells[0]):
            self.rows.append(self._row(place, cells))

    def _row(self, place: str, cells: Sequence[str]) -> TableRow:
        wrong_cells = [cells[column] for column, name in enumerate(self.names) if name == "#wrong"]
        for cell in wrong_cells:
            if cell != "N/A" and _number(place, "#wrong", cell) > 0:
                raise invalid(place, f"#wrong: expected 0, found {cell}: the results were wrong")
        verdicts = wrong_cells or [cells[column] for column, name in enumerate(self.names) if name == "error"]
        time_us = _number(place, "time", self._cell(cells, "time"))
        if time_us < LEAST_TIME_US:
            raise invalid(place, f"time: expected microseconds above 0, found {time_us:g}")
        root = self._cell(cells, "root", "-1")
        return TableRow(
            place=place, size_bytes=int(cells[0]), redop=self._cell(cells, "redop", "none"),
            root=int(root) if root.isdecimal() else -1, time_s=time_us * MICRO,
            algorithm_gb_per_s=_number(place, "algbw", self._cell(cells, "algbw")),
            bus_gb_per_s=_number(place, "busbw", self._cell(cells, "busbw")),
            checked=tuple(cell != "N/A" for cell in verdicts),
        )  # fmt: skip

    def _cell(self, cells: Sequence[str], name: str, without: str = "") -> str:
        """First cell of a column; `without` if the table has no such column."""
        return cells[self.names.index(name)] if name in self.names else without

    def collective_of(self, ranks: int) -> str:
        """Infer a collective that is not printed, from the columns and busbw over algbw (PERFORMANCE.md).

        A collective without an in-place form is not verified in place, which tells it from one that has such a form.

        Raises:
            InputFileError: two collectives would print the same table.
        """
        row = max(self.rows, key=lambda row: row.algorithm_gb_per_s)
        if row.root >= 0:
            return ROOTED
        shared = (ranks - 1) / ranks
        factor = row.bus_gb_per_s / row.algorithm_gb_per_s if row.algorithm_gb_per_s else 0.0
        nearest = min((2.0 * shared, shared, 1.0), key=lambda known: abs(known - factor))
        if nearest == shared and row.redop != "none":
            return "reduce_scatter"
        if ranks > 2 and nearest != shared:
            return "sendrecv" if nearest == 1.0 else "all_reduce"
        without_in_place, with_in_place = (
            ("alltoall", "all_gather") if nearest == shared else ("sendrecv", "all_reduce")
        )
        if any(row.checked):
            return with_in_place if all(row.checked) else without_in_place
        raise invalid(
            self.place,
            f"cannot tell {with_in_place} from {without_in_place}",
            f"write `# Collective test starting: {with_in_place}_perf` above the run, if it is that",
        )

    def check(self, collective: str, ranks: int) -> None:
        """Check that algbw is size over time, and that busbw over algbw is the factor for this number of ranks.

        Raises:
            InputFileError: a row is inconsistent, so a digit is damaged or ranks are missing.
        """
        shared = (ranks - 1) / ranks
        factor = {"all_reduce": 2.0 * shared, "sendrecv": 1.0}.get(collective, shared)
        for row in self.rows:
            printed = (
                ("algbw", row.algorithm_gb_per_s, row.size_bytes / row.time_s / GB, TIME_RATIO),
                ("busbw", row.bus_gb_per_s, row.algorithm_gb_per_s * factor, FACTOR_RATIO),
            )
            for name, value, expected, ratio in printed:
                if abs(value - expected) > ratio * expected + ROUNDED_GB_PER_S:
                    raise invalid(
                        row.place,
                        f"{name}: expected {expected:.4g} GB/s with {ranks} GPUs in {collective}, found {value:g}",
                        "keep all that nccl-tests printed as it is, with the `# Rank` line of each GPU",
                    )


def read_header(place: str, text: str) -> Table:
    """Start a table from its header line.

    Raises:
        InputFileError: the header lacks a required column.
    """
    words = text.replace("cputime", "time").split()
    names = tuple(name for name in words if name not in ("#", "timestamp"))
    for name in ("size", "time", "algbw", "busbw"):
        if name not in names:
            raise invalid(place, f"{name}: expected a column of this name")
    return Table(place=place, names=names)


def _number(place: str, name: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise invalid(place, f"{name}: expected a number, found `{cell}`")
    return value

"""The collectives of a record as a table, each fitted by a straight line: latency, rate and residual."""

from __future__ import annotations

from collections.abc import Sequence

from mpplan.ui.listing import figure, table
from planner.measured.network.lines import CollectiveLine
from planner.units import GB, MICRO

HEADERS = ("op", "group", "ranks", "nodes", "backend", "sizes", "alpha µs", "beta GB/s", "bus GB/s", "residual %")


def collectives_text(lines: Sequence[CollectiveLine]) -> str:
    """Return a table, and a line that explains its columns."""
    rows = [
        (
            line.op,
            line.group or "-",
            str(line.world),
            str(line.nodes),
            line.backend or "-",
            str(line.sizes),
            figure(line.latency_s, MICRO, 3),
            figure(line.bytes_per_s, GB, 3),
            figure(line.bus_bytes_per_s, GB, 3),
            f"{100.0 * line.residual_ratio:.1f}",
        )
        for line in lines
    ]
    return f"collectives: time = alpha + bytes / beta, fitted over all sizes\n{table(HEADERS, rows)}"

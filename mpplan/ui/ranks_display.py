"""Results of a probe of several ranks, as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from mpplan.ui.collectives import collectives_text
from mpplan.ui.listing import figure, table
from planner.measured.network.lines import collective_lines
from planner.records.measurement import Measurement
from planner.units import GIB, MIB, MILLI
from probes.record.ranks_summary import OverlapRow, StepRow, overlap_rows, step_rows, waiting_power_w


def ranks_text(points: Sequence[Measurement]) -> str:
    """Return all results of a probe of several ranks."""
    waiting_w = waiting_power_w(points)
    tables = [
        collectives_text(lines) if (lines := collective_lines(points)) else "",
        overlap_text(overlap_rows(points)),
        steps_text(step_rows(points)),
        "" if waiting_w is None else f"a GPU that waits for a late one draws {waiting_w:.0f} W\n",
    ]
    return "\n".join(text for text in tables if text) or "nothing of several ranks was measured\n"


def overlap_text(rows: Sequence[OverlapRow]) -> str:
    """Return the slowdown of a matrix product and a collective that run at once; empty without rows."""
    if not rows:
        return ""
    headers = ("collective", "group", "ranks", "MiB", "product takes ×", "collective takes ×", "quality")
    lines = [
        (
            row.op, row.group, str(row.ranks), figure(row.bytes, MIB), figure(row.product_slowdown_ratio, digits=3),
            figure(row.collective_slowdown_ratio, digits=3), row.quality or "-",
        )
        for row in rows
    ]  # fmt: skip
    return f"a product and a collective at once, against each alone\n{table(headers, lines)}"


def steps_text(rows: Sequence[StepRow]) -> str:
    """Return measured steps by layout beside the sum of their parts; empty without rows."""
    if not rows:
        return ""
    headers = (
        "layout", "recipe", "ms", "tokens/s", "from its parts, ms", "takes ×", "ranks apart", "peak GiB", "J",
        "quality",
    )  # fmt: skip
    lines = [
        (
            row.parallel + (" + recomputation" if row.recompute == "full" else ""),
            row.recipe,
            figure(row.time_s, MILLI),
            figure(row.tokens_per_s),
            figure(row.predicted_s, MILLI),
            figure(row.composition_ratio, digits=3),
            "-" if row.rank_spread_ratio is None else f"{row.rank_spread_ratio:.1%}",
            figure(row.memory_bytes, GIB, 3),
            figure(row.energy_j),
            row.quality or "-",
        )
        for row in rows
    ]
    title = f"training steps of {rows[0].model}, over {rows[0].ranks} ranks"
    return f"{title}\n{table(headers, lines)}"

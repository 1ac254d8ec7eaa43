"""What a probe of several ranks found, as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from mpplan.ui.listing import figure, table
from planner.units import GIB, MIB, MILLI
from probes.record.ranks_summary import OverlapRow, StepRow


def overlap_text(rows: Sequence[OverlapRow]) -> str:
    """How much slower a product and a collective are at once; empty without rows."""
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
    """Steps by layout beside what their parts say; empty without rows."""
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

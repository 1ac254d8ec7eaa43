"""The table of collectives: units that people use, and a dash where nothing is known."""

from __future__ import annotations

import re
from dataclasses import replace

from mpplan.ui.collectives import collectives_text
from planner.measured.network.lines import CollectiveLine

LINE = CollectiveLine(
    op="all_gather", group="cross", backend="nccl", world=4, nodes=4, sizes=21, smallest_bytes=1024.0,
    largest_bytes=2.0**30, latency_s=34.56e-6, latency_sd_s=1e-6, bytes_per_s=41.234e9, bytes_per_s_sd=1e9,
    bus_bytes_per_s=30.9255e9, residual_ratio=0.1234,
)  # fmt: skip


def test_latency_is_in_microseconds_rates_in_gb_per_s_and_the_residual_in_percent() -> None:
    title, headers, row = collectives_text([LINE]).splitlines()

    assert title == "collectives: time = alpha + bytes / beta, fitted over all sizes"
    assert re.split("  +", headers) == [
        "op", "group", "ranks", "nodes", "backend", "sizes", "alpha µs", "beta GB/s", "bus GB/s", "residual %",
    ]  # fmt: skip
    assert row.split() == ["all_gather", "cross", "4", "4", "nccl", "21", "34.6", "41.2", "30.9", "12.3"]


def test_what_is_not_known_is_a_dash() -> None:
    unknown = replace(LINE, group=None, backend=None, bytes_per_s=None, bus_bytes_per_s=None)

    assert collectives_text([unknown]).splitlines()[2].split() == [
        "all_gather", "-", "4", "4", "-", "21", "34.6", "-", "-", "12.3",
    ]  # fmt: skip

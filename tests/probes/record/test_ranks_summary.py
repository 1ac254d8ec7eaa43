"""What a run of several ranks found, in rows and as tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpplan.ui.ranks_display import overlap_text, steps_text
from planner.records.communication import Communication, OverlapFigures, RankFigures
from planner.records.figures import EnergyUse, PeakMemory, PredictedFigures, TimeStatistics
from planner.records.measurement import Measurement
from planner.records.work import RunSetup, WorkShape
from probes.record.ranks_summary import overlap_rows, step_rows, waiting_power_w
from tests.planner.recorded import a_measurement

STEP: Measurement = replace(
    a_measurement(kind="parallel_step", probe_id="parallel_step/fsdp2"),
    setup=RunSetup(parallel="fsdp2", precision="bf16", recipe="bf16-fsdp", recompute="full"),
    shape=WorkShape(model="llama-3.2-1b", layers=4, seq_len=4096, tokens=32768),
    communication=Communication(group="world", backend="nccl", world=8, nodes=1),
    time=TimeStatistics(median_s=0.5),
    predicted=PredictedFigures(time_s=0.4),
    memory=PeakMemory(allocated_peak_bytes=8 * 2**30),
    energy=EnergyUse(j_per_iteration=2400.0),
    ranks=RankFigures(names=("node 0 rank 0", "node 0 rank 1"), time_s=(0.48, 0.504)),
)
BESIDE: Measurement = replace(
    a_measurement(kind="overlap", probe_id="overlap/all_reduce"),
    communication=Communication(op="all_reduce", group="world", world=8, nodes=1, bytes=32 * 2**20),
    overlap=OverlapFigures(product_slowdown_ratio=1.12, collective_slowdown_ratio=1.3),
)


def test_a_step_is_set_beside_what_its_parts_say() -> None:
    (row,) = step_rows([STEP, BESIDE])

    assert (row.parallel, row.ranks, row.tokens_per_s) == ("fsdp2", 8, 65536.0)
    assert row.composition_ratio == pytest.approx(1.25)
    assert row.rank_spread_ratio == pytest.approx(0.05)
    assert row.energy_j == 2400.0


def test_the_table_of_steps_has_layout_time_parts_and_ratio() -> None:
    title, headers, line = steps_text(step_rows([STEP])).splitlines()

    assert title == "training steps of llama-3.2-1b, 4 layers, 4096 tokens, over 8 ranks"
    assert headers.split()[:4] == ["layout", "recipe", "ms", "tokens/s"]
    assert line.split() == [
        "fsdp2", "+", "recomputation", "bf16-fsdp", "500", "65540", "400", "1.25", "5.0%", "8", "2400", "ok",
    ]  # fmt: skip


def test_overlap_says_how_much_longer_each_takes() -> None:
    text = overlap_text(overlap_rows([STEP, BESIDE]))

    assert text.splitlines()[-1].split() == ["all_reduce", "world", "8", "32", "1.12", "1.3", "ok"]
    assert overlap_text(()) == steps_text(()) == ""


def test_waiting_power_is_that_of_the_ranks_that_wait() -> None:
    """Rank 0 rests."""
    waiting = replace(
        a_measurement(kind="waiting", probe_id="waiting"), ranks=RankFigures(power_w=(90.0, 150.0, 170.0))
    )

    assert waiting_power_w([STEP, waiting]) == 160.0
    assert waiting_power_w([STEP]) is None

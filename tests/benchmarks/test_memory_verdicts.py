"""The score of the memory verdicts, on verdicts whose score is worked out by hand."""

import csv

import pytest

from benchmarks.memory_verdicts import POINTS, SWEEP, Verdict, brier, called_unlikely, table

CELLS = {
    "model": "Llama-1.34B", "n_gpus": "16", "gpus_per_node": "8", "zero_or_fsdp_stage": "1", "pp": "2", "tp": "4",
}  # fmt: skip


def verdict(probability: float, *, finished: bool, before: bool = True, **cells: str) -> Verdict:
    return Verdict(cells=CELLS | cells, finished=finished, probability=probability, fitted_before=before)


FOUR = [
    verdict(0.9, finished=True),
    verdict(0.4, finished=True, before=False),
    verdict(0.2, finished=False),
    verdict(0.0, finished=False, before=False, pp="4"),
]


def test_the_score_is_the_mean_squared_distance_from_what_happened():
    assert brier(FOUR) == pytest.approx((0.1**2 + 0.6**2 + 0.2**2 + 0.0) / 4)
    assert brier(FOUR, before=True) == pytest.approx((0 + 1 + 1 + 0) / 4)


def test_a_finished_point_below_one_half_was_called_unlikely():
    assert called_unlikely(FOUR) == 0.5
    assert called_unlikely(FOUR[2:]) == 0.0


def test_the_table_has_a_line_for_every_value_of_every_group():
    lines = table(FOUR)

    assert [line[:24].strip() for line in lines] == [
        "", "all points", "model Llama-1.34B", "nodes 2", "ZeRO stage 1", "pp 2", "pp 4", "tp 4",
    ]  # fmt: skip
    assert lines[6].split()[2:] == ["1", "1", "0.0000", "0.0000", "0.000"]


def test_scored_are_all_points_that_finished_and_crashes_that_were_predicted_above_half_of_the_memory():
    with POINTS.open(encoding="utf-8", newline="") as lines:
        scored = {row["id"]: float(row["predicted_gib"]) for row in csv.DictReader(lines)}
    with SWEEP.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    crashed = {row["id"] for row in rows if row["value"] == "OOM"}

    assert len(rows) == 1641
    assert {row["id"] for row in rows} - crashed <= set(scored)
    assert len(scored.keys() & crashed) == 500
    assert min(scored[name] for name in scored.keys() & crashed) > 81559 / 1024 / 2

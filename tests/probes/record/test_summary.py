"""The table at the end of a run: each precision against FP32 and TF32."""

from __future__ import annotations

import pytest

from probes.record.summary import summarise_run
from tests.planner.recorded import H200, a_measurement


def step(recipe: str, seconds: float, **changes: object):
    values: dict[str, object] = {
        "probe_id": f"e/{recipe}/{changes}", "kind": "end_to_end", "model": "llama-1b", "layers": 4, "seq_len": 4096,
        "micro_batch": 1, "tokens": 4096, "recipe": recipe, "recompute": "none", "compiled": False,
        "time_median_s": seconds, "memory_allocated_peak_bytes": 8e9,
    }  # fmt: skip
    return a_measurement(**(values | H200 | changes))


def test_speed_memory_and_energy_are_compared_with_fp32_and_tf32() -> None:
    rows = summarise_run(
        [
            step("fp32", 0.8, energy_j_per_iteration=400.0),
            step("tf32", 0.2, energy_j_per_iteration=120.0),
            step("bf16-fsdp", 0.1, energy_j_per_iteration=64.0, memory_allocated_peak_bytes=5e9),
        ]
    )

    bf16 = rows[2]
    assert bf16.tokens_per_s == pytest.approx(40960.0)
    assert (bf16.speed_over_fp32, bf16.speed_over_tf32) == (pytest.approx(8.0), pytest.approx(2.0))
    assert bf16.memory_under_fp32 == pytest.approx(1.6)
    assert bf16.energy_j_per_token == pytest.approx(64 / 4096)
    assert bf16.energy_under_fp32 == pytest.approx(6.25)


def test_without_fp32_or_energy_the_comparison_is_unknown() -> None:
    (row,) = summarise_run([step("bf16-fsdp", 0.1)])

    assert (row.speed_over_fp32, row.energy_j_per_token) == (None, None)


def test_the_model_with_most_precisions_is_shown_and_recomputed_steps_are_not() -> None:
    rows = summarise_run(
        [
            step("fp32", 0.8),
            step("bf16-fsdp", 0.1),
            step("fp32", 9.9, layers=2),
            step("fp8", 0.2, recompute="full"),
        ]
    )

    assert [row.recipe for row in rows] == ["fp32", "bf16-fsdp"]


def test_a_compiled_step_stands_before_the_eager_one_of_its_recipe_and_both_are_named() -> None:
    rows = summarise_run([step("fp32", 0.8), step("fp8", 0.12), step("fp8", 0.08, compiled=True)])

    assert [(row.recipe, row.mode, row.speed_over_fp32) for row in rows] == [
        ("fp32", "eager", 1.0),
        ("fp8", "compiled", pytest.approx(10.0)),
        ("fp8", "eager", pytest.approx(0.8 / 0.12)),
    ]


def test_no_step_means_no_table() -> None:
    assert summarise_run([a_measurement()]) == ()

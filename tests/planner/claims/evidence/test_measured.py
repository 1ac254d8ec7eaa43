"""What a measurement record says of the claims."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.claims.claim import load_claims
from planner.claims.evidence.known import Known
from planner.claims.evidence.measured import (
    activations_saved,
    checkpointing,
    energy_saved,
    memory_saved,
    optimizer_states,
    products,
    speed,
    steps,
    time_added,
    time_saved,
    update_times,
)
from planner.claims.verdict import judge
from tests.planner.recorded import H200, a_measurement

MODEL = "llama-llama-3.2-1b"


def step(recipe: str, seconds: float, peak: float, joules: float, **changes: object):
    values: dict[str, object] = {
        "probe_id": f"{recipe}{changes}", "kind": "end_to_end", "model": MODEL, "layers": 4,
        "seq_len": 4096, "micro_batch": 1, "recipe": recipe, "recompute": "none", "compiled": False,
        "time_median_s": seconds, "memory_allocated_peak_bytes": peak, "energy_j_per_iteration": joules,
    }  # fmt: skip
    return a_measurement(**(values | H200 | changes))


def block(seconds: float, peak: float, recompute: str):
    extra = "/recompute" if recompute == "full" else ""
    return a_measurement(
        probe_id=f"block/8b/L4/bf16-fsdp{extra}", kind="block", recipe="bf16-fsdp", recompute=recompute,
        time_median_s=seconds, memory_allocated_peak_bytes=peak, memory_persistent_bytes=4e9, **H200,
    )  # fmt: skip


def no_answer(**inputs):
    raise AssertionError("a record is read without a question")


KNOWN = Known(
    ask=no_answer,
    record="r",
    points=(
        step("fp32", 0.8, 10e9, 400.0),
        step("tf32", 0.2, 10e9, 120.0),
        step("bf16-fsdp", 0.1, 7e9, 66.0),
        step("fp8", 0.08, 7e9, 50.0),
        block(0.100, 12e9, "none"),
        block(0.130, 6e9, "full"),
        a_measurement(probe_id="g32", recipe="fp32", gemm_m=8, gemm_n=8, gemm_k=8, time_median_s=0.8, **H200),
        a_measurement(probe_id="g16", recipe="fp16", gemm_m=8, gemm_n=8, gemm_k=8, time_median_s=0.1, **H200),
        a_measurement(
            probe_id="optimizer/lamb",
            kind="optimizer",
            optimizer="lamb",
            optimizer_state_bytes_per_param=8.0,
            time_median_s=0.03,
        ),
        a_measurement(probe_id="optimizer/adamw", kind="optimizer", optimizer="adamw", time_median_s=0.01),
    ),
)


def mids(cases):
    return [case.mid for case in cases]


def test_steps_are_compared_where_only_the_recipe_differs():
    assert mids(steps(KNOWN, speed, frm=("fp32",), to=("tf32",))) == [pytest.approx(4.0)]  # 0.8 s and 0.2 s
    assert mids(steps(KNOWN, speed, frm=("bf16-fsdp",), to=("fp8",))) == [pytest.approx(1.25)]
    assert mids(steps(KNOWN, time_saved, frm=("tf32",), to=("bf16-fsdp",))) == [pytest.approx(0.5)]
    assert mids(steps(KNOWN, memory_saved, frm=("tf32",), to=("fp8",))) == [pytest.approx(0.3)]  # 7 GB of 10 GB
    assert pytest.approx(0.45) in mids(steps(KNOWN, energy_saved, frm=("tf32",)))  # 66 J instead of 120 J
    assert steps(KNOWN, speed, frm=("fp32",), model="bert") == []


def test_a_case_names_the_device_the_recipes_and_the_point():
    (case,) = steps(KNOWN, speed, frm=("fp32",), to=("tf32",))

    assert case.what == "llama-3.2-1b L4s4096b1, NVIDIA H200, FP32 → TF32"
    assert case.source == "r: tf32{}"
    assert not case.stands_in


def test_checkpointing_is_compared_above_what_stays():
    assert mids(checkpointing(KNOWN, activations_saved)) == [pytest.approx(0.75)]  # 2 GB instead of 8 GB
    assert mids(checkpointing(KNOWN, time_added)) == [pytest.approx(0.30)]


def test_products_of_one_shape_are_compared():
    assert mids(products(KNOWN, frm=("fp32",), to=("fp16",))) == [pytest.approx(8.0)]


def test_the_time_of_an_update_stands_beside_adamws():
    (case,) = update_times(KNOWN, "lamb")

    assert (case.mid, case.beside, case.unit) == (pytest.approx(3.0), True, "ratio")  # 30 ms and 10 ms
    assert update_times(KNOWN, "sophia") == []


def test_states_are_read_by_optimizer():
    assert mids(optimizer_states(KNOWN, "lamb")) == [8.0]
    assert optimizer_states(KNOWN, "sophia") == []


def test_the_speed_of_a_cpu_is_shown_but_decides_nothing():
    cpu = {"device_kind": "cpu", "device_name": "Some CPU"}
    points = (step("fp32", 0.4, 1e9, 1.0, **cpu), step("bf16-autocast", 0.2, 1e9, 1.0, **cpu))
    cases = steps(Known(ask=no_answer, points=points), speed, frm=("fp32",))

    assert [(case.stands_in, case.beside) for case in cases] == [(True, True)]
    assert judge(load_claims()["c06"], cases).verdict == "cannot_be_judged"  # it is about tensor cores


def test_the_memory_of_a_step_can_be_told_on_a_cpu_but_not_settled():
    cpu = {"device_kind": "cpu", "device_name": "Some CPU"}
    points = (step("fp32", 0.4, 10e9, 1.0, **cpu), step("bf16-autocast", 0.2, 5e9, 1.0, **cpu))
    cases = steps(Known(ask=no_answer, points=points), memory_saved, frm=("fp32",))

    assert judge(load_claims()["c01"], cases).verdict == "holds_under_conditions"
    assert judge(load_claims()["c01"], [replace(cases[0], low=0.05, mid=0.05, high=0.05)]).verdict == "does_not_hold"


def test_an_own_measurement_can_turn_a_verdict():
    record = Known(ask=no_answer, points=(step("fp32", 0.3, 1e9, 1.0), step("tf32", 0.1, 1e9, 1.0)))
    slower = Known(ask=no_answer, points=(step("fp32", 0.2, 1e9, 1.0), step("tf32", 0.1, 1e9, 1.0)))
    claim = load_claims()["c10"]  # TF32 trains 3 times faster

    assert judge(claim, steps(record, speed, frm=("fp32",), to=("tf32",))).verdict == "holds"
    assert judge(claim, steps(slower, speed, frm=("fp32",), to=("tf32",))).verdict == "does_not_hold"


def test_a_measured_time_comes_with_its_spread():
    points = (
        step("fp32", 0.4, 1e9, 1.0, time_p05_s=0.3, time_p95_s=0.5, probe_id="a"),
        step("tf32", 0.2, 1e9, 1.0, time_p05_s=0.1, time_p95_s=0.25, probe_id="b"),
    )
    (case,) = steps(Known(ask=no_answer, points=points), speed, frm=("fp32",), to=("tf32",))

    assert (case.low, case.mid, case.high) == (pytest.approx(1.2), pytest.approx(2.0), pytest.approx(5.0))


def test_a_time_without_percentiles_has_the_interval_of_its_median():
    points = (
        step("fp32", 0.4, 1e9, 1.0, time_ci_low_s=0.36, time_ci_high_s=0.44, probe_id="a"),
        step("tf32", 0.2, 1e9, 1.0, time_ci_low_s=0.2, time_ci_high_s=0.2, probe_id="b"),
    )
    (case,) = steps(Known(ask=no_answer, points=points), speed, frm=("fp32",), to=("tf32",))

    assert (case.low, case.high) == (pytest.approx(1.8), pytest.approx(2.2))


def test_recomputation_that_does_not_move_the_peak_is_left_out():
    known = Known(ask=no_answer, points=(block(0.100, 12e9, "none"), block(0.130, 11.95e9, "full")))
    (memory,) = checkpointing(known, activations_saved)
    (time,) = checkpointing(known, time_added)

    assert (memory.mid, memory.beside) == (None, True)
    assert memory.looked.key == "claim.why.peak_unmoved"
    assert time.mid == pytest.approx(0.3)

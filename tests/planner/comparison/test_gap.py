"""The gap to the plan: planted slow data loading and slow communication are named as such."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from planner.comparison.basis import Given
from planner.comparison.compare import Comparison, compare
from planner.comparison.findings import cannot_tell, findings
from planner.comparison.planned import planned_of
from planner.errors import UsageError
from tests.planner.comparison.runs import log_of
from tests.planner.runlog.writers import LLAMA_8B, megatron_arguments, megatron_log, megatron_timers

PLAN = Path(__file__).parent / "plan.json"


@cache
def answer() -> dict[str, Any]:
    """Llama-3-8B in BF16 on 64 H100, of `mpplan estimate --json`."""
    document: dict[str, Any] = json.loads(PLAN.read_text(encoding="utf-8"))
    return document


def run(step_s: float, timers: dict[str, tuple[float, float]] | None = None, **changed: object) -> Comparison:
    """A run of the plan's model, GPUs and batch, unless they are changed."""
    lines, _ = megatron_log([step_s] * 20, of=1000)
    blocks = [[line, *megatron_timers(timers or {})] if timers else [line] for line in lines]
    log = log_of(megatron_arguments(LLAMA_8B | changed), *blocks)
    return compare(log, planned_of(answer(), None, None), Given())


def planned_step() -> dict[str, float]:
    plan: dict[str, float] = planned_of(answer(), None, None).plan["step_s"]
    return plan


def timers_ms(data: float = 0.0, communication: float = 0.0) -> dict[str, tuple[float, float]]:
    """Timers of a step as planned, with so many seconds of data and communication on top."""
    plan = planned_step()
    work = 1000 * (plan["matmul"] + plan["attention"] + plan["memory_bound"])
    forward = work / 3 + 1000 * data
    sync = 1000 * (plan["dp_comm"] + communication)
    return {
        "forward-compute": (forward, forward), "backward-compute": (work * 2 / 3, work * 2 / 3),
        "batch-generator": (1000 * data + 1, 1000 * data + 1), "all-grads-sync": (sync, sync * 1.1),
        "optimizer": (1000 * plan["optimizer"], 1000 * plan["optimizer"]),
    }  # fmt: skip


def test_planted_slow_data_loading_is_the_main_part_of_the_gap():
    comparison = run(planned_step()["total"] + 0.6, timers_ms(data=0.6))

    assert comparison.gap is not None
    assert comparison.gap.main is not None
    assert (comparison.gap.main.part, comparison.gap.main.excess_s) == ("data", pytest.approx(0.6, abs=0.01))
    main = next(message for message in findings(comparison) if message.key == "compare.main")
    assert dict(main.values)["part"].key == "compare.part.data"  # type: ignore[union-attr]


def test_planted_slow_communication_is_the_main_part_of_the_gap():
    comparison = run(planned_step()["total"] + 0.6, timers_ms(communication=0.6))

    assert comparison.gap is not None
    assert comparison.gap.main is not None
    assert (comparison.gap.main.part, comparison.gap.main.excess_s) == ("communication", pytest.approx(0.6, abs=0.01))


def test_a_run_as_planned_has_no_main_part_that_is_told():
    comparison = run(planned_step()["total"], timers_ms())

    assert comparison.gap is not None
    assert comparison.gap.inside
    assert comparison.gap.ratio == pytest.approx(0.0, abs=0.001)
    keys = {message.key for message in findings(comparison)}
    assert "compare.step.as_planned" in keys
    assert "compare.main" not in keys


def test_without_timers_the_step_is_one_part_and_the_log_says_how_to_get_more():
    comparison = run(planned_step()["total"] * 1.5)

    assert comparison.gap is not None
    assert [row.part for row in comparison.gap.rows if not row.outside] == ["step"]
    assert "compare.timers.megatron" in {message.key for message in cannot_tell(comparison)}


def test_another_batch_or_number_of_gpus_is_compared_per_token_and_gpu_and_said():
    half = run(planned_step()["total"], world_size=128)

    assert half.gap is not None
    assert half.gap.plan_step_s.mid == pytest.approx(planned_step()["total"] / 2)
    assert half.basis.differs == ("gpus",)
    assert "compare.differs" in {message.key for message in findings(half)}


def test_a_log_of_another_model_than_the_plans_says_so():
    assert run(2.0).basis.differs == ()
    assert run(2.0, num_layers=80, hidden_size=8192, ffn_hidden_size=28672, num_attention_heads=64).basis.differs == (
        "model",
    )


@pytest.mark.parametrize(
    "setting",
    [
        {"hybrid_layer_pattern": "M-" * 59}, {"hybrid_override_pattern": "M-M*-"}, {"linear_attention_freq": 4},
        {"multi_latent_attention": True}, {"attention_output_gate": True}, {"moe_latent_size": 1024},
        {"heterogeneous_layers_config_path": "/models/config.json"},
    ],
    ids=lambda setting: next(iter(setting)),
)  # fmt: skip
def test_settings_that_do_not_tell_the_shape_are_not_read_as_those_of_a_plain_model(setting):
    sizes = {"num_layers": 118, "hidden_size": 8192}
    plain = dict.fromkeys(("hybrid_layer_pattern", "linear_attention_freq", "moe_latent_size")) | {
        "multi_latent_attention": False, "attention_output_gate": False,
    }  # fmt: skip

    assert run(2.0, **sizes, **plain).basis.differs == ("model",)
    assert run(2.0, **sizes, **setting).basis.differs == ()


def test_a_precision_that_the_answer_has_no_plan_of_is_refused():
    with pytest.raises(UsageError, match="no plan in nvfp4"):
        planned_of(answer(), "nvfp4", None)
    with pytest.raises(UsageError, match="on a100-sxm4-80gb"):
        planned_of(answer(), "bf16", "a100-sxm4-80gb")

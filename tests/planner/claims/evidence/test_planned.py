"""The planner's answers as evidence: the same figures as `mpplan estimate` prints."""

from __future__ import annotations

import pytest

from mpplan.api.answer import estimate
from planner.claims.evidence import planned
from planner.claims.evidence.known import Known, command_of


@pytest.fixture(scope="module")
def known() -> Known:
    return Known(ask=estimate)


def test_a_saving_and_a_speed_up_are_of_the_same_draws(known):
    saved = planned.saved(known, "duration_days", "tf32", "bf16", planned.LLAMA, gpu=planned.A100)
    faster = planned.faster(known, "tf32", "bf16", planned.LLAMA, gpu=planned.A100)

    assert faster.mid == pytest.approx(1 / (1 - saved.mid))
    assert (faster.low, faster.high) == (pytest.approx(1 / (1 - saved.low)), pytest.approx(1 / (1 - saved.high)))
    assert saved.what == "llama-2-70b, a100-sxm4-80gb, TF32 → BF16"


def test_a_question_is_asked_once(known):
    assert known.answer(**planned.LLAMA, gpu=planned.A100) is known.answer(**planned.LLAMA, gpu=planned.A100)


def test_the_source_is_a_command_that_asks_the_same():
    assert command_of(model="bert-large", micro_batch=4) == "mpplan estimate --model bert-large --micro-batch 4"


def test_memory_is_compared_in_the_same_layout(known):
    case = planned.memory_saved(known, "tf32", "bf16", planned.BERT, gpu=planned.A100, micro_batch=32)
    tf32, bf16 = (known.plan(name, **planned.BERT, gpu=planned.A100, micro_batch=32) for name in ("tf32", "bf16"))

    assert tf32.layout == bf16.layout
    assert case.mid == pytest.approx(1 - bf16.memory_range_gib.mid / tf32.memory_range_gib.mid)
    assert case.low <= case.mid <= case.high


def test_checkpointing_saves_memory_and_costs_a_third_of_the_forward_and_backward(known):
    memory, time = planned.checkpointing(known, {**planned.BERT, "gpu": planned.A100, "micro_batch": 16}, "full")

    assert memory.mid > 0.5
    assert 0.2 < time.mid < 0.4  # one more forward pass beside one forward and one backward of twice its work


def test_the_largest_model_that_fits_does_and_one_a_tenth_larger_does_not(known):
    largest = planned.largest(known, "fp32", planned.A100, act_ckpt="none", micro_batch=1)
    question = {"gpu": planned.A100, "gpus": 1, "tokens": "1e9", "global_batch": 32, "act_ckpt": "none"}

    assert known.plan("fp32", params=f"{largest.mid / 1e9:.3g}B", micro_batch=1, **question).fits
    larger = planned.memory_use(known, "fp32", question, params=f"{largest.mid * 1.1 / 1e9:.3g}B", micro_batch=1)
    assert (larger.mid, larger.looked.key) == (None, "claim.why.does_not_fit")


def test_memory_use_is_a_share_of_what_a_process_gets(known):
    case = planned.memory_use(known, "bf16", planned.LLAMA, gpu=planned.A100)
    plan = known.plan("bf16", **planned.LLAMA, gpu=planned.A100)

    assert case.mid == pytest.approx(plan.memory_range_gib.mid / plan.memory_capacity_gib)


def test_sharding_saves_less_of_the_peak_than_of_the_states(known):
    case = planned.sharded(known, {"params": "3B", "gpu": planned.A100, "tokens": "1e9"}, 8)

    assert 0.5 < case.mid < 1 - 1 / 8


def test_products_are_those_of_the_plans(known):
    case = planned.product_speeds(known, "fp32", "fp16", planned.BERT, gpu=planned.V100, micro_batch=4)

    assert 4 < case.low <= case.mid <= case.high < 125 / 15.7 * 1.05  # the peaks are 7.96 apart


def test_a_price_comes_from_the_book(known):
    price = planned.usd_per_gpu_hour(known, planned.A100)

    assert 0.5 < price.low <= price.mid <= price.high < 10


def test_a_question_is_named_by_what_it_fixes():
    assert planned.name({"params": "3B", "gpu": "t4", "micro_batch": 2}) == "3B, t4, micro-batch 2"

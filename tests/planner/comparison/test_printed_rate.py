"""The tokens per second that a log prints tell how many GPUs it ran on, or that something is not the run's."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mpplan.api.document import worded
from planner.comparison.basis import Given
from planner.comparison.compare import Comparison, compare
from planner.comparison.conventions import counts_of, flop_per_token
from planner.comparison.document import to_compare_document
from planner.comparison.planned import planned_of
from planner.units import TERA
from reports.compared.text import to_text
from tests.planner.comparison.runs import RECIPE, TOKENS_PER_GPU, log_of
from tests.planner.comparison.test_gap import answer
from tests.planner.comparison.test_planned import tuned
from tests.planner.runlog.writers import BEGIN, titan, titan_step

STEP_S = 4.32
PLANNED = TOKENS_PER_GPU / STEP_S
"""Tokens per second and GPU of such steps on the plan's 64 GPUs, with its batch of 128 sequences."""
FLOP = flop_per_token(RECIPE, counts_of(RECIPE)[0])


def ran(
    tps: float,
    given: Given | None = None,
    *,
    per_gpu: float | None = None,
    stated: str = "",
    document: dict[str, object] | None = None,
) -> Comparison:
    """Steps of 4.32 s whose lines print a rate, and TFLOP/s that belong to another where one is given."""
    tflops = FLOP * (per_gpu or tps) / TERA
    lines = [
        titan_step(BEGIN + timedelta(seconds=STEP_S * step), step, tps=tps, tflops=tflops, mfu=tflops / 9.89)
        for step in range(1, 40)
    ]
    log = log_of([titan(BEGIN, stated)] if stated else [], lines)
    return compare(log, planned_of(document or answer(), None, None), given or Given())


def said(comparison: Comparison, lang: str = "en") -> str:
    return " ".join(to_text(to_compare_document(comparison, "0"), lang).split())


def verdict(comparison: Comparison) -> str:
    assert comparison.printed_rate is not None
    return comparison.printed_rate.verdict


def test_a_rate_as_planned_changes_nothing():
    comparison = ran(PLANNED)

    assert verdict(comparison) == "agrees"
    assert (comparison.basis.gpus, comparison.basis.sources["gpus"]) == (64, "plan")
    assert comparison.row.lines


def test_twice_the_rate_is_half_the_gpus_of_the_plan():
    comparison = ran(2 * PLANNED)
    (row,) = comparison.row.lines

    assert verdict(comparison) == "gpus"
    assert (comparison.basis.gpus, comparison.basis.sources["gpus"]) == (32, "log")
    assert "gpus" in comparison.basis.differs
    assert comparison.tokens_per_s_per_gpu == pytest.approx(2 * PLANNED)
    assert comparison.utilisations[0].tflops_per_gpu == pytest.approx(FLOP * 2 * PLANNED / TERA)
    assert (row["n_gpus"], float(row["value"])) == ("32", pytest.approx(2 * PLANNED, rel=1e-4))
    assert "that means 32 GPUs, not the plan's 64" in said(comparison)
    assert "32 张 GPU 的运行" in said(comparison, "zh")


def test_where_the_user_says_the_gpus_the_rate_tells_the_batch():
    comparison = ran(2 * PLANNED, Given(gpus=64))

    assert verdict(comparison) == "global_batch"
    assert (comparison.basis.gpus, comparison.basis.global_batch) == (64, 256)
    assert comparison.basis.recipe is not None
    assert comparison.basis.recipe.global_batch == 256
    assert "a batch of 256 sequences, not the plan's 128" in said(comparison)


def test_a_rate_that_no_number_of_gpus_gives_is_said_and_no_row_is_written():
    comparison = ran(1.3 * PLANNED)  # 49.2 GPUs

    assert verdict(comparison) == "differs"
    assert comparison.basis.gpus == 64
    assert comparison.tokens_per_s_per_gpu == pytest.approx(1.3 * PLANNED, rel=1e-3)  # the log's word
    assert comparison.gap is not None
    assert comparison.gap.plan_step_s.mid == pytest.approx(1.3 * ran(PLANNED).gap.plan_step_s.mid, rel=1e-3)  # type: ignore[union-attr]
    assert comparison.row.lines == ()
    assert "do not trust the end and the cost until --gpus, --global-batch, --seq-len are right" in said(comparison)


def test_the_users_own_gpus_and_batch_win_and_the_rate_is_said_to_differ():
    comparison = ran(2 * PLANNED, Given(gpus=64, global_batch=128))

    assert verdict(comparison) == "differs"
    assert comparison.tokens_per_s_per_gpu == pytest.approx(PLANNED, rel=1e-3)
    assert comparison.row.lines


def test_what_the_log_states_of_its_gpus_stands_against_its_rate():
    parallel = "Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=32, cp=1, tp=1, ep=1"
    comparison = ran(2 * PLANNED, stated=parallel)

    assert (verdict(comparison), comparison.basis.gpus) == ("agrees", 32)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_rate_of_all_gpus_is_told_by_the_printed_flops(lang):
    comparison = ran(64 * PLANNED, per_gpu=PLANNED)

    assert (verdict(comparison), comparison.basis.gpus) == ("total", 64)
    assert comparison.tokens_per_s_per_gpu == pytest.approx(PLANNED, rel=1e-3)
    assert comparison.revealed[0].verdict == "named"  # the TFLOP/s are those of one GPU
    assert comparison.row.lines
    assert {"en": "for all 64 GPUs together: 3,793 per GPU", "zh": "64 张 GPU 之和：每张 GPU 每秒 3,793"}[lang] in said(
        comparison, lang
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_rate_that_neither_one_gpu_nor_all_can_have_is_not_used(lang):
    comparison = ran(32 * PLANNED, per_gpu=PLANNED)

    assert verdict(comparison) == "impossible"
    assert comparison.tokens_per_s_per_gpu == pytest.approx(PLANNED, rel=1e-3)
    assert comparison.revealed[0].verdict == "named"
    assert comparison.row.lines == ()
    assert {"en": "more than one GPU can reach with this model", "zh": "一张 GPU 达不到"}[lang] in said(
        comparison, lang
    )


def test_a_rate_that_counts_padding_agrees():
    document = tuned(method="pretrain")
    document["tokens_per_sequence"] = 4096.0
    assert verdict(ran(PLANNED, document=document)) == "agrees"
    assert verdict(ran(PLANNED / 2, document=document)) == "agrees"


def test_the_document_has_the_verdict():
    document = worded(to_compare_document(ran(2 * PLANNED), "0"))

    assert document["printed_rate"]["verdict"] == "gpus"
    assert document["printed_rate"]["planned"] == 64
    assert document["findings_message"][0]["key"] == "compare.rate.gpus"

"""The plan of an answer: its own batch, its method and its padding; vision models are refused."""

from __future__ import annotations

import copy
import json
from dataclasses import fields, replace
from functools import cache
from typing import Any

import pytest

from planner.answer.document import to_document
from planner.answer.plan import Answer
from planner.comparison.basis import Given
from planner.comparison.compare import compare
from planner.comparison.planned import batch_of_plan, check_counts_tokens, planned_of
from planner.errors import UsageError
from planner.models.catalogue import load_models
from planner.models.shape import ModelShape
from planner.performance.evaluation import flop_of
from planner.planning.estimate import estimate
from tests.planner.build import make_question, rates_and_prices
from tests.planner.comparison.runs import log_of
from tests.planner.comparison.test_gap import answer
from tests.planner.planning.test_estimate import briefly
from tests.planner.runlog.writers import megatron_log


def tuned(**asked: object) -> dict[str, Any]:
    """The answer as if fine-tuning had been asked for, with examples of 2,048 tokens in sequences of 8,192."""
    document = copy.deepcopy(answer())
    document["tokens_per_sequence"] = 2048.0
    for name, value in asked.items():
        document["question"][name] = {"value": value, "source": "flag", "note": None}
    return document


def test_steps_are_whole_but_for_the_error_of_a_float():
    planned = planned_of(answer(), None, None)

    assert planned.steps == 95_368  # 100e9 / (128 * 8192) = 95,367.4
    assert planned.steps_of(100e9 / 3.0) == 3
    assert planned.steps_of(1e12) == 1


def test_a_plan_has_the_batch_of_its_layout_and_not_the_one_that_was_asked():
    document = tuned()
    document["plans"][0]["layout"] |= {"dp": 64, "micro_batch": 1, "grad_accum": 3}
    planned = planned_of(document, None, None)

    assert planned.recipe.global_batch == 192
    assert planned.steps == 254_314  # 100e9 / (192 * 2048) = 254,313.2, the last step whole
    assert batch_of_plan({"layout": None}, 128) == 128


def test_of_several_gpus_the_run_is_held_against_the_one_of_the_sentence():
    document = tuned()
    dearer = copy.deepcopy(document["plans"][0]) | {"gpu": "h200-sxm-141gb"}
    dearer["cost_usd"] = {end: 10 * document["plans"][0]["cost_usd"][end] for end in ("low", "mid", "high")}
    document["plans"].insert(0, dearer)

    assert planned_of(document, None, None).plan is document["plans"][1]
    assert planned_of(document, None, "h200-sxm-141gb").plan is dearer


def test_modules_of_multi_token_prediction_are_work_of_the_plan_but_no_layers_of_its_model():
    document = copy.deepcopy(answer())
    document["model"]["mtp_layers"] = 1
    plain, planned = planned_of(answer(), None, None), planned_of(document, None, None)
    lines, _ = megatron_log([2.0] * 20, of=1000)
    basis = compare(log_of(lines), planned, Given()).basis

    assert (planned.model.layers, planned.recipe.model.layers) == (32, 33)
    assert basis.recipe is not None
    assert flop_of(basis.recipe) == flop_of(planned.recipe) > 1.03 * flop_of(plain.recipe)
    assert basis.model == planned.model
    assert "model" not in basis.differs


def test_padding_is_no_token():
    lines, _ = megatron_log([2.0] * 20, of=1000)
    padded, full = (
        compare(log_of(lines), planned_of(document, None, None), Given()) for document in (tuned(), answer())
    )

    assert padded.basis.tokens_per_sequence == pytest.approx(2048, rel=1e-6)
    assert padded.basis.tokens_per_step == pytest.approx(128 * 2048)
    assert padded.tokens_per_s_per_gpu == pytest.approx(128 * 2048 / 64 / 2.0)
    assert full.tokens_per_s_per_gpu == pytest.approx(128 * 8192 / 64 / 2.0)
    assert padded.gap is not None
    assert full.gap is not None
    assert padded.gap.plan_step_s.mid == pytest.approx(full.gap.plan_step_s.mid)
    assert padded.forecast is not None
    assert padded.forecast.remaining_tokens == pytest.approx(980 * 128 * 2048)


def test_a_log_of_pairs_counts_both_answers():
    lines, _ = megatron_log([2.0] * 20, of=1000, batch=64)
    comparison = compare(log_of(lines), planned_of(tuned(method="dpo"), None, None), Given())

    assert (comparison.basis.method, comparison.basis.global_batch) == ("dpo", 128)
    assert comparison.basis.differs == ()
    assert comparison.tokens_per_s_per_gpu == pytest.approx(128 * 2048 / 64 / 2.0)


def test_what_was_asked_of_the_training_is_in_the_recipe():
    recipe = planned_of(
        tuned(method="qlora", optimizer="adamw-8bit", lora_rank=64, lora_targets="qv", loss="chunked"), None, None
    ).recipe

    assert (recipe.method, recipe.optimizer.id, recipe.lora_rank, recipe.lora_targets) == (
        "qlora", "adamw-8bit", 64, "qv",
    )  # fmt: skip
    assert recipe.chunked_loss


@pytest.mark.parametrize("kind", ["image", "cnn"])
def test_models_that_see_images_are_refused_with_what_to_do(kind):
    document = copy.deepcopy(answer())
    document["model"]["kind"] = kind
    with pytest.raises(UsageError, match="vision model") as caught:
        planned_of(document, None, None)
    assert str(caught.value.hint).startswith("leave --plan out for step times")
    check_counts_tokens("bert", "encoder", "--model")


@cache
def small_answer() -> Answer:
    """A plan of any model, for a document of another one."""
    return briefly(params="1B", tokens="1B", gpus="1", precision="bf16")


def one_of_each_kind() -> list[ModelShape]:
    """The first model of the catalogue with each set of parts."""
    kinds: dict[tuple[object, ...], ModelShape] = {}
    for model in load_models().values():
        linear = model.linear
        parts = (
            model.kind, linear and linear.head_inputs, model.ffn_layers is None, bool(model.experts),
            model.expert_hidden is None, model.kv_lora_rank is None, model.sliding_window is None,
            model.cached_segments, model.mtp_layers,
        )  # fmt: skip
        kinds.setdefault(parts, model)
    return list(kinds.values())


def test_the_catalogue_has_models_of_every_kind_for_the_test_below():
    kinds = one_of_each_kind()

    assert {model.kind for model in kinds} == {"decoder", "encoder", "encoder-decoder"}
    for part in ("linear", "ffn_layers", "experts", "expert_hidden", "kv_lora_rank", "cached_segments", "mtp_layers"):
        assert any(getattr(model, part) for model in kinds), part


@pytest.mark.parametrize("model", one_of_each_kind(), ids=lambda model: model.name)
def test_a_model_of_every_kind_is_the_same_once_its_answer_is_written_and_read_back(model):
    written = json.dumps(to_document(replace(small_answer(), model=model)))
    planned = planned_of(json.loads(written), None, None)
    lines, _ = megatron_log([2.0] * 20, of=1000)

    assert planned.model == replace(model, evidence=None)
    assert compare(log_of(lines), planned, Given()).basis.model == planned.model


NOT_OF_A_PLAN = ("batch_band", "critical_batch", "keeps_batch", "lengths_assumed")
"""Fields of a recipe that serve the search for a plan."""


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "llama-3.1-8b", "method": "lora"},
        {"model": "llama-3.1-8b", "method": "lora", "stack": "typical", "gpu": "a100-sxm4-80gb"},
        {"model": "llama-3.1-8b", "method": "qlora", "stack": "unsloth", "single_quant": "yes"},
        {"model": "llama-3.1-8b", "method": "dpo-lora", "stack": "torchtune", "loss": "full"},
        {"model": "llama-3.1-8b", "method": "sft", "policy": "bf16-pure", "loss": "fused", "packed": "yes"},
        {"model": "gpt-2", "tokens": "1B", "gpu": "v100-sxm2-32gb", "precision": "fp16"},
        {"model": "gpt-2", "tokens": "1B", "stack": "eager", "attention": "naive"},
        {"model": "gpt-2", "tokens": "1B", "grad_compression": "powersgd:8"},
        {"model": "bert-large", "tokens": "1B", "stack": "fsdp-compile"},
        {"model": "qwen3-30b-a3b", "tokens": "1B", "gpus": "16", "moe_dispatcher": "alltoall"},
    ],
    ids=lambda asked: " ".join(asked.values()),
)  # fmt: skip
def test_a_plan_is_read_back_with_the_recipe_that_was_planned(asked):
    question = make_question(**{"precision": "bf16", "gpus": "8"} | asked)
    answered = estimate(question, rates_and_prices(question), detailed=False)
    recipe = planned_of(json.loads(json.dumps(to_document(answered))), question.policy.precision, None).recipe
    (cluster,) = question.clusters
    expected = question.recipe(question.policy, cluster)

    unused = {"lora_rank": not recipe.how.adapts, "trained_layers": recipe.how.trains != "last-layers"}
    for field in fields(recipe):
        if field.name not in (*NOT_OF_A_PLAN, "model", "global_batch", "lengths") and not unused.get(field.name):
            assert getattr(recipe, field.name) == getattr(expected, field.name), field.name
    assert recipe.model == replace(expected.model, evidence=None)
    assert recipe.mean_len == pytest.approx(expected.mean_len)


def test_adapters_of_fused_weights_are_counted_as_they_were_planned():
    question = make_question(
        model="llama-3.1-8b", method="lora", gpus="1", precision="bf16", packed="yes", lora_rank="64"
    )
    answered = estimate(question, rates_and_prices(question), detailed=False)
    (plan,) = (plan for plan in answered.plans if plan.precision == "bf16")
    document = json.loads(json.dumps(to_document(answered)))
    assert plan.step_s is not None
    step_s = plan.step_s["total"]
    table = ["step,step_time_s", *(f"{step},{step_s:.9g}" for step in range(1, 21))]
    comparison = compare(log_of(table), planned_of(document, "bf16", None), Given())

    assert plan.tflops_per_gpu is not None
    assert comparison.utilisations[0].tflops_per_gpu == pytest.approx(plan.tflops_per_gpu.mid, rel=1e-6)

"""Ways to train that people try when memory is short: each is a question that its flags ask as well."""

from __future__ import annotations

import pytest

from planner.planning.fitting.variants import VARIANTS, Variant, asked_as, changes, variants_of
from planner.question.asked import Ask
from planner.question.resolve import resolve
from tests.planner.build import TODAY, make_question, parts


def asked(**more: str):
    return make_question(method="sft", gpu="rtx-4090", gpus="1", seq_len="2048", **more)


@pytest.mark.parametrize(
    "variant",
    [variant for variant in VARIANTS if variant.lora_targets is None],
    ids=lambda variant: "-".join(filter(None, (variant.method, variant.policy, variant.offload))),
)
def test_the_flags_of_a_variant_ask_for_what_it_is(variant):
    question = asked()
    texts = {
        "params": "8B",
        "as_of": TODAY.isoformat(),
        "method": "sft",
        "gpu": "rtx-4090",
        "gpus": "1",
        "seq_len": "2048",
    }
    for flag in map(parts, changes(question, variant)):
        texts[str(flag["input"])] = str(flag.get("value", "yes"))
    typed, applied = resolve(Ask(texts=texts)), asked_as(question, variant)

    assert typed.recipe(typed.policy, typed.clusters[0]) == applied.recipe(applied.policy, applied.clusters[0])


def test_a_variant_keeps_what_the_question_says_of_its_adapters():
    (lora,) = (variant for variant in VARIANTS if variant == Variant(method="lora"))
    question = make_question(method="qlora", lora_rank="64", gpus="1", gpu="rtx-4090")

    assert asked_as(question, lora).tuning.lora_rank == 64
    assert asked_as(asked(), lora).tuning.lora_rank == 16


def test_pairs_of_answers_are_compared_with_ways_that_take_pairs():
    methods = [variant.method for variant in variants_of(make_question(method="dpo", gpus="1"))]

    assert set(methods) == {"dpo", "dpo-lora", "dpo-qlora"}
    assert set(variants_of(make_question(params=None, model="mixtral-8x7b", method="sft", gpus="2"))) == set(VARIANTS)
    assert set(variants_of(asked())) < set(VARIANTS)  # one GPU has no shard of frozen weights to move


def test_adapters_beside_attention_alone_are_a_way_where_each_expert_would_have_its_own():
    mixture = make_question(params=None, model="gpt-oss-120b", method="qlora", stack="hf", gpus="1")
    (way,) = (
        variant for variant in variants_of(mixture) if variant == Variant(method="qlora", lora_targets="attention")
    )
    all_layers, attention = (
        asked_as(mixture, variant).recipe(mixture.policy, mixture.clusters[0])
        for variant in (Variant(method="qlora"), way)
    )

    assert [parts(flag) for flag in changes(mixture, way)] == [
        {"key": "flag.with_value", "input": "lora_targets", "value": "attention"}
    ]
    assert attention.adapter_params_per_layer < all_layers.adapter_params_per_layer / 100
    assert not any(variant.lora_targets for variant in variants_of(make_question(method="qlora", gpus="2")))


def test_what_was_given_for_adapters_is_left_out_where_all_weights_learn():
    lora = make_question(method="lora", lora_rank="64", gpus="2")
    keys = {
        variant.method: [(parts(flag)["key"], parts(flag)["input"]) for flag in changes(lora, variant)]
        for variant in (Variant(method="sft"), Variant(method="qlora"))
    }

    assert ("hint.without", "lora_rank") in keys["sft"]
    assert keys["qlora"] == [("flag.with_value", "method")]


def test_packed_weights_are_a_way_without_the_tensor_parallelism_that_was_asked_for():
    lora = make_question(method="lora", gpu="rtx-4090", gpus="2", tp="2", stack="typical")
    packed = Variant(method="qlora")

    assert [(parts(flag)["key"], parts(flag)["input"]) for flag in changes(lora, packed)] == [
        ("flag.with_value", "method"), ("hint.without", "tp"),
    ]  # fmt: skip
    assert asked_as(lora, packed).fixed.tp is None
    assert asked_as(lora, Variant(method="dora")).fixed.tp == 2

"""Ways to fine-tune that fit where the question does not: the smallest change first, each with what it needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.planning.choice import best_on
from planner.planning.fitting.offers import ways_that_fit
from planner.planning.risk import WORTH_TRYING
from planner.units import GIB
from reports.text.messages import word
from tests.planner.build import case_for, make_question, parts
from tests.planner.planning.fitting.test_rows import rows


def test_where_it_does_not_fit_the_ways_that_would_are_named_with_what_they_need():
    question = make_question(model="llama-3.1-8b", method="sft", gpu="rtx-4090", gpus="1", seq_len="2048")
    ways = [parts(way) for way in ways_that_fit(question, case_for(question), 1)]
    methods = [str(parts(flag).get("value")) for way in ways for flag in way["flags"]]  # type: ignore[attr-defined]

    assert {"lora", "qlora", "bf16-pure", "adamw-8bit-paged"} <= set(methods)
    needs = [parts(need) for way in ways for need in way["needs"]]  # type: ignore[attr-defined]
    assert all(0 < float(str(need["needed_gib"])) < 23.5 for need in needs if "needed_gib" in need)
    assert 0 < sum("needed_gib" in need for need in needs) == len(ways)
    assert all(question.memory_risk < float(str(need["risk"])) <= WORTH_TRYING for need in needs if "risk" in need)
    assert ways_that_fit(make_question(params="405B", method="sft", gpu="rtx-4090"), case_for(question), 1) == ()


def test_no_way_is_named_twice_where_something_of_it_was_asked_for():
    question = make_question(model="llama-3.1-8b", method="sft", gpu="h100-sxm5-80gb", gpus="1", offload="optimizer")
    flags = [parts(way)["flags"] for way in ways_that_fit(question, case_for(question), 1)]

    assert len(flags) > 3
    assert all(flags.count(flag) == 1 for flag in flags)


def test_a_way_beside_a_run_that_outgrows_a_node_has_the_stack_that_it_has_when_asked_for():
    asked = {"model": "llama-3.1-8b", "gpu": "rtx-4090", "gpus": "1"}
    on_a_node, alone = (
        make_question(method="sft", **asked),
        make_question(method="qlora", **asked),
    )  # Hugging Face's stack
    outgrown = replace(make_question(method="sft", stack="typical", **asked), on_a_node=on_a_node)
    needed_gib = float(case_for(alone).score(best_on(case_for(alone), alone.fixed, 1).layouts).memory_bytes.min()) / GIB
    ways = {str(parts(way)["flags"]): parts(way) for way in ways_that_fit(outgrown, case_for(outgrown), 1)}
    (qlora,) = (way for flags, way in ways.items() if "qlora" in flags)

    assert parts(qlora["needs"][0])["needed_gib"] == pytest.approx(needed_gib)
    assert any("adamw-8bit-paged" in flags for flags in ways)  # at 34 % risk with the stack of several nodes


def test_adapters_whose_frozen_weights_move_to_the_host_are_named_with_what_that_takes():
    question = make_question(model="llama-3.1-70b", params=None, method="qlora", stack="hf", gpu="rtx-4090", gpus="2")
    (first,) = (parts(way) for way in ways_that_fit(question, case_for(question), 2))  # none trains all weights
    flags = [parts(flag) for flag in first["flags"]]  # type: ignore[attr-defined]
    needs = {key: value for need in first["needs"] for key, value in parts(need).items()}  # type: ignore[attr-defined]

    assert [(flag["input"], flag["value"]) for flag in flags] == [("offload", "optimizer")]
    assert needs["host_gib"] == pytest.approx(0.5 * 70.6e9 / 2**30, rel=0.25)  # four bits and the ends in 16


def test_offloading_is_no_way_where_the_same_fits_without_nor_for_the_adapters_of_one_gpu():
    question = make_question(model="llama-3.1-8b", method="lora", gpu="rtx-4090", gpus="2", seq_len="2048")
    flags_by_way = [
        [parts(flag) for flag in parts(way)["flags"]] for way in ways_that_fit(question, case_for(question), 2)
    ]  # type: ignore[attr-defined]
    asked = [{str(flag["input"]): flag.get("value") for flag in flags} for flags in flags_by_way]
    assert {"method": "qlora"} in asked
    assert {"method": "qlora", "offload": "optimizer"} not in asked
    alone = rows("rtx-4090", gpus=1)
    assert not any(row.variant.offload and row.variant.method in ("lora", "qlora") for row in alone)
    held = {row.variant.offload or row.variant.optimizer for row in alone if row.host_gib > 1}
    assert held == {"optimizer", "adamw-8bit-paged"}


LORA = {"model": "llama-3.1-8b", "params": None, "method": "lora", "lengths": "600", "packed": "yes", "stack": "hf"}
LONG = {"gpu": "h100-sxm5-80gb", "seq_len": "32768"}


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        (LONG, "with --loss fused"),
        ({"gpu": "rtx-4090", "seq_len": "8192"}, "with --loss fused"),
        ({"gpu": "l40s-48gb", "seq_len": "4096", "act_ckpt": "none"}, "without --act-ckpt none"),
        ({"gpu": "rtx-4090", "seq_len": "4096", "micro_batch": "8", "loss": "fused"}, "with --micro-batch 1"),
        (LONG | {"act_ckpt": "none"}, "with --loss fused without --act-ckpt none"),
        ({"gpu": "l4", "seq_len": "8192", "loss": "full", "zero": "0"}, "with --loss fused"),
        (
            {"model": "llama-3.1-70b", "gpu": "h100-sxm5-80gb", "seq_len": "16384", "method": "qlora"},
            "with --loss fused",
        ),
        (
            {"gpu": "rtx-4090", "seq_len": "16384", "act_ckpt": "none", "loss": "fused"},
            "with --method qlora without --act-ckpt none",
        ),
        ({"model": "llama-3.1-70b", "gpu": "h100-sxm5-80gb", "seq_len": "2048"}, "with --method qlora"),
        ({"model": "llama-3.1-70b", "gpu": "h100-sxm5-80gb", "seq_len": "16384"}, "with --method qlora --loss fused"),
    ],
)
def test_the_first_way_is_the_smallest_change_of_what_was_asked_and_fits(asked, first):
    question = make_question(**LORA | {"gpus": "1"} | asked)
    ways = ways_that_fit(question, case_for(question), 1)

    assert best_on(case_for(question), question.fixed, 1).best is None
    assert word(ways[0]).startswith(f"{first} (at least ")
    methods = {
        parts(flag).get("value") for way in ways for flag in parts(way)["flags"] if parts(flag)["input"] == "method"
    }  # type: ignore[attr-defined]
    assert methods <= {"lora", "qlora", "dora"}


def test_no_way_holds_another_that_is_enough():
    question = make_question(**LORA | LONG, gpus="1")
    flag_sets = [frozenset(parts(way)["flags"]) for way in ways_that_fit(question, case_for(question), 1)]  # type: ignore[arg-type]

    assert flag_sets
    assert not any(subset < superset for subset in flag_sets for superset in flag_sets)


def test_a_way_beside_a_loss_that_nobody_chose_is_told_with_the_loss_that_it_needs():
    asked = LORA | {"gpu": "rtx-4090", "seq_len": "16384", "gpus": "1"}
    del asked["stack"]
    on_a_node, lean = make_question(**asked), make_question(**asked, loss="fused")
    derived = replace(lean.inputs["loss"], source="derived")
    question = replace(lean, on_a_node=on_a_node, inputs=lean.inputs | {"loss": derived})
    flags = [word(way).partition(" (")[0] for way in ways_that_fit(question, case_for(question), 1)]

    assert flags == ["with --method qlora"]  # one node does not hold that with its own loss either

"""Does it fit: memory, risk and speed of each way to train, and the ways that would fit where the question does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.performance.memory import usable_bytes
from planner.planning.case import Case, make_case
from planner.planning.choice import best_on
from planner.planning.fitting.rows import WORTH_TRYING, FitRow, fit_rows, ways_that_fit
from planner.question.question import Question
from planner.training.method import load_methods
from planner.units import GIB
from tests.planner.build import parts, price, question, site

ALL = frozenset(load_methods())


def case_of(asked: Question) -> Case:
    cluster = asked.clusters[0]
    return make_case(asked, asked.asked, cluster, price(cluster.gpu.id), site())


def rows(gpu: str = "rtx-4090", lengths: tuple[int, ...] = (2048,), gpus: int = 1, **asked: str) -> list[FitRow]:
    one = question(model="llama-3.1-8b", method="sft", gpu=gpu, gpus=str(gpus), **asked)
    return list(fit_rows(one, case_of, gpus, lengths, ALL))


def best(found: list[FitRow], method: str, **more: object) -> FitRow:
    able = [row for row in found if row.variant.method == method and row.tokens_per_s is not None]
    return max(able, key=lambda row: (row.safe, row.tokens_per_s.mid if row.tokens_per_s else 0.0))


def test_an_8b_model_fits_on_a_4090_with_adapters_and_not_as_usual():
    found = rows()
    usual = [row for row in found if row.variant.method == "sft" and row.variant.policy is None]

    assert not any(row.fits for row in usual)
    assert best(found, "qlora").safe
    assert best(found, "lora").fits
    # torchtune on an RTX 4090 (published_runs.csv, tune-0002): full fine-tuning in pure BF16, paged 8-bit states and
    # updates inside the backward pass take 18.9 GiB
    lean = [row for row in found if row.variant.optimizer == "adamw-8bit-paged" and row.fits]
    assert lean
    assert 15.0 < lean[0].memory_gib.mid < 21.5


@pytest.mark.parametrize("gpu", ["rtx-4090", "a100-sxm4-80gb"])
def test_lora_is_faster_than_qlora_and_qlora_than_training_all_weights(gpu):
    # published_runs.csv: tune-0001, tune-0005 and tune-0009 on an RTX 4090, 1,650, 3,083 and 2,413 tokens/s
    found = rows(gpu, stack="torchtune", micro_batch="2", global_batch="2", act_ckpt="full")
    speed = {method: best(found, method).tokens_per_s.mid for method in ("sft", "qlora", "lora")}  # type: ignore[union-attr]

    assert speed["lora"] > speed["qlora"] > speed["sft"]


def test_longer_sequences_and_fewer_bits_move_memory_as_they_must():
    found = rows("a100-sxm4-80gb", (1024, 4096), micro_batch="1", global_batch="8")

    def need(method: str, ckpt: str, length: int) -> float:
        return next(
            row.memory_gib.mid
            for row in found
            if (row.variant.method, row.act_ckpt, row.seq_len, row.variant.policy) == (method, ckpt, length, None)
        )

    for method in ("lora", "qlora"):
        assert need(method, "none", 4096) > need(method, "none", 1024)
        assert need(method, "full", 4096) < need(method, "none", 4096)
    assert need("qlora", "full", 1024) < need("lora", "full", 1024) < need("sft", "full", 1024)


def test_what_is_safe_is_within_the_risk_and_what_fits_is_within_the_memory():
    capacity = usable_bytes(question(gpu="rtx-4090").clusters[0].gpu) / GIB
    for row in rows(lengths=(1024, 2048, 4096)):
        assert row.safe <= row.fits
        assert row.safe == (row.fits and row.memory_risk <= 0.05)
        assert (row.tokens_per_s is None) == (not row.fits)
        assert row.memory_gib.low <= row.memory_gib.mid <= row.memory_gib.high
        assert row.fits or row.memory_gib.mid > 0.97 * capacity


def test_tokens_are_as_dear_as_the_gpus_that_make_them():
    (row,) = (row for row in rows("a100-sxm4-80gb") if row.variant.method == "lora" and row.act_ckpt == "full")
    assert row.tokens_per_s is not None

    assert row.usd_per_million_tokens == pytest.approx(2.5 / 3600 / row.tokens_per_s.mid * 1e6)


def test_where_it_does_not_fit_the_ways_that_would_are_named_with_what_they_need():
    one = question(model="llama-3.1-8b", method="sft", gpu="rtx-4090", gpus="1", seq_len="2048")
    ways = [parts(way) for way in ways_that_fit(one, case_of(one), 1)]
    methods = [str(parts(flag).get("value")) for way in ways for flag in way["flags"]]  # type: ignore[attr-defined]

    assert {"lora", "qlora", "bf16-pure", "adamw-8bit-paged"} <= set(methods)
    needs = [parts(need) for way in ways for need in way["needs"]]  # type: ignore[attr-defined]
    assert all(0 < float(str(need["needed_gib"])) < 23.5 for need in needs if "needed_gib" in need)
    assert 0 < sum("needed_gib" in need for need in needs) == len(ways)
    assert all(one.memory_risk < float(str(need["risk"])) <= WORTH_TRYING for need in needs if "risk" in need)
    assert ways_that_fit(question(params="405B", method="sft", gpu="rtx-4090"), case_of(one), 1) == ()


def test_no_way_is_named_twice_where_something_of_it_was_asked_for():
    one = question(model="llama-3.1-8b", method="sft", gpu="h100-sxm5-80gb", gpus="1", offload="optimizer")
    flags = [parts(way)["flags"] for way in ways_that_fit(one, case_of(one), 1)]

    assert len(flags) > 3
    assert all(flags.count(each) == 1 for each in flags)


def test_a_way_beside_a_run_that_outgrows_a_node_has_the_stack_that_it_has_when_asked_for():
    asked = {"model": "llama-3.1-8b", "gpu": "rtx-4090", "gpus": "1"}
    on_a_node, alone = question(method="sft", **asked), question(method="qlora", **asked)  # Hugging Face's stack
    outgrown = replace(question(method="sft", stack="typical", **asked), on_a_node=on_a_node)
    needed_gib = float(case_of(alone).score(best_on(case_of(alone), alone.fixed, 1).layouts).memory_bytes.min()) / GIB
    ways = {str(parts(way)["flags"]): parts(way) for way in ways_that_fit(outgrown, case_of(outgrown), 1)}
    (qlora,) = (way for flags, way in ways.items() if "qlora" in flags)

    assert parts(qlora["needs"][0])["needed_gib"] == pytest.approx(needed_gib)
    assert any("adamw-8bit-paged" in flags for flags in ways)  # at 34 % risk with the stack of several nodes


def test_adapters_whose_frozen_weights_move_to_the_host_are_named_first_with_what_that_takes():
    one = question(model="llama-3.1-70b", params=None, method="qlora", stack="hf", gpu="rtx-4090", gpus="2")
    first, *others = (parts(way) for way in ways_that_fit(one, case_of(one), 2))
    flags = [parts(flag) for flag in first["flags"]]  # type: ignore[attr-defined]
    needs = {key: value for need in first["needs"] for key, value in parts(need).items()}  # type: ignore[attr-defined]

    assert [(flag["input"], flag["value"]) for flag in flags] == [("offload", "optimizer")]
    assert needs["host_gib"] == pytest.approx(0.5 * 70.6e9 / 2**30, rel=0.25)  # four bits and the ends in 16
    assert len(others) > 1


def test_offloading_is_no_way_where_the_same_fits_without_nor_for_the_adapters_of_one_gpu():
    one = question(model="llama-3.1-8b", method="lora", gpu="rtx-4090", gpus="2", seq_len="2048")
    told = [[parts(flag) for flag in parts(way)["flags"]] for way in ways_that_fit(one, case_of(one), 2)]  # type: ignore[attr-defined]
    asked = [{str(flag["input"]): flag.get("value") for flag in flags} for flags in told]
    assert {"method": "qlora"} in asked
    assert {"method": "qlora", "offload": "optimizer"} not in asked
    alone = rows("rtx-4090", gpus=1)
    assert not any(row.variant.offload and row.variant.method in ("lora", "qlora") for row in alone)
    held = {row.variant.offload or row.variant.optimizer for row in alone if row.host_gib > 1}
    assert held == {"optimizer", "adamw-8bit-paged"}


def test_paged_states_that_find_no_room_lie_in_the_memory_of_the_host():
    (paged,) = (
        row for row in rows("rtx-4090", lengths=(1024,))
        if row.variant.optimizer == "adamw-8bit-paged" and row.act_ckpt == "full"
    )  # fmt: skip
    room_gib = usable_bytes(question(gpu="rtx-4090").clusters[0].gpu) / GIB

    assert paged.host_gib == pytest.approx(8.03e9 * 2.03 / GIB - (room_gib - paged.memory_gib.mid), rel=0.03)

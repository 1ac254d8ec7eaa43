"""Resolving a typed question: values as people write them, defaults with their source, mistakes with hints."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from planner.errors import Message, UsageError
from planner.question.asked import Ask
from planner.question.batch import batch_sequences, critical_batch_tokens
from planner.question.inputs import INPUTS
from planner.question.question import Question
from planner.question.resolve import resolve
from reports.text.messages import word
from tests.planner.build import make_question, parts


def ask(**texts: str) -> Question:
    return resolve(Ask(texts=texts))


def test_a_size_alone_takes_every_default_and_notes_it():
    before = datetime.now(UTC).date()
    resolved = ask(params="70B")

    assert resolved.clusters[0].gpu.id == "h100-sxm5-80gb"
    assert resolved.deadline_s == 30 * 86400
    assert (resolved.gpus, resolved.budget_usd) == (None, None)
    assert resolved.tokens == pytest.approx(20 * resolved.model.params_total)
    assert (resolved.seq_len, resolved.global_batch) == (4096, 1024)  # 4 Mi tokens
    assert resolved.policy.id == "bf16"
    assert [policy.precision for policy in resolved.policies] == ["fp32", "tf32", "fp16", "bf16", "fp8"]
    assert (resolved.optimizer.id, resolved.stack, resolved.method, resolved.offload) == (
        "adamw",
        "typical",
        "pretrain",
        "none",
    )
    assert resolved.inputs["params"].source == "flag"
    for name in ("tokens", "global_batch", "precision", "optimizer", "stack", "gpu", "deadline", "as_of", "seed"):
        assert resolved.inputs[name].source == "default"
    assert before <= resolved.money.as_of <= datetime.now(UTC).date()


@pytest.mark.parametrize(
    ("params", "tokens", "batch"),
    [
        ("70B", None, 2**22),
        ("30e9", None, 2**22),
        ("8B", None, 2**20),
        ("1B", None, 2**19),
        ("8B", "15T", 2**24),  # Llama 3.1 405B on as many tokens: 16 Mi
        ("70B", "15T", 2**24),
        ("8B", "1B", 2**19),  # never less
    ],
)
def test_the_default_batch_grows_with_the_tokens_of_the_run(params, tokens, batch):
    resolved = ask(params=params, **({} if tokens is None else {"tokens": tokens}))

    assert resolved.global_batch * resolved.seq_len == batch


@pytest.mark.parametrize(
    ("tokens", "seq_len", "sequences"),
    [
        (4e6, 2048, 2048),  # LLaMA, "4M": row l1paper-0001 of the published runs
        (4e6, 4096, 1024),  # Llama 2, "4M": rows card-0001 to card-0007
        (2e6, 2048, 1024),  # OPT-175B, "2M": row paper-0010
        (4e6, 8192, 512),  # StarCoder, "4M": row paper-0004
        (0.5e6, 2048, 256),  # GPT-3 125M, "0.5M": row llmc-0010
        (3.2e6, 2048, 1536),  # GPT-3 175B, "3.2M": the batch of MLPerf Training's GPT-3
        (3604480, 2048, 1760),  # MPT-7B: a whole number of sequences, 4 for each of its 440 GPUs
        (63.0, 2048, 1),
    ],
)
def test_a_batch_rounded_for_print_becomes_one_that_gpus_divide(tokens, seq_len, sequences):
    assert batch_sequences(tokens, seq_len) == sequences


def test_a_catalogue_model_brings_its_published_batch_and_sequence():
    resolved = ask(model="DeepSeek V3")

    assert resolved.model.name == "deepseek-v3"
    # DeepSeek-V3 report (arXiv 2412.19437), section 4.2: batch 15 360 at sequence length 4 096
    assert (resolved.global_batch, resolved.seq_len) == (15360, 4096)
    assert resolved.inputs["global_batch"].source == "catalogue"
    assert resolved.inputs["seq_len"].source == "catalogue"


@pytest.mark.parametrize("name", ["llama-3.1-70b", "Llama 3.1 70B", "LLAMA_3.1_70B"])
def test_model_names_do_not_mind_case_and_punctuation(name):
    assert ask(model=name).model.name == "llama-3.1-70b"


@pytest.mark.parametrize(
    ("text", "value"), [("70B", 70e9), ("1.5T", 1.5e12), ("405e9", 405e9), ("15_000M", 15e9), ("2M", 2e6)]
)
def test_counts_are_read_as_people_write_them(text, value):
    assert ask(params="8B", tokens=text).tokens == value


@pytest.mark.parametrize(
    ("text", "seconds"), [("30d", 30 * 86400), ("12h", 43200), ("90min", 5400), ("2w", 14 * 86400)]
)
def test_deadlines_are_read_as_people_write_them(text, seconds):
    assert ask(params="8B", deadline=text).deadline_s == seconds


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("400Gb/s", 50e9),
        ("8x400Gb/s", 50e9),
        ("3200Gb/s per node", 50e9),
        ("ib-ndr", 50e9),
    ],
)
def test_a_network_is_a_rate_per_gpu_or_per_node_or_a_name(text, rate):
    assert ask(params="8B", network=text).clusters[0].nic_bytes_per_s == rate


def test_the_optional_parts_are_taken():
    given = {
        "params": "8B", "tokens": "2e11", "method": "lora", "seq_len": "8192", "global_batch": "512",
        "precision": "FP8", "optimizer": "adam", "offload": "optimizer", "stack": "megatron", "attention": "fused",
        "gpu": "H100 SXM5 80GB", "gpus": "64", "gpus_per_node": "4", "power_limit": "500", "tp": "2", "pp": "1",
        "vp": "1", "cp": "1", "ep": "1", "zero": "0", "micro_batch": "8", "act_ckpt": "full", "price": "$2.50",
        "pue": "1.1", "provider": "x", "region": "y", "commitment": "1y", "electricity": "0.1", "grid": "FR",
        "as_of": "2026-01-31", "seed": "7", "budget": "2M", "deadline": "10d", "network": "400Gb/s", "policy": "fp8",
        "beside": "beside.toml", "market_grid": "0", "embodied": "yes", "power_cap": "2MW",
        "calibration": "our-stack.json", "numerics": "n.json",
        "network_file": "nccl.txt", "memory_risk": "10%", "confidence": "0.9",
        "max_gpus": "4096", "packed": "yes", "lora_rank": "8", "lora_targets": "qv",
        "in_backward": "yes", "loss": "fused", "grad_compression": "fp8-all-reduce", "mtp_layers": "0",
    }  # fmt: skip
    resolved = ask(**given)

    assert (resolved.method, resolved.seq_len, resolved.global_batch, resolved.seed) == ("lora", 8192, 512, 7)
    assert (resolved.policy.id, resolved.optimizer.id, resolved.offload, resolved.stack, resolved.attention) == (
        "fp8", "adamw", "optimizer", "tuned", "flash",
    )  # fmt: skip
    machine = resolved.clusters[0]
    assert (machine.gpu.id, machine.gpus_per_node, machine.power_limit_w) == ("h100-sxm5-80gb", 4, 500)
    fixed = resolved.fixed
    assert (fixed.tp, fixed.pp, fixed.vp, fixed.cp, fixed.ep, fixed.zero, fixed.micro_batch) == (2, 1, 1, 1, 1, 0, 8)
    assert (fixed.act_ckpt, resolved.memory_risk) == ("full", 0.1)
    assert resolved.money.price_usd_per_gpu_h == 2.5
    assert (resolved.money.pue, resolved.money.electricity_usd_per_kwh, resolved.money.grid) == (1.1, 0.1, "FR")
    assert resolved.money.as_of == date(2026, 1, 31)
    assert (resolved.gpus, resolved.budget_usd, resolved.deadline_s) == (64, 2e6, 864000)
    assert (resolved.confidence_ratio, resolved.max_gpus, resolved.batch_band) == (0.9, 4096, None)
    assert {name: value.source for name, value in resolved.inputs.items()} == dict.fromkeys(given, "flag")
    # model excludes params, tariff electricity, quote, own and price_like price, tokens samples and examples with their
    # epochs and lengths, lora what freeze and qlora take; images and experts are another model's; records are read by
    # the program
    assert set(given) == {item.name for item in INPUTS} - {
        "model", "tariff", "quote", "own", "price_like", "records", "examples", "epochs", "lengths", "trained_layers",
        "single_quant", "image_size", "samples", "moe_dispatcher",
    }  # fmt: skip


def test_tokens_are_sent_to_experts_as_asked_or_as_is_usual():
    h100, mi300x = (ask(model="mixtral-8x7b", gpu=gpu) for gpu in ("h100-sxm5-80gb", "mi300x-192gb"))
    asked = ask(model="mixtral-8x7b", moe_dispatcher="AllToAll")

    sent = [question.recipe(question.policy, question.clusters[0]).moe_dispatcher for question in (h100, mi300x, asked)]
    assert sent == ["deepep", "alltoall", "alltoall"]
    with pytest.raises(UsageError, match=r"error\.dispatcher_without_experts"):
        ask(params="8B", moe_dispatcher="deepep")


def test_a_file_s_values_say_so():
    resolved = resolve(Ask(texts={"params": "8B", "tokens": "1e12"}, sources={"tokens": "file"}))

    assert resolved.inputs["tokens"].source == "file"
    assert resolved.inputs["params"].source == "flag"


def test_several_gpus_are_one_question_each_once():
    resolved = ask(params="8B", gpu="h100-sxm5-80gb, B200 SXM 180GB,h100-sxm5-80gb")

    assert [c.gpu.id for c in resolved.clusters] == ["h100-sxm5-80gb", "b200-sxm-180gb"]


def test_a_policy_brings_its_precision():
    resolved = ask(params="8B", policy="fp8-rowwise")

    assert resolved.policy.precision == "fp8"
    assert [policy.id for policy in resolved.policies] == ["fp32", "tf32", "fp16", "bf16", "fp8-rowwise"]


def test_mxfp8_and_nvfp4_are_compared_when_asked_for():
    assert [policy.precision for policy in ask(params="8B", precision="mxfp8").policies][-1] == "mxfp8"
    assert "mxfp8" not in [policy.precision for policy in ask(params="8B").policies]


BAD = [
    ({"params": "70X"}, "--params", "70B"),
    ({"params": "-1"}, "--params", "70B"),
    ({"params": "0"}, "--params", "70B"),
    ({"params": "8x7B"}, "mixture of experts", "--model mixtral-8x7b"),
    ({}, "no model was given", "--params 70B"),
    ({"params": "8B", "model": "llama-3.1-8b"}, "both --params and --model", "give one"),
    ({"model": "lama-3.1-8b"}, "unknown model `lama-3.1-8b`", "llama-3.1-8b"),
    ({"model": "llama"}, "unknown model `llama`", "`llama-7b`"),
    ({"model": "no/such/config.json"}, "no such file", "config.json"),
    ({"params": "8B", "gpu": "h100-sxm5-81gb"}, "unknown GPU", "h100-sxm5-80gb"),
    ({"params": "8B", "gpu": "mi250x"}, "matches several models", "mi250x-128gb"),
    ({"params": "8B", "gpu": ","}, "--gpu", "mpplan gpus"),
    ({"params": "8B", "gpus": "0"}, "--gpus: `0` must be a whole number of at least 1", "--gpus 8"),
    ({"params": "8B", "gpus": "1.5"}, "--gpus: `1.5` must be a whole number", "--gpus 8"),
    ({"params": "8B", "gpus": "many"}, "--gpus", ""),
    ({"params": "8B", "precision": "fp9"}, "unknown `fp9`", "fp8"),
    ({"params": "8B", "policy": "fp8", "precision": "bf16"}, "belongs to fp8", "leave out --precision"),
    ({"params": "8B", "policy": "bf17"}, "unknown precision policy", "bf16"),
    ({"params": "8B", "optimizer": "adamv"}, "unknown optimizer", "adamw"),
    ({"params": "8B", "method": "distil"}, "--method: unknown `distil`", "pretrain, sft, freeze, lora, qlora"),
    ({"params": "8B", "stack": "mine"}, "--stack", "tuned"),
    ({"params": "8B", "offload": "disk"}, "--offload", "optimizer"),
    ({"params": "8B", "act_ckpt": "some"}, "--act-ckpt", "selective"),
    ({"params": "8B", "attention": "slow"}, "--attention", "flash"),
    ({"params": "8B", "zero": "4"}, "--zero: `4` must be at most 3", "--zero 3"),
    ({"params": "8B", "tp": "0"}, "--tp", ""),
    ({"params": "8B", "deadline": "30"}, "--deadline", "30d"),
    ({"params": "8B", "deadline": "-3d"}, "--deadline", "30d"),
    ({"params": "8B", "budget": "lots"}, "--budget", ""),
    ({"params": "8B", "tokens": "0"}, "--tokens", ""),
    ({"params": "8B", "seq_len": "4.5"}, "--seq-len", "whole number"),
    ({"params": "8B", "seq_len": "2e9"}, "--seq-len: `2e9` must be at most 100,000,000", "--seq-len 4096"),
    ({"params": "8B", "global_batch": "2e9"}, "must be at most 100,000,000", "--global-batch 512"),
    ({"params": "8B", "price": "free"}, "--price: `free` is not a number", "--price 2.5"),
    ({"params": "8B", "price": "-1"}, "--price", "--price 2.5"),
    ({"params": "8B", "price": "nan"}, "--price", "--price 2.5"),
    ({"params": "8B", "pue": "0.9"}, "--pue: `0.9` must be at least 1", "--pue 1.2"),
    ({"params": "8B", "network": "warp"}, "--network", "400Gb/s"),
    ({"params": "8B", "power_limit": "0"}, "--power-limit", ""),
    ({"params": "8B", "power_limit": "199"}, "takes at least 200 W", "or `auto`"),
    ({"params": "8B", "gpu": "b200", "power_limit": "50"}, "takes at least 18", "idle it draws 1"),
    ({"params": "8B", "as_of": "yesterday"}, "--as-of: `yesterday` is not a date", "2026-11-20"),
    ({"params": "8B", "seed": "-1"}, "--seed", ""),
]


@pytest.mark.parametrize(("asked", "message", "hint"), BAD, ids=lambda value: str(value)[:40])
def test_a_mistake_gets_one_sentence_a_hint_and_exit_code_2(asked, message, hint):
    with pytest.raises(UsageError) as caught:
        ask(**asked)

    message_text = word(caught.value.message)
    words = f"{message_text} {word(caught.value.hint or '')}"
    assert message in words
    assert hint in words
    assert caught.value.hint
    assert caught.value.exit_code == 2
    assert "\n" not in message_text
    assert not message_text.endswith(".")


def test_a_default_batch_may_be_left_by_a_quarter_but_not_beyond_the_critical_one():
    large, small = ask(params="70B"), ask(params="70B", tokens="0.1B")

    assert (large.global_batch, large.batch_band) == (1024, (820, 1280))
    # Kaplan et al. 2020, equations 1.4 and 1.5: a loss of 1.69 nats at 70B parameters and 1.41T tokens, 16M tokens
    assert critical_batch_tokens(70.55e9, 1.41e12) == pytest.approx(16.4e6, rel=0.02)
    assert (small.global_batch, small.batch_band) == (128, (103, 129))  # less than a quarter above is critical
    assert critical_batch_tokens(70.55e9, 1e8) / 4096 == pytest.approx(129, rel=0.01)


def test_more_gpus_than_the_most_allowed_are_refused():
    with pytest.raises(UsageError) as caught:
        ask(params="8B", gpus="64", max_gpus="32")

    assert parts(caught.value.message) == {"key": "error.gpus_over_most", "gpus": 64, "most": 32}


def test_gradients_are_compressed_where_that_was_asked_for():
    plain = ask(params="7B", gpu="h100-sxm5-80gb", gpus="8")
    asked = ask(params="7B", gpu="h100-sxm5-80gb", gpus="8", grad_compression="PowerSGD")

    assert plain.grad_compression is None
    assert (plain.inputs["grad_compression"].value, plain.inputs["grad_compression"].source) == ("none", "default")
    assert asked.inputs["grad_compression"].value == "powersgd:4"
    assert (asked.stack, asked.inputs["stack"].source) == ("fsdp-compile", "derived")
    recipe = asked.recipe(asked.policy, asked.clusters[0])
    assert recipe.grad_compression is asked.grad_compression
    assert ask(params="7B", grad_compression="powersgd:16").grad_compression.rank == 16
    assert ask(params="7B", grad_compression="1bit").stack == "classic"
    assert ask(params="7B", grad_compression="1bit", stack="deepspeed").stack == "classic"
    assert ask(params="7B", grad_compression="powersgd", stack="eager").stack == "eager"
    assert ask(params="7B", grad_compression="fp8").stack == plain.stack == "typical"
    assert ask(params="7B", grad_compression="1bit", method="lora", gpus="8").framework is None


@pytest.mark.parametrize(
    ("texts", "key"),
    [
        ({"grad_compression": "powersgd", "zero": "3"}, "error.compression_zero"),
        ({"grad_compression": "fp8", "zero": "2"}, "error.compression_zero"),
        ({"grad_compression": "1bit", "zero": "1"}, "error.compression_no_zero"),
        ({"grad_compression": "1bit", "stack": "tuned"}, "error.compression_stack"),
        ({"grad_compression": "powersgd", "stack": "megatron"}, "error.compression_stack"),
        ({"grad_compression": "fp8:4"}, "error.compression_no_rank"),
        ({"grad_compression": "powersgd:x"}, "error.compression_rank"),
        ({"grad_compression": "powersgd:1025"}, "error.compression_rank"),
        ({"grad_compression": "1bit", "optimizer": "muon"}, "error.compression_optimizer"),
        ({"grad_compression": "fp8", "gpu": "a100-sxm4-80gb"}, "error.compression_gpu"),
    ],
)
def test_compression_that_does_not_apply_is_refused(texts, key):
    with pytest.raises(UsageError) as refused:
        ask(**({"params": "7B", "gpu": "h100-sxm5-80gb", "gpus": "8"} | texts))

    assert refused.value.message.key == key


@pytest.mark.parametrize(
    ("texts", "hint"),
    [
        ({"grad_compression": "powersgd:1025"}, Message.of("hint.compression_rank", most=1024)),
        (
            {"grad_compression": "fp8", "gpu": "a100-sxm4-80gb,v100-sxm2-32gb", "precision": "fp16"},
            Message.of("hint.compression_gpu", compute="fp8"),
        ),
    ],
)
def test_what_a_compression_takes_is_told(texts, hint):
    with pytest.raises(UsageError) as refused:
        ask(**({"params": "7B", "gpu": "h100-sxm5-80gb", "gpus": "8"} | texts))

    assert refused.value.hint == hint


def test_an_unknown_compression_is_refused():
    with pytest.raises(UsageError, match="unknown gradient compression `zip`"):
        ask(params="7B", grad_compression="zip")


@pytest.mark.parametrize(("network", "sized"), [("", True), ("100Gb/s", True), ("ib-ndr", True), ("8x400Gb/s", False)])
def test_a_network_of_each_card_leaves_its_machines_to_their_number(network, sized):
    given = {"network": network} if network else {}
    (cluster,) = make_question(params="1B", gpu="rtx-4090", gpus="3", **given).clusters

    assert cluster.gpus_per_node == 3
    assert cluster.sized_by_number is sized


@pytest.mark.parametrize("gpus", ["rtx-4090,h100-sxm5-80gb", "h100-sxm5-80gb,rtx-4090"])
def test_the_size_of_a_machine_of_cards_is_noted_wherever_they_stand(gpus):
    noted = make_question(params="1B", gpu=gpus, gpus="3").inputs["gpus_per_node"]

    assert (noted.value, noted.source) == (3, "default")

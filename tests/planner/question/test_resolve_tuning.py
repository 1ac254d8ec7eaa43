"""The data of a run in examples, and how a fine-tuning is done: what is read, what is refused, what is the default."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.errors import InputFileError, UsageError
from planner.question.asked import Ask
from planner.question.question import Question
from planner.question.resolve import resolve
from planner.question.resolve_tuning import UNPACKED
from planner.training.method import find_method, load_methods


def ask(**texts: str) -> Question:
    return resolve(Ask(texts={"model": "llama-3.1-8b"} | texts))


def test_fine_tuning_is_hugging_face_s_on_any_number_of_gpus_unless_another_stack_is_named():
    assert ask(method="lora").inputs["stack"].value == "hf"
    assert ask(method="lora", gpus="8").framework is not None
    assert ask(method="lora", gpus="64").framework is ask(method="lora", gpus="8").framework
    assert ask(method="lora", stack="megatron").stack == "tuned"
    assert ask(method="pretrain").framework is None


def test_adapters_that_would_stand_beside_no_weight_are_refused(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(
        """{"model_type": "nemotron_h", "hidden_size": 1024, "num_attention_heads": 8, "vocab_size": 32000,
        "hybrid_override_pattern": "MMMM", "mamba_num_heads": 32}""",
        encoding="utf-8",
    )

    assert ask(model=str(config), method="lora").tuning.lora_targets == "all-linear"
    for targets in ("qv", "attention", "mlp"):
        with pytest.raises(UsageError, match=f"--lora-targets: no layer of .* has weights of `{targets}`"):
            ask(model=str(config), method="lora", lora_targets=targets)


def test_a_named_framework_brings_its_policies_optimizer_and_loss():
    torchtune, unsloth = ask(method="sft", stack="torchtune"), ask(method="lora", stack="liger")

    assert torchtune.policy.id == "bf16-pure"
    assert torchtune.recipe(torchtune.policy, torchtune.clusters[0]).chunked_loss
    assert unsloth.optimizer.id == "adamw-8bit"
    assert (torchtune.fixed.tp, torchtune.fixed.pp) == (1, 1)
    full = ask(method="sft", stack="torchtune", loss="full")
    assert not full.recipe(full.policy, full.clusters[0]).chunked_loss


def test_examples_passes_and_their_mean_are_the_tokens_of_the_run():
    asked = ask(method="lora", examples="50k", epochs="3", lengths="500", seq_len="2048")

    assert asked.tokens == pytest.approx(75e6, rel=1e-3)
    assert asked.inputs["tokens"].source == "derived"
    assert asked.lengths is not None
    assert not asked.lengths_assumed


def test_packed_examples_fill_every_sequence_with_as_many_tokens():
    padded, packed = (ask(method="lora", examples="1k", lengths="500", **more) for more in ({}, {"packed": "yes"}))

    assert (padded.lengths is None, packed.lengths is None) == (False, True)
    assert packed.tokens == padded.tokens


def test_nobody_s_lengths_are_an_assumption():
    asked = ask(method="lora", examples="1k")

    assert asked.lengths_assumed
    assert asked.inputs["lengths"].source == "default"
    assert asked.tokens == pytest.approx(400e3, rel=1e-3)
    short = ask(method="lora", examples="1k", seq_len="100")
    assert short.tokens == pytest.approx(60e3, rel=1e-3)  # most of the sequence, not more than it


def test_fine_tuning_without_a_word_on_its_data_takes_a_usual_set():
    asked = ask(method="lora")

    assert (asked.inputs["examples"].value, asked.inputs["examples"].source) == (50_000, "default")
    assert (asked.seq_len, asked.global_batch) == (2048, 32)


def test_a_pair_of_answers_is_two_sequences():
    single, pairs = (
        ask(method="lora", examples="1k", lengths="400"),
        ask(method="dpo-lora", examples="1k", lengths="400"),
    )

    assert pairs.tokens == pytest.approx(2 * single.tokens)


def test_lengths_can_stand_in_a_file(tmp_path: Path):
    path = tmp_path / "lengths.txt"
    path.write_text("# tokens\n100\n\n300,\n5000\n", encoding="utf-8")
    asked = ask(method="lora", examples="1k", lengths=str(path), seq_len="2048")

    assert asked.tokens == pytest.approx(1000 * (100 + 300 + 2048) / 3)


@pytest.mark.parametrize(
    ("content", "what"),
    [("100\nmany\n", "lengths.txt:2: length"), ("0\n", "lengths.txt:1: length"), ("\n# none\n", "at least one number")],
)
def test_a_file_of_lengths_that_holds_something_else_is_named_with_its_line(tmp_path: Path, content, what):
    path = tmp_path / "lengths.txt"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(InputFileError, match=what):
        ask(method="lora", examples="1k", lengths=str(path))


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"tokens": "1B", "examples": "1k"}, "both --tokens and --examples"),
        ({"tokens": "1B", "epochs": "2"}, "both --tokens and --epochs were given"),
        ({"examples": "1k", "epochs": "0"}, "--epochs"),
        ({"examples": "1k", "lengths": "long"}, "neither a number of tokens nor a file"),
        ({"examples": "1k", "lengths": "9999", "seq_len": "2048"}, "not between 1 and the 2048"),
        ({"method": "sft", "lora_rank": "8"}, "--lora-rank does not apply to --method sft"),
        ({"method": "lora", "trained_layers": "2"}, "--trained-layers does not apply"),
        ({"method": "lora", "single_quant": "yes"}, "--single-quant does not apply"),
        ({"method": "freeze", "trained_layers": "33"}, "33 is more than the 32 layers"),
        ({"method": "dpo", "global_batch": "7"}, "7 is odd"),
        ({"method": "lora", "mtp_layers": "1"}, "mtp_layers"),
        ({"method": "dpo", "mtp_layers": "1"}, "mtp_layers"),
        ({"method": "pretrain", "model": "bert-large", "mtp_layers": "1"}, "mtp_layers"),
        ({"method": "pretrain", "mtp_layers": "17"}, "--mtp-layers"),
        ({"method": "qlora", "tp": "2"}, "error.tp_low_bits"),
        ({"method": "dpo-qlora", "tp": "8", "stack": "typical"}, "error.tp_low_bits"),
        ({"method": "freeze", "pp": "2"}, "error.pp_last_layers"),
    ],
)
def test_what_does_not_go_together_is_refused_with_a_reason(given, what):
    with pytest.raises(UsageError, match=what) as caught:
        ask(**{"method": "lora"} | given)

    assert caught.value.hint


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"method": "sft", "lora_rank": "8"}, "it applies to lora, qlora, dora, qdora, dpo-lora or dpo-qlora"),
        ({"method": "lora", "trained_layers": "2"}, "it applies to freeze"),
        ({"method": "lora", "single_quant": "yes"}, "it applies to qlora, qdora or dpo-qlora"),
        ({"tokens": "1B", "samples": "1k"}, "leave one out"),
        ({"tokens": "1B", "epochs": "2"}, "leave --epochs out"),
    ],
)
def test_the_hint_for_what_does_not_go_together_names_all_that_does(given, hint):
    with pytest.raises(UsageError) as caught:
        ask(**{"method": "lora"} | given)

    assert hint in str(caught.value.hint)


def test_a_model_predicts_further_tokens_as_it_was_trained_unless_one_says_otherwise():
    published, without, own = (
        ask(model="deepseek-v3", **more) for more in ({}, {"mtp_layers": "0"}, {"mtp_layers": "2"})
    )
    layers = [
        question.recipe(question.policy, question.clusters[0]).model.layers for question in (published, without, own)
    ]

    assert layers == [62, 61, 63]
    assert (published.model.layers, published.model.mtp_layers) == (61, 1)
    assert published.inputs["mtp_layers"].source == "catalogue"
    assert ask(model="deepseek-v3", stack="fsdp-compile").inputs["mtp_layers"].value == 0
    assert "mtp_layers" not in ask(model="deepseek-v3", method="sft").inputs
    assert "mtp_layers" not in ask().inputs
    assert ask(method="sft", mtp_layers="1").recipe(own.policy, own.clusters[0]).model.layers == 33


def test_every_method_of_packed_weights_names_the_one_that_can_be_split():
    packed = {method.id: method for method in load_methods().values() if method.low_bits}

    assert UNPACKED.keys() == packed.keys()
    for name, other in UNPACKED.items():
        assert replace(find_method(other), id=name, name="", low_bits=True, evidence=packed[name].evidence) == replace(
            packed[name], name=""
        )
    assert ask(method="qlora", tp="1").fixed.tp == 1

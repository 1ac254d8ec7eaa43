from dataclasses import replace

import pytest

from planner.validation.runs import PublishedRun, parse_run
from planner.validation.setup import Prepared, prepare_run


def texts(ready: Prepared) -> list[str]:
    return [default.text for default in ready.filled]


def run(**cells: str) -> PublishedRun:
    row = {
        "id": "x", "model": "Llama3-70B", "precision": "bf16", "gpu": "h100-sxm5-80gb", "n_gpus": "64",
        "seq_len": "8192", "global_batch_seqs": "128", "micro_batch": "1", "tp": "4", "pp": "4", "act_ckpt": "none",
        "framework": "NeMo 24.07", "metric": "step_time_s",
    }  # fmt: skip
    parsed = parse_run(row | cells)
    assert isinstance(parsed, PublishedRun)
    return parsed


def prepared(**cells: str) -> Prepared:
    ready = prepare_run(run(**cells))
    assert isinstance(ready, Prepared), ready
    return ready


def test_a_stated_layout_is_taken_as_it_stands():
    layout = prepared(cp="2", vp="5").layouts.at(0)

    # 64 / (4 x 4 x 2) = 2 ranks; 128 / 2 / 1 = 64 micro-batches
    assert (layout.tp, layout.pp, layout.vp, layout.cp, layout.dp) == (4, 4, 5, 2, 2)
    assert (layout.micro_batch, layout.grad_accum) == (1, 64)


def test_micro_batches_that_do_not_divide_are_split_evenly():
    # Composer: 20 sequences per GPU in steps of 8 are three micro-batches, here of 7
    ready = prepared(
        tp="1", pp="1", n_gpus="8", global_batch_seqs="160", micro_batch="8", model="MPT-1b", seq_len="2048",
        framework="llm-foundry/Composer (PyTorch FSDP)",
    )  # fmt: skip
    layout = ready.layouts.at(0)

    assert (layout.dp, layout.micro_batch, layout.grad_accum) == (8, 7, 3)
    assert ready.batch_scale == pytest.approx(160 / 168)


def test_torchtitan_s_local_batch_is_cut_into_as_many_micro_batches_as_there_are_stages():
    # torchtitan, `pipeline_parallel_microbatches`: the number of pipeline stages if unspecified
    ready = prepared(framework="torchtitan", micro_batch="16", grad_accum="1", global_batch_seqs="64", act_ckpt="full")
    layout = ready.layouts.at(0)

    assert (layout.pp, layout.micro_batch, layout.grad_accum) == (4, 4, 4)
    assert "micro_batch: 4, the pipeline splits the local batch of 16" in texts(ready)


def test_what_is_left_open_is_chosen_by_the_search_and_named():
    ready = prepared(tp="", pp="", micro_batch="")

    assert any(note.startswith("tp, pp, micro_batch: chosen by the layout search") for note in texts(ready))
    assert ready.layouts.at(0).gpus == 64


def test_a_run_that_names_fsdp_and_no_split_of_layers_has_none():
    fsdp = prepared(framework="MaxText (JAX)", tp="", pp="", zero_or_fsdp_stage="fsdp-64-way", micro_batch="2")
    tuned = prepared(framework="MaxText (JAX)", tp="", pp="", zero_or_fsdp_stage="zero-1", micro_batch="2")

    assert (fsdp.layouts.at(0).tp, fsdp.layouts.at(0).pp, fsdp.layouts.at(0).dp) == (1, 1, 64)
    assert tuned.layouts.at(0).dp < 64  # a tuned stack that does not shard weights splits layers: searched


def test_blank_checkpointing_becomes_the_least_that_fits():
    roomy = prepared(model="Llama3-8B", tp="1", pp="1", act_ckpt="", micro_batch="1")
    tight = prepared(model="Llama3-70B", tp="4", pp="4", act_ckpt="", micro_batch="8", seq_len="16384")

    assert roomy.layouts.at(0).act_ckpt == "none"
    assert tight.layouts.at(0).act_ckpt == "full"
    assert "act_ckpt: the least that fits" in texts(roomy)


MEGATRON = {
    "framework": "Megatron-LM", "model": "Llama2-7B", "n_gpus": "8", "tp": "1", "pp": "1", "vp": "1", "seq_len": "2048",
    "global_batch_seqs": "8", "micro_batch": "1", "act_ckpt": "full",
}  # fmt: skip
"""Megatron-LM's default is to shard nothing; 7 B parameters with Adam's states are some 126 GB then."""


@pytest.mark.parametrize(
    ("changes", "zero", "item"),
    [
        ({"gpu": "a100-sxm4-80gb"}, 1, "zero: 1, the least that fits"),
        ({"gpu": "a100-sxm4-40gb", "pp": "2"}, 1, "zero: 1, the least that fits"),
        ({"gpu": "a100-sxm4-40gb"}, 2, "zero: 2, the least that fits"),
        # its default is stage 1, and no FSDP came with a release of 2024
        ({"gpu": "a100-sxm4-40gb", "framework": "Megatron-Core 0.6"}, 1, "zero: 1"),
        ({"gpu": "a100-sxm4-40gb", "framework": "Megatron-Core 0.11"}, 2, "zero: 2, the least that fits"),
        ({"gpu": "a100-sxm4-80gb", "tp": "4"}, 0, "zero: 0"),  # it fits
        ({"gpu": "a100-sxm4-40gb", "model": "Llama3-70B"}, 0, "zero: 0"),  # no stage does
        ({"gpu": "a100-sxm4-80gb", "zero_or_fsdp_stage": "zero-0"}, 0, None),  # stated, though it cannot have been
    ],
)
def test_a_default_of_sharding_that_does_not_fit_is_taken_for_the_least_that_does(changes, zero, item):
    ready = prepared(**MEGATRON | changes)

    assert ready.layouts.at(0).zero == zero
    assert [text for text in texts(ready) if text.startswith("zero")] == ([item] if item else [])


def test_a_layout_that_contradicts_the_gpus_is_refused_with_the_figures():
    refused = prepare_run(replace(run(), n_gpus=60))

    assert getattr(refused, "reason", "") == "layout: tp x pp x cp = 16 does not divide 60 GPUs"


def test_a_default_of_checkpointing_that_cannot_fit_is_taken_for_full():
    # 65 536 tokens of an 8B model on 4 GPUs: selective checkpointing, torchtitan's default, would take 240 GiB
    large = {"tp": "1", "pp": "1", "n_gpus": "4", "micro_batch": "32", "global_batch_seqs": "128", "seq_len": "2048"}
    titan = {"framework": "torchtitan", "model": "Llama3-8B", "vp": "", "cp": "", **large}
    open_one, stated = prepared(**titan, act_ckpt=""), prepared(**titan, act_ckpt="selective")

    assert open_one.layouts.at(0).act_ckpt == "full"
    kept = [text for text in texts(open_one) if text.startswith("act_ckpt")]
    assert kept == [
        "act_ckpt: full, for the framework's default does not fit"
    ]  # and nothing of the default it replaced
    assert stated.layouts.at(0).act_ckpt == "selective"


def test_a_single_gpu_shards_nothing_unless_its_policy_computes_with_gathered_copies():
    alone = {"n_gpus": "1", "tp": "1", "pp": "1", "vp": "", "cp": "", "micro_batch": "1", "global_batch_seqs": "1"}
    tune = prepared(framework="torchtune", model="Llama3-8B", **alone)
    titan = prepared(framework="torchtitan", model="Llama3-8B", **alone)

    assert (tune.layouts.at(0).zero, titan.layouts.at(0).zero) == (0, 3)

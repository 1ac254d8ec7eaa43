"""Activations against Korthikanti et al., Megatron's schedule, and what plain PyTorch keeps."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models.catalogue import find_model
from planner.models.linear_attention import LinearAttention
from planner.models.shape import ModelShape
from planner.parallelism.layout import Layout, Layouts
from planner.performance.activations import in_flight, stored_bytes_per_layer, working_bytes
from planner.performance.operations import count_work
from tests.planner.build import ROUNDING, gpt, layout, layouts, mid_rates, plain_rates, recipe, settings_of_recipes

S, B, H, A = 2048, 4, 12288, 96


def stored(where: Layout, **changes: object) -> float:
    """Bytes that one layer of GPT-3 keeps, in units of s b h."""
    values: dict[str, object] = {"seq_len": S, "dropout": True, "attention": "flash"}
    training = recipe(gpt(96, H, A), "fp16-megatron", **(values | changes))
    at = Layouts.of(replace(where, micro_batch=B))
    kept, _ = stored_bytes_per_layer(training, count_work(training, at), at, plain_rates())
    return float(np.ravel(kept)[0]) / (S * B * H)


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_activations_of_a_gpt_layer_are_those_of_korthikanti_et_al(tp):
    scores = 5 * A * S / H
    assert scores == 80  # section 4: 5as/h = 80 for GPT-3

    # equation 4, tensor and sequence parallel: sbh/t (34 + 5as/h); with selective recomputation 34 sbh/t
    assert stored(layout(tp=tp), attention="naive") == pytest.approx((34 + scores) / tp)
    assert stored(layout(tp=tp, act_ckpt="selective"), attention="naive") == pytest.approx(34 / tp)
    assert stored(layout(tp=tp), attention="flash") == pytest.approx(34 / tp)
    # equation 2, tensor parallel only: sbh (10 + 24/t + 5as/ht)
    alone = stored(layout(tp=tp), attention="naive", sequence_parallel=False)
    assert alone == pytest.approx(10 + 24 / tp + scores / tp)
    # full recomputation: 2 sbh
    assert stored(layout(tp=tp, act_ckpt="full"), sequence_parallel=False) == pytest.approx(2)
    assert stored(layout(tp=tp, act_ckpt="full")) == pytest.approx(2 / tp)


def test_selective_recomputation_saves_70_percent_on_gpt_3():
    # Korthikanti et al. 2022, section 5; claim c18 says up to 75 %
    saved = 1 - stored(layout(act_ckpt="selective"), attention="naive") / stored(layout(), attention="naive")

    assert saved == pytest.approx(0.70, abs=0.005)


def test_a_llama_layer_with_fused_attention_keeps_its_norms_heads_and_three_inner_activations():
    llama = find_model("llama-3.1-8b")
    training = recipe(llama, seq_len=8192)
    kept, _ = stored_bytes_per_layer(training, count_work(training, layouts()), layouts(), plain_rates())

    # 2 bytes of 4 h + q, k, v + attention output + gate, up and their product
    assert float(kept[0]) == 8192 * 2 * (4 * 4096 + (4096 + 2 * 1024) + 4096 + 3 * 14336)


TOKENS, H8 = 4096, 4096


def kept_by_llama(where: Layout | None = None, gathered: float = 0.0, **changes: object) -> float:
    """Elements per token that one layer of Llama 3.1 8B keeps, in 16 bits."""
    training = recipe("llama-3.1-8b", "bf16-pure", **changes)
    at = Layouts.of(where or layout())
    kept, _ = stored_bytes_per_layer(training, count_work(training, at), at, plain_rates(gathered_input_ratio=gathered))
    return float(np.ravel(kept)[0]) / 2 / TOKENS


def test_eager_pytorch_repeats_keys_and_values_and_keeps_the_activated_gate():
    compiled, eager = kept_by_llama(stack="fsdp-compile"), kept_by_llama(stack="eager")

    # 4 h, q, k, v of 32, 8 and 8 heads of 128, attention's output, gate, up, product
    assert compiled == 4 * H8 + (4096 + 2 * 1024) + 4096 + 3 * 14336
    # keys and values for all 32 heads, and silu(gate)
    assert eager == 4 * H8 + 3 * 4096 + 4096 + 4 * 14336


@pytest.mark.parametrize(("kind", "inner"), [("encoder", 2), ("decoder", 3)])
def test_the_gelu_of_an_eager_encoder_is_one_kernel_which_keeps_its_input_only(kind, inner):
    bert = replace(find_model("bert-large"), kind=kind)
    training = recipe(bert, "bf16-pure", stack="eager", seq_len=TOKENS)
    kept, _ = stored_bytes_per_layer(training, count_work(training, layouts()), layouts(), plain_rates())

    # `BertLayer` of transformers 5.24 with fused attention and without dropout, counted with saved_tensors_hooks: the
    # inputs of q, k and v, of both norms and of the feed-forward block, q, k, v and the attention output; for the GELU,
    # what enters it and what leaves it.
    assert float(np.ravel(kept)[0]) / 2 / TOKENS == 8 * 1024 + inner * 4096


@pytest.mark.parametrize(
    ("model", "where", "more"),
    [
        ("bert-large", {}, 4),  # two inputs of norms in FP32, two further copies of the input of q, k and v
        ("llama-3.2-1b", {}, 5),  # the same, and a further copy of the input of gate and up
        ("gpt-2", {}, 2),  # one product for q, k and v
        ("llama-3.2-1b", {"act_ckpt": "full"}, 1),  # the input of the layer in FP32
        ("llama-3.2-1b", {"dp": 8, "zero": 3}, 0),  # FSDP gathers the embedding in 16 bits
    ],
)
def test_eager_autocast_keeps_the_hidden_state_in_fp32_and_a_copy_for_each_product(model, where, more):
    def kept(policy: str, stack: str) -> float:
        training, at = recipe(model, policy, stack=stack, seq_len=TOKENS), layouts(**where)
        stored_bytes, _ = stored_bytes_per_layer(training, count_work(training, at), at, plain_rates())
        return float(np.ravel(stored_bytes)[0]) / 2 / TOKENS / training.model.hidden

    # records of an H200 and an H100 of 2026-11-27, end to end: from two to four layers of Llama 3.2 1B, 0.606 GiB a
    # layer under autocast (0.113 of them casts of weights) and 0.414 GiB in BF16: 5 hidden states of 16 MiB
    assert kept("bf16-autocast", "eager") - kept("bf16-pure", "eager") == pytest.approx(more)
    assert kept("bf16-autocast", "fsdp-compile") == kept("bf16-pure", "fsdp-compile")


@pytest.mark.parametrize(
    ("model", "policy", "dropout", "of_score"),
    [
        ("bert-large", "bf16-pure", False, 2),
        ("bert-large", "bf16-pure", True, 2 + 2 + 1),
        ("bert-large", "bf16-autocast", True, 4 + 2 + 1),
        ("bert-large", "bf16-autocast", False, 4 + 2),
        ("bert-large", "fp32", True, 4 + 4 + 1),
        ("llama-3.2-1b", "bf16-pure", False, 4 + 2),
        ("llama-3.2-1b", "fp32", False, 4),
    ],
)
def test_eager_pytorch_keeps_probabilities_in_fp32_under_autocast_and_in_decoders(model, policy, dropout, of_score):
    def kept(attention: str) -> float:
        training = recipe(model, policy, stack="eager", seq_len=TOKENS, dropout=dropout, attention=attention)
        stored_bytes, _ = stored_bytes_per_layer(training, count_work(training, layouts()), layouts(), plain_rates())
        return float(np.ravel(stored_bytes)[0]) / (find_model(model).heads * TOKENS**2)

    # tensors of `BertLayer` and `LlamaDecoderLayer` of transformers 5.24, counted with saved_tensors_hooks
    assert kept("naive") - kept("flash") == pytest.approx(of_score)


@pytest.mark.parametrize("stack", ["fsdp-compile", "eager"])
@pytest.mark.parametrize(("act_ckpt", "more"), [("none", 2), ("selective", 1)])
def test_gated_attention_keeps_the_gate_and_where_nothing_is_made_again_what_it_is_applied_to(stack, act_ckpt, more):
    gated = replace(find_model("llama-3.1-8b"), gated_attention=True)

    def kept(model: object) -> float:
        training, at = recipe(model, "bf16-pure", stack=stack), layouts(act_ckpt=act_ckpt)
        return float(stored_bytes_per_layer(training, count_work(training, at), at, plain_rates())[0][0]) / 2 / TOKENS

    assert kept(gated) - kept(find_model("llama-3.1-8b")) == more * 32 * 128


def test_a_short_convolution_keeps_its_gates_its_input_and_what_it_gives():
    convolution = LinearAttention(
        layers=32, key_heads=1, key_dim=0, value_heads=4096, value_dim=1, head_inputs=0, gates=2
    )
    bare = replace(find_model("llama-3.1-8b"), attention_layers=0)

    def kept(model: ModelShape) -> float:
        training, at = recipe(model, "bf16-pure"), layouts()
        return float(stored_bytes_per_layer(training, count_work(training, at), at, plain_rates())[0][0]) / 2 / TOKENS

    # `Lfm2ShortConv` of transformers 5.24: B, C and x; B x; its convolution; and C times that, the output's input
    assert kept(replace(bare, linear=convolution)) - kept(bare) == 6 * 4096


@pytest.mark.parametrize(
    ("targets", "outputs"),
    [("all-linear", 10.5), ("attention", 2.5), ("mlp", 8.0), ("qv", 1.25)],
)
@pytest.mark.parametrize(("method", "without"), [("dora", "lora"), ("qdora", "qlora")])
def test_dora_keeps_what_each_adapted_weight_gives_and_what_its_adapter_gives(method, without, targets, outputs):
    # Llama 3.1 8B: q and o give h, k and v a quarter, gate and up 3.5 h each, down h; two tensors of 2 bytes each.
    # Counted with saved_tensors_hooks on such a block, PEFT 0.21.2 (what lives only inside its forward left out): 42 h
    # more than LoRA for all of them, 10 h for attention, 32 h for the feed-forward, 5 h for q and v.
    kept, whole = (
        stored_bytes_per_layer(training, count_work(training, layouts()), layouts(), plain_rates())
        for training in (
            recipe("llama-3.1-8b", method=name, lora_targets=targets, seq_len=1, stack="eager")
            for name in (method, without)
        )
    )

    assert float(np.ravel(kept[0])[0] - np.ravel(whole[0])[0]) == pytest.approx(4 * outputs * 4096)


def test_layers_that_are_run_again_keep_what_dora_scales_only_while_they_are():
    dora, lora = (recipe("llama-3.1-8b", method=name, seq_len=1, stack="eager") for name in ("dora", "lora"))
    at = layouts(act_ckpt="full")
    (kept, whole), (same, without) = (
        stored_bytes_per_layer(training, count_work(training, at), at, plain_rates()) for training in (dora, lora)
    )

    assert kept == pytest.approx(same)
    assert working_bytes(dora, count_work(dora, at), at, kept, whole) - working_bytes(
        lora, count_work(lora, at), at, same, without
    ) == pytest.approx(4 * 10.5 * 4096)


def test_the_scores_that_selective_recomputation_drops_exist_for_the_layer_that_is_run_again():
    training = recipe(gpt(96, H, A), "fp16-megatron", seq_len=S, dropout=True, attention="naive")

    def working(ckpt: str) -> float:
        at = Layouts.of(replace(layout(act_ckpt=ckpt), micro_batch=B))
        work = count_work(training, at)
        kept, whole = stored_bytes_per_layer(training, work, at, plain_rates())
        return float(np.ravel(working_bytes(training, work, at, kept, whole))[0]) / (S * B * H)

    # Korthikanti et al. 2022, equation 4: a whole layer keeps 34 + 5as/h = 114 sbh, of which 80 are the scores
    assert working("full") == pytest.approx(114)
    assert working("selective") == pytest.approx(80)
    assert working("none") == pytest.approx(114 / 4)


@pytest.mark.parametrize(("sequence_parallel", "hidden"), [(True, 2.0 / 4), (False, 2.0)])
def test_ranks_share_what_dora_scales_as_they_share_what_products_give(sequence_parallel, hidden):
    # o and down give all ranks the sum, whole or each its part of the sequence
    more = []
    for method in ("dora", "lora"):
        training = recipe("llama-3.1-8b", method=method, seq_len=4, sequence_parallel=sequence_parallel)
        at = layouts(tp=4)
        kept, _ = stored_bytes_per_layer(training, count_work(training, at), at, plain_rates())
        more.append(float(np.ravel(kept)[0]))

    assert more[0] - more[1] == pytest.approx(4 * 4 * 4096 * (8.5 / 4 + hidden))


def test_a_composed_gelu_keeps_one_more_inner_tensor_in_eager_pytorch():
    def kept(stack: str) -> float:
        training = recipe(gpt(8, 1024, 16), "bf16-pure", stack=stack)
        return float(stored_bytes_per_layer(training, count_work(training, layouts()), layouts(), plain_rates())[0][0])

    assert kept("eager") - kept("fsdp-compile") == 2 * TOKENS * 4 * 1024


def test_torchtitan_s_selective_checkpointing_keeps_every_second_product():
    # layer input, q, v, attention's output, first and last product of the feed-forward
    expected = H8 + 4096 + 1024 + 4096 + 14336 + H8

    assert kept_by_llama(layout(act_ckpt="selective"), stack="fsdp-compile") == expected


def test_selective_checkpointing_of_fused_attention_saves_nothing_in_megatron():
    # the result of the attention core is the input of the product that follows, and stays
    assert kept_by_llama(layout(act_ckpt="selective")) == kept_by_llama()


def test_selective_checkpointing_of_layers_with_experts_frees_what_norms_and_activations_give():
    mixtral = find_model("mixtral-8x7b")
    training = recipe(mixtral, seq_len=4096)

    def kept(act_ckpt: str) -> float:
        at = layouts(act_ckpt=act_ckpt)
        kept_bytes, _ = stored_bytes_per_layer(training, count_work(training, at), at, plain_rates())
        return float(np.ravel(kept_bytes)[0])

    # the inputs of two products that follow a norm, and of the one that follows an expert's activation
    freed = 4096 * 2 * (2 * mixtral.hidden + mixtral.top_k * mixtral.expert_ffn)
    assert kept("none") - kept("selective") == pytest.approx(freed)


@pytest.mark.parametrize(
    ("stack", "gathered", "hidden"),
    [
        ("tuned", 1.0, 4 * H8 / 8),  # Megatron gathers again
        ("eager", 0.0, 4 * H8 / 8),
        ("eager", 1.0, 2 * H8 / 8 + 2 * H8),  # the inputs of two products lie gathered
        ("eager", 0.25, 2 * H8 / 8 + 2 * H8 * (1 + 0.25 * 7) / 8),
    ],
)
def test_inputs_that_autograd_keeps_gathered_are_not_split_by_sequence_parallelism(stack, gathered, hidden):
    inner = (4 if stack == "eager" else 3) * 14336
    heads = 3 * 4096 if stack == "eager" else 4096 + 2 * 1024
    kept = kept_by_llama(layout(tp=8), gathered, stack=stack)

    assert kept == pytest.approx(hidden + (heads + 4096 + inner) / 8)


@pytest.mark.parametrize(
    ("pp", "vp", "micro_batches", "first", "last"),
    [
        (1, 1, 8, 1, 1),
        (4, 1, 16, 4, 1),
        (4, 1, 2, 2, 1),  # fewer micro-batches than stages
        (4, 2, 16, 4 * (1 + 3 / 8), 4 - 3 / 2),  # Megatron's estimator: p (1 + (p - 1) / (p v))
        (8, 4, 64, 8 * (1 + 7 / 32), 8 - 7 / 4),
        (4, 2, 4, 4, 2.5),  # never more than there are
    ],
)
def test_a_pipeline_stage_holds_the_micro_batches_of_its_schedule(pp, vp, micro_batches, first, last):
    at = layouts(pp=pp, vp=vp, grad_accum=micro_batches)

    assert float(in_flight(at)[0]) == pytest.approx(first)
    assert float(in_flight(at, last=True)[0]) == pytest.approx(last)


def schedule(pp: int, vp: int, micro_batches: int, rank: int) -> float:
    """Most micro-batches held by one rank, by running Megatron's interleaved schedule chunk by chunk."""
    total = micro_batches * vp
    warm_up = min((pp - rank - 1) * (2 if vp > 1 else 1) + (vp - 1) * pp, total)
    held = most = warm_up
    for _ in range(total - warm_up):  # steady state: one forward, then one backward
        held += 1
        most = max(most, held)
        held -= 1
    return most / vp


@given(pp=st.integers(2, 16), vp=st.sampled_from((1, 2, 4, 8)), groups=st.integers(1, 6))
def test_in_flight_micro_batches_are_those_of_the_schedule_run_step_by_step(pp, vp, groups):
    at = layouts(pp=pp, vp=vp, grad_accum=groups * pp)

    assert float(in_flight(at)[0]) == pytest.approx(schedule(pp, vp, groups * pp, 0))
    assert float(in_flight(at, last=True)[0]) == pytest.approx(schedule(pp, vp, groups * pp, pp - 1))


@given(settings_of_recipes())
def test_full_checkpointing_never_stores_more_than_selective_and_that_never_more_than_none(setting):
    training, where, machine = setting
    at = Layouts.of(*(replace(where, act_ckpt=kind) for kind in ("full", "selective", "none")))
    kept, _ = stored_bytes_per_layer(training, count_work(training, at), at, mid_rates(training, machine))

    assert all(less <= more * ROUNDING for less, more in pairwise(kept))

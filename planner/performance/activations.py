"""Activations that a layer keeps for its backward pass, and the number of micro-batches that a pipeline stage holds.

Sources: Korthikanti et al. 2022, table 2, for the GELU block with naive attention. Gated blocks with fused attention,
and the tensors that eager PyTorch keeps in addition, were counted by hand in the same way.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from planner.parallelism.layout import FULL_SHARE, SELECTIVE, Layouts
from planner.performance.operations import Work, expert_tp
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe


def stored_bytes_per_layer(recipe: Recipe, work: Work, at: Layouts, rates: Rates) -> tuple[Value, Value]:
    """Bytes that one layer keeps of one micro-batch for its backward pass, with and without the checkpointing of `at`.

    Counted per token: the inputs of two norms (split under sequence parallelism) and of the two products that follow
    them; q, k, v and the attention output; inputs and outputs of the scan of linear attention; the inner activations;
    the outputs that DoRA scales; dropout masks of one byte; what eager autocast keeps in FP32 or several times; and
    with naive attention the probabilities, their dropout and its mask.

    Args:
        recipe: the model and how it is trained.
        work: the work of one micro-batch.
        at: the layouts.
        rates: mid values or draws.

    Returns:
        Bytes with the layout's checkpointing and bytes without checkpointing, `[layout]` or with draws.
    """
    activation_bytes, spread = recipe.policy.activation_bytes, work.splits.spread
    hidden = work.split_elements
    ffn, routed = _inner_elements(recipe, work), recipe.model.moe_share * work.routed_elements
    attended = recipe.model.attention_share
    mixed = attended * work.attention_out + work.scan_out
    into_attention, into_mlp = _read_again(recipe)
    norms = 0.5 * (into_attention + into_mlp) * _norm_outputs(recipe, work, rates)
    made_again = norms + into_mlp * ffn
    inputs = made_again + mixed + into_mlp * routed
    others = 2.0 * hidden + attended * _heads_kept(recipe, work) + (_inner_tensors(recipe) - 1.0) * ffn + routed
    others = others + work.scan_elements + work.scan_out + _scaled_outputs(recipe, work)
    if recipe.model.linear is not None and not recipe.model.linear.scans:  # a convolution's input is kept too
        others = others + work.scan_out
    if recipe.model.gated_attention:  # its output before the gate is kept too
        others = others + attended * work.attention_out
    masks = 2.0 * hidden if recipe.dropout else 0.0
    plain = others * activation_bytes + inputs * _input_bytes(recipe) + masks
    scores: Value = 0.0
    if recipe.attention == "naive":
        scores = attended * work.attention_scores * _bytes_per_score(recipe)
    uncheckpointed = (plain + scores) * rates.stored_activation_ratio
    selective: Value
    if recipe.attention == "naive" or recipe.fused:
        # The attention core is recomputed; its result is kept, as the input of the next product. Where Megatron
        # recomputes norms and activations instead, their outputs are not kept (`--recompute-modules`).
        dropped = 0.0 if recipe.reruns_attention else made_again * _input_bytes(recipe)
        selective = (plain - dropped) * rates.stored_activation_ratio
    else:
        # Per-operation policy of torchtitan: it keeps the output of every second product (q, v, the first and the last
        # of the feed-forward block), the attention output and the layer's input.
        heads = attended * _queries_and_values(recipe, work)
        selective = (2.0 * hidden + heads + mixed + 0.5 * work.scan_elements + ffn) * activation_bytes
    wider = _wider_with_autocast(recipe, at)
    whole = spread(uncheckpointed) + wider * spread(_autocast_bytes(recipe, work) * rates.stored_activation_ratio)
    full_ckpt_change = spread(hidden) * (activation_bytes + wider * _FP32_BEYOND_16_BITS) - whole
    kept = np.where(at.act_ckpt == SELECTIVE, spread(selective), whole + FULL_SHARE[at.act_ckpt] * full_ckpt_change)
    return kept, whole


_FP32_BEYOND_16_BITS = 2.0
"""Bytes by which an element in FP32 is wider than one in 16 bits."""


def _wider_with_autocast(recipe: Recipe, at: Layouts) -> npt.NDArray[np.float64]:
    """1.0 where eager autocast keeps the hidden state in FP32 between its 16-bit products, otherwise 0.0, `[layout]`.

    The embedding's FP32 weights make it so. FSDP casts them when it gathers them, and frozen weights are in 16 bits.
    """
    eager = recipe.stack == "eager" and recipe.autocasts and not recipe.how.adapts
    return np.where(at.zero == 3, 0.0, float(eager))


def _autocast_bytes(recipe: Recipe, work: Work) -> Value:
    """Further bytes that eager autocast keeps: inputs of norms in FP32, and a 16-bit input for each product.

    Autocast runs norms in FP32 and casts a product's input whenever it is used (PyTorch docs, torch.amp: only casts of
    weights are cached), so that q, k and v, or gate and up, keep a copy each. Blocks like GPT-2's have one product for
    q, k and v. A layer of BERT-Large and of Llama 3.2 1B kept 4 and 5 hidden states of 16 bits more with autocast than
    without (transformers 5.17, records of an H200 and an H100 of 2026-11-27).
    """
    model, hidden = recipe.model, work.split_elements
    separate = model.gated_mlp or model.kind == "encoder"
    copies = 2.0 * model.attention_share * separate + model.gated_mlp * (1.0 - model.moe_share)
    return hidden * (2.0 * _FP32_BEYOND_16_BITS + copies * recipe.policy.activation_bytes)


def _bytes_per_score(recipe: Recipe) -> float:
    """Kept bytes per score of naive attention: the probabilities, what dropout leaves of them, and its mask.

    Eager PyTorch computes the softmax in FP32 under autocast, and in decoders always (`eager_attention_forward` of
    Hugging Face's Llama: `dtype=torch.float32`). It then keeps both the FP32 result and the 16-bit input of the product
    with the values.
    """
    activation_bytes = recipe.policy.activation_bytes
    in_fp32 = recipe.stack == "eager" and activation_bytes < 4 and (recipe.autocasts or recipe.model.kind != "encoder")
    softmax = activation_bytes + _FP32_BEYOND_16_BITS * in_fp32
    return softmax + activation_bytes * (recipe.dropout or in_fp32) + recipe.dropout


def in_flight(at: Layouts, *, last: bool = False) -> Value:
    """Most micro-batches whose activations a stage holds at once, `[layout]`; with interleaving a fractional number.

    1F1B: `pp` on the first stage, one on the last. Interleaved: before its first backward pass, stage `r` has run
    `(vp - 1) pp + 2 (pp - 1 - r) + 1` chunks of `1 / vp` of its layers (warm-up in Megatron-Core's `schedules.py`).
    That is `pp + (pp - 1) / vp` micro-batches on the first stage and `pp - (pp - 1) / vp` on the last. The number never
    exceeds the micro-batches of a step.
    """
    warm_up = np.where(at.vp > 1, (at.vp - 1) * at.pp, 0) + (0 if last else (at.pp - 1) * np.where(at.vp > 1, 2, 1))
    return np.minimum((warm_up + 1.0) / at.vp, at.grad_accum)


def working_bytes(recipe: Recipe, work: Work, at: Layouts, kept: Value, uncheckpointed: Value) -> Value:
    """Bytes that only the layer being recomputed or run backward needs.

    A checkpointed layer is whole again while it is run backward: what `selective` drops exists for that layer too.

    Args:
        recipe: the model and how it is trained.
        work: the work of one micro-batch.
        at: the layouts.
        kept: bytes that a layer keeps with the checkpointing of `at`.
        uncheckpointed: bytes that a layer keeps without checkpointing.
    """
    some = np.maximum(0.25 * uncheckpointed, uncheckpointed - kept)
    working = np.where(FULL_SHARE[at.act_ckpt] > 0, uncheckpointed, some)
    if recipe.sequence_parallel:
        # A product's gathered input and the gradient of that input, over the whole sequence.
        gathered = np.where(work.at.tp > 1, 2.0 * work.tokens * recipe.model.hidden, 0.0)
        working = working + work.splits.spread(gathered * recipe.policy.activation_bytes)
    return working


def _read_again(recipe: Recipe) -> tuple[float, float]:
    """Whether the backward pass reads the inputs of the attention and feed-forward products again (1.0 or 0.0 each).

    The gradient of a weight or of its adapter needs the input; the gradient of the input needs only the weight.
    """
    if not recipe.how.adapts:
        return 1.0, 1.0
    return float(recipe.lora_targets != "mlp"), float(recipe.lora_targets in ("all-linear", "mlp"))


def _scaled_outputs(recipe: Recipe, work: Work) -> Value:
    """Elements that DoRA's trained magnitudes multiply: the outputs of each adapted weight and of its adapter.

    The gradient of a magnitude needs both outputs (DoRA, arXiv 2402.09353, equation 5; PEFT, `DoraLinearLayer.forward`:
    (m - 1) times the weight's output plus m times the adapter's). LoRA only adds them up and keeps neither.
    """
    elements: Value = 0.0
    if recipe.how.decomposed:
        for weight in recipe.adapted:
            tokens = work.tokens / work.at.tp
            if weight.gives_hidden and weight.routed:  # the ranks that split an expert each take all of its tokens
                tokens = tokens * expert_tp(recipe, work.at)
            elif weight.gives_hidden:
                tokens = work.split_elements / recipe.model.hidden
            elements = elements + 2.0 * weight.met * weight.outputs * tokens
    return elements


def _input_bytes(recipe: Recipe) -> float:
    """Bytes per element of a linear layer's stored input.

    Transformer Engine keeps the low-precision copy, torchao the original input.
    """
    return recipe.policy.operand_bytes if recipe.fused else recipe.policy.activation_bytes


def _norm_outputs(recipe: Recipe, work: Work, rates: Rates) -> Value:
    """Kept input elements of the two products that follow a norm.

    Under sequence parallelism, a product takes the gathered sequence. Megatron keeps this rank's part and gathers it
    again (Korthikanti et al. 2022, section 4.2.2). PyTorch's autograd keeps the whole gathered input, unless the
    framework gathers it again (huggingface/nanotron, `tp_recompute_allgather`).
    """
    split = 2.0 * work.split_elements
    if recipe.fused or not recipe.sequence_parallel:
        return split
    return split * (1.0 + rates.gathered_input_ratio * (work.at.tp - 1.0))


def _heads_kept(recipe: Recipe, work: Work) -> Value:
    """Kept elements of q, its gate, k and v; eager PyTorch repeats k and v for every query head (`repeat_kv`)."""
    if recipe.stack != "eager":
        return work.head_elements
    model = recipe.model
    gate = model.query_outputs - model.heads * model.head_dim
    return work.tokens / work.at.tp * (model.heads * (2.0 * model.head_dim + model.value_dim) + gate)


def _queries_and_values(recipe: Recipe, work: Work) -> Value:
    """Elements of q and v; the attention gate is counted with the queries."""
    model = recipe.model
    queries = work.tokens * model.query_outputs / work.at.tp
    return queries + (work.head_elements - queries) * model.value_dim / (model.head_dim + model.value_dim)


def _inner_tensors(recipe: Recipe) -> float:
    """Number of kept tensors of the feed-forward block's inner size.

    These are gate, up and their product in a gated block, otherwise the input and the output of the activation. Eager
    PyTorch keeps one more: the activated gate, or in a decoder an intermediate step of a GELU that consists of several
    kernels. An encoder's GELU is one kernel, which keeps its input only (`torch.nn.functional.gelu`; counted with
    `saved_tensors_hooks` on `BertLayer` of transformers 5.24).
    """
    gated = recipe.model.gated_mlp
    several_kernels = recipe.stack == "eager" and (gated or recipe.model.kind != "encoder")
    return (3.0 if gated else 2.0) + several_kernels


def _inner_elements(recipe: Recipe, work: Work) -> Value:
    share = recipe.model.moe_share
    return (1.0 - share) * work.ffn_elements + share * work.expert_elements

"""The operations of one micro-batch on one GPU, with their actual shapes after sharding.

Every quantity is an array over ways to split a layer, `[split]`, or a scalar that broadcasts. Each matrix product of a
layer is listed once, as its forward pass. Its backward pass is two products of the same size with the dimensions
permuted: the input gradient and the weight gradient.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.models.shape import ModelShape
from planner.parallelism.layout import Layouts, full_share
from planner.parallelism.slowest import busiest_ratio
from planner.rates.terms import Rates, Value
from planner.training.recipe import Recipe

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatMul:
    """Matrix products `[m, k] x [k, n]` of the forward pass, `mean_count` of them in the mean layer."""

    m: Array
    n: Array | float
    k: Array | float
    mean_count: Array | float = 1.0
    """Mean number of these products per layer; below 1, the share of layers that have one."""
    low_precision: bool = True
    """Whether it runs in the policy's linear compute type; if not, in its other compute type (output layer, router)."""
    grouped: bool = False
    """Whether the products, one per expert, run in one grouped kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """Which layouts split a layer in the same way; quantities that depend only on its shapes are computed once each."""

    inverse: npt.NDArray[np.intp] | None
    """Index of the split of each layout, `[layout]`; None if every layout has a different split."""

    def spread(self, values: Value) -> Value:
        """Expand values by split (or one value for all) to values by layout; further axes are kept."""
        if self.inverse is None or isinstance(values, float) or len(values) == 1:
            return values
        spread: Value = values[self.inverse]
        return spread

    def take(self, index: npt.NDArray[np.intp]) -> Splits:
        """The splits of the layouts at an index."""
        return Splits(inverse=index if self.inverse is None else self.inverse[index])


EACH_ALONE = Splits(inverse=None)
"""No two layouts share a split."""


def distinct_splits(recipe: Recipe, at: Layouts) -> tuple[Layouts, Splits]:
    """One layout for each split (micro-batch, tensor, context and expert parallel sizes), and each layout's split."""
    if len(at) < FEWEST_LAYOUTS:
        return at, EACH_ALONE
    key = (at.micro_batch * 4096 + at.tp) * 4096 + at.cp
    if recipe.model.experts:
        key = (key * 8192 + at.ep) * 2 + (expert_tp(recipe, at) == at.tp)
    _, first, inverse = np.unique(key.ravel(), return_index=True, return_inverse=True)
    return at.take(first), Splits(inverse=inverse)


FEWEST_LAYOUTS = 16
"""With fewer layouts than this, finding those with the same split costs more than it saves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work of one GPU for one micro-batch: one layer of each kind and the ends of the model, `[split]` each."""

    at: Layouts
    """One layout for each split."""
    splits: Splits
    """The split of each layout."""
    tokens: Array
    """Tokens of a micro-batch in this context shard (every tensor parallel rank sees them all)."""
    dense_layer: tuple[MatMul, ...]
    moe_layer: tuple[MatMul, ...]
    head: MatMul
    attention_flop: Array
    """Forward FLOP of the attention core of one layer with attention, as the kernel executes it."""
    attention_heads: Array
    """Query heads on this GPU times sequences per micro-batch."""
    attention_length: Array
    """Length of a causal sequence whose queries attend, on average, to as many keys as the queries of one kernel."""
    attention_chunks: Array
    """Chunks of keys and values that a query attends to one after another, each in a separate kernel."""
    attention_scores: Array
    """Elements of the score matrices of one layer with attention (memory traffic of naive attention)."""
    split_elements: Array
    """Hidden-state elements that the norms and residual additions of one layer process, each counted once."""
    ffn_elements: Array
    """Elements of the inner activation of the feed-forward block of one dense layer."""
    expert_elements: Array
    """Elements of the inner activations of the experts of one MoE layer."""
    routed_elements: Array
    """Input elements of this GPU's experts in one MoE layer, counted once for each expert of a token. Every rank that
    holds a part of an expert takes all tokens of that expert."""
    head_elements: Array
    """Elements of q, k, v of one layer with attention (rotary embedding, layout changes)."""
    attention_out: Array
    """Elements of the attention output of one layer with attention, the input of the next product."""
    scan_elements: Array
    """Elements of gate, values, keys and queries of linear attention, averaged over all layers."""
    scan_out: Array
    """Elements of the output of linear attention, the input of the next product, averaged over all layers."""
    logit_elements: Array

    def take(self, index: npt.NDArray[np.intp]) -> Work:
        """The work of the layouts at an index."""
        return replace(self, splits=self.splits.take(index))


def expert_tp(recipe: Recipe, at: Layouts) -> npt.NDArray[np.int64]:
    """Tensor parallel size inside an expert, `Layouts.expert_tp`; 1 for a model without experts."""
    return at.expert_tp if recipe.model.experts else np.ones_like(at.tp)


def computed_length(recipe: Recipe, at: Layouts) -> Array | float:
    """Tokens computed per sequence, padding included: the length of the longest in its micro-batch, `[layout]`."""
    if recipe.lengths is None:
        return float(recipe.seq_len)
    return recipe.lengths.longest_of(at.micro_batch)


def _keys(model: ModelShape, length: Array | float) -> Array | float:
    """Mean number of keys that a query attends to, for one sequence length or for each of several."""
    if isinstance(length, float):
        return attended_tokens(model, length)
    distinct, inverse = np.unique(length, return_inverse=True)
    return np.array([attended_tokens(model, float(each)) for each in distinct])[inverse].reshape(length.shape)


def attended_tokens(model: ModelShape, seq_len: float, causal_half: bool = True) -> float:
    """Mean number of keys that one query attends to, averaged over layers (sliding windows included).

    Args:
        model: the model, with its windows and the kind of its attention.
        seq_len: tokens per sequence.
        causal_half: True to count only the half that causal attention computes, False to count the whole square.
    """
    causal = model.kind != "encoder" and causal_half
    global_keys = seq_len / 2 if causal else float(seq_len)
    if causal and model.kind == "encoder-decoder":  # the encoder's layers see the whole sequence
        global_keys += (1.0 - model.cross_share) * seq_len / 2
    global_keys += model.cached_segments * float(seq_len)
    window = model.sliding_window
    if window is None or window >= seq_len:
        return global_keys
    local_keys = window - window * window / (2.0 * seq_len) if causal else min(float(seq_len), 2.0 * window)
    return model.global_share * global_keys + (1.0 - model.global_share) * local_keys


def _further_products(model: ModelShape, tokens: Array, seq_len: Array | float, tp: Array) -> tuple[MatMul, ...]:
    """Products of cross-attention, cached keys and values, and relative positions, where the model has them."""
    h, q = float(model.hidden), model.heads * model.head_dim / tp
    kv = model.kv_heads * (model.head_dim + model.value_dim) / np.minimum(tp, model.kv_heads)
    products: list[MatMul] = []
    if model.cross_attention_layers:
        share = model.cross_share
        out = MatMul(m=tokens, n=h, k=model.heads * model.value_dim / tp, mean_count=share)
        products += [MatMul(m=tokens, n=q, k=h, mean_count=share), MatMul(m=tokens, n=kv, k=h, mean_count=share), out]
    if model.cached_segments:
        products.append(MatMul(m=tokens * model.cached_segments, n=kv, k=h))
    if model.relative_positions:
        rows = np.full_like(tokens, seq_len * (1.0 + model.cached_segments))
        products.append(MatMul(m=rows, n=q, k=h))
    return tuple(products)


def _mixers(model: ModelShape, tokens: Array, seq_len: Array | float, tp: Array) -> tuple[MatMul, ...]:
    """Products of attention and of linear attention, each counted by the share of layers that have it.

    They include the product that joins hidden state and embedding in a multi-token prediction module.
    """
    attention = _attention_products(model, tokens, tp) + _further_products(model, tokens, seq_len, tp)
    linear = model.linear
    if model.attention_share < 1.0:
        attention = tuple(
            replace(product, mean_count=model.attention_share) for product in attention if model.attention_share
        )
    if model.mtp_unrolled:
        attention += (MatMul(m=tokens, n=model.hidden / tp, k=2.0 * model.hidden, mean_count=model.mtp_share),)
    if linear is None:
        return attention
    sizes = linear.products(model.hidden, tp)
    return (*attention, *(MatMul(m=tokens, n=n, k=k, mean_count=model.linear_share) for n, k in sizes))


def _attention_products(model: ModelShape, tokens: Array, tp: Array) -> tuple[MatMul, ...]:
    h, d, dv = float(model.hidden), model.head_dim, model.value_dim
    kv_split = np.minimum(tp, model.kv_heads)
    out = MatMul(m=tokens, n=h, k=model.heads * dv / tp)
    if model.kv_lora_rank is None:
        return (MatMul(m=tokens, n=model.query_outputs / tp + model.kv_heads * (d + dv) / kv_split, k=h), out)
    nope = d - model.rope_head_dim
    down = float(model.kv_lora_rank + model.rope_head_dim)
    products = [
        MatMul(m=tokens, n=down, k=h),
        MatMul(m=tokens, n=model.heads * (nope + dv) / tp, k=float(model.kv_lora_rank)),
        out,
    ]
    if model.q_lora_rank is None:
        return (MatMul(m=tokens, n=model.heads * d / tp, k=h), *products)
    return (
        MatMul(m=tokens, n=float(model.q_lora_rank), k=h),
        MatMul(m=tokens, n=model.heads * d / tp, k=float(model.q_lora_rank)),
        *products,
    )


def _mlp(
    model: ModelShape, tokens: Array, ffn: Array | float, mean_count: Array | float = 1.0, grouped: bool = False
) -> tuple[MatMul, ...]:
    ups = model.mlp_matrices - 1
    h = float(model.expert_width if grouped else model.hidden)
    return (
        MatMul(m=tokens, n=ups * ffn, k=h, mean_count=mean_count, grouped=grouped),
        MatMul(m=tokens, n=h, k=ffn, mean_count=mean_count, grouped=grouped),
    )


def _moe(recipe: Recipe, at: Layouts, tokens: Array, tp: Array, imbalance: Array | float) -> tuple[MatMul, ...]:
    model = recipe.model
    etp = expert_tp(recipe, at)
    ranks_per_expert = at.ep / model.experts
    # Tokens that the expert parallel group sends to each expert here; if experts are whole, a tensor rank holds 1/tp.
    rows = tokens * model.top_k * ranks_per_expert * (etp / tp) * imbalance
    products = _mlp(model, rows, model.expert_ffn / etp, mean_count=1.0 / ranks_per_expert, grouped=True)
    h = float(model.hidden)
    products = (*products, MatMul(m=tokens / tp, n=float(model.experts), k=h, low_precision=False))
    if model.expert_hidden is not None:
        latent = float(model.expert_hidden)
        products = (*products, MatMul(m=tokens / tp, n=latent, k=h), MatMul(m=tokens / tp, n=h, k=latent))
    if not model.shared_experts:
        return products
    return (*products, *_mlp(model, tokens, model.shared_experts * model.expert_ffn / tp))


def _scanned(model: ModelShape, tokens: Array, at: Layouts) -> tuple[Array, Array]:
    """Elements that enter the scan or the convolution (gates included) and that leave it, averaged over all layers."""
    linear = model.linear
    if linear is None:
        return np.zeros_like(tokens), np.zeros_like(tokens)
    keys, values = linear.scanned_keys(at.tp, at.cp), linear.inner / at.tp
    entering = (1.0 + linear.gates) * values + 2.0 * keys + linear.further_values / at.tp
    return model.linear_share * tokens * entering, model.linear_share * tokens * values


def work_of(recipe: Recipe, at: Layouts, rates: Rates) -> Work:
    """`count_work` for the GPU whose experts receive the most tokens, computed once for layouts with the same split."""
    alike, splits = distinct_splits(recipe, at)
    imbalance = busiest_ratio(recipe.model, alike.ep, rates.expert_load_sd_ratio)
    return count_work(recipe, alike, imbalance, splits)


def count_work(recipe: Recipe, at: Layouts, imbalance: Array | float = 1.0, splits: Splits = EACH_ALONE) -> Work:
    """Shapes and element counts of one micro-batch on one GPU, computed separately for each layout.

    Args:
        recipe: the model and how it is trained.
        at: the layouts.
        imbalance: tokens on the busiest GPU of an expert parallel group, relative to the mean.
        splits: which of the layouts that the work is for have the split of each of these.

    Source: Megatron sharding (arXiv 1909.08053, 2205.05198); GQA and MLA shapes from the models' public configs.
    """
    model = recipe.model
    tp = at.tp.astype(np.float64)
    length = computed_length(recipe, at)
    tokens = at.micro_batch * (length / at.cp)
    sequence_shards = tp if recipe.sequence_parallel else 1.0
    products = _mixers(model, tokens, length, tp)
    # Naive attention computes the whole square and masks afterwards, whatever the window.
    square = length * (1.0 + model.cached_segments)
    keys = _keys(model, length) if recipe.attention == "flash" else square
    keys = keys + model.cross_share * length
    scored = 1.5 if model.relative_positions else 1.0  # relative positions add a third product
    scores = square * (2.0 if model.relative_positions else 1.0) + model.cross_share * length
    heads = model.heads / tp
    kv_heads = model.kv_heads / np.minimum(tp, model.kv_heads)  # ranks in excess of the heads hold copies
    local_tokens = tokens / tp if model.experts else tokens
    expert_elements = local_tokens * (model.top_k + model.shared_experts) * model.expert_ffn
    queries = model.query_outputs / tp
    dense_ffn_share = model.dense_ffn_share
    feed_forward = _mlp(model, tokens, model.ffn_hidden / tp, dense_ffn_share) if model.ffn_hidden else ()
    scan_elements, scan_out = _scanned(model, tokens, at)
    return Work(
        at=at,
        splits=splits,
        tokens=tokens,
        dense_layer=(*products, *feed_forward),
        moe_layer=(*products, *_moe(recipe, at, tokens, tp, imbalance)) if model.experts else (),
        head=MatMul(m=tokens * model.head_ratio, n=model.vocab / tp, k=float(model.hidden), low_precision=False),
        attention_flop=2.0 * scored * tokens * keys * heads * (model.head_dim + model.value_dim),
        attention_heads=heads * at.micro_batch,
        attention_length=2.0 * keys / at.cp,
        attention_chunks=at.cp.astype(np.float64),
        attention_scores=tokens * scores * heads,
        split_elements=tokens * model.hidden / sequence_shards * (1.0 + 0.5 * model.cross_share),
        ffn_elements=dense_ffn_share * tokens * model.ffn_hidden / tp,
        expert_elements=expert_elements,
        routed_elements=tokens * model.expert_width * model.top_k * (expert_tp(recipe, at) / tp),
        head_elements=tokens * (queries + kv_heads * (model.head_dim + model.value_dim)),
        attention_out=tokens * heads * model.value_dim,
        scan_elements=scan_elements,
        scan_out=scan_out,
        logit_elements=tokens * model.head_ratio * model.vocab / tp,
    )


def model_flop_per_token(model: ModelShape, seq_len: float, *, causal_half: bool = True) -> float:
    """FLOP of forward and backward per token: 6 x matrix parameters plus attention, no recomputation.

    `6 N + 6 S heads (d_qk + d_v) / 2 ...`: the forward attention core takes `2 keys heads (d_qk + d_v)`, and three
    times that with the backward pass. `keys` is S/2 when only the causal half is counted and S in the full convention
    (used by Narayanan et al. 2021, arXiv 2104.04473, equation 3).
    """
    core = attention_flop_per_token(model, seq_len, causal_half=causal_half)
    return 6.0 * model.matrix_params_active + 3.0 * core


def worked_flop_per_token(recipe: Recipe, *, causal_half: bool = True) -> float:
    """FLOP per token that a training method needs: `matrix_flop_per_token` plus attention and adapters.

    The attention core has no weights. It runs in every forward pass, and its backward pass, twice the work, runs in the
    layers that are run backward. Adapters are trained: 6 FLOP for each of their parameters that a token passes through.
    """
    core = attention_flop_per_token(recipe.model, recipe.mean_len, causal_half=causal_half)
    adapters = (
        6.0
        * recipe.lora_rank
        * recipe.model.layers
        * sum(weight.met * (weight.inputs + weight.outputs) for weight in recipe.adapted)
    )
    return matrix_flop_per_token(recipe) + (recipe.forward_passes + 2.0 * recipe.backward_share) * core + adapters


def matrix_flop_per_token(recipe: Recipe) -> float:
    """FLOP per token of the products with weights: 6 per weight if all are trained, 4 if all are frozen, as in LoRA.

    Each forward pass takes 2 per weight (DPO has a second one, through the reference model). The gradient of the
    activations takes 2, in the output layer and in the layers that are run backward. The gradient of each trained
    weight takes 2. LoRA freezes weights, but gradients still pass through them (Hu et al. 2021, arXiv 2106.09685,
    section 4.1).
    """
    model = recipe.model
    head = model.head_params * model.head_ratio
    layers = model.matrix_params_active - head
    head_learns = 1.0 if recipe.trains_all else 0.0
    per_layer = recipe.forward_passes + recipe.backward_share + recipe.weight_gradient_share
    return 2.0 * (per_layer * layers + (recipe.forward_passes + 1.0 + head_learns) * head)


def attention_flop_per_token(model: ModelShape, seq_len: float, *, causal_half: bool = True) -> float:
    """Forward FLOP per token of the operations without weights, over all layers.

    These are the scores and their product with the values and, in hybrids, the scan of linear attention.
    Cross-attention attends to the encoder's whole output, which has as many tokens.
    """
    keys = attended_tokens(model, seq_len, causal_half=causal_half) + model.cross_share * seq_len
    attended = model.layers * model.attention_share
    return 2.0 * attended * keys * model.heads * (model.head_dim + model.value_dim) + _scan_flop(model)


def _scan_flop(model: ModelShape) -> float:
    return 0.0 if model.linear is None else model.linear.layers * model.linear.scan_flop


def recomputed_flop_per_token(recipe: Recipe, act_ckpt: str, *, causal_half: bool = True) -> float:
    """FLOP per token that checkpointing recomputes, which HFU counts and MFU does not.

    `full`: the forward pass of the layers, without the output layer (Narayanan et al. 2021, equation 3). `every-2` and
    `every-4`: the forward pass of the layers that are fully checkpointed, a half and a quarter of them. `selective`:
    the attention core (Korthikanti et al. 2022) without the scan of linear attention. It is 0 where a tuned stack
    recomputes norms and activations instead (layers with experts), and half of the matrix products in FSDP stacks
    (torchtitan's per-operation policy, which keeps attention).
    """
    model = recipe.model
    core = attention_flop_per_token(model, recipe.mean_len, causal_half=causal_half)
    layers = 2.0 * (model.matrix_params_active - model.head_params * model.head_ratio)
    layers, core = layers * recipe.backward_share, core * recipe.backward_share
    if act_ckpt != "selective":
        return full_share(act_ckpt) * (layers + core)
    if recipe.reruns_attention:
        return core - _scan_flop(model) * recipe.backward_share
    return 0.0 if recipe.fused else 0.5 * layers

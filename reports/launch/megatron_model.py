"""The shape of a model as arguments for Megatron-LM's `pretrain_gpt.py`."""

from __future__ import annotations

from collections.abc import Iterator

from reports.launch.framework import Mapped
from reports.launch.planned_run import PlannedRun

Argument = tuple[str, ...]
"""A flag and its values."""

BALANCE = "1e-2"
"""`--moe-aux-loss-coeff`: the initial value that its help recommends. Without it, the expert load is not balanced."""


def model_arguments(run: PlannedRun) -> Iterator[Argument]:
    """Yield the model's arguments, each a flag with its values."""
    yield from _dimensions(run)
    if run.is_moe:
        yield from _experts(run)
        yield from _routing(run)
    yield from _attention(run)


def _dimensions(run: PlannedRun) -> Iterator[Argument]:
    shape = run.shape
    yield "--num-layers", str(run.count("layers"))
    yield "--hidden-size", str(run.count("hidden"))
    yield "--ffn-hidden-size", str(run.count("ffn_hidden") or run.count("expert_ffn"))
    yield "--num-attention-heads", str(run.count("heads"))
    yield "--max-position-embeddings", str(max(run.count("context"), run.seq_len))
    yield "--vocab-size", str(run.count("vocab"))
    yield "--position-embedding-type", "learned_absolute" if shape.get("learned_positions") else "rope"
    yield "--normalization", "LayerNorm" if shape.get("learned_positions") else "RMSNorm"
    if shape.get("gated_mlp"):
        yield ("--swiglu",)
    if not shape.get("biases"):
        yield ("--disable-bias-linear",)
    if not shape.get("tied_embeddings"):
        yield ("--untie-embeddings-and-output-weights",)
    if run.mtp_layers:
        yield "--mtp-num-layers", str(run.mtp_layers)
    yield "--attention-dropout", "0.0"
    yield "--hidden-dropout", "0.0"


def _experts(run: PlannedRun) -> Iterator[Argument]:
    yield "--num-experts", str(run.count("experts"))
    yield "--moe-ffn-hidden-size", str(run.count("expert_ffn") or run.count("ffn_hidden"))
    yield "--moe-layer-freq", _expert_layers(run)
    if run.count("shared_experts"):
        yield "--moe-shared-expert-intermediate-size", str(run.count("shared_experts") * run.count("expert_ffn"))
    yield ("--moe-grouped-gemm",)


def _expert_layers(run: PlannedRun) -> str:
    """Return which layers have experts: all after the first dense ones, or one of every few."""
    layers, dense, interval = run.count("layers"), run.count("dense_layers"), max(1, run.count("moe_every"))
    if dense and interval == 1:
        return f"([0]*{dense}+[1]*{layers - dense})"
    if dense:
        repeats, left = divmod(layers - dense, interval)
        rest = f"+[1]+[0]*{left - 1}" if left else ""
        return f"([0]*{dense}+([1]+[0]*{interval - 1})*{repeats}{rest})"
    return str(interval) if interval == 1 or layers % interval else f"([0]*{interval - 1}+[1])*{layers // interval}"


def _routing(run: PlannedRun) -> Iterator[Argument]:
    """Yield arguments for the choice of experts for a token.

    With one expert per token, the scores are those of Llama 4: a sigmoid that scales the expert's input (transformers
    5.24, `Llama4TextMoe`; `Llama4ModelProvider` of Megatron-Bridge).
    """
    yield "--moe-router-topk", str(run.count("top_k"))
    if run.count("expert_groups"):
        yield "--moe-router-num-groups", str(run.count("expert_groups"))
        yield "--moe-router-group-topk", str(run.count("token_groups"))
    if run.count("top_k") == 1:  # a softmax over one expert would give no gradient
        yield "--moe-router-score-function", "sigmoid"
        yield ("--moe-apply-probs-on-input",)
    yield "--moe-aux-loss-coeff", BALANCE
    if run.moe_dispatcher == "alltoall" or run.layout.ep == 1:  # DeepEP needs a second rank
        yield "--moe-token-dispatcher-type", "alltoall"
        return
    yield "--moe-token-dispatcher-type", "flex"
    yield "--moe-flex-dispatcher-backend", "hybridep" if run.rack_domain else "deepep"
    yield "--moe-router-dtype", "fp32"  # required by both dispatchers


def _attention(run: PlannedRun) -> Iterator[Argument]:
    rotary = run.count("rope_head_dim")
    if run.count("kv_lora_rank"):
        yield ("--multi-latent-attention",)
        if run.count("q_lora_rank"):
            yield "--q-lora-rank", str(run.count("q_lora_rank"))
        yield "--kv-lora-rank", str(run.count("kv_lora_rank"))
        yield "--qk-head-dim", str(run.count("head_dim") - rotary)
        yield "--qk-pos-emb-head-dim", str(rotary)
        yield "--v-head-dim", str(run.count("v_head_dim") or run.count("head_dim"))
    else:
        yield "--kv-channels", str(run.count("head_dim"))
        if run.count("kv_heads") != run.count("heads"):
            yield ("--group-query-attention",)
            yield "--num-query-groups", str(run.count("kv_heads"))
    yield "--attention-backend", "unfused" if run.attention == "naive" else "auto"


MODEL_TAKES = (
    Mapped(what="shape of the model", where=(
        "--num-layers", "--hidden-size", "--ffn-hidden-size", "--num-attention-heads", "--kv-channels",
        "--group-query-attention", "--num-query-groups", "--max-position-embeddings", "--vocab-size", "--swiglu",
        "--disable-bias-linear", "--untie-embeddings-and-output-weights", "--position-embedding-type",
        "--normalization", "--attention-dropout", "--hidden-dropout", "--attention-backend",
    )),
    Mapped(what="multi-token prediction", where=("--mtp-num-layers",)),
    Mapped(what="latent attention", where=(
        "--multi-latent-attention", "--q-lora-rank", "--kv-lora-rank", "--qk-head-dim", "--qk-pos-emb-head-dim",
        "--v-head-dim",
    )),
    Mapped(what="experts", where=(
        "--num-experts", "--moe-router-topk", "--moe-router-num-groups", "--moe-router-group-topk",
        "--moe-ffn-hidden-size", "--moe-layer-freq",
        "--moe-shared-expert-intermediate-size", "--moe-grouped-gemm", "--moe-token-dispatcher-type",
        "--moe-flex-dispatcher-backend", "--moe-router-dtype", "--moe-router-score-function",
        "--moe-apply-probs-on-input", "--moe-aux-loss-coeff",
    )),
)  # fmt: skip
"""The dimensions of the model and their places in the file."""

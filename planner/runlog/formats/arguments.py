"""Settings that frameworks print before training, one per line: `  hidden_size ............ 4096`.

Megatron-LM's arguments (`_print_args` of megatron/training/arguments.py, NVIDIA/Megatron-LM d98e8a64) and DeepSpeed's
configuration (`DeepSpeedConfig.print_user_config` of deepspeed/runtime/config.py, deepspeedai/DeepSpeed edaa7221).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.runlog.amounts import as_number
from planner.runlog.events import Event, Fact
from planner.runlog.formats.base import LogFormat

_SETTING = re.compile(r"^(?:\[.{0,120}\])? {1,8}([a-z0-9_]{2,60}) \.{2,60} (.{1,1000}?)\s*$")

NUMBERS = {
    "world_size": "n_gpus", "seq_length": "seq_len", "global_batch_size": "global_batch_seqs",
    "micro_batch_size": "micro_batch", "tensor_model_parallel_size": "tp", "pipeline_model_parallel_size": "pp",
    "virtual_pipeline_model_parallel_size": "vp", "context_parallel_size": "cp", "expert_model_parallel_size": "ep",
    "num_layers": "n_layers", "hidden_size": "hidden", "num_attention_heads": "n_heads",
    "ffn_hidden_size": "ffn_hidden", "padded_vocab_size": "vocab", "num_experts": "n_experts",
    "moe_router_topk": "top_k", "moe_ffn_hidden_size": "expert_ffn", "num_query_groups": "query_groups",
    "kv_channels": "head_dim", "moe_shared_expert_intermediate_size": "shared_ffn",
    "train_iters": "steps", "train_batch_size": "global_batch_seqs", "train_micro_batch_size_per_gpu": "micro_batch",
    "zero_optimization_stage": "zero_or_fsdp_stage",
}  # fmt: skip
"""Settings that are whole numbers, with the column or fact that they fill."""
SWITCHES = {
    "bf16": ("precision", "bf16"), "fp16": ("precision", "fp16"), "bfloat16_enabled": ("precision", "bf16"),
    "float16_enabled": ("precision", "fp16"), "swiglu": ("gated_mlp", "yes"),
    "untie_embeddings_and_output_weights": ("tied_embeddings", "no"), "group_query_attention": ("grouped", "yes"),
    "use_distributed_optimizer": ("zero_or_fsdp_stage", "1"),
}  # fmt: skip
"""Settings that are on or off, with the fact that follows if they are on."""
MODULES = "mtp_num_layers"
"""Number of modules for multi-token prediction; `None` means that there are none."""
MOE_LAYERS = "moe_layer_freq"
"""Layers with experts: every n-th layer, or a list with 1 or 0 for each layer."""
_PATTERN = re.compile(r"(?:\+?\[[01](?:,[01])*\](?:\*\d{1,4})?)+")
_PIECE = re.compile(r"\[([01,]+)\](?:\*(\d{1,4}))?")
OTHER_SHAPES = (
    "hybrid_layer_pattern", "hybrid_override_pattern", "linear_attention_freq", "multi_latent_attention",
    "attention_output_gate", "moe_latent_size", "heterogeneous_layers_config_path",
    "heterogeneous_layers_config_encoded_json",
)  # fmt: skip
"""Settings of models whose shape does not follow from the other settings: hybrids of attention and linear attention,
latent or gated attention, experts with a separate width, layers that differ from each other."""
OTHER_SHAPE = Fact(key="other_shape", value="yes")


def _read(text: str) -> Iterator[Event]:
    setting = _SETTING.match(text)
    if setting is None:
        return
    name, value = setting[1], setting[2]
    if name in NUMBERS and as_number(value):
        yield Fact(key=NUMBERS[name], value=float(value))
    elif name in SWITCHES and value == "True":
        key, says = SWITCHES[name]
        yield Fact(key=key, value=says)
    elif name in OTHER_SHAPES and value not in ("None", "False"):
        yield OTHER_SHAPE
    elif name == MOE_LAYERS:
        yield _moe_layers(value)
    elif name == "recompute_granularity" and value in ("full", "selective", "None"):
        yield Fact(key="act_ckpt", value=value.lower())
    elif name == "fp8" and value in ("e4m3", "hybrid"):
        yield Fact(key="fp8", value=value)
    elif name == MODULES:
        yield Fact(key="mtp_layers", value=float(as_number(value) or 0.0))


def _moe_layers(value: str) -> Fact:
    """Read the number of layers without experts, or the interval n if every n-th layer has them.

    The list is printed layer by layer; some forks print it as the user typed it: `[0]*3+[1]*58`.
    """
    typed = value.replace(" ", "")
    if as_number(typed):
        return Fact(key="moe_every", value=float(typed))
    if not _PATTERN.fullmatch(typed):
        return OTHER_SHAPE
    pieces = ((piece[1], int(piece[2] or 1)) for piece in _PIECE.finditer(typed))
    return Fact(key="dense_layers", value=float(sum(layers.count("0") * times for layers, times in pieces)))


ARGUMENTS = LogFormat(name="arguments", marks=(" .... ", " ........"), read=_read, joins=True)

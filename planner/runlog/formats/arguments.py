"""The settings that frameworks print before they train, one a line: `  hidden_size ............ 4096`.

Megatron-LM's arguments (`_print_args` of megatron/training/arguments.py, NVIDIA/Megatron-LM d98e8a64) and DeepSpeed's
configuration (`DeepSpeedConfig.print_user_config` of deepspeed/runtime/config.py, deepspeedai/DeepSpeed edaa7221).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.runlog.amounts import as_number
from planner.runlog.events import Event, Fact
from planner.runlog.formats.base import LogFormat

_SETTING = re.compile(r"^(?:\[.{0,120}\])? {1,8}([a-z0-9_]{2,60}) \.{2,60} (.{1,300}?)\s*$")

NUMBERS = {
    "world_size": "n_gpus", "seq_length": "seq_len", "global_batch_size": "global_batch_seqs",
    "micro_batch_size": "micro_batch", "tensor_model_parallel_size": "tp", "pipeline_model_parallel_size": "pp",
    "virtual_pipeline_model_parallel_size": "vp", "context_parallel_size": "cp", "expert_model_parallel_size": "ep",
    "num_layers": "n_layers", "hidden_size": "hidden", "num_attention_heads": "n_heads",
    "ffn_hidden_size": "ffn_hidden", "padded_vocab_size": "vocab", "num_experts": "n_experts",
    "moe_router_topk": "top_k", "moe_ffn_hidden_size": "expert_ffn", "num_query_groups": "query_groups",
    "train_iters": "steps", "train_batch_size": "global_batch_seqs", "train_micro_batch_size_per_gpu": "micro_batch",
    "zero_optimization_stage": "zero_or_fsdp_stage",
}  # fmt: skip
"""Settings that are whole numbers, with the column that they fill."""
SWITCHES = {
    "bf16": ("precision", "bf16"), "fp16": ("precision", "fp16"), "bfloat16_enabled": ("precision", "bf16"),
    "float16_enabled": ("precision", "fp16"), "swiglu": ("gated_mlp", "yes"),
    "untie_embeddings_and_output_weights": ("tied_embeddings", "no"), "group_query_attention": ("grouped", "yes"),
    "use_distributed_optimizer": ("zero_or_fsdp_stage", "1"),
}  # fmt: skip
"""Settings that are on or off, with what they say when they are on."""
MODULES = "mtp_num_layers"
"""Modules of multi-token prediction: `None` says that there are none."""
HYBRIDS = ("hybrid_layer_pattern", "hybrid_override_pattern", "linear_attention_freq")
"""Settings that only hybrids of attention and linear attention have."""


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
    elif name in HYBRIDS and value != "None":
        yield Fact(key="hybrid", value="yes")
    elif name == "recompute_granularity" and value in ("full", "selective", "None"):
        yield Fact(key="act_ckpt", value=value.lower())
    elif name == "fp8" and value in ("e4m3", "hybrid"):
        yield Fact(key="fp8", value=value)
    elif name == MODULES:
        yield Fact(key="mtp_layers", value=float(as_number(value) or 0.0))


ARGUMENTS = LogFormat(name="arguments", marks=(" .... ", " ........"), read=_read, joins=True)

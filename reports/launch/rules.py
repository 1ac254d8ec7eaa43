"""Rules that several frameworks share: what is said of a plan that a file cannot hold in full."""

from __future__ import annotations

from reports.launch.framework import Rule
from reports.launch.planned_run import PlannedRun

YOURS = Rule(
    applies=lambda run: True,
    what="learning rate and its schedule, data, tokenizer and where checkpoints go: no plan has them",
)
"""What every file leaves to its reader."""

NO_ADAPTERS = Rule(
    applies=lambda run: run.adapts or run.needs_script,
    what="it trains all weights, from scratch or from a checkpoint, and knows no adapters",
    hint="`--launch axolotl`, or plan again with `--method sft`",
)

IN_BACKWARD = Rule(
    applies=lambda run: run.in_backward,
    what="updates inside the backward pass: without them the gradients take memory that the plan does not count",
)

CHUNKED_LOSS = Rule(
    applies=lambda run: run.loss == "chunked",
    what="the chunked loss: set it where the model is made (Liger's, or the framework's own), or logits take memory",
)

NOT_PIPELINED = Rule(
    applies=lambda run: run.layout.pp > 1,
    what="it has no pipeline parallelism",
    hint="plan again with `--pp 1`, or use `--launch megatron`",
)

STRICT_FP32 = Rule(
    applies=lambda run: run.precision == "fp32",
    what="strict FP32 is the environment's: set NVIDIA_TF32_OVERRIDE=0 where the training starts",
)
TF32 = Rule(
    applies=lambda run: run.precision == "tf32",
    what="TF32 is the environment's: set TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 where the training starts",
)

ENVIRONMENT = {"fp32": ("NVIDIA_TF32_OVERRIDE", "0"), "tf32": ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1")}
"""Variables that decide how FP32 products run, by precision.

Sources: NVIDIA cuBLAS documentation (NVIDIA_TF32_OVERRIDE); PyTorch documentation, CUDA environment variables
(TORCH_ALLOW_TF32_CUBLAS_OVERRIDE)."""


def scaled(run: PlannedRun, *scalings: str) -> bool:
    """Whether the FP8 (FP4) products scale in one of these ways."""
    return run.policy.scaling in scalings


def keeps_masters(run: PlannedRun) -> bool:
    """Whether 16-bit weights stand beside FP32 masters, as in Megatron and DeepSpeed."""
    return run.policy.weight_bytes > 0 and run.policy.master_bytes > 0


def shards_fp32(run: PlannedRun) -> bool:
    """Whether FP32 weights are used through a 16-bit copy, as under autocast and FSDP."""
    return run.precision not in ("fp32", "tf32") and not keeps_masters(run) and not is_pure(run)


def is_pure(run: PlannedRun) -> bool:
    """Whether weights, gradients and moments are all in BF16."""
    return run.policy.moment_bytes < FP32_BYTES


def narrow_gradients(run: PlannedRun) -> bool:
    """Whether gradients are reduced in 16 bits although the optimizer works in 32."""
    return run.policy.reduce_bytes < FP32_BYTES and not is_pure(run)


FP32_BYTES = 4


def stage(run: PlannedRun) -> int:
    """The ZeRO stage, 0 where one rank has nothing to share."""
    return 0 if run.layout.dp * run.layout.cp == 1 else run.layout.zero

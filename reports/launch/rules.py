"""Rules shared by several frameworks (refusals and omissions), and predicates on plans."""

from __future__ import annotations

from reports.launch.framework import Rule
from reports.launch.planned_run import PlannedRun

YOURS = Rule(
    applies=lambda run: True,
    what="learning rate and its schedule, data, tokenizer and location of checkpoints: they are not part of a plan",
)
"""Settings that every file leaves to its reader."""

POWER_LIMIT = Rule(
    applies=lambda run: run.power_limit_w is not None,
    what="the power limit of each GPU: whoever runs the machines sets it before the training starts (`nvidia-smi -pl`, "
    "as root; for AMD GPUs `amd-smi set --power-cap`)",
)
"""If nobody sets the limit, the run ends sooner and draws more power than planned; no framework sets it."""

UNEVEN_NODES = Rule(
    applies=lambda run: run.gpus % run.nodes != 0,
    what="its last node has fewer GPUs than the others, but the same number of processes is started on each",
    hint="plan again with a number of GPUs that fills every node alike",
)

DECODERS = Rule(
    applies=lambda run: run.shape.get("kind") != "decoder",
    what="it trains only decoder models",
)

NO_HYBRIDS = Rule(
    applies=lambda run: bool(run.shape.get("linear")),
    what="it builds a hybrid from the order of its layers, which is not in a plan",
)

NO_PAIRS = Rule(
    applies=lambda run: run.how.pairs,
    what="it has no DPO (training on pairs of answers)",
)
"""Another method would be different training, so no flag can help."""
NO_ADAPTERS = Rule(
    applies=lambda run: run.adapts or run.needs_script,
    what="it trains all weights, from scratch or from a checkpoint: no adapters or frozen layers",
    hint="plan again with `--method sft --packed`",
)

FILLED = Rule(
    applies=lambda run: run.padded,
    what="it fills every sequence with tokens, and the plan pads examples to the longest of a micro-batch",
    hint="plan again with `--packed`",
)

NOT_IN_BACKWARD = Rule(
    applies=lambda run: run.in_backward,
    what="it does not update weights inside the backward pass, and so keeps gradients that the plan has no room for",
    hint="plan again without `--in-backward`",
)
IN_BACKWARD = Rule(
    applies=lambda run: run.in_backward,
    what="updates inside the backward pass: your script makes them (`register_post_accumulate_grad_hook` of PyTorch), "
    "else gradients take memory that the plan does not count",
)

NOT_CHUNKED = Rule(
    applies=lambda run: run.chunked_loss,
    what="it has no chunked loss, and so makes a copy of the logits that the plan has no room for",
    hint="plan again with `--loss full`",
)

NO_FURTHER_TOKENS = Rule(
    applies=lambda run: run.mtp_layers > 0,
    what="multi-token prediction: nothing here adds its modules, so plan with `--mtp-layers 0` unless your model has "
    "them",
)

FULL_SEQUENCES = Rule(
    applies=lambda run: run.packed and not run.how.pairs,
    what="packing: the plan's sequences are full, so your script joins short examples (`packing=True` of TRL's "
    "SFTConfig), or the run pads and takes longer",
)
PAIRS_NOT_PACKED = Rule(
    applies=lambda run: run.packed and run.how.pairs,
    what="packing: pairs of answers are padded, never packed, so where they do not fill the sequences, the run "
    "differs from the plan; plan with `--lengths`, without `--packed`",
)
PADDED = Rule(
    applies=lambda run: run.padded,
    what="padding: your script pads each micro-batch to its longest example, as the collators of transformers do",
)

CHANNELS_LAST = Rule(
    applies=lambda run: run.image_size is not None,
    what="the order of the channels: the plan has them last, so your script gives model and images "
    "`memory_format=torch.channels_last`",
)

SHARED_STATES = Rule(
    applies=lambda run: run.layout.replicas > 1 and stage(run) == 1,
    what="optimizer states are shared by all data parallel ranks, not by groups of them",
    hint="plan again with `--zero 3`",
)

FP16_UNDER_FSDP = Rule(
    applies=lambda run: run.precision == "fp16" and stage(run) >= 2,
    what="FSDP2 has no loss scaling for FP16",
    hint="plan again with `--precision bf16`",
)

CHECKPOINTS_ONLY = Rule(
    applies=lambda run: run.offload == "activations" and not run.recomputes,
    what="it moves activation checkpoints to the host, and the plan has none",
    hint="plan again with `--act-ckpt full`, or `--offload none`",
)

ALL_CHECKPOINTED = Rule(
    applies=lambda run: run.layout.act_ckpt not in ("none", "full"),
    what="selective activation checkpointing: all layers are checkpointed, which takes less memory and more time",
)

ALL_OFFLOADED = Rule(
    applies=lambda run: run.offload == "optimizer" and stage(run) >= 2,
    what="parameters and gradients go to the host with the optimizer's states",
)

TRANSFORMERS_OPTIMIZERS = {
    "adamw": "adamw_torch_fused",
    "adamw-8bit": "adamw_bnb_8bit",
    "adamw-8bit-paged": "paged_adamw_8bit",
    "adafactor": "adafactor",
    "lion": "lion_32bit",
    "sgd-momentum": "sgd",
}
"""`optim` of transformers.TrainingArguments by optimizer of the plan.

Source: transformers 5.23, `OptimizerNames` in training_args.py."""
PAGED = Rule(
    applies=lambda run: run.optimizer == "adamw-8bit-paged" and stage(run) >= 2,
    what="FSDP2 cannot shard optimizer states that are paged to the host's memory",
    hint="plan again with `--optimizer adamw-8bit`",
)
"""bitsandbytes allocates a paged state for the whole weight and supports no sharded tensor (`get_state_buffer`)."""
MOMENTUM = "momentum=0.9"
"""`optim_args` of SGD, which otherwise has no momentum; the value of PyTorch's ImageNet example and most papers."""

STRICT_FP32 = Rule(
    applies=lambda run: run.precision == "fp32",
    what="strict FP32 is set in the environment: use NVIDIA_TF32_OVERRIDE=0 where the training starts",
)
TF32 = Rule(
    applies=lambda run: run.precision == "tf32",
    what="TF32 is set in the environment: use TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 where the training starts",
)

ENVIRONMENT = {"fp32": ("NVIDIA_TF32_OVERRIDE", "0"), "tf32": ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1")}
"""Environment variables that decide how FP32 matrix products run, by precision.

Sources: NVIDIA cuBLAS documentation (NVIDIA_TF32_OVERRIDE); PyTorch documentation, CUDA environment variables
(TORCH_ALLOW_TF32_CUBLAS_OVERRIDE)."""


def scaled(run: PlannedRun, *scalings: str) -> bool:
    """Return whether the FP8 (FP4) matrix products use one of these scalings."""
    return run.policy.scaling in scalings


def keeps_masters(run: PlannedRun) -> bool:
    """Return whether 16-bit weights are kept in addition to FP32 masters, as in Megatron and DeepSpeed."""
    return run.policy.weight_bytes > 0 and run.policy.master_bytes > 0


def trains_masters(run: PlannedRun) -> bool:
    """Return whether all weights have FP32 masters; adapters have only FP32 weights, frozen weights no masters."""
    return keeps_masters(run) and not run.adapts


def shards_fp32(run: PlannedRun) -> bool:
    """Return whether FP32 weights are used through a 16-bit copy, as under autocast and FSDP."""
    return run.precision not in ("fp32", "tf32") and not keeps_masters(run) and not is_pure(run)


def is_pure(run: PlannedRun) -> bool:
    """Return whether weights, gradients and moments are all in BF16."""
    return run.policy.moment_bytes < FP32_BYTES


def narrow_gradients(run: PlannedRun) -> bool:
    """Return whether gradients are reduced in 16 bits although the optimizer works in 32 bits."""
    return run.policy.reduce_bytes < FP32_BYTES and not is_pure(run)


FP32_BYTES = 4


def stage(run: PlannedRun) -> int:
    """Return the ZeRO stage; 0 if DP × CP is 1, unless gradients or parameters are offloaded to the host."""
    layout = run.layout
    sends = run.offload == "optimizer" and layout.zero >= 2
    return 0 if layout.dp * layout.cp == 1 and not sends else layout.zero

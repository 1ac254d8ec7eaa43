"""DeepSpeed: the JSON configuration of `deepspeed.initialize`, as 0.19.8 reads it."""

from __future__ import annotations

from reports.launch.forms import to_json
from reports.launch.framework import Framework, Mapped, Rule, Settings
from reports.launch.planned_run import PlannedRun
from reports.launch.rules import (
    CHANNELS_LAST,
    CHECKPOINTS_ONLY,
    FULL_SEQUENCES,
    NO_FURTHER_TOKENS,
    NOT_IN_BACKWARD,
    PADDED,
    PAIRS_NOT_PACKED,
    POWER_LIMIT,
    STRICT_FP32,
    TF32,
    YOURS,
    is_pure,
    keeps_masters,
    narrow_gradients,
    scaled,
    shards_fp32,
    stage,
)

OPTIMIZERS = {"adamw": "AdamW", "lamb": "Lamb", "lion": "Lion", "muon": "Muon"}
"""Values of `optimizer.type` by optimizer of the plan."""
AUTOCAST = {"bf16": "bfloat16", "fp16": "float16"}
"""Values of `torch_autocast.dtype` by precision."""


def _write(run: PlannedRun, about: tuple[str, ...]) -> str:
    return to_json(settings(run), about)


def settings(run: PlannedRun) -> Settings:
    """Return the configuration, without the entry that names the plan."""
    layout = run.layout
    sections: dict[str, object] = {
        "train_micro_batch_size_per_gpu": run.micro_examples,
        "gradient_accumulation_steps": layout.grad_accum,
        "zero_optimization": _zero(run),
    }
    if layout.tp == 1:  # with AutoTP, it would count tensor-parallel ranks as if each had its own data
        sections = {"train_batch_size": run.batch_examples} | sections
    sections |= _precision(run)
    if run.optimizer in OPTIMIZERS:
        sections["optimizer"] = {"type": OPTIMIZERS[run.optimizer], "params": {}}
    if layout.tp > 1:
        sections["tensor_parallel"] = {"autotp_size": layout.tp}
    if layout.cp > 1:
        sections["data_parallel_size"] = layout.dp
        sections["sequence_parallel_size"] = layout.cp
    if layout.ep > 1:
        sections["expert_parallel"] = {
            "enabled": True,
            "autoep_size": layout.ep,
            "expert_tensor_parallel_size": layout.expert_tp,
            **_dispatch(run),
        }
    if layout.pp > 1:
        sections["pipeline"] = {"activation_checkpoint_interval": _interval(run)}
    if run.offload == "activations":
        sections["activation_checkpointing"] = {"cpu_checkpointing": True}
    return sections


def _dispatch(run: PlannedRun) -> Settings:
    """Return how tokens are dispatched to experts; DeepEP's buffer holds the tokens of one rank."""
    if run.moe_dispatcher == "alltoall":
        return {"comm_backend": "comm"}
    tokens = run.layout.micro_batch * run.seq_len // run.layout.cp
    return {"comm_backend": "deepep", "comm_max_tokens_per_rank": tokens}


def _zero(run: PlannedRun) -> Settings:
    if run.offload == "optimizer":  # DeepSpeed offloads from stage 1 on, even with one rank
        host = {"device": "cpu", "pin_memory": True}
        section: dict[str, object] = {"stage": max(1, stage(run)), "offload_optimizer": host}
        if stage(run) == 3 and run.stack != "classic":  # as in the plan, whose FSDP also moves parameters
            section["offload_param"] = dict(host)
        return section
    return {"stage": stage(run)}


def _precision(run: PlannedRun) -> dict[str, object]:
    if run.precision not in AUTOCAST:
        return {}
    if shards_fp32(run):
        return {"torch_autocast": {"enabled": True, "dtype": AUTOCAST[run.precision]}}
    if run.precision == "fp16":
        section: dict[str, object] = {"fp16": {"enabled": True, "loss_scale": 0}}
    elif is_pure(run):
        section = {"bf16": {"enabled": True, "bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}}
    else:
        section = {"bf16": {"enabled": True}}
    if keeps_masters(run):
        narrow = run.precision if narrow_gradients(run) else "fp32"
        section["data_types"] = {"grad_accum_dtype": narrow}
    return section


def _interval(run: PlannedRun) -> int:
    """Return the number of layers between pipeline checkpoints; 0 keeps all activations."""
    mode = run.layout.act_ckpt
    return 1 if mode == "full" else 0 if mode == "none" else int(mode.removeprefix("every-"))


FRAMEWORK = Framework(
    name="deepspeed",
    title="DeepSpeed 0.19.8",
    source="https://github.com/deepspeedai/DeepSpeed/blob/v0.19.8/deepspeed/runtime/config.py",
    form="a JSON configuration",
    suffix=".json",
    start="deepspeed … train.py --deepspeed --deepspeed_config {file}",
    takes=(
        Mapped(what="micro-batch, accumulation, global batch", where=(
            "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size",
        )),
        Mapped(what="ZeRO stage", where=("zero_optimization.stage",)),
        Mapped(what="tp", where=("tensor_parallel.autotp_size",)),
        Mapped(what="cp", where=("sequence_parallel_size", "data_parallel_size")),
        Mapped(what="ep", where=(
            "expert_parallel.enabled", "expert_parallel.autoep_size", "expert_parallel.expert_tensor_parallel_size",
            "expert_parallel.comm_backend", "expert_parallel.comm_max_tokens_per_rank",
        )),
        Mapped(what="precision", where=(
            "bf16.enabled", "bf16.bf16_master_weights_and_grads", "bf16.bf16_optimizer_states", "fp16.enabled",
            "fp16.loss_scale", "torch_autocast.enabled", "torch_autocast.dtype", "data_types.grad_accum_dtype",
        )),
        Mapped(what="offload", where=(
            "zero_optimization.offload_optimizer.device", "zero_optimization.offload_optimizer.pin_memory",
            "zero_optimization.offload_param.device", "zero_optimization.offload_param.pin_memory",
            "activation_checkpointing.cpu_checkpointing",
        )),
        Mapped(what="activation checkpointing, in a pipeline", where=("pipeline.activation_checkpoint_interval",)),
        Mapped(what="optimizer", where=("optimizer.type", "optimizer.params")),
    ),
    refuses=(
        NOT_IN_BACKWARD,
        Rule(
            applies=lambda run: run.layout.pp > 1 and run.layout.tp * run.layout.cp * run.layout.ep > 1,
            what="this file cannot ask for a pipeline with tensor, context or expert parallelism",
            hint="plan again with `--pp 1`",
        ),
        Rule(
            applies=lambda run: run.layout.pp > 1 and run.layout.vp > 1,
            what="its pipelines have no virtual stages",
            hint="plan again with `--pp 1`, or `--vp 1 --tp 1 --cp 1`",
        ),
        Rule(
            applies=lambda run: run.layout.pp > 1 and stage(run) > 1,
            what="its pipelines run under ZeRO stages 0 and 1",
            hint="plan again with `--pp 1`, or `--zero 1`",
        ),
        Rule(
            applies=lambda run: run.layout.ep > 1 and run.layout.tp > 1,
            what="this file cannot ask for expert parallelism together with tensor parallelism",
            hint="plan again with `--tp 1`",
        ),
        Rule(
            applies=lambda run: run.layout.tp > 1 and run.layout.cp > 1,
            what="its mesh has data and sequence parallel ranks, but no tensor parallel ones",
            hint="plan again with `--tp 1`",
        ),
        Rule(
            applies=lambda run: run.layout.pp > 1 and run.layout.act_ckpt == "selective",
            what="its pipelines checkpoint whole layers, not single operations",
            hint="plan again with `--act-ckpt full`",
        ),
        Rule(
            applies=lambda run: not scaled(run, "none"),
            what="its configuration supports neither FP8 nor FP4",
            hint="plan again with `--precision bf16`",
        ),
        Rule(
            applies=lambda run: is_pure(run) and stage(run) == 0,
            what="it keeps weights and states in BF16 only under ZeRO",
            hint="plan again with `--policy bf16`",
        ),
        CHECKPOINTS_ONLY,
    ),
    leaves_out=(
        YOURS,
        POWER_LIMIT,
        NO_FURTHER_TOKENS,
        FULL_SEQUENCES,
        PAIRS_NOT_PACKED,
        PADDED,
        CHANNELS_LAST,
        Rule(
            applies=lambda run: run.chunked_loss,
            what="the chunked loss: your script makes it (DeepSpeed's `TiledFusedLogitsLoss`, or Liger's), else logits "
            "take memory that the plan does not count",
        ),
        Rule(
            applies=lambda run: True,
            what="length of sequences, size of images and number of steps: they are arguments of your script (the "
            "line `Run` has them)",
        ),
        Rule(
            applies=lambda run: run.optimizer in OPTIMIZERS,
            what="parameters of the optimizer: until you give `lr`, DeepSpeed takes its own default",
        ),
        Rule(
            applies=lambda run: run.layout.tp > 1,
            what="`train_batch_size`: with AutoTP it follows from micro-batch, accumulation and ranks",
        ),
        Rule(
            applies=lambda run: run.optimizer not in OPTIMIZERS,
            what="the optimizer, which your script makes (`zero_allow_untested_optimizer` admits it under ZeRO)",
        ),
        Rule(
            applies=lambda run: run.layout.pp == 1 and run.recomputes,
            what="activation checkpointing: your model turns it on (`gradient_checkpointing_enable()`)",
        ),
        Rule(
            applies=lambda run: run.layout.pp > 1,
            what="the number of stages: your script gives `PipelineModule` the plan's pp as `num_stages`",
        ),
        Rule(
            applies=lambda run: run.layout.replicas > 1,
            what="replicas of the sharded states: it shards over all data parallel ranks, which takes less memory and "
            "more time on the network",
        ),
        STRICT_FP32,
        TF32,
        Rule(
            applies=lambda run: run.adapts or run.needs_script,
            what="adapters, frozen layers and the loss of the method: your script makes them (PEFT, TRL)",
        ),
    ),
    write=_write,
)  # fmt: skip
"""DeepSpeed."""

"""torchtitan: a TOML job configuration for 0.2.2, the newest release that uses TOML (0.3 uses Python)."""

from __future__ import annotations

from math import ceil

from planner.models.published_names import published_names
from reports.launch.forms import to_toml
from reports.launch.framework import Framework, Mapped, Rule, Settings
from reports.launch.planned_run import PlannedRun
from reports.launch.rules import (
    ALL_OFFLOADED,
    FILLED,
    NO_ADAPTERS,
    NO_FURTHER_TOKENS,
    NO_PAIRS,
    NOT_CHUNKED,
    POWER_LIMIT,
    STRICT_FP32,
    TF32,
    YOURS,
    is_pure,
    keeps_masters,
    scaled,
    stage,
)

RESHARD = {2: "never", 3: "always"}
"""Values of `fsdp_reshard_after_forward` by ZeRO stage."""

COMPILED = ("typical", "tuned", "fsdp-compile")
"""Stacks with fused kernels, which torch.compile generates in torchtitan."""
WITHOUT_PIPELINE = ("qwen3", "gpt_oss")
"""Models whose `TrainSpec` has no `pipelining_fn`."""
WITH_DEEPEP = ("deepseek_v3", "llama4")
"""Models that can dispatch tokens to experts through DeepEP."""


def _write(run: PlannedRun, about: tuple[str, ...]) -> str:
    return to_toml(settings(run), about)


def settings(run: PlannedRun) -> Settings:
    """Return the tables of the job configuration."""
    names = published_names(run.model)
    tables: dict[str, Settings] = {
        "job": {"description": f"{run.model} in {run.precision}, planned by mpplan"},
        "model": {"name": names.torchtitan, "flavor": names.torchtitan_flavor, "converters": _converters(run)},
        "optimizer": {"name": "AdamW", "early_step_in_backward": run.in_backward},
        "training": _training(run),
        "parallelism": _parallelism(run),
        "activation_checkpoint": _checkpointing(run),
        "compile": {"enable": run.stack in COMPILED},
    }
    if scaled(run, "tensorwise", "rowwise"):
        tables["quantize.linear.float8"] = _float8(run)
    elif scaled(run, "mx"):
        tables["quantize.linear.mx"] = {"recipe_name": "mxfp8_cublas", "filter_fqns": ["output"]}
    return tables


def _converters(run: PlannedRun) -> list[str]:
    if scaled(run, "tensorwise", "rowwise"):
        return ["quantize.linear.float8"]
    return ["quantize.linear.mx"] if scaled(run, "mx") else []


def _float8(run: PlannedRun) -> Settings:
    if scaled(run, "rowwise"):
        return {"recipe_name": "rowwise", "filter_fqns": ["output"]}
    # Without the name of a recipe, the scaling is per tensor, which is the only one that supports all-gather in FP8.
    narrow = run.policy.gather_bytes < 2
    return {
        "enable_fsdp_float8_all_gather": narrow,
        "precompute_float8_dynamic_scale_for_fsdp": narrow,
        "filter_fqns": ["output"],
    }


def _training(run: PlannedRun) -> Settings:
    layout = run.layout
    through_pipeline = layout.micro_batch * (layout.grad_accum if layout.pp > 1 else 1)
    return {
        "local_batch_size": through_pipeline,
        "global_batch_size": layout.global_batch,
        "seq_len": run.seq_len,
        "steps": run.steps,
        "dtype": "bfloat16" if is_pure(run) else "float32",
        "mixed_precision_param": "float32" if run.precision in ("fp32", "tf32") else "bfloat16",
        "mixed_precision_reduce": "float32",
        "enable_cpu_offload": run.offload == "optimizer",
    }


def _parallelism(run: PlannedRun) -> Settings:
    layout = run.layout
    whole = stage(run) == 0
    replicas = layout.dp if whole else layout.replicas
    degrees: dict[str, object] = {
        "data_parallel_replicate_degree": replicas,
        "data_parallel_shard_degree": layout.dp // replicas,
        "fsdp_reshard_after_forward": RESHARD.get(layout.zero, "default"),
        "tensor_parallel_degree": layout.tp,
        "context_parallel_degree": layout.cp,
        "pipeline_parallel_degree": layout.pp,
    }
    if layout.pp > 1:
        degrees |= {
            "pipeline_parallel_schedule": "1F1B" if layout.vp == 1 else "Interleaved1F1B",
            "pipeline_parallel_microbatch_size": layout.micro_batch,
            "pipeline_parallel_layers_per_stage": ceil(run.count("layers") / (layout.pp * layout.vp)),
            "pipeline_parallel_first_stage_less_layers": 0,
            "pipeline_parallel_last_stage_less_layers": 0,
        }
    if run.is_moe:
        degrees |= {"expert_parallel_degree": layout.ep, "expert_tensor_parallel_degree": layout.expert_tp}
        degrees["expert_parallel_comm_backend"] = "deepep" if _sends_once(run) else "standard"
    return degrees


def _sends_once(run: PlannedRun) -> bool:
    """Return whether tokens go through DeepEP, which needs certain models and ranks that hold whole experts."""
    has_it = published_names(run.model).torchtitan in WITH_DEEPEP and run.layout.ep > 1 and run.layout.tp == 1
    return has_it and run.moe_dispatcher == "deepep"


def _cannot_send_once(run: PlannedRun) -> bool:
    """Return whether the plan dispatches tokens through DeepEP but torchtitan cannot."""
    return run.is_moe and run.layout.ep > 1 and run.moe_dispatcher == "deepep" and not _sends_once(run)


def _checkpointing(run: PlannedRun) -> Settings:
    mode = run.layout.act_ckpt
    if mode == "selective":
        return {"mode": "selective", "selective_ac_option": "op"}
    if mode.startswith("every-"):
        return {"mode": "selective", "selective_ac_option": mode.removeprefix("every-")}
    return {"mode": mode}


def _uneven(run: PlannedRun) -> bool:
    """Return whether equal stages (with smaller last ones) give a different number of stages than the plan has."""
    layers, chunks = run.count("layers"), run.layout.pp * run.layout.vp
    return run.layout.pp > 1 and ceil(layers / ceil(layers / chunks)) != chunks


def _unsharded_in_parallel(run: PlannedRun) -> bool:
    return stage(run) == 0 and run.layout.dp > 1 and run.layout.gpus > run.layout.dp


FRAMEWORK = Framework(
    name="torchtitan",
    title="torchtitan 0.2.2",
    source="https://github.com/pytorch/torchtitan/blob/v0.2.2/torchtitan/config/job_config.py",
    form="a TOML job configuration",
    suffix=".toml",
    start="torchrun … -m torchtitan.train --job.config_file {file}",
    takes=(
        Mapped(what="model", where=("model.name", "model.flavor", "job.description")),
        Mapped(what="tp, cp, pp, vp", where=(
            "parallelism.tensor_parallel_degree", "parallelism.context_parallel_degree",
            "parallelism.pipeline_parallel_degree", "parallelism.pipeline_parallel_schedule",
            "parallelism.pipeline_parallel_microbatch_size", "parallelism.pipeline_parallel_layers_per_stage",
            "parallelism.pipeline_parallel_first_stage_less_layers",
            "parallelism.pipeline_parallel_last_stage_less_layers",
        )),
        Mapped(what="ep", where=(
            "parallelism.expert_parallel_degree", "parallelism.expert_tensor_parallel_degree",
            "parallelism.expert_parallel_comm_backend",
        )),
        Mapped(what="dp, replicas, ZeRO stages 0, 2 and 3", where=(
            "parallelism.data_parallel_replicate_degree", "parallelism.data_parallel_shard_degree",
            "parallelism.fsdp_reshard_after_forward",
        )),
        Mapped(what="micro-batch, accumulation, global batch", where=(
            "training.local_batch_size", "training.global_batch_size",
        )),
        Mapped(what="sequence length, steps", where=("training.seq_len", "training.steps")),
        Mapped(what="precision", where=(
            "training.dtype", "training.mixed_precision_param", "training.mixed_precision_reduce", "model.converters",
            "quantize.linear.float8.recipe_name", "quantize.linear.float8.enable_fsdp_float8_all_gather",
            "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", "quantize.linear.float8.filter_fqns",
            "quantize.linear.mx.recipe_name", "quantize.linear.mx.filter_fqns",
        )),
        Mapped(what="activation checkpointing", where=(
            "activation_checkpoint.mode", "activation_checkpoint.selective_ac_option",
        )),
        Mapped(what="offload of the optimizer", where=("training.enable_cpu_offload",)),
        Mapped(what="optimizer, updates inside the backward pass", where=(
            "optimizer.name", "optimizer.early_step_in_backward",
        )),
        Mapped(what="stack", where=("compile.enable",)),
    ),
    refuses=(
        Rule(
            applies=lambda run: published_names(run.model).torchtitan is None,
            what="this release does not include the model; it includes sizes of Llama 3 and 4, Qwen3, DeepSeek-V2 and "
            "V3, and gpt-oss",
        ),
        NO_PAIRS,
        NO_ADAPTERS,
        FILLED,
        NOT_CHUNKED,
        Rule(
            applies=lambda run: run.in_backward and run.layout.pp * run.layout.ep > 1,
            what="it updates weights inside the backward pass only without pipeline and expert parallelism",
            hint="plan again with `--pp 1 --ep 1`",
        ),
        Rule(
            applies=lambda run: stage(run) == 1,
            what="it has no ZeRO stage 1: its ranks either hold all states or shard the parameters too",
            hint="plan again with `--zero 3`, or `--zero 2`",
        ),
        Rule(
            applies=_unsharded_in_parallel,
            what="without sharding it supports no parallelism other than data parallelism",
            hint="plan again with `--zero 3`",
        ),
        Rule(
            applies=lambda run: run.precision == "fp16",
            what="it trains in BF16 or FP32, and has no loss scaling for FP16",
            hint="plan again with `--precision bf16`",
        ),
        Rule(
            applies=lambda run: scaled(run, "delayed", "blockwise", "nvfp4"),
            what="its FP8 scales per tensor or per row, its MXFP8 per 32 elements; it has no other recipe, and no FP4",
            hint="plan again with `--policy fp8-fsdp`, `fp8-fsdp-rowwise` or `mxfp8-fsdp`",
        ),
        Rule(
            applies=lambda run: run.optimizer != "adamw",
            what="of the optimizers that mpplan plans, it has only AdamW",
            hint="plan again with `--optimizer adamw`",
        ),
        Rule(
            applies=lambda run: run.layout.pp > 1 and published_names(run.model).torchtitan in WITHOUT_PIPELINE,
            what="its Qwen3 and gpt-oss have no pipeline parallelism",
            hint="plan again with `--pp 1`",
        ),
        Rule(
            applies=_uneven,
            what="with equal numbers of layers, it makes fewer stages than the plan has",
            hint="plan again with a `--pp` that divides the layers",
        ),
        Rule(
            applies=lambda run: run.offload == "activations",
            what="it does not move activations to the host",
            hint="plan again with `--offload none`",
        ),
        Rule(
            applies=lambda run: run.offload == "optimizer" and (stage(run) == 0 or run.layout.dp * run.layout.cp == 1),
            what="it moves states to the host only under FSDP, which needs several ranks",
            hint="plan again with `--offload none`",
        ),
    ),
    leaves_out=(
        YOURS,
        POWER_LIMIT,
        NO_FURTHER_TOKENS,
        Rule(
            applies=lambda run: run.in_backward,
            what="gradient clipping (`training.max_norm`): no gradients are left when they would be clipped",
        ),
        Rule(
            applies=lambda run: True,
            what="the folder of the tokenizer and the learning rate: give `model.hf_assets_path` and `optimizer.lr`, "
            "else torchtitan takes its own defaults, for the learning rate 8e-4",
        ),
        STRICT_FP32,
        TF32,
        Rule(
            applies=keeps_masters,
            what="the plan's policy keeps 16-bit weights beside FP32 masters; torchtitan gathers 16-bit weights from "
            "FP32 shards, so plan with `--stack fsdp-compile` and a policy like bf16-fsdp for its own memory and time",
        ),
        Rule(
            applies=lambda run: run.policy.reduce_bytes < 4,
            what="gradients reduced in 16 bits: torchtitan reduces them in FP32",
        ),
        ALL_OFFLOADED,
        Rule(
            applies=_cannot_send_once,
            what="DeepEP, which torchtitan has for Llama 4 and DeepSeek-V3 without tensor parallelism: here a token is "
            "sent once per expert, so plan with `--moe-dispatcher alltoall` for its own time",
        ),
        Rule(
            applies=lambda run: run.is_moe and scaled(run, "tensorwise", "rowwise", "mx"),
            what="FP8 in the products of the experts: they stay in BF16, because torchtitan's FP8 for them is a "
            "prototype (`quantize.grouped_mm`)",
        ),
        Rule(
            applies=lambda run: run.how.fine_tunes,
            what="the checkpoint to start from: give it as `checkpoint.initial_load_path`",
        ),
        Rule(
            applies=lambda run: run.attention == "naive",
            what="separate attention products: torchtitan's attention is fused",
        ),
    ),
    write=_write,
)  # fmt: skip
"""torchtitan."""

"""Hugging Face Accelerate: the YAML file of `accelerate launch --config_file`, as 1.15.0 reads it.

The file uses FSDP2 if the plan shards parameters or gradients, DeepSpeed if it shards only optimizer states, and plain
data parallelism if it shards nothing. 4-bit weights are sharded by FSDP1, as bitsandbytes and PEFT document (their
guides to FSDP-QLoRA). The weights must be stored in a floating-point type for this: FSDP1 refuses bytes, and
accelerate's FSDP2 leaves them unsharded on every GPU (`fsdp2_prepare_model`).
"""

from __future__ import annotations

from reports.launch.forms import to_yaml
from reports.launch.framework import Framework, Mapped, Rule, Settings, samples_of
from reports.launch.planned_run import PlannedRun
from reports.launch.rules import (
    ALL_CHECKPOINTED,
    ALL_OFFLOADED,
    CHANNELS_LAST,
    FP16_UNDER_FSDP,
    FULL_SEQUENCES,
    IN_BACKWARD,
    MOMENTUM,
    NO_FURTHER_TOKENS,
    PADDED,
    PAGED,
    PAIRS_NOT_PACKED,
    POWER_LIMIT,
    SHARED_STATES,
    STRICT_FP32,
    TF32,
    TRANSFORMERS_OPTIMIZERS,
    UNEVEN_NODES,
    YOURS,
    is_pure,
    scaled,
    stage,
    trains_masters,
)


def _write(run: PlannedRun, about: tuple[str, ...]) -> str:
    return to_yaml(settings(run), (*about, "", *_for_the_script(run)))


def _for_the_script(run: PlannedRun) -> tuple[str, ...]:
    """Return the arguments for `transformers.TrainingArguments` (5.x) or the user's training loop."""
    arguments = [
        f"per_device_train_batch_size={run.micro_examples}",
        f"gradient_accumulation_steps={run.layout.grad_accum}",
        f"max_steps={run.steps}",
        *_optimizer(run),
    ]
    if run.chunked_loss:
        arguments.append("use_liger_kernel=True")
    return (
        f"For your script (names of transformers.TrainingArguments), with {samples_of(run)}:",
        f"  {', '.join(arguments)}",
        *_quantisation(run),
    )


def _quantisation(run: PlannedRun) -> tuple[str, ...]:
    """Return how the user's script loads 4-bit weights.

    transformers 5.24 loads them onto the GPU of each process unless it is told another device
    (`Bnb4BitHfQuantizer.update_device_map`), regardless of `fsdp_cpu_ram_efficient_loading`.
    """
    if not run.how.low_bits:
        return ()
    kind = f"torch.{COMPUTE_TYPES.get(run.precision, 'float32')}"
    arguments = [
        "load_in_4bit=True",
        'bnb_4bit_quant_type="nf4"',
        f"bnb_4bit_use_double_quant={run.quant_double}",
        f"bnb_4bit_compute_dtype={kind}",
    ]
    loading = [f"dtype={kind}"]
    if shards_4_bits(run):
        arguments.append(f"bnb_4bit_quant_storage={kind}")
        loading.append('device_map="cpu"')
    lines = (
        "For its model (names of transformers.BitsAndBytesConfig, and of from_pretrained):",
        f"  {', '.join(arguments)}",
        f"  {', '.join(loading)}",
    )
    adapters = "For its adapters (name of get_peft_model of PEFT): autocast_adapter_dtype=False"
    return (*lines, adapters) if shards_4_bits(run) else lines


COMPUTE_TYPES = {"fp16": "float16", "bf16": "bfloat16"}
"""Torch compute types of 4-bit weights, by precision; other precisions compute in FP32."""


def shards_4_bits(run: PlannedRun) -> bool:
    """Return whether FSDP shards 4-bit weights."""
    return run.how.low_bits and _kind(run) == "FSDP"


def _optimizer(run: PlannedRun) -> tuple[str, ...]:
    """Return the arguments for the optimizer; none if only the user's script can create it."""
    if run.optimizer not in TRANSFORMERS_OPTIMIZERS:
        return ()
    name = SHARDED_8BIT if run.optimizer == "adamw-8bit" and stage(run) >= 2 else TRANSFORMERS_OPTIMIZERS[run.optimizer]
    return (f'optim="{name}"', *([f'optim_args="{MOMENTUM}"'] if run.optimizer == "sgd-momentum" else []))


SHARDED_8BIT = "adamw_torch_8bit"
"""The 8-bit AdamW of torchao, which FSDP2 can shard; it cannot shard the one of bitsandbytes."""


def settings(run: PlannedRun) -> Settings:
    """Return the settings of the file."""
    kind = _kind(run)
    file: dict[str, object] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": kind,
        "num_machines": run.nodes,
        "num_processes": run.gpus,
        "machine_rank": 0,
        "main_training_function": "main",
        "mixed_precision": _mixed_precision(run),
        "use_cpu": False,
    }
    if run.nodes > 1:
        file["rdzv_backend"] = "static"
        file["same_network"] = True
    if kind == "FSDP":
        file["fsdp_config"] = _fsdp(run)
        if run.layout.cp * run.layout.replicas > 1:
            file["parallelism_config"] = _parallel(run)
    elif kind == "DEEPSPEED":
        file["deepspeed_config"] = _deepspeed(run)
    if run.precision in ("fp8", "mxfp8"):
        file["fp8_config"] = _fp8(run)
    return file


def _kind(run: PlannedRun) -> str:
    if run.gpus == 1 and run.offload == "none":
        return "NO"
    if stage(run) >= 2:
        return "FSDP"
    return "DEEPSPEED" if stage(run) == 1 or run.offload == "optimizer" else "MULTI_GPU"


def _mixed_precision(run: PlannedRun) -> str:
    if run.precision in ("fp32", "tf32") or is_pure(run):
        return "no"
    return "fp8" if run.precision == "mxfp8" else run.precision


def _fsdp(run: PlannedRun) -> Settings:
    if shards_4_bits(run):
        return _fsdp1(run)
    return {
        "fsdp_version": 2,
        "fsdp_reshard_after_forward": run.layout.zero == 3,
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_activation_checkpointing": run.recomputes,
        "fsdp_activation_checkpointing_offload": run.offload == "activations",
        "fsdp_offload_params": run.offload == "optimizer",
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
        "fsdp_cpu_ram_efficient_loading": run.method != "pretrain",
    }


def _fsdp1(run: PlannedRun) -> Settings:
    """Return the FSDP1 settings for 4-bit weights: flat parameters, separate for frozen weights and adapters."""
    return {
        "fsdp_version": 1,
        "fsdp_sharding_strategy": "FULL_SHARD" if run.layout.zero == 3 else "SHARD_GRAD_OP",
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_use_orig_params": False,
        "fsdp_sync_module_states": True,
        "fsdp_cpu_ram_efficient_loading": True,
        "fsdp_activation_checkpointing": run.recomputes,
        "fsdp_offload_params": run.offload == "optimizer",
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
    }


def _parallel(run: PlannedRun) -> Settings:
    layout = run.layout
    sizes: dict[str, object] = {
        "parallelism_config_dp_replicate_size": layout.replicas,
        "parallelism_config_dp_shard_size": layout.dp // layout.replicas,
        "parallelism_config_tp_size": 1,
        "parallelism_config_cp_size": layout.cp,
        "parallelism_config_sp_size": 1,
    }
    if layout.cp > 1:
        sizes["parallelism_config_cp_backend"] = "torch"
        sizes["parallelism_config_cp_comm_strategy"] = "allgather"
    return sizes


def _deepspeed(run: PlannedRun) -> Settings:
    return {
        "zero_stage": max(1, stage(run)),
        "gradient_accumulation_steps": run.layout.grad_accum,
        "offload_optimizer_device": "cpu" if run.offload == "optimizer" else "none",
        "offload_param_device": "none",
        "zero3_init_flag": False,
    }


def _fp8(run: PlannedRun) -> Settings:
    if scaled(run, "tensorwise"):
        gathered = _kind(run) == "FSDP" and run.policy.gather_bytes < 2
        return {"fp8_backend": "AO", "fp8_enable_fsdp_float8_all_gather": gathered}
    if scaled(run, "delayed"):
        return {
            "fp8_backend": "TE",
            "fp8_format": "HYBRID",
            "fp8_amax_history_len": 1024,
            "fp8_amax_compute_algo": "max",
        }
    return {"fp8_backend": "TE", "fp8_format": "E4M3", "fp8_use_mxfp8_block_scaling": True}


FRAMEWORK = Framework(
    name="accelerate",
    title="Accelerate 1.15.0",
    source="https://github.com/huggingface/accelerate/blob/v1.15.0/src/accelerate/commands/config/config_args.py",
    form="a YAML file for `accelerate launch`",
    suffix=".yaml",
    start="accelerate launch --config_file {file} train.py",
    takes=(
        Mapped(what="GPUs, nodes", where=(
            "compute_environment", "distributed_type", "num_machines", "num_processes", "machine_rank",
            "main_training_function", "use_cpu", "rdzv_backend", "same_network",
        )),
        Mapped(what="ZeRO stages 2 and 3", where=(
            "fsdp_config.fsdp_version", "fsdp_config.fsdp_reshard_after_forward", "fsdp_config.fsdp_auto_wrap_policy",
            "fsdp_config.fsdp_state_dict_type", "fsdp_config.fsdp_cpu_ram_efficient_loading",
        )),
        Mapped(what="ZeRO stages 2 and 3 of 4-bit weights", where=(
            "fsdp_config.fsdp_version", "fsdp_config.fsdp_sharding_strategy", "fsdp_config.fsdp_auto_wrap_policy",
            "fsdp_config.fsdp_use_orig_params", "fsdp_config.fsdp_sync_module_states",
            "fsdp_config.fsdp_cpu_ram_efficient_loading", "fsdp_config.fsdp_state_dict_type",
        )),
        Mapped(what="ZeRO stage 1, accumulation", where=(
            "deepspeed_config.zero_stage", "deepspeed_config.gradient_accumulation_steps",
            "deepspeed_config.zero3_init_flag",
        )),
        Mapped(what="cp, dp and replicas under FSDP", where=(
            "parallelism_config.parallelism_config_dp_replicate_size",
            "parallelism_config.parallelism_config_dp_shard_size", "parallelism_config.parallelism_config_tp_size",
            "parallelism_config.parallelism_config_cp_size", "parallelism_config.parallelism_config_sp_size",
            "parallelism_config.parallelism_config_cp_backend",
            "parallelism_config.parallelism_config_cp_comm_strategy",
        )),
        Mapped(what="precision", where=(
            "mixed_precision", "fp8_config.fp8_backend", "fp8_config.fp8_enable_fsdp_float8_all_gather",
            "fp8_config.fp8_format", "fp8_config.fp8_amax_history_len", "fp8_config.fp8_amax_compute_algo",
            "fp8_config.fp8_use_mxfp8_block_scaling",
        )),
        Mapped(what="activation checkpointing", where=("fsdp_config.fsdp_activation_checkpointing",)),
        Mapped(what="offload", where=(
            "fsdp_config.fsdp_offload_params", "fsdp_config.fsdp_activation_checkpointing_offload",
            "deepspeed_config.offload_optimizer_device", "deepspeed_config.offload_param_device",
        )),
    ),
    refuses=(
        UNEVEN_NODES,
        Rule(
            applies=lambda run: run.layout.pp > 1,
            what="its pipelines are those of its Megatron-LM plug-in, which this file does not set up",
            hint="plan again with `--pp 1`",
        ),
        Rule(
            applies=lambda run: run.layout.ep > 1,
            what="its expert parallelism is that of its Megatron-LM plug-in, which this file does not set up",
            hint="plan again with `--ep 1`",
        ),
        Rule(
            applies=lambda run: run.layout.tp > 1,  # `_prepare_tp` imports `ReplicateParallel` of transformers 5.0
            what="its tensor parallelism under FSDP needs a part of transformers that later releases (5.10 to 5.24) "
            "lack, and without FSDP it is that of its Megatron-LM plug-in, which this file does not set up",
            hint="plan again with `--tp 1`",
        ),
        Rule(
            applies=lambda run: run.layout.cp > 1 and stage(run) < 2,
            what="without FSDP its context parallelism is that of its Megatron-LM plug-in, which this file does not "
            "set up",
            hint="plan again with `--cp 1`, or `--zero 3`",
        ),
        SHARED_STATES,
        Rule(
            applies=lambda run: scaled(run, "rowwise", "blockwise", "nvfp4"),
            what="its FP8 has one scale per tensor, delayed scaling or MXFP8, and it has no FP4",
            hint="plan again with `--policy fp8-fsdp`, `fp8-delayed` or `mxfp8`",
        ),
        Rule(
            applies=lambda run: run.precision in ("fp8", "mxfp8") and _kind(run) == "DEEPSPEED",
            what="its FP8 does not run with DeepSpeed, which ZeRO stage 1 and offloading on one GPU need here",
            hint="plan again with `--precision bf16`",
        ),
        Rule(
            applies=lambda run: FP16_UNDER_FSDP.applies(run) and not shards_4_bits(run),
            what=FP16_UNDER_FSDP.what,
            hint=FP16_UNDER_FSDP.hint,
        ),
        Rule(
            applies=lambda run: PAGED.applies(run) and not shards_4_bits(run),
            what=PAGED.what,
            hint=PAGED.hint,
        ),
        Rule(
            applies=lambda run: shards_4_bits(run) and run.layout.cp * run.layout.replicas > 1,
            what="FSDP1, which shards its 4-bit weights, runs without context parallelism and without replicas",
            hint="plan again with `--cp 1`",
        ),
        Rule(
            applies=lambda run: shards_4_bits(run) and run.offload == "activations",
            what="FSDP1, which shards its 4-bit weights, does not move activation checkpoints to the host",
            hint="plan again with `--offload none`",
        ),
        Rule(
            applies=lambda run: run.in_backward and _kind(run) == "DEEPSPEED",
            what="DeepSpeed, which has its ZeRO stage 1, does not update weights inside the backward pass",
            hint="plan again with `--zero 3`, or without `--in-backward`",
        ),
        Rule(
            applies=lambda run: run.offload == "activations" and (stage(run) < 2 or not run.recomputes),
            what="it moves activation checkpoints to the host only under FSDP",
            hint="plan again with `--zero 3 --act-ckpt full`, or `--offload none`",
        ),
    ),
    leaves_out=(
        YOURS,
        POWER_LIMIT,
        NO_FURTHER_TOKENS,
        Rule(
            applies=lambda run: True,
            what="micro-batch, steps, lengths (sizes of images) and optimizer: they are arguments of your script, "
            "which the file lists",
        ),
        Rule(
            applies=lambda run: run.optimizer not in TRANSFORMERS_OPTIMIZERS,
            what="the optimizer, which transformers.TrainingArguments lacks: your script makes it",
        ),
        FULL_SEQUENCES,
        PAIRS_NOT_PACKED,
        PADDED,
        CHANNELS_LAST,
        IN_BACKWARD,
        Rule(
            applies=lambda run: run.chunked_loss,
            what="the chunked loss: Liger's, from your script's arguments, which the file lists; SFTTrainer of TRL has "
            "its own",
        ),
        Rule(
            applies=lambda run: run.nodes > 1,
            what="address and rank of each node: `--machine_rank`, `--main_process_ip` and `--main_process_port`",
        ),
        ALL_CHECKPOINTED,
        Rule(
            applies=lambda run: run.recomputes and stage(run) < 2,
            what="activation checkpointing without FSDP: your script sets it (`gradient_checkpointing=True`)",
        ),
        ALL_OFFLOADED,
        Rule(
            applies=lambda run: trains_masters(run) and _kind(run) != "DEEPSPEED",
            what="the plan's policy keeps 16-bit weights beside FP32 masters; here FP32 weights are used through a "
            "16-bit copy, so plan with `--stack eager` and a policy like bf16-fsdp for its own memory and time",
        ),
        Rule(
            applies=is_pure,
            what="pure BF16: your script loads the model in that type (`dtype=torch.bfloat16`)",
        ),
        STRICT_FP32,
        TF32,
        Rule(
            applies=shards_4_bits,
            what="loading of the 4-bit weights: your script loads them into the host's memory, once for each process, "
            "and stores them in the type they are computed in, as the file lists (`device_map`, "
            "`bnb_4bit_quant_storage`), else every GPU holds all of them",
        ),
        Rule(
            applies=shards_4_bits,
            what="the type of the adapters: your script leaves them in that of the frozen weights, as the file lists "
            "(SFTTrainer of TRL does), else layers that are run again do not match; FSDP trains FP32 copies of them",
        ),
        Rule(
            applies=shards_4_bits,
            what="what FSDP wraps: Trainer of transformers sets it for adapters; a loop of your own sets "
            "`fsdp_auto_wrap_policy` of PEFT",
        ),
        Rule(
            applies=lambda run: run.adapts or run.needs_script,
            what="adapters, 4-bit weights, frozen layers, the loss: your script makes them (PEFT, bitsandbytes, TRL)",
        ),
    ),
    write=_write,
)  # fmt: skip
"""Accelerate."""

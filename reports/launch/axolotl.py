"""axolotl: the YAML file of `axolotl train`, following the schema of 0.19.0."""

from __future__ import annotations

from planner.hardware.catalogue import find_gpu
from planner.models.published_names import published_names
from planner.performance.shards import LOW_BIT_BYTES
from reports.launch.forms import to_yaml
from reports.launch.framework import Framework, Mapped, Rule, Settings
from reports.launch.planned_run import PlannedRun
from reports.launch.rules import (
    ALL_CHECKPOINTED,
    ALL_OFFLOADED,
    CHECKPOINTS_ONLY,
    DECODERS,
    FP16_UNDER_FSDP,
    MOMENTUM,
    NO_FURTHER_TOKENS,
    NOT_IN_BACKWARD,
    PAGED,
    PAIRS_NOT_PACKED,
    POWER_LIMIT,
    SHARED_STATES,
    STRICT_FP32,
    TRANSFORMERS_OPTIMIZERS,
    is_pure,
    narrow_gradients,
    scaled,
    stage,
    trains_masters,
)

OPTIMIZERS = {**TRANSFORMERS_OPTIMIZERS, "muon": "muon"}
"""Values of `optimizer` by optimizer of the plan: those of transformers, and axolotl's own."""
SHARDED_8BIT = "ao_adamw_8bit"
"""The 8-bit AdamW that FSDP2 can shard; axolotl refuses the one of bitsandbytes with FSDP2."""
MODULES = {
    "attention": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "mlp": ["gate_proj", "up_proj", "down_proj"],
    "qv": ["q_proj", "v_proj"],
}
"""Values of `lora_target_modules` by the question's words, as transformers names weights of Llama-like models."""


def _write(run: PlannedRun, about: tuple[str, ...]) -> str:
    return to_yaml(settings(run), about)


def settings(run: PlannedRun) -> Settings:
    """Return the settings of the file."""
    return {
        "base_model": published_names(run.model).hugging_face or f"./{run.model}",
        **({} if run.how.fine_tunes else {"reinit_weights": True}),
        **_data(run),
        **_adapter(run),
        "sequence_len": run.seq_len,
        "sample_packing": run.packed and not run.how.pairs,  # axolotl refuses packing with pairs
        "micro_batch_size": run.micro_examples,
        "gradient_accumulation_steps": run.layout.grad_accum,
        **({"num_epochs": run.epochs} if run.epochs else {"max_steps": run.steps}),
        "optimizer": _optimizer(run),
        **({"optim_args": MOMENTUM} if run.optimizer == "sgd-momentum" else {}),
        **_loss(run),
        "learning_rate": LEARNING_RATE[run.adapts],
        **_precision(run),
        "attn_implementation": "eager" if run.attention == "naive" else "flash_attention_2",
        "torch_compile": run.stack == "fsdp-compile" or run.precision == "fp8",  # FP8 casts are slow in eager PyTorch
        **_memory(run),
        **_sharding(run),
        "output_dir": "./outputs",
    }


LEARNING_RATE = {False: 2e-5, True: 2e-4}
"""Placeholder required by the schema, by whether adapters are trained; the values of axolotl's own examples."""


def _data(run: PlannedRun) -> dict[str, object]:
    if run.method == "pretrain":
        return {"pretraining_dataset": [{"path": "./data", "type": "pretrain"}]}
    if run.how.pairs:
        return {"rl": "dpo", "datasets": [{"path": "./data", "split": "train", "type": "chatml.intel"}]}
    return {"datasets": [{"path": "./data", "type": "alpaca"}]}


def _adapter(run: PlannedRun) -> dict[str, object]:
    if not run.adapts:
        return {}
    chosen: dict[str, object] = {
        "adapter": "qlora" if run.how.low_bits else "lora",
        "lora_r": run.lora_rank,
        "lora_alpha": 2 * run.lora_rank,
    }
    modules = MODULES.get(run.lora_targets or "")
    chosen |= {"lora_target_linear": True} if modules is None else {"lora_target_modules": modules}
    if run.how.decomposed:
        chosen["peft_use_dora"] = True
    if run.how.low_bits:
        chosen["load_in_4bit"] = True
        chosen["bnb_config_kwargs"] = {"bnb_4bit_use_double_quant": run.quant_double}
    return chosen


def _loss(run: PlannedRun) -> dict[str, object]:
    """Return settings that compute the loss on some tokens at a time: Liger's for pairs, axolotl's own otherwise."""
    if not run.chunked_loss:
        return {}
    return {"dpo_use_liger_kernel" if run.how.pairs else "chunked_cross_entropy": True}


def _optimizer(run: PlannedRun) -> str:
    return SHARDED_8BIT if stage(run) >= 2 and run.optimizer == "adamw-8bit" else OPTIMIZERS[run.optimizer]


def _precision(run: PlannedRun) -> dict[str, object]:
    kinds: dict[str, object] = {
        "bf16": run.precision in ("bf16", "fp8"),
        "fp16": run.precision == "fp16",
        "tf32": run.precision not in ("fp32", "fp16"),
    }
    if run.precision == "fp8":
        kinds["fp8"] = True
        kinds["fp8_config"] = {"recipe": run.policy.scaling}
        if stage(run) >= 2:
            kinds["fp8_enable_fsdp_float8_all_gather"] = run.policy.gather_bytes < 2
    return kinds


def _outgrows_one_gpu(run: PlannedRun) -> bool:
    """Return whether the 4-bit model does not fit on one GPU, to which it is loaded before FSDP shards it.

    axolotl 0.19.0 sets `device_map` to the process's own GPU (`_set_device_map_config`) and refuses
    `cpu_ram_efficient_loading` with FSDP2 and 4-bit weights.
    """
    if not (run.how.low_bits and stage(run) >= 2):
        return False
    ends = run.count("vocab") * run.count("hidden") * (1 if run.shape["tied_embeddings"] else 2)
    layers = run.shape["params_total"] - ends
    held_bytes = layers * LOW_BIT_BYTES[run.quant_double] + ends * run.policy.activation_bytes
    return bool(held_bytes > find_gpu(run.gpu).memory_bytes)


def _memory(run: PlannedRun) -> dict[str, object]:
    kept: dict[str, object] = {"gradient_checkpointing": run.recomputes}
    if run.offload == "activations":
        kept["activation_offloading"] = True
    return kept


def _sharding(run: PlannedRun) -> dict[str, object]:
    layout, zero = run.layout, stage(run)
    split: dict[str, object] = {}
    if layout.cp > 1:
        split["context_parallel_size"] = layout.cp
    if zero == 1 or (zero == 0 and run.offload == "optimizer"):
        split["deepspeed"] = _deepspeed(run)
    if zero < 2:
        return split
    if layout.replicas > 1:
        split["dp_replicate_size"] = layout.replicas
        split["dp_shard_size"] = layout.dp // layout.replicas
    split["fsdp_version"] = 2
    split["fsdp_config"] = {
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "reshard_after_forward": layout.zero == 3,
        "offload_params": run.offload == "optimizer",
        "state_dict_type": "SHARDED_STATE_DICT",
    }
    return split


def _deepspeed(run: PlannedRun) -> Settings:
    """Return an inline DeepSpeed configuration; axolotl fills in the values that are `auto`."""
    zero: dict[str, object] = {"stage": 1}
    if run.offload == "optimizer":
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    return {
        "zero_optimization": zero,
        "bf16": {"enabled": run.precision == "bf16"},
        "fp16": {"enabled": run.precision == "fp16"},
        "gradient_accumulation_steps": "auto",
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
    }


FRAMEWORK = Framework(
    name="axolotl",
    title="axolotl 0.19.0",
    source="https://github.com/axolotl-ai-cloud/axolotl/blob/v0.19.0/src/axolotl/utils/schemas/config.py",
    form="a YAML file for `axolotl train`",
    suffix=".yaml",
    start="axolotl train {file}",
    takes=(
        Mapped(what="model, by its name on the Hugging Face Hub", where=("base_model",)),
        Mapped(what="method", where=(
            "reinit_weights", "pretraining_dataset", "datasets", "rl", "adapter", "lora_r", "lora_alpha",
            "lora_target_linear", "lora_target_modules", "peft_use_dora", "load_in_4bit",
            "bnb_config_kwargs.bnb_4bit_use_double_quant",
        )),
        Mapped(what="sequence length, packing", where=("sequence_len", "sample_packing")),
        Mapped(what="micro-batch, accumulation", where=("micro_batch_size", "gradient_accumulation_steps")),
        Mapped(what="steps, or epochs", where=("max_steps", "num_epochs")),
        Mapped(what="optimizer", where=("optimizer", "optim_args")),
        Mapped(what="chunked loss", where=("chunked_cross_entropy", "dpo_use_liger_kernel")),
        Mapped(what="precision", where=(
            "bf16", "fp16", "tf32", "fp8", "fp8_config.recipe", "fp8_enable_fsdp_float8_all_gather",
        )),
        Mapped(what="attention, stack", where=("attn_implementation", "torch_compile")),
        Mapped(what="activation checkpointing", where=("gradient_checkpointing",)),
        Mapped(what="cp", where=("context_parallel_size",)),
        Mapped(what="dp, replicas, ZeRO stages 2 and 3", where=(
            "dp_replicate_size", "dp_shard_size", "fsdp_version", "fsdp_config.auto_wrap_policy",
            "fsdp_config.reshard_after_forward", "fsdp_config.state_dict_type",
        )),
        Mapped(what="ZeRO stage 1", where=(
            "deepspeed.zero_optimization.stage", "deepspeed.bf16.enabled", "deepspeed.fp16.enabled",
            "deepspeed.gradient_accumulation_steps", "deepspeed.train_batch_size",
            "deepspeed.train_micro_batch_size_per_gpu",
        )),
        Mapped(what="offload", where=(
            "activation_offloading", "fsdp_config.offload_params",
            "deepspeed.zero_optimization.offload_optimizer.device",
            "deepspeed.zero_optimization.offload_optimizer.pin_memory",
        )),
        Mapped(what="what the schema asks for and no plan has", where=("learning_rate", "output_dir")),
    ),
    refuses=(
        DECODERS,
        Rule(
            applies=lambda run: run.layout.pp > 1,
            what="it has no pipeline parallelism",
            hint="plan again with `--pp 1`",
        ),
        NOT_IN_BACKWARD,
        Rule(
            applies=lambda run: run.how.trains == "last-layers",
            what="it freezes layers by their names, which this file does not know",
            hint="plan again with `--method sft`",
        ),
        Rule(
            applies=lambda run: run.layout.tp > 1,
            what="its tensor parallelism is DeepSpeed's AutoTP, which this file does not set up",
            hint="plan again with `--tp 1`",
        ),
        Rule(
            applies=lambda run: run.layout.ep > 1,
            what="its expert parallelism is a plug-in, which this file does not set up",
            hint="plan again with `--ep 1`",
        ),
        Rule(
            applies=lambda run: not scaled(run, "none", "tensorwise", "rowwise"),
            what="its FP8 scales per tensor or per row; it has no other recipe, and no FP4",
            hint="plan again with `--policy fp8-fsdp` or `fp8-fsdp-rowwise`",
        ),
        Rule(
            applies=lambda run: run.precision == "fp8" and run.adapts,
            what="its FP8 is for the training of all weights",
            hint="plan again with `--precision bf16`",
        ),
        Rule(
            applies=lambda run: run.precision == "fp8" and stage(run) == 1,
            what="its FP8 does not run under DeepSpeed's ZeRO stage 1",
            hint="plan again with `--zero 3`, or `--precision bf16`",
        ),
        FP16_UNDER_FSDP,
        PAGED,
        Rule(
            applies=lambda run: run.how.pairs and run.how.low_bits and stage(run) >= 2,
            what="its FSDP2 does not hold 4-bit weights with pairs of answers",
            hint="plan again with `--zero 1`, or `--method dpo-lora`",
        ),
        Rule(
            applies=_outgrows_one_gpu,
            what="it loads all 4-bit weights on every GPU before its FSDP shares them out, and one GPU has no room for "
            "them",
            hint="plan again with a `--gpu` that has more memory",
        ),
        Rule(
            applies=lambda run: run.optimizer not in OPTIMIZERS,
            what="it has neither LAMB nor Sophia",
            hint="plan again with `--optimizer adamw`",
        ),
        Rule(
            applies=lambda run: run.optimizer == "muon" and stage(run) == 1,
            what="its Muon does not run under DeepSpeed's ZeRO stage 1",
            hint="plan again with `--zero 3`",
        ),
        Rule(
            applies=lambda run: run.layout.cp > 1 and (run.attention == "naive" or run.micro_examples > 1),
            what="its context parallelism needs flash attention and a micro-batch of 1",
            hint="plan again with `--micro-batch 1`, or `--cp 1`",
        ),
        SHARED_STATES,
        CHECKPOINTS_ONLY,
    ),
    leaves_out=(
        Rule(
            applies=lambda run: True,
            what="learning rate, data sets and their type, output folder: no plan has them, so edit `learning_rate`, "
            "the data's `path` and `type`, and `output_dir`, which hold placeholders",
        ),
        Rule(
            applies=lambda run: published_names(run.model).hugging_face is None,
            what="the repository of the model, which mpplan does not know: `base_model` names a folder beside the file",
        ),
        Rule(
            applies=lambda run: not run.how.fine_tunes,
            what="the trained weights of `base_model`: the plan trains from scratch, so `reinit_weights` draws them "
            "anew; leave that line out to go on from its checkpoint",
        ),
        NO_FURTHER_TOKENS,
        Rule(
            applies=lambda run: run.gpus > 1,
            what="GPUs and nodes: axolotl takes those that torchrun or accelerate start it on",
        ),
        POWER_LIMIT,
        Rule(
            applies=lambda run: run.fused_head and not run.how.pairs,
            what="the loss fused with the output layer: the chunked one is set; Liger's plugin has it "
            "(`liger_fused_linear_cross_entropy`)",
        ),
        Rule(
            applies=lambda run: run.adapts,
            what="the scale of adapters: `lora_alpha` is twice the rank, a usual choice",
        ),
        Rule(
            applies=lambda run: run.adapts and run.lora_targets in MODULES,
            what="the names of the weights with adapters: those of Llama and its relatives are written",
        ),
        Rule(
            applies=lambda run: run.optimizer == "sgd-momentum",
            what="the momentum of SGD: `optim_args` has 0.9, a usual choice",
        ),
        Rule(
            applies=lambda run: run.how.low_bits and stage(run) >= 2,
            what="loading of the 4-bit weights: axolotl stores them in BF16, which its FSDP2 can shard, and every GPU "
            "holds all of them until it does, which may be more than the plan counts",
        ),
        PAIRS_NOT_PACKED,
        ALL_CHECKPOINTED,
        ALL_OFFLOADED,
        Rule(
            applies=lambda run: (trains_masters(run) and stage(run) != 1) or is_pure(run) or narrow_gradients(run),
            what="which tensors are kept and reduced in 16 bits: it follows the type that transformers loads, so plan "
            "with `--stack eager` and a policy like bf16-autocast for its own memory and time",
        ),
        STRICT_FP32,
        Rule(
            applies=lambda run: run.stack in ("typical", "tuned", "classic"),
            what="the kernels of the plan's stack: `--stack eager` or `fsdp-compile` plans with those of transformers",
        ),
    ),
    write=_write,
)  # fmt: skip
"""axolotl."""

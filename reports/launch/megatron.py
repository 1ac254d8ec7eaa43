"""Megatron-LM: a shell script with the arguments of `pretrain_gpt.py`, as core_v0.19.0 parses them."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from shlex import quote

from planner.hardware.catalogue import find_gpu
from reports.launch.forms import comment
from reports.launch.framework import Framework, Mapped, Rule
from reports.launch.megatron_model import MODEL_TAKES, Argument, model_arguments
from reports.launch.planned_run import PlannedRun
from reports.launch.rules import (
    DECODERS,
    ENVIRONMENT,
    FILLED,
    NO_ADAPTERS,
    NO_HYBRIDS,
    NO_PAIRS,
    NOT_CHUNKED,
    NOT_IN_BACKWARD,
    POWER_LIMIT,
    UNEVEN_NODES,
    YOURS,
    is_pure,
    narrow_gradients,
    scaled,
    shards_fp32,
    stage,
)

OPTIMIZERS = {"adamw": "adam", "sgd-momentum": "sgd", "muon": "muon", "lion": "lion"}
"""Values of `--optimizer`; Megatron's adam decouples weight decay."""
FP8_RECIPES = {"tensorwise": "tensorwise", "delayed": "delayed", "blockwise": "blockwise", "mx": "mxfp8"}
"""Values of `--fp8-recipe` by scaling of the policy."""
SHARDING = {2: "optim_grads", 3: "optim_grads_params"}
"""Values of `--data-parallel-sharding-strategy` of Megatron-FSDP by ZeRO stage."""
BF16_BYTES = 2
OFFLOADED = ("attn_norm", "core_attn", "attn_proj", "mlp_norm")
"""Values of `--offload-modules`: the modules that hold a dense layer's activations between its matrix products."""

_SCRIPT = """\
#!/usr/bin/env bash
{about}
set -euo pipefail
{environment}
MEGATRON_ARGS=(
{arguments}
)

# In the folder of Megatron-LM, on every node; what no plan has goes behind the file's name:
#   bash FILE.sh --lr … --data-path … --tokenizer-type … --save …
torchrun --nnodes {nodes} --nproc-per-node {per_node} \\
  --node-rank {rank} --master-addr {address} --master-port "${{MASTER_PORT:-29500}}" \\
  pretrain_gpt.py "${{MEGATRON_ARGS[@]}}" "$@"
"""


def _write(run: PlannedRun, about: tuple[str, ...]) -> str:
    many = run.nodes > 1
    return _SCRIPT.format(
        about=comment(about),
        environment="\n".join(_environment(run)),
        arguments="\n".join(f"  {' '.join([flag, *map(quote, values)])}" for flag, *values in arguments(run)),
        nodes=run.nodes,
        per_node=run.gpus_per_node,
        rank=f'"${{NODE_RANK:?0 to {run.nodes - 1}}}"' if many else "0",
        address='"${MASTER_ADDR:?address of node 0}"' if many else '"${MASTER_ADDR:-localhost}"',
    )


def _environment(run: PlannedRun) -> Iterator[str]:
    # Megatron wants one connection if tensor or context parallel messages overlap, and more with FSDP.
    is_single = run.layout.tp * run.layout.cp > 1 and stage(run) < 2
    yield "export CUDA_DEVICE_MAX_CONNECTIONS=1" if is_single else "unset CUDA_DEVICE_MAX_CONNECTIONS"
    if run.precision in ENVIRONMENT:
        yield "export {}={}".format(*ENVIRONMENT[run.precision])
    if run.offload == "activations":
        yield "export NVTE_CPU_OFFLOAD_V1=1"


def arguments(run: PlannedRun) -> Iterator[Argument]:
    """Yield the arguments of `pretrain_gpt.py`, each a flag with its values."""
    yield from model_arguments(run)
    yield from _layout(run)
    yield from _sharding(run)
    yield from _batch(run)
    yield from _precision(run)
    yield from _memory(run)
    yield "--optimizer", OPTIMIZERS[run.optimizer]
    if run.how.fine_tunes:
        yield ("--finetune",)


def _layout(run: PlannedRun) -> Iterator[Argument]:
    layout = run.layout
    yield "--tensor-model-parallel-size", str(layout.tp)
    if layout.tp > 1:
        yield ("--sequence-parallel",)
    yield "--pipeline-model-parallel-size", str(layout.pp)
    if layout.pp > 1 and (run.mtp_layers or run.count("layers") % (layout.pp * layout.vp)):
        yield "--pipeline-model-parallel-layout", stages(run.count("layers"), layout.pp * layout.vp, run.mtp_layers)
    elif layout.vp > 1:
        yield "--num-virtual-stages-per-pipeline-rank", str(layout.vp)
    yield "--context-parallel-size", str(layout.cp)
    if run.is_moe:
        yield "--expert-model-parallel-size", str(layout.ep)
        yield "--expert-tensor-parallel-size", str(layout.expert_tp)


def stages(layers: int, chunks: int, mtp_layers: int = 0) -> str:
    """Return the value of `--pipeline-model-parallel-layout`: `E` embeds, `t` is a layer, `L` the loss, `|` a boundary.

    If the layers do not divide evenly, the first stages hold one layer more than the last. Modules of multi-token
    prediction, `m`, are on the last stage, which gets the layers that the others leave.
    """
    each, more = divmod(layers, chunks)
    counts = [each + (place < more) for place in range(chunks)]
    if mtp_layers:
        most, before = -(-(layers + mtp_layers) // chunks), chunks - 1
        last = max(layers - most * before, 0)
        each, more = divmod(layers - last, before)
        counts = [*(each + (place < more) for place in range(before)), last]
    further = f"m*{mtp_layers}" if mtp_layers else ""
    return "E" + "|".join(f"t*{count}" if count else "" for count in counts) + further + "L"


def _sharding(run: PlannedRun) -> Iterator[Argument]:
    zero = stage(run)
    if zero == 0:
        return
    yield ("--use-distributed-optimizer",)
    if run.layout.replicas > 1:
        yield "--num-distributed-optimizer-instances", str(run.layout.replicas)
    if zero == 1:
        if run.optimizer != "muon" and run.stack in ("typical", "tuned"):
            yield ("--overlap-grad-reduce",)
            yield ("--overlap-param-gather",)
        return
    yield ("--use-megatron-fsdp",)
    yield "--data-parallel-sharding-strategy", SHARDING[zero]
    yield "--ckpt-format", "fsdp_dtensor"
    yield ("--no-gradient-accumulation-fusion",)
    if not _builds_whole(run):
        yield ("--init-model-with-meta-device",)


def _builds_whole(run: PlannedRun) -> bool:
    """Return whether each GPU builds its stage of the model before Megatron-FSDP shards it.

    On a meta device, the stage would be built in shards by `reset_parameters` of each module. Learned positions would
    then be those of `torch.nn.Embedding`, with 50 times Megatron's standard deviation, and the last stage's copy of the
    embeddings would stay 0 (core_v0.19.0, `setup_embeddings_and_output_layer`). Neither matters if a checkpoint is
    loaded.
    """
    copies = run.layout.pp > 1 and bool(run.shape.get("tied_embeddings") or run.mtp_layers)
    return stage(run) >= 2 and not run.how.fine_tunes and (copies or bool(run.shape.get("learned_positions")))


def _outgrows_one_gpu(run: PlannedRun) -> bool:
    """Return whether the 16-bit weights of a stage do not fit on a GPU that builds them unsharded."""
    layout, board = run.layout, find_gpu(run.gpu)
    split = layout.tp * layout.pp * (layout.ep if run.is_moe else 1)
    return _builds_whole(run) and run.shape["params_total"] / split * BF16_BYTES > board.memory_bytes


def _batch(run: PlannedRun) -> Iterator[Argument]:
    yield "--micro-batch-size", str(run.layout.micro_batch)
    yield "--global-batch-size", str(run.layout.global_batch)
    yield "--seq-length", str(run.seq_len)
    yield "--train-iters", str(run.steps)
    yield "--lr-decay-iters", str(run.steps)


def _precision(run: PlannedRun) -> Iterator[Argument]:
    if run.precision in ENVIRONMENT:
        return
    if run.precision == "fp16":
        yield ("--fp16",)
        yield "--initial-loss-scale", "65536"  # as PyTorch's GradScaler; without `--loss-scale` it is dynamic
        return
    yield ("--bf16",)
    if narrow_gradients(run):
        yield ("--grad-reduce-in-bf16",)
    if scaled(run, "nvfp4"):
        yield "--fp4-format", "e2m1"
        yield "--fp4-recipe", "nvfp4"
    elif run.policy.scaling in FP8_RECIPES:
        yield "--fp8-format", "hybrid" if scaled(run, "tensorwise", "delayed") else "e4m3"
        yield "--fp8-recipe", FP8_RECIPES[run.policy.scaling]


def _memory(run: PlannedRun) -> Iterator[Argument]:
    mode = run.layout.act_ckpt
    if mode == "selective":
        yield "--recompute-granularity", "selective"
        yield "--recompute-modules", *(("layernorm", "moe_act") if run.is_moe else ("core_attn",))
    elif mode != "none":
        yield "--recompute-granularity", "full"
        yield "--recompute-method", "uniform" if mode == "full" else "block"
        yield "--recompute-num-layers", str(1 if mode == "full" else checkpointed(run))
    if run.offload == "optimizer":
        yield ("--optimizer-cpu-offload",)
        yield "--optimizer-offload-fraction", "1.0"
        yield ("--use-precision-aware-optimizer",)
    elif run.offload == "activations":
        yield ("--fine-grained-activation-offloading",)
        yield "--offload-modules", *OFFLOADED


def checkpointed(run: PlannedRun) -> int:
    """Return how many layers of a stage (a virtual stage, if there are any) `every-N` checkpoints as a whole."""
    interval = int(run.layout.act_ckpt.removeprefix("every-"))
    return max(1, ceil(run.count("layers") / (run.layout.pp * run.layout.vp) / interval))


TAKES = (
    *MODEL_TAKES,
    Mapped(what="tp, with sequence parallelism", where=("--tensor-model-parallel-size", "--sequence-parallel")),
    Mapped(what="pp, vp", where=(
        "--pipeline-model-parallel-size", "--num-virtual-stages-per-pipeline-rank", "--pipeline-model-parallel-layout",
    )),
    Mapped(what="cp", where=("--context-parallel-size",)),
    Mapped(what="ep", where=("--expert-model-parallel-size", "--expert-tensor-parallel-size")),
    Mapped(what="ZeRO stage 1, replicas", where=(
        "--use-distributed-optimizer", "--num-distributed-optimizer-instances", "--overlap-grad-reduce",
        "--overlap-param-gather",
    )),
    Mapped(what="ZeRO stages 2 and 3", where=(
        "--use-megatron-fsdp", "--data-parallel-sharding-strategy", "--ckpt-format",
        "--no-gradient-accumulation-fusion", "--init-model-with-meta-device",
    )),
    Mapped(what="micro-batch, global batch (and so accumulation)", where=("--micro-batch-size", "--global-batch-size")),
    Mapped(what="sequence length, steps", where=("--seq-length", "--train-iters", "--lr-decay-iters")),
    Mapped(what="precision", where=(
        "--bf16", "--fp16", "--initial-loss-scale", "--grad-reduce-in-bf16", "--fp8-format", "--fp8-recipe",
        "--fp4-format", "--fp4-recipe",
    )),
    Mapped(what="activation checkpointing", where=(
        "--recompute-granularity", "--recompute-modules", "--recompute-method", "--recompute-num-layers",
    )),
    Mapped(what="offload", where=(
        "--optimizer-cpu-offload", "--optimizer-offload-fraction", "--use-precision-aware-optimizer",
        "--fine-grained-activation-offloading", "--offload-modules",
    )),
    Mapped(what="optimizer", where=("--optimizer",)),
    Mapped(what="fine-tuning from a checkpoint", where=("--finetune",)),
)  # fmt: skip

FRAMEWORK = Framework(
    name="megatron",
    title="Megatron-LM core_v0.19.0",
    source="https://github.com/NVIDIA/Megatron-LM/blob/core_v0.19.0/megatron/training/arguments.py",
    form="a shell script",
    suffix=".sh",
    start="bash {file}",
    takes=TAKES,
    refuses=(
        UNEVEN_NODES,
        DECODERS,
        NO_HYBRIDS,
        NO_PAIRS,
        NO_ADAPTERS,
        FILLED,
        NOT_IN_BACKWARD,
        NOT_CHUNKED,
        Rule(
            applies=lambda run: run.optimizer not in OPTIMIZERS,
            what="of the optimizers that mpplan plans, it has only AdamW, SGD with momentum, Muon and Lion",
            hint="plan again with `--optimizer adamw`",
        ),
        Rule(
            applies=lambda run: run.is_moe and bool(run.shape.get("biases")) and run.layout.expert_tp > 1,
            what="it does not split experts that have biases by tensor parallelism",
            hint="plan again with `--tp 1`",
        ),
        Rule(
            applies=is_pure,
            what="it keeps FP32 master weights, but the plan is pure BF16",
            hint="plan again with `--policy bf16`",
        ),
        Rule(
            applies=lambda run: scaled(run, "rowwise"),
            what="it has no FP8 recipe with a scale per row",
            hint="plan again with `--policy fp8`, `fp8-delayed` or `fp8-blockwise`",
        ),
        Rule(
            applies=lambda run: run.optimizer in ("muon", "lion") and stage(run) >= 2,
            what="its Muon and Lion do not run under ZeRO stages 2 and 3",
            hint="plan again with `--zero 1`",
        ),
        Rule(
            applies=_outgrows_one_gpu,
            what="if positions are learned, or two pipeline stages hold the embedding, it builds a whole stage on each "
            "GPU before sharding it, and one GPU has no room for that",
            hint="plan again with `--zero 1 --tp 8`",
        ),
        Rule(
            applies=lambda run: run.offload == "optimizer" and (run.optimizer != "adamw" or stage(run) != 1),
            what="optimizer states go to the host only with Adam and ZeRO stage 1",
            hint="plan again with `--offload none`",
        ),
        Rule(
            applies=lambda run: run.offload == "activations" and run.recomputes,
            what="this file cannot both move activations to the host and recompute them",
            hint="plan again with `--act-ckpt none`, or `--offload none`",
        ),
    ),
    leaves_out=(
        YOURS,
        POWER_LIMIT,
        Rule(
            applies=lambda run: True,
            what="norms, activation and rotary base: a plan does not contain them; for a model without learned "
            "positions, the file assumes RMSNorm, SwiGLU and rotary positions, so compare with the model's own "
            "configuration",
        ),
        Rule(
            applies=lambda run: run.is_moe,
            what="how experts are chosen and balanced: a plan does not contain a model's own scores, expert bias and "
            "scaling factor; the file uses softmax scores if tokens have several experts, sigmoid scores (as in Llama "
            "4) if they have one, and an auxiliary loss of weight 1e-2, so compare with the model's own configuration "
            "(`--moe-router-score-function`, `--moe-router-enable-expert-bias`, `--moe-router-topk-scaling-factor`, "
            "`--moe-aux-loss-coeff`)",
        ),
        Rule(
            applies=lambda run: bool(run.shape.get("sliding_window")),
            what="a sliding window: its pattern over the layers is the model's own (`--window-size`)",
        ),
        Rule(
            applies=shards_fp32,
            what="the plan's policy uses FP32 weights through a 16-bit copy; Megatron keeps 16-bit weights beside FP32 "
            "masters, which is some 2 bytes per parameter more",
        ),
        Rule(
            applies=_builds_whole,
            what="sharding from the start (`--init-model-with-meta-device`), which would initialise learned positions, "
            "or embeddings that two pipeline stages hold, with other values than Megatron's: instead, each GPU builds "
            "its whole stage before sharding it, which may take more memory than the plan counts",
        ),
        Rule(
            applies=lambda run: run.offload == "activations",
            what="activations inside the matrix products: only those of norms and attention go to the host",
        ),
    ),
    write=_write,
)
"""Megatron-LM."""

"""From what the user typed to a `Question`: reads every value, fills the design's defaults, notes each source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from planner.errors import InputFileError, UsageError
from planner.hardware.catalogue import find_gpu
from planner.hardware.cluster import DEFAULT_NIC_BYTES_PER_S, Cluster, make_cluster
from planner.hardware.gpu import Gpu
from planner.hardware.network import parse_network_bytes_per_s
from planner.models.shape import ModelShape
from planner.parallelism.layout import ACT_CKPT
from planner.parallelism.search import FixedLayout
from planner.question.asked import Ask, Reader
from planner.question.question import Question
from planner.question.resolve_costs import read_money
from planner.records.home import CPU_LOCAL
from planner.rows import compact, near_names
from planner.training.optimizers import find_optimizer
from planner.training.policies import default_policy, find_policy
from planner.training.precision import EXTRA_PRECISIONS, PRECISIONS, PrecisionPolicy
from planner.training.recipe import METHODS, OFFLOADS, STACKS
from planner.units import GIGA, MEGA, parse_count, parse_duration_s

DEFAULT_GPU = "h100-sxm5-80gb"
DEFAULT_DEADLINE = "30d"
TOKENS_PER_PARAM = 20.0
"""Chinchilla's rule (Hoffmann et al. 2022, arXiv 2203.15556)."""
DEFAULT_SEQ_LEN = 4096
LAYOUT_FLAGS = ("tp", "pp", "vp", "cp", "ep", "zero", "micro_batch")


def _model(read: Reader) -> ModelShape:
    params, name = read.text("params"), read.text("model")
    if (params is None) == (name is None):
        what = "both --params and --model were given" if params else "no model was given"
        raise UsageError(what, hint="say one: `--params 70B`, `--model llama-3.1-70b` or `--model path/to/config.json`")
    if params is not None:
        from planner.models.from_params import shape_from_params  # only the kind of model asked for is loaded

        shape = shape_from_params(parse_count(params, "--params"))
        read.note("params", parse_count(params, "--params"), note=f"shape derived: {describe(shape)}")
        return shape
    assert name is not None
    path = Path(name)
    if path.suffix == ".json" or path.is_file():
        if not path.is_file():
            raise UsageError(f"no such file: `{name}`", hint="pass a Hugging Face config.json or a catalogue name")
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot read `{name}`: {error.strerror}", hint="check its permissions") from error
        except UnicodeDecodeError as error:
            raise InputFileError(f"{name}:1: expected JSON in UTF-8", hint="pass a Hugging Face config.json") from error
        from planner.models.huggingface import shape_from_config

        shape = shape_from_config(text, name)
    else:
        from planner.models.catalogue import find_model

        shape = find_model(name)
    read.note("model", shape.name, note=describe(shape))
    return shape


def describe(shape: ModelShape) -> str:
    """A shape in one line."""
    ffn = f"FFN {shape.ffn_hidden}"
    if shape.experts:
        ffn = f"{shape.experts} experts of {shape.expert_ffn}, top {shape.top_k}"
    size = shape.params_total
    unit, letter = (1e9, "B") if size >= 1e9 else (1e6, "M")
    return (
        f"{size / unit:.3g}{letter} parameters, {shape.layers} layers, hidden {shape.hidden}, "
        f"{shape.heads} heads ({shape.kv_heads} kv), {ffn}, vocabulary {shape.vocab}"
    )


def default_batch_tokens(params: float) -> float:
    """4M tokens from 30B parameters, 1M from 3B, 0.5M below (design, section 3)."""
    return 2.0**22 if params >= 30e9 else 2.0**20 if params >= 3e9 else 2.0**19


def _global_batch(read: Reader, model: ModelShape, seq_len: int) -> int:
    given = read.whole("global_batch")
    if given is not None:
        return given
    published = model.global_batch_tokens
    tokens = published or default_batch_tokens(model.params_total)
    sequences = max(1, round(tokens / seq_len))
    step = 64 if sequences >= 512 else 8 if sequences >= 64 else 1
    sequences = max(1, round(sequences / step) * step)
    note = f"{sequences * seq_len / MEGA:.3g}M tokens per step; "
    note += "the model's published batch" if published else "by model size"
    read.note("global_batch", sequences, "catalogue" if published else "default", note)
    return sequences


def _policies(read: Reader) -> tuple[PrecisionPolicy, tuple[PrecisionPolicy, ...]]:
    policy_name, precision = read.text("policy"), read.text("precision")
    known = (*PRECISIONS, *EXTRA_PRECISIONS)
    if precision is not None and precision.lower() not in known:
        near = near_names(precision.lower(), known)
        raise UsageError(
            f"--precision: unknown `{precision}`",
            hint=f"did you mean `{near[0]}`? known: {', '.join(known)}" if near else f"known: {', '.join(known)}",
        )
    asked = find_policy(policy_name) if policy_name else default_policy((precision or "bf16").lower())
    if policy_name and precision and asked.precision != precision.lower():
        raise UsageError(
            f"--policy {policy_name} belongs to {asked.precision}, not to --precision {precision}",
            hint=f"leave out --precision, or ask for {asked.precision}",
        )
    read.note("precision", asked.precision, None if precision else ("derived" if policy_name else "default"))
    read.note("policy", asked.id, None if policy_name else "default", asked.evidence.what)
    names = [*PRECISIONS, *([asked.precision] if asked.precision in EXTRA_PRECISIONS else [])]
    return asked, tuple(asked if name == asked.precision else default_policy(name) for name in names)


def _gpu(name: str, local: Gpu | None) -> Gpu:
    """A row of the catalogue, or the device of this machine's own record (`cpu-local`)."""
    if compact(name) != compact(CPU_LOCAL):
        return find_gpu(name)
    if local is None:
        raise UsageError(
            f"--gpu: there is no trustworthy record of {CPU_LOCAL}",
            hint="measure this machine: `mpplan probe --device cpu`; `mpplan records list` shows what is there",
        )
    return local


def _clusters(read: Reader, own: OwnDevices) -> tuple[Cluster, ...]:
    text = read.text("gpu") or own.gpu or DEFAULT_GPU
    gpus = [_gpu(name, own.local) for name in text.split(",") if name.strip()]
    if not gpus:
        raise UsageError("--gpu: no name given", hint="`mpplan gpus` lists the catalogue")
    per_node = read.whole("gpus_per_node")
    limit = read.real("power_limit")
    network = read.text("network")
    clusters = []
    for row in {one.id: one for one in gpus}.values():
        nic = parse_network_bytes_per_s(network, "--network", per_node or row.gpus_per_node) if network else None
        clusters.append(make_cluster(row, gpus_per_node=per_node, nic_bytes_per_s=nic, power_limit_w=limit))
    recorded = own.gpu is not None and read.text("gpu") is None
    named = [c.gpu.id for c in clusters] if len(clusters) > 1 else clusters[0].gpu.id
    read.note("gpu", named, "record" if recorded else None, "the GPU of this machine's record" if recorded else None)
    if per_node is None:
        read.note("gpus_per_node", clusters[0].gpus_per_node, "catalogue")
    rate = clusters[0].nic_bytes_per_s * 8 / GIGA
    assumed = clusters[0].nic_assumed
    default = f"{DEFAULT_NIC_BYTES_PER_S * 8 / GIGA:g} Gbit/s per GPU is assumed: the catalogue has none"
    note = default if assumed else None
    read.note("network", f"{rate:g} Gbit/s per GPU", None if network else ("default" if assumed else "catalogue"), note)
    return tuple(clusters)


def _targets(read: Reader) -> tuple[int | None, float | None, float | None]:
    gpus = read.whole("gpus")
    deadline, budget = read.text("deadline"), read.text("budget")
    if gpus is None and deadline is None and budget is None:
        read.note("deadline", DEFAULT_DEADLINE, note="none of --gpus, --deadline and --budget was given")
        return None, parse_duration_s(DEFAULT_DEADLINE, "--deadline"), None
    deadline_s = parse_duration_s(deadline, "--deadline") if deadline else None
    budget_usd = parse_count(budget.lstrip("$"), "--budget") if budget else None
    if deadline:
        read.note("deadline", deadline)
    if budget:
        read.note("budget", budget_usd)
    return gpus, deadline_s, budget_usd


def _fixed(read: Reader) -> FixedLayout:
    values = {name: read.whole(name, low=0 if name == "zero" else 1) for name in LAYOUT_FLAGS}
    if values["zero"] is not None and values["zero"] > 3:
        raise UsageError(f"--zero: {values['zero']} is not a stage", hint="0, 1, 2 or 3")
    ckpt = read.text("act_ckpt")
    if ckpt is not None:
        ckpt = read.choice("act_ckpt", ACT_CKPT, "none")
    return FixedLayout(act_ckpt=ckpt, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnDevices:
    """What the records of this machine offer as a GPU."""

    gpu: str | None = None
    """Catalogue id of the GPU with the newest trustworthy record: the default."""
    local: Gpu | None = None
    """The CPU as a row, from its record: `--gpu cpu-local`."""


NO_DEVICES = OwnDevices()


def resolve(ask: Ask, own: OwnDevices = NO_DEVICES) -> Question:
    """Read and complete a question.

    Args:
        ask: the question as typed.
        own: what this machine's records offer.

    Raises:
        UsageError: a value cannot be read, a name is unknown, or two inputs contradict each other.
        InputFileError: the model's config.json is invalid.
    """
    read = Reader(ask)
    model = _model(read)
    method = read.choice("method", METHODS, "pretrain")
    seq_len = read.whole("seq_len")
    if seq_len is None:
        seq_len = model.context if read.text("model") else DEFAULT_SEQ_LEN
        read.note("seq_len", seq_len, "catalogue" if read.text("model") else "default")
    tokens_text = read.text("tokens")
    if tokens_text is None:
        tokens = TOKENS_PER_PARAM * model.params_total
        read.note("tokens", tokens, note=f"{TOKENS_PER_PARAM:g} per parameter (Hoffmann et al. 2022)")
    else:
        tokens = parse_count(tokens_text, "--tokens")
        read.note("tokens", tokens)
    batch = _global_batch(read, model, seq_len)
    asked, policies = _policies(read)
    optimizer = find_optimizer(read.text("optimizer") or "adamw")
    read.note("optimizer", optimizer.id)
    stack = read.choice("stack", STACKS, "tuned", {"fsdp": "fsdp-compile", "megatron": "tuned"})
    attention = None
    if read.text("attention") is not None:
        attention = read.choice("attention", ("flash", "naive"), "flash", {"fused": "flash"})
    clusters = _clusters(read, own)
    gpus, deadline_s, budget_usd = _targets(read)
    offload = read.choice("offload", OFFLOADS, "none")
    fixed = _fixed(read)
    money = read_money(read)
    seed = read.whole("seed", low=0)
    if seed is None:
        seed = 0
        read.note("seed", seed)
    return Question(
        model=model, method=method, tokens=tokens, seq_len=seq_len, global_batch=batch, asked=asked, policies=policies,
        optimizer=optimizer, stack=stack, attention=attention, offload=offload, clusters=clusters, gpus=gpus,
        deadline_s=deadline_s, budget_usd=budget_usd, fixed=fixed, money=money, seed=seed, inputs=read.inputs,
    )  # fmt: skip

"""From what the user typed to a `Question`: reads every value, fills the design's defaults, notes each source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from planner.errors import InputFileError, Message, UsageError
from planner.hardware.catalogue import find_gpu
from planner.hardware.cluster import DEFAULT_NIC_BYTES_PER_S, Cluster, make_cluster
from planner.hardware.gpu import Gpu
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
from planner.units import GIGA, parse_count, parse_duration_s

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
        note = Message.of("note.derived_shape", shape=describe(shape))
        read.note("params", parse_count(params, "--params"), note=note)
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


def describe(shape: ModelShape) -> Message:
    """A shape in one line."""
    ffn = Message.of("note.ffn", hidden=shape.ffn_hidden)
    if shape.experts:
        ffn = Message.of("note.experts", experts=shape.experts, hidden=shape.expert_ffn, top_k=shape.top_k)
    return Message.of(
        "note.shape",
        params=shape.params_total,
        layers=shape.layers,
        hidden=shape.hidden,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        ffn=ffn,
        vocab=shape.vocab,
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
    note = Message.of("note.published_batch" if published else "note.batch_by_size", tokens=sequences * seq_len)
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
    note = Message.of("note.policy", what=asked.evidence.what)
    read.note("policy", asked.id, None if policy_name else "default", note)
    names = [*PRECISIONS, *([asked.precision] if asked.precision in EXTRA_PRECISIONS else [])]
    return asked, tuple(asked if name == asked.precision else default_policy(name) for name in names)


NETWORKS_GBIT = {
    "ib-edr": 100.0,
    "ib-hdr": 200.0,
    "ib-ndr": 400.0,
    "ib-xdr": 800.0,
    "roce-100": 100.0,
    "roce-400": 400.0,
}
"""Per GPU and direction, Gbit/s: one port of the named generation per GPU (InfiniBand Trade Association roadmap)."""

_NETWORK = re.compile(
    r"(?:(?P<links>\d+)\s*x\s*)?(?P<rate>\d+(?:\.\d+)?)\s*(?P<unit>Gb|Gbit|Gbps|GB)(?:it)?(?:/s|ps)?"
    r"\s*(?P<node>(?:/|per )\s*node)?"
)


def parse_network_bytes_per_s(text: str, gpus_per_node: int) -> float:
    """Network rate per GPU and direction from `400Gb/s`, `50GB/s`, `8x400Gb/s`, `3200Gb/s per node`, `ib-ndr`.

    `NxRATE` and `per node` are totals of a node and are divided by its GPUs.

    Raises:
        UsageError: not such a text.
    """
    if text.lower() in NETWORKS_GBIT:
        return NETWORKS_GBIT[text.lower()] * GIGA / 8
    match = _NETWORK.fullmatch(text.strip())
    if match is None or float(match["rate"]) <= 0:
        raise UsageError(
            f"--network: `{text}` is not a network rate",
            hint="write it like `400Gb/s` (per GPU), `8x400Gb/s` (per node), `50GB/s`, or one of "
            + ", ".join(NETWORKS_GBIT),
        )
    rate = float(match["rate"]) * (GIGA if match["unit"] == "GB" else GIGA / 8)
    per_node = match["links"] or match["node"]
    return rate * int(match["links"] or 1) / (gpus_per_node if per_node else 1)


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
        nic = parse_network_bytes_per_s(network, per_node or row.gpus_per_node) if network else None
        clusters.append(make_cluster(row, gpus_per_node=per_node, nic_bytes_per_s=nic, power_limit_w=limit))
    recorded = own.gpu is not None and read.text("gpu") is None
    named = [c.gpu.id for c in clusters] if len(clusters) > 1 else clusters[0].gpu.id
    read.note("gpu", named, "record" if recorded else None, Message.of("note.gpu_of_record") if recorded else None)
    if per_node is None:
        read.note("gpus_per_node", clusters[0].gpus_per_node, "catalogue")
    rate = clusters[0].nic_bytes_per_s * 8 / GIGA
    assumed = clusters[0].nic_assumed
    note = Message.of("note.network_assumed", gbit_per_s=DEFAULT_NIC_BYTES_PER_S * 8 / GIGA) if assumed else None
    value = Message.of("text.network_rate", gbit_per_s=rate)
    read.note("network", value, None if network else ("default" if assumed else "catalogue"), note)
    return tuple(clusters)


def _targets(read: Reader) -> tuple[int | None, float | None, float | None]:
    gpus = read.whole("gpus")
    deadline, budget = read.text("deadline"), read.text("budget")
    if gpus is None and deadline is None and budget is None:
        read.note("deadline", DEFAULT_DEADLINE, note=Message.of("note.no_target"))
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
        read.note("tokens", tokens, note=Message.of("note.tokens_per_param", tokens=TOKENS_PER_PARAM))
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

"""The ladder of evidence, walked for each term: the rates of one GPU, stack and precision policy.

Measured here, shipped, published, transferred, datasheet times a typical efficiency: the best at hand wins, and each
step down widens the range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

import numpy as np

from planner.evidence import Evidence, EvidenceKind
from planner.hardware.cluster import Cluster
from planner.hardware.gpu import Gpu
from planner.rates.parameters import Parameter, load_parameters, parameter
from planner.rates.terms import Rates, RateSet, Term
from planner.training.recipe import Recipe
from planner.units import GIB, TERA

_LABELS = {
    "linear_flop_per_s": "rate of the matrix products",
    "attention_flop_per_s": "rate of the attention kernel",
    "memory_bytes_per_s": "achieved memory bandwidth",
    "nic_bytes_per_s": "network rate between nodes",
    "nvlink_bytes_per_s": "rate inside the node",
    "model_error": "what the equations leave out",
    "precision_error": "what the equations leave out of one precision against another",
    "fusion": "fusion of element-wise work",
    "overlap_dp": "overlap of data parallel communication",
    "mtbf_failures_per_gpu_h": "failure rate",
    "stops": "stops beyond failures",
}


def _from(row: Parameter, name: str, scale: float = 1.0, ceiling: float = float("inf")) -> Term:
    evidence = Evidence(
        id=f"parameter:{row.id}",
        kind=row.kind,
        what=f"{row.meaning}: {row.value:g} ({row.low:g} to {row.high:g}) {row.unit}",
        source=row.source,
        date=row.date,
    )
    label = _LABELS.get(name, row.meaning)
    if name.startswith("overlap_"):
        ceiling = 1.0  # no more can be hidden than there is
    return Term(
        name=name, value=row.value * scale, log_sd=row.log_sd, ceiling=ceiling * scale, label=label, evidence=evidence
    )


ARCH_FAMILY = {
    "Pascal": "Volta",
    "Blackwell Ultra": "Blackwell",
    "CDNA2": "CDNA",
    "CDNA3": "CDNA",
    "CDNA4": "CDNA",
    "RDNA3": "CDNA",
}
"""Architectures that share the parameters of a relative."""

REFERENCE_GPU = {"Ampere": 0.869, "Hopper": 0.803, "Blackwell": 0.776, "CDNA": 0.511}
"""Measured BF16 maximum over peak of the GPU that stands for its architecture (A100, H100, B200, MI300X)."""


def arch_family(gpu: Gpu) -> str:
    """The architecture whose parameters a GPU uses."""
    return ARCH_FAMILY.get(gpu.arch, gpu.arch)


def arch_parameter(name: str, gpu: Gpu, *qualifiers: str) -> Parameter:
    """The row of a GPU's own architecture where there is one, else that of the relative that stands for it."""
    own = ".".join((name, *qualifiers, gpu.arch))
    return load_parameters()[own] if own in load_parameters() else parameter(name, *qualifiers, arch_family(gpu))


def _matmul_term(gpu: Gpu, name: str, compute: str) -> Term:
    family = arch_family(gpu)
    row = arch_parameter("matmul_efficiency", gpu, *(() if compute in ("fp16", "bf16") else (compute,)))
    measured = gpu.measured_matmul_flop_per_s.get("bf16")
    reference = REFERENCE_GPU.get(family)
    own = measured / gpu.peak_flop_per_s["bf16"] / reference if measured and reference else 1.0
    if compute in ("fp32", "tf32"):
        own = 1.0
    term = _from(row, name, scale=gpu.peak_flop_per_s[compute] * own, ceiling=1.0 / own)
    kind = EvidenceKind.PUBLISHED if measured else EvidenceKind.TRANSFERRED
    extra = 0.0 if measured else 0.05
    what = f"{term.evidence.what}; peak {gpu.peak_flop_per_s[compute] / TERA:g} TFLOP/s of {gpu.id}"
    evidence = Evidence(
        id=f"rate:{compute}:{gpu.id}", kind=kind, what=what, source=f"{row.source}; {gpu.evidence.source}",
        date=row.date, gpu=gpu.id,
    )  # fmt: skip
    return Term(
        name=name,
        value=term.value,
        log_sd=float(np.hypot(term.log_sd, extra)),
        ceiling=term.ceiling,
        label=term.label,
        evidence=evidence,
    )


def _network_terms(cluster: Cluster) -> list[Term]:
    gpu = cluster.gpu
    inside = gpu.nvlink_bytes_per_s if cluster.nvlink_domain > 1 else None
    link = parameter("nvlink_efficiency") if inside else parameter("pcie_efficiency")
    has_nvls = inside is not None and arch_family(gpu) in ("Hopper", "Blackwell")
    gain = parameter("nvls_gain")
    gain_term = _from(gain, "nvls_gain")
    if not has_nvls:
        gain_term = Term(
            name="nvls_gain", value=1.0, log_sd=0.0, ceiling=1.0, label=gain_term.label, evidence=gain_term.evidence
        )
    return [
        _from(link, "nvlink_bytes_per_s", scale=inside or gpu.pcie_bytes_per_s, ceiling=1.0),
        gain_term,
        _from(parameter("nic_efficiency"), "nic_bytes_per_s", scale=cluster.nic_bytes_per_s, ceiling=1.0),
        _from(parameter("pcie_efficiency"), "pcie_bytes_per_s", scale=gpu.pcie_bytes_per_s, ceiling=1.0),
        *(_from(parameter(n), n) for n in ("nvlink_latency_s", "hop_latency_s", "nic_latency_s")),
    ]


def clock_ratio(cluster: Cluster) -> float:
    """Sustained clock under a power limit below what matrix products draw at the datasheet limit.

    One variable sets both the rate and the watts: dynamic power grows with clock to the power `clock_exponent`.
    """
    limit, tdp = cluster.power_limit_w, cluster.gpu.tdp_w
    wanted = parameter("power_matmul").value * tdp
    if limit is None or limit >= wanted:
        return 1.0
    idle = parameter("power_idle").value * tdp
    dynamic = max(limit - idle, 0.05 * tdp) / (wanted - idle)
    return float(dynamic ** (1.0 / parameter("clock_exponent").value))


def _power_terms(cluster: Cluster) -> list[Term]:
    tdp = cluster.gpu.tdp_w
    limit = min(cluster.power_limit_w or tdp, tdp)
    activities = {
        "power_idle_w": "power_idle",
        "power_linear_w": "power_matmul",
        "power_other_w": "power_matmul",
        "power_attention_w": "power_attention",
        "power_memory_w": "power_memory",
        "power_wait_w": "power_wait",
    }
    terms = []
    for name, row in activities.items():
        term = _from(parameter(row), name, scale=tdp, ceiling=1.0)
        capped = min(term.value, limit)
        terms.append(replace(term, value=capped, ceiling=min(term.ceiling, limit)))
    return terms


_BY_STACK = (
    "fusion", "framework", "cast_fusion", "kernels_per_layer", "stored_extra", "logit_stored", "fragmentation",
    "overlap_dp", "step_overhead_s", "launch_s",
)


def _stack_terms(recipe: Recipe) -> list[Term]:
    stack = recipe.stack
    tp = "overlap_tp_explicit" if recipe.tp_overlap else "overlap_tp"
    gated = "gated" if recipe.model.gated_mlp else "plain"
    loss = "fused" if recipe.chunked_loss else "full"
    return [
        *(_from(parameter(n, stack), n) for n in _BY_STACK),
        _from(parameter(tp), "overlap_tp", ceiling=1.0),
        _from(parameter("ffn_passes", gated), "ffn_passes"),
        _from(parameter("logit_bytes", loss), "logit_bytes"),
    ]


_PLAIN = (
    "matmul_overlap", "norm_passes", "dropout_passes", "qkv_passes", "score_passes", "misaligned_rate",
    "moe_passes", "kernels_moe", "grouped_efficiency", "kernel_s", "overlap_cp", "overlap_pp", "overlap_ep",
    "interference", "jitter", "expert_imbalance", "host_share", "network_share", "mtbf_failures_per_gpu_h",
    "restart_s", "checkpoint_s", "evaluation_share", "stops",
)


CURRENT_YEAR = 2026.0
"""The year of software for which the parameters of routed layers are stated."""

_MATURING = ("kernels_moe", "moe_passes")

ATTENTION_MATURE_YEAR = 2025.0
"""From about then tuned attention kernels use the asynchronous units of Hopper and Blackwell (arXiv 2407.08608)."""


def _attention_peak(gpu: Gpu, compute: str) -> float:
    """Peak of the attention kernel; in FP32 it takes three TF32 products for one where that is faster (CUTLASS)."""
    if compute != "fp32":
        return gpu.peak_flop_per_s[compute]
    return max(gpu.peak_flop_per_s["fp32"], gpu.peak_flop_per_s.get("tf32", 0.0) / 3.0)


def _attention_age_factor(recipe: Recipe, family: str) -> float:
    """Rate of an older release's attention kernel over the current one, on the architectures whose units came first."""
    if not recipe.fused or recipe.software_year is None or family not in ("Hopper", "Blackwell"):
        return 1.0
    years = max(0.0, ATTENTION_MATURE_YEAR - recipe.software_year)
    return float(np.exp(-parameter("attention_progress").value * years))


def _age_factor(name: str, recipe: Recipe) -> float:
    """Routing got fewer and larger kernels year by year: older releases pay more of both."""
    if name not in _MATURING or recipe.software_year is None:
        return 1.0
    return float(np.exp(parameter("moe_progress").value * (CURRENT_YEAR - recipe.software_year)))


def resolve_rates(cluster: Cluster, recipe: Recipe, overrides: Mapping[str, Term] | None = None) -> RateSet:
    """The terms for one GPU, stack and policy; `overrides` are terms from measurement records, which win."""
    gpu, policy, family = cluster.gpu, recipe.policy, arch_family(cluster.gpu)
    clock = clock_ratio(cluster)
    in_fp32 = policy.other_compute == "fp32"
    attention_peak = _attention_peak(gpu, policy.other_compute)
    kernel = "fp32" if in_fp32 else "tuned" if recipe.fused else "torch"
    attention = arch_parameter("attention_efficiency", gpu, kernel)
    bandwidth = gpu.memory_bytes_per_s
    kind = "moe" if recipe.model.experts else recipe.model.kind
    age = _attention_age_factor(recipe, family)
    terms = [
        _clocked(_matmul_term(gpu, "linear_flop_per_s", policy.linear_compute), clock),
        _clocked(_matmul_term(gpu, "other_flop_per_s", policy.other_compute), clock),
        _clocked(_from(attention, "attention_flop_per_s", attention_peak * age, 1.0), clock),
        _from(parameter("operand_bandwidth"), "operand_bytes_per_s", bandwidth, 1.0),
        _from(parameter("memory_efficiency", family), "memory_bytes_per_s", bandwidth, 1.0),
        _from(parameter("optimizer_efficiency"), "optimizer_bytes_per_s", bandwidth, 1.0),
        *_network_terms(cluster),
        *_power_terms(cluster),
        *_stack_terms(recipe),
        *(_from(parameter(n), n, scale=_age_factor(n, recipe)) for n in _PLAIN if n != "host_share"),
        _from(parameter("host_share", *(("module",) if "GH200" in gpu.name else ())), "host_share"),
        _from(parameter("context_gib", recipe.stack), "context_bytes", GIB),
        _from(parameter("nccl_gib"), "nccl_bytes", GIB),
        _from(parameter("model_error", recipe.stack, kind), "model_error"),
        _from(parameter("power_error"), "power_error"),
        replace(
            _from(parameter("precision_error", policy.precision), "precision_error"), own_draws=f".{policy.precision}"
        ),
        _from(parameter("memory_error", recipe.stack, kind), "memory_error"),
    ]
    by_name = {term.name: term for term in terms} | dict(overrides or {})
    return RateSet(terms={f.name: by_name[f.name] for f in fields(Rates)})


def _clocked(term: Term, clock: float) -> Term:
    if clock == 1.0:
        return term
    return replace(term, value=term.value * clock, ceiling=term.ceiling * clock)

"""The ladder of evidence: find the best available rate of each term for one GPU, stack and precision policy.

In order of preference, a rate is measured here, shipped, published, transferred, or a datasheet value times a typical
efficiency; each step widens the range. `catalog/parameters.csv` declares the rows; see `QUALIFIERS` and
`TERM_BUILDERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from planner.evidence import EvidenceKind
from planner.hardware.architectures import Architecture, find_architecture
from planner.hardware.catalogue import load_gpus
from planner.hardware.cluster import Cluster
from planner.hardware.gpu import Gpu
from planner.kernels.collectives import CollectiveSurfaces, collective_surfaces
from planner.kernels.nearest import nearest_surface
from planner.kernels.power import ProductPower
from planner.kernels.surface import Surface, at_most, large_flop_per_s
from planner.lazy import dataclass
from planner.rates.clock import at_clock, power_law, under_limit
from planner.rates.conditions import read_for
from planner.rates.parameters import Family, Parameter, Parameters, evidence_of, shipped_parameters
from planner.rates.product_energy import as_sold, product_power
from planner.rates.qualifiers import attention_kernel, memory_format, shape_key, stored_loss
from planner.rates.terms import Dependence, RateSet, Term
from planner.training.recipe import Recipe
from planner.units import GIB, GIGA, TERA

CURRENT_YEAR = 2026.0
"""Decimal year of the software for which the parameters of routed layers are stated."""

ATTENTION_MATURE_YEAR = 2025.0
"""Decimal year from about which tuned attention kernels use the asynchronous units of Hopper and Blackwell; a year
earlier, none did (FlashAttention-3 was published in July 2024, arXiv 2407.08608)."""

BEST_OF_STACKS = 1.42
"""Standard deviations between the median and the best of eight stacks."""

TRANSFER_SD = 0.05
"""Additional spread of the logarithm of a matrix rate for a GPU that was not measured; assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The inputs that determine which rows apply and how they are scaled."""

    cluster: Cluster
    recipe: Recipe
    parameters: Parameters
    compute: str = ""
    """Compute type of the matrix products, for rates that depend on it."""

    @property
    def gpu(self) -> Gpu:
        """The GPU of the cluster."""
        return self.cluster.gpu

    @property
    def architecture(self) -> Architecture:
        """The architecture of the GPU."""
        return find_architecture(self.gpu.arch)

    def qualifiers(self, family: Family) -> tuple[str, ...]:
        """Qualifiers that select a row of a family, other than the architecture; an empty one selects nothing."""
        words = [QUALIFIERS[word](self) for word in family.by if word != "arch"]
        if "stack" in family.by and f"{family.name}.{self.recipe.stack}" not in self.parameters.rows:
            words[family.by.index("stack")] = self.recipe.kernels
        return tuple(words)

    def row(self, family: Family) -> Parameter:
        """The row of a family that applies."""
        return _row(self.parameters, family.name, self.qualifiers(family), self.gpu.arch)


@lru_cache(maxsize=8192)
def _row(parameters: Parameters, name: str, qualifiers: tuple[str, ...], arch: str) -> Parameter:
    """The row of a family that applies, cached for all runs with the same qualifiers.

    If rows differ by architecture, a row of the GPU's own architecture is preferred to one of a related architecture.
    """
    if "arch" not in parameters.families[name].by:
        return parameters.find(name, *qualifiers)
    own_id = ".".join([name, *filter(None, qualifiers), arch])
    if own_id in parameters.rows:
        return parameters.rows[own_id]
    return parameters.find(name, *qualifiers, find_architecture(arch).parameters_of)


QUALIFIERS: Mapping[str, Callable[[Setting], str]] = {
    "stack": lambda s: s.recipe.stack,
    "fabric": lambda s: s.cluster.fabric,
    "gpu": lambda s: s.gpu.id,
    "shape": lambda s: shape_key(s.recipe.model),
    "architecture": lambda s: s.gpu.arch,
    "workload": lambda s: "moe" if s.recipe.model.experts else s.recipe.model.kind,
    "precision": lambda s: s.recipe.policy.precision,
    "compute": lambda s: "" if s.compute in ("fp16", "bf16") else s.compute,
    "attention_kernel": lambda s: attention_kernel(s.recipe),
    "mlp": lambda s: "gated" if s.recipe.model.gated_mlp else "plain",
    "loss": lambda s: "fused" if s.recipe.chunked_loss else "full",
    "stored_loss": lambda s: stored_loss(s.recipe),
    "tp_overlap": lambda s: "explicit" if s.recipe.tp_overlap else "",
    "power_reading": lambda s: "module" if s.gpu.power_scope == "module" else "",
    "machine": lambda s: "desktop" if s.cluster.is_desktop else "",
    "conv_compute": lambda s: s.recipe.policy.linear_compute,
    "memory_format": lambda s: memory_format(s.recipe),
    "channel_order": lambda s: "" if s.recipe.channels_last else "first",
}
"""Functions that give the part of a row's id (possibly empty), by the word in the column `by`; `arch` is separate."""

APART = ("gpu", "architecture", "shape")
"""Qualifiers for each value of which a row that applies to all is drawn separately."""


def part_label(parameters: Parameters, name: str, cluster: Cluster, recipe: Recipe) -> str:
    """The GPU, architecture or model for which a row that is drawn separately (`APART`) is drawn in a run."""
    (word,) = parameters.families[parameters.rows[name].family].by
    return QUALIFIERS[word](Setting(cluster=cluster, recipe=recipe, parameters=parameters))


def resolve_rates(
    cluster: Cluster,
    recipe: Recipe,
    overrides: Mapping[str, Term] | None = None,
    parameters: Parameters | None = None,
) -> RateSet:
    """The terms for one GPU, stack and policy.

    Args:
        cluster: the machines.
        recipe: the model and how it is trained, including precision and stack.
        overrides: terms from measurement records, which take precedence.
        parameters: the rows to use; None for the shipped ones.
    """
    setting = Setting(cluster=cluster, recipe=recipe, parameters=parameters or shipped_parameters())
    terms: dict[str, Term] = {}
    for family in setting.parameters.families.values():
        for name in family.terms if read_for(family, recipe) else ():
            terms[name] = TERM_BUILDERS[family.limit](setting, family, name)
    measured = {name: under_limit(term, cluster, setting.parameters) for name, term in (overrides or {}).items()}
    return RateSet(terms=terms | measured, parameters=setting.parameters)


def _term(setting: Setting, family: Family, name: str, scale: float = 1.0, *, row: Parameter | None = None) -> Term:
    """A term from the row that applies, times a scale; terms of a family with a bound never exceed the scale."""
    row = row or setting.row(family)
    ceiling = scale if family.bound else float("inf")
    return Term(
        name=name, value=row.value * scale, ceiling=ceiling, family=family, evidence=evidence_of(row, name),
        rests_on=(Dependence(row=row, share=family.bound == "share"),),
    )  # fmt: skip


@lru_cache(maxsize=8192)
def _unscaled_term(parameters: Parameters, family_name: str, name: str, qualifiers: tuple[str, ...], arch: str) -> Term:
    """A term that is a row's value without scaling, cached for all runs with the same qualifiers.

    A row shared by all GPUs, architectures or models is drawn separately for each of them.
    """
    family, row = parameters.families[family_name], _row(parameters, family_name, qualifiers, arch)
    apart = qualifiers[0] if len(family.by) == 1 and family.by[0] in APART and row.id == family.name else ""
    return Term(
        name=name, value=row.value, ceiling=1.0 if family.bound else float("inf"), family=family,
        evidence=evidence_of(row, name),
        rests_on=(Dependence(row=row, share=family.bound == "share", apart=apart),),
    )  # fmt: skip


def _matmul_term(setting: Setting, family: Family, name: str) -> Term:
    """Rate of matrix products: from a measured surface, else peak times the architecture's efficiency.

    The architecture's efficiency is that of its reference GPU. For 16-bit and narrower types it is corrected by the
    ratio of this GPU's measured maximum to the reference's. No draw is faster than the GPU's measured maximum.
    """
    gpu, policy = setting.gpu, setting.recipe.policy
    compute = policy.linear_compute if name == "linear_flop_per_s" else policy.other_compute
    surface = _surface(setting, "matmul", compute)
    if surface is not None:
        with_compute = replace(setting, compute=compute)
        row = with_compute.row(setting.parameters.families["product_rate_ratio"])
        sustained = _surface_term(setting, family, name, surface, compute, Dependence(row=row))
        sustained = replace(sustained, power=_product_power(setting, compute))
        return at_clock(sustained, setting.cluster, setting.parameters)
    over_reference = _over_reference(setting) if compute not in ("fp32", "tf32") else 1.0
    measured = "bf16" in gpu.measured_matmul_flop_per_s
    row = replace(setting, compute=compute).row(family)
    peak = gpu.reachable_flop_per_s[compute]
    term = _term(setting, family, name, peak * over_reference, row=row)
    evidence = replace(
        term.evidence,
        id=f"rate:{compute}:{gpu.id}",
        kind=EvidenceKind.PUBLISHED if measured else EvidenceKind.TRANSFERRED,
        what=f"{term.evidence.what}; peak {peak / TERA:.4g} TFLOP/s of {gpu.id}",
        source=f"{row.origin}; the peak{' and the clock under load' if gpu.load_hz else ''} as in gpu:{gpu.id}",
        gpu=gpu.id,
    )
    ceiling = min(peak, gpu.measured_matmul_flop_per_s.get("bf16" if compute == "fp16" else compute, peak))
    own_sd, value = 0.0 if measured else TRANSFER_SD, min(term.value, ceiling)
    term = replace(term, value=value, own_sd=own_sd, ceiling=ceiling, evidence=evidence)
    term = as_sold(replace(term, power=_product_power(setting, compute)), gpu.arch, setting.parameters)
    return at_clock(term, setting.cluster, setting.parameters)


def _surface_type(recipe: Recipe, compute: str) -> str:
    """The type of surface for products of a compute type; empty if there is none."""
    scaling = recipe.policy.scaling if compute == recipe.policy.linear_compute else ""
    return SURFACES.get((compute, scaling), SURFACES.get((compute, ""), ""))


def _surface(setting: Setting, operation: str, compute: str) -> Surface | None:
    """The surface of the kernels of a type on this GPU, measured or rescaled from the nearest measured relative."""
    key = _surface_type(setting.recipe, compute)
    law = power_law(setting.parameters)
    return nearest_surface(operation, setting.gpu, key, law, peak_of=compute) if key else None


SURFACES = {("bf16", ""): "bf16", ("fp16", ""): "bf16", ("fp8", ""): "fp8", ("fp8", "blockwise"): "fp8-block",
            ("fp4", ""): "fp4"}  # fmt: skip
"""Type of a measured surface by compute type and scaling; FP16 and BF16 kernels use the same hardware units."""


def _surface_term(
    setting: Setting, family: Family, name: str, surface: Surface, compute: str, *reached: Dependence
) -> Term:
    """Rate that a large kernel sustains, times the ratios that kernels of a training step reach of it (`reached`).

    The spread of shapes and of stacks is added. No shape exceeds the peak, and no draw the fastest of the stacks.
    """
    is_measured, peak = surface.evidence.kind is EvidenceKind.PUBLISHED, setting.gpu.reachable_flop_per_s[compute]
    spread = float(np.linalg.norm([surface.spread, surface.stack_spread, 0.0 if is_measured else TRANSFER_SD]))
    ratio = float(np.prod([on.row.value**on.power for on in reached]))
    surface = at_most(surface, peak / ratio)
    sustained_flop_per_s = large_flop_per_s(surface)
    fastest = float(np.exp(BEST_OF_STACKS * np.hypot(surface.spread, surface.stack_spread)))
    ceiling, value = min(peak, sustained_flop_per_s * fastest), sustained_flop_per_s * ratio
    return Term(
        name=name, value=min(value, ceiling), own_sd=spread, rests_on=reached, ceiling=ceiling, family=family,
        evidence=replace(surface.evidence, terms=(name,)), surface=surface,
    )  # fmt: skip


def _product_power(setting: Setting, compute: str) -> ProductPower | None:
    """Power draw of products of a compute type by shape; None if unknown."""
    wide = _surface(setting, "matmul", "bf16")
    kind = _surface_type(setting.recipe, compute) or compute
    wide_flop_per_s = None if wide is None else large_flop_per_s(wide)
    return product_power(setting.cluster, setting.parameters, kind, wide_flop_per_s)


def _over_reference(setting: Setting) -> float:
    """Measured over peak BF16 rate of this GPU, relative to its architecture's reference GPU; 1 if not measured."""
    gpu, reference = setting.gpu, setting.architecture.reference_gpu
    if reference is None or "bf16" not in gpu.measured_matmul_flop_per_s:
        return 1.0

    def reached(part: Gpu) -> float:
        return part.measured_matmul_flop_per_s["bf16"] / part.peak_flop_per_s["bf16"]

    return reached(gpu) / reached(load_gpus()[reference])


def _attention_term(setting: Setting, family: Family, name: str) -> Term:
    compute = setting.recipe.policy.other_compute
    surface = _surface(setting, "attention", compute)
    if surface is not None:
        reached = Dependence(row=setting.row(setting.parameters.families["attention_rate_ratio"]))
        term = _surface_term(setting, family, name, surface, compute, reached, *_generation_dependences(setting))
    elif compute in ("fp32", "tf32"):
        term = _wide_attention_term(setting, family, name)
    else:
        term = _term(setting, family, name, setting.gpu.reachable_flop_per_s[compute])
    return at_clock(term, setting.cluster, setting.parameters, "power_attention")


def _wide_attention_term(setting: Setting, family: Family, name: str) -> Term:
    """Rate of 32-bit attention, with or without TF32: one kernel, which uses three TF32 products if that is faster."""
    peaks, older = setting.gpu.reachable_flop_per_s, setting.parameters.find("attention_generation_ratio")
    fp32_rate, tf32_rate = peaks.get("fp32", 0.0), peaks.get("tf32", 0.0) / 3.0
    term = _term(setting, family, name, max(fp32_rate, tf32_rate))
    if fp32_rate >= tf32_rate or not setting.architecture.asynchronous_units:
        return term
    return replace(term, value=term.value * older.value, rests_on=(*term.rests_on, Dependence(row=older, share=True)))


def _generation_dependences(setting: Setting) -> tuple[Dependence, ...]:
    """Dependence on the share of attention kernels of FlashAttention-2's generation on GPUs with asynchronous units.

    The share is 1 in stacks that wait for PyTorch. It falls to 0 in tuned ones in the year to `ATTENTION_MATURE_YEAR`.
    """
    share, year = 1.0, setting.recipe.software_year
    if setting.recipe.fused:
        share = 0.0 if year is None else min(max(ATTENTION_MATURE_YEAR - year, 0.0), 1.0)
    if share == 0.0 or not setting.architecture.asynchronous_units:
        return ()
    return (Dependence(row=setting.parameters.find("attention_generation_ratio"), share=True, power=share),)


def _memory_term(setting: Setting, family: Family, name: str) -> Term:
    """A share of the memory bandwidth; reduced only by a power limit below the draw of memory-bound work."""
    term = _term(setting, family, name, setting.gpu.memory_bytes_per_s)
    return at_clock(term, setting.cluster, setting.parameters, "power_memory")


def _convolution_term(setting: Setting, family: Family, name: str) -> Term:
    """The rate of wide FP32 convolutions on CUDA cores."""
    peaks, parameters = setting.gpu.reachable_flop_per_s, setting.parameters
    products = replace(setting, compute="fp32").row(parameters.families["matmul_efficiency"])
    ratio = parameters.find("image_conv_ratio", "fp32")
    peak = peaks.get("fp32", min(peaks.values()))  # unused on a GPU without FP32
    term = _term(setting, family, name, peak * products.value * ratio.value)
    on = (*term.rests_on, Dependence(row=products, share=True), Dependence(row=ratio))
    return at_clock(replace(term, rests_on=on, ceiling=peak), setting.cluster, parameters)


def _inside_node_term(setting: Setting, family: Family, name: str) -> Term:
    """Bus bandwidth in a node: of NVLink (xGMI) if the node has it, from measured collectives if any; else of PCIe."""
    gpu = setting.gpu
    if setting.cluster.nvlink_domain > 1 and gpu.nvlink_bytes_per_s:
        collectives = collective_surfaces(gpu)
        if collectives is not None:
            return _collectives_term(setting, family, name, collectives)
        return _term(setting, family, name, gpu.nvlink_bytes_per_s)
    pcie = setting.parameters.find("pcie_efficiency")
    return _term(setting, family, name, gpu.pcie_bytes_per_s, row=pcie)


def _collectives_term(setting: Setting, family: Family, name: str, collectives: CollectiveSurfaces) -> Term:
    """Bus bandwidth of a large all-gather alone, times the ratio that collectives of a training step reach of it."""
    row = setting.row(setting.parameters.families["collective_rate_ratio"])
    term = _term(setting, family, name, collectives.large_bytes_per_s, row=row)
    return replace(
        term, own_sd=collectives.log_sd, ceiling=setting.gpu.nvlink_bytes_per_s or float("inf"),
        rests_on=(Dependence(row=row),), evidence=replace(collectives.evidence, terms=(name,)),
        by_operation=collectives.by_operation,
    )  # fmt: skip


def _switch_reduction_term(setting: Setting, family: Family, name: str) -> Term:
    """Gain of reductions in the NVLink switch (NVLS, from Hopper on); exactly 1 without them."""
    term = _term(setting, family, name)
    inside = setting.cluster.nvlink_domain > 1 and setting.gpu.nvlink_bytes_per_s
    if inside and setting.architecture.switch_reduces:
        return term
    return replace(term, value=1.0, rests_on=(), ceiling=1.0)


def _routing_age_term(setting: Setting, family: Family, name: str) -> Term:
    """Kernels or passes of routing, scaled by the software's age: newer releases use fewer and larger kernels."""
    year = setting.recipe.software_year
    if year is None:
        return _term(setting, family, name)
    progress, years = setting.parameters.find("moe_progress"), CURRENT_YEAR - year
    term = _term(setting, family, name, float(np.exp(progress.value * years)))
    return replace(term, rests_on=(*term.rests_on, Dependence(row=progress, power=progress.value * years)))


def _board_power_term(setting: Setting, family: Family, name: str) -> Term:
    """A share of the board power limit as sold, never above the limit that is set."""
    tdp_w, limit_w = setting.gpu.tdp_w, setting.cluster.limit_w
    term = _term(setting, family, name, tdp_w)
    if term.value <= limit_w == tdp_w:
        return term
    return replace(term, value=min(term.value, limit_w), ceiling=limit_w)


def _host_power_term(setting: Setting, family: Family, name: str) -> Term:
    """A share of the board power limit as sold, independent of the limit that is set; at most the host's nameplate."""
    gpu = setting.gpu
    term = _term(setting, family, name, gpu.tdp_w)
    if gpu.host_power_w is None:
        return term
    most_w = gpu.host_power_w / gpu.gpus_per_node
    return replace(term, value=min(term.value, most_w), ceiling=most_w)


TERM_BUILDERS: Mapping[str, Callable[[Setting, Family, str], Term]] = {
    "": lambda s, family, name: _unscaled_term(s.parameters, family.name, name, s.qualifiers(family), s.gpu.arch),
    "matmul_peak": _matmul_term,
    "attention_peak": _attention_term,
    "memory_bandwidth": _memory_term,
    "inside_node": _inside_node_term,
    "fp32_convolutions": _convolution_term,
    "multiprocessors": lambda s, family, name: _term(s, family, name, s.gpu.multiprocessor_cycles_per_s),
    "switch_reduction": _switch_reduction_term,
    "network": lambda s, family, name: _term(s, family, name, s.cluster.nic_bytes_per_s),
    "pcie": lambda s, family, name: _term(s, family, name, s.gpu.host_bytes_per_s),
    "routing_age": _routing_age_term,
    "board_power": _board_power_term,
    "host_power": _host_power_term,
    "sold_power": lambda s, family, name: _term(s, family, name, s.gpu.tdp_w),
    "gib": lambda s, family, name: _term(s, family, name, GIB),
    "giga": lambda s, family, name: _term(s, family, name, GIGA),
}
"""Functions that turn a row's value into a term, by the word in the column `limit`."""

"""The ladder of evidence, walked for each term: the rates of one GPU, stack and precision policy.

The best at hand wins: measured here, shipped, published, transferred, datasheet times a typical efficiency. Each step
down widens the range. `catalog/parameters.csv` declares the rows; its words are `QUALIFIERS` and `LIMITS` here.
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
from planner.kernels.surface import Surface, large_flop_per_s
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
"""The year of software for which the parameters of routed layers are stated."""

ATTENTION_MATURE_YEAR = 2025.0
"""From about then tuned attention kernels use the asynchronous units of Hopper and Blackwell, a year before none did
(FlashAttention-3 is of July 2024, arXiv 2407.08608)."""

BEST_OF_STACKS = 1.42
"""Standard deviations that the best of eight stacks lies from their median."""

TRANSFER_SD = 0.05
"""Further spread of the logarithm of a matrix rate where nobody measured this GPU: assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What decides which rows hold and what they are multiplied by."""

    cluster: Cluster
    recipe: Recipe
    parameters: Parameters
    compute: str = ""
    """Compute type of the matrix products, for rates that differ by it."""

    @property
    def gpu(self) -> Gpu:
        """The GPU."""
        return self.cluster.gpu

    @property
    def architecture(self) -> Architecture:
        """Its architecture."""
        return find_architecture(self.gpu.arch)

    def qualifiers(self, family: Family) -> tuple[str, ...]:
        """What chooses among the rows of a family besides the architecture, empty for none."""
        words = [QUALIFIERS[word](self) for word in family.by if word != "arch"]
        if "stack" in family.by and f"{family.name}.{self.recipe.stack}" not in self.parameters.rows:
            words[family.by.index("stack")] = self.recipe.kernels
        return tuple(words)

    def row(self, family: Family) -> Parameter:
        """The row of a family that holds here."""
        return _row(self.parameters, family.name, self.qualifiers(family), self.gpu.arch)


@lru_cache(maxsize=8192)
def _row(parameters: Parameters, name: str, qualifiers: tuple[str, ...], arch: str) -> Parameter:
    """The row of a family that holds; looked up once for all runs that are alike in what chooses it.

    Where rows differ by architecture, the GPU's own comes first, then that of the relative that stands for it.
    """
    if "arch" not in parameters.families[name].by:
        return parameters.find(name, *qualifiers)
    own = ".".join([name, *filter(None, qualifiers), arch])
    if own in parameters.rows:
        return parameters.rows[own]
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
"""Words of the column `by` (besides `arch`): the part of an id that they choose, empty for none."""


APART = ("gpu", "architecture", "shape")
"""Words by which a row that holds for all is drawn for each apart."""


def part_label(parameters: Parameters, name: str, cluster: Cluster, recipe: Recipe) -> str:
    """The GPU, architecture or model for which such a row is drawn in a run."""
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
        recipe: what is trained, in which precision and stack.
        overrides: terms from measurement records, which take precedence.
        parameters: the rows to use; None: the shipped ones.
    """
    setting = Setting(cluster=cluster, recipe=recipe, parameters=parameters or shipped_parameters())
    terms: dict[str, Term] = {}
    for family in setting.parameters.families.values():
        for name in family.terms if read_for(family, recipe) else ():
            terms[name] = LIMITS[family.limit](setting, family, name)
    measured = {name: under_limit(term, cluster, setting.parameters) for name, term in (overrides or {}).items()}
    return RateSet(terms=terms | measured, parameters=setting.parameters)


def _term(setting: Setting, family: Family, name: str, scale: float = 1.0, *, row: Parameter | None = None) -> Term:
    """A term from the row that holds, times a scale, which those of a family with a bound never exceed."""
    row = row or setting.row(family)
    ceiling = scale if family.bound else float("inf")
    return Term(
        name=name, value=row.value * scale, ceiling=ceiling, family=family, evidence=evidence_of(row, name),
        rests_on=(Dependence(row=row, share=family.bound == "share"),),
    )  # fmt: skip


@lru_cache(maxsize=8192)
def _unscaled_term(parameters: Parameters, family_name: str, name: str, qualifiers: tuple[str, ...], arch: str) -> Term:
    """A term that is its row as it stands: made once for all runs that are alike in what chooses the row.

    A row of all GPUs, architectures or models is drawn for the one at hand.
    """
    family, row = parameters.families[family_name], _row(parameters, family_name, qualifiers, arch)
    apart = qualifiers[0] if len(family.by) == 1 and family.by[0] in APART and row.id == family.name else ""
    return Term(
        name=name, value=row.value, ceiling=1.0 if family.bound else float("inf"), family=family,
        evidence=evidence_of(row, name),
        rests_on=(Dependence(row=row, share=family.bound == "share", apart=apart),),
    )  # fmt: skip


def _matmul_term(setting: Setting, family: Family, name: str) -> Term:
    """Peak of the compute type times the architecture's efficiency, corrected by what this GPU was measured to reach.

    The architecture's efficiency is that of its reference GPU; a part that was measured keeps the ratio of its own
    measured maximum to the reference's, in 16-bit and narrower types. No draw is faster than its measured maximum.
    """
    gpu, policy = setting.gpu, setting.recipe.policy
    compute = policy.linear_compute if name == "linear_flop_per_s" else policy.other_compute
    surface = _surface(setting, "matmul", compute)
    if surface is not None:
        asked = replace(setting, compute=compute)
        row = asked.row(setting.parameters.families["product_rate_ratio"])
        sustained = _surface_term(setting, family, name, surface, compute, Dependence(row=row))
        sustained = replace(sustained, power=_product_power(setting, compute))
        return at_clock(sustained, setting.cluster, setting.parameters)
    own = _over_reference(setting) if compute not in ("fp32", "tf32") else 1.0
    measured = "bf16" in gpu.measured_matmul_flop_per_s
    row = replace(setting, compute=compute).row(family)
    peak = gpu.peak_flop_per_s[compute]
    term = _term(setting, family, name, peak * own, row=row)
    evidence = replace(
        term.evidence,
        id=f"rate:{compute}:{gpu.id}",
        kind=EvidenceKind.PUBLISHED if measured else EvidenceKind.TRANSFERRED,
        what=f"{term.evidence.what}; peak {peak / TERA:g} TFLOP/s of {gpu.id}",
        source=f"{row.origin}; the peak as in gpu:{gpu.id}",
        gpu=gpu.id,
    )
    ceiling = min(peak, gpu.measured_matmul_flop_per_s.get("bf16" if compute == "fp16" else compute, peak))
    own_sd, value = 0.0 if measured else TRANSFER_SD, min(term.value, ceiling)
    term = replace(term, value=value, own_sd=own_sd, ceiling=ceiling, evidence=evidence)
    term = as_sold(replace(term, power=_product_power(setting, compute)), gpu.arch, setting.parameters)
    return at_clock(term, setting.cluster, setting.parameters)


def _surface_type(recipe: Recipe, compute: str) -> str:
    """The type of surface that the products of a compute type take; empty for none."""
    scaling = recipe.policy.scaling if compute == recipe.policy.linear_compute else ""
    return SURFACES.get((compute, scaling), SURFACES.get((compute, ""), ""))


def _surface(setting: Setting, operation: str, compute: str) -> Surface | None:
    """The measured surface of the kernels of a type on this GPU, or on its nearest measured relative."""
    key = _surface_type(setting.recipe, compute)
    law = power_law(setting.parameters)
    return nearest_surface(operation, setting.gpu, key, law, peak_of=compute) if key else None


SURFACES = {("bf16", ""): "bf16", ("fp16", ""): "bf16", ("fp8", ""): "fp8", ("fp8", "blockwise"): "fp8-block",
            ("fp4", ""): "fp4"}  # fmt: skip
"""Compute type and scaling to the type of a measured surface; FP16 and BF16 kernels take the same units."""


def _surface_term(
    setting: Setting, family: Family, name: str, surface: Surface, compute: str, *reached: Dependence
) -> Term:
    """What a large kernel sustains, times what those of a training step reach of that.

    The spread of shapes about the surface and of stacks comes on top. No draw exceeds the peak, or what the fastest of
    the measured stacks sustains: a surface is the median of them.
    """
    own = surface.evidence.kind is EvidenceKind.PUBLISHED
    spread = float(np.linalg.norm([surface.spread, surface.stack_spread, 0.0 if own else TRANSFER_SD]))
    sustained_flop_per_s = large_flop_per_s(surface)
    fastest = float(np.exp(BEST_OF_STACKS * np.hypot(surface.spread, surface.stack_spread)))
    ceiling = min(setting.gpu.peak_flop_per_s[compute], sustained_flop_per_s * fastest)
    value = sustained_flop_per_s * float(np.prod([on.row.value**on.power for on in reached]))
    return Term(
        name=name, value=min(value, ceiling), own_sd=spread, rests_on=reached, ceiling=ceiling, family=family,
        evidence=replace(surface.evidence, terms=(name,)), surface=surface,
    )  # fmt: skip


def _product_power(setting: Setting, compute: str) -> ProductPower | None:
    """What products of a compute type draw by shape; None where nobody knows."""
    wide = _surface(setting, "matmul", "bf16")
    kind = _surface_type(setting.recipe, compute) or compute
    wide_flop_per_s = None if wide is None else large_flop_per_s(wide)
    return product_power(setting.cluster, setting.parameters, kind, wide_flop_per_s)


def _over_reference(setting: Setting) -> float:
    """Measured over peak BF16 rate of this GPU, over the same of its architecture's reference; 1 where unmeasured."""
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
        term = _surface_term(setting, family, name, surface, compute, reached, *_older_generation(setting))
    elif compute in ("fp32", "tf32"):
        term = _wide_attention_term(setting, family, name)
    else:
        term = _term(setting, family, name, setting.gpu.peak_flop_per_s[compute])
    return at_clock(term, setting.cluster, setting.parameters, "power_attention")


def _wide_attention_term(setting: Setting, family: Family, name: str) -> Term:
    """One kernel for 32 bits, whether TF32 is allowed or not: three of its products for one where that is faster."""
    peaks, older = setting.gpu.peak_flop_per_s, setting.parameters.find("attention_generation_ratio")
    own, in_three = peaks.get("fp32", 0.0), peaks.get("tf32", 0.0) / 3.0
    term = _term(setting, family, name, max(own, in_three))
    if own >= in_three or not setting.architecture.asynchronous_units:
        return term
    return replace(term, value=term.value * older.value, rests_on=(*term.rests_on, Dependence(row=older, share=True)))


def _older_generation(setting: Setting) -> tuple[Dependence, ...]:
    """The part of attention in FlashAttention-2's generation of kernels on GPUs with asynchronous units.

    All of it in stacks that wait for PyTorch, of tuned ones less and less over the year in which they left them.
    """
    share, year = 1.0, setting.recipe.software_year
    if setting.recipe.fused:
        share = 0.0 if year is None else min(max(ATTENTION_MATURE_YEAR - year, 0.0), 1.0)
    if share == 0.0 or not setting.architecture.asynchronous_units:
        return ()
    return (Dependence(row=setting.parameters.find("attention_generation_ratio"), share=True, power=share),)


def _memory_term(setting: Setting, family: Family, name: str) -> Term:
    """A share of the memory's bandwidth; slower only under a limit below what memory-bound work draws."""
    term = _term(setting, family, name, setting.gpu.memory_bytes_per_s)
    return at_clock(term, setting.cluster, setting.parameters, "power_memory")


def _convolution_term(setting: Setting, family: Family, name: str) -> Term:
    """The rate of wide convolutions on CUDA cores."""
    peaks, known = setting.gpu.peak_flop_per_s, setting.parameters
    products = replace(setting, compute="fp32").row(known.families["matmul_efficiency"])
    ratio = known.find("image_conv_ratio", "fp32")
    peak = peaks.get("fp32", min(peaks.values()))  # without a path in FP32 nothing reads it
    term = _term(setting, family, name, peak * products.value * ratio.value)
    on = (*term.rests_on, Dependence(row=products, share=True), Dependence(row=ratio))
    return at_clock(replace(term, rests_on=on, ceiling=peak), setting.cluster, known)


def _inside_node_term(setting: Setting, family: Family, name: str) -> Term:
    """NVLink (xGMI) where the node has it, as its collectives were measured; else PCIe."""
    gpu = setting.gpu
    if setting.cluster.nvlink_domain > 1 and gpu.nvlink_bytes_per_s:
        collectives = collective_surfaces(gpu)
        if collectives is not None:
            return _collectives_term(setting, family, name, collectives)
        return _term(setting, family, name, gpu.nvlink_bytes_per_s)
    pcie = setting.parameters.find("pcie_efficiency")
    return _term(setting, family, name, gpu.pcie_bytes_per_s, row=pcie)


def _collectives_term(setting: Setting, family: Family, name: str, collectives: CollectiveSurfaces) -> Term:
    """What a large all-gather reaches, times what the collectives of a training step reach of those that run alone."""
    row = setting.row(setting.parameters.families["collective_rate_ratio"])
    term = _term(setting, family, name, collectives.large_bytes_per_s, row=row)
    return replace(
        term, own_sd=collectives.log_sd, ceiling=setting.gpu.nvlink_bytes_per_s or float("inf"),
        rests_on=(Dependence(row=row),), evidence=replace(collectives.evidence, terms=(name,)),
        by_operation=collectives.by_operation,
    )  # fmt: skip


def _switch_reduction_term(setting: Setting, family: Family, name: str) -> Term:
    """Where the NVLink switch reduces (NVLS, from Hopper on); exactly 1 elsewhere."""
    term = _term(setting, family, name)
    inside = setting.cluster.nvlink_domain > 1 and setting.gpu.nvlink_bytes_per_s
    if inside and setting.architecture.switch_reduces:
        return term
    return replace(term, value=1.0, rests_on=(), ceiling=1.0)


def _routing_age_term(setting: Setting, family: Family, name: str) -> Term:
    """Routing got fewer and larger kernels year by year: older releases need more of them and of their passes."""
    year = setting.recipe.software_year
    if year is None:
        return _term(setting, family, name)
    progress, years = setting.parameters.find("moe_progress"), CURRENT_YEAR - year
    term = _term(setting, family, name, float(np.exp(progress.value * years)))
    return replace(term, rests_on=(*term.rests_on, Dependence(row=progress, power=progress.value * years)))


def _board_power_term(setting: Setting, family: Family, name: str) -> Term:
    """Share of the board power limit as sold, never above the enforced limit."""
    tdp_w, limit_w = setting.gpu.tdp_w, setting.cluster.limit_w
    term = _term(setting, family, name, tdp_w)
    if term.value <= limit_w == tdp_w:
        return term
    return replace(term, value=min(term.value, limit_w), ceiling=limit_w)


def _host_power_term(setting: Setting, family: Family, name: str) -> Term:
    """Share of the board power limit as sold, whatever limit is set; never above the nameplate of the host."""
    gpu = setting.gpu
    term = _term(setting, family, name, gpu.tdp_w)
    if gpu.host_power_w is None:
        return term
    most_w = gpu.host_power_w / gpu.gpus_per_node
    return replace(term, value=min(term.value, most_w), ceiling=most_w)


LIMITS: Mapping[str, Callable[[Setting, Family, str], Term]] = {
    "": lambda s, family, name: _unscaled_term(s.parameters, family.name, name, s.qualifiers(family), s.gpu.arch),
    "matmul_peak": _matmul_term,
    "attention_peak": _attention_term,
    "memory_bandwidth": _memory_term,
    "inside_node": _inside_node_term,
    "fp32_convolutions": _convolution_term,
    "switch_reduction": _switch_reduction_term,
    "network": lambda s, family, name: _term(s, family, name, s.cluster.nic_bytes_per_s),
    "pcie": lambda s, family, name: _term(s, family, name, s.gpu.pcie_bytes_per_s),
    "routing_age": _routing_age_term,
    "board_power": _board_power_term,
    "host_power": _host_power_term,
    "sold_power": lambda s, family, name: _term(s, family, name, s.gpu.tdp_w),
    "gib": lambda s, family, name: _term(s, family, name, GIB),
    "giga": lambda s, family, name: _term(s, family, name, GIGA),
}
"""Words of the column `limit`: how the row's value becomes a term."""

"""Claims decided by arithmetic: their own figures, bytes per parameter, FLOP of a run, shares of a shard."""

from __future__ import annotations

from planner.claims.case import Case
from planner.claims.claim import load_claims
from planner.costs.quantity import Power
from planner.hardware.catalogue import find_gpu
from planner.lazy import dataclass
from planner.models.catalogue import find_model
from planner.performance.operations import model_flop_per_token
from planner.training.optimizers import load_optimizers
from planner.training.policies import find_policy
from planner.units import DAY_S, HOUR_S, w_from_mw

POLICIES = "planner/catalog/policies.csv, planner/catalog/optimizers.csv"
OWN = "the claim's own figures"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A figure before and after."""

    before: float
    after: float

    @property
    def ratio(self) -> float:
        """Relative change; negative where the figure falls."""
        return self.after / self.before - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFigures:
    """The figures of the DeepSeek-V3 claim and their consequences."""

    gpus: Change
    days: Change
    power_mw: Change

    @property
    def gpu_days(self) -> Change:
        """GPUs times days, which the cost of rented GPUs is proportional to at any price."""
        return self._product(self.gpus, self.days)

    @property
    def energy_mwh(self) -> Change:
        """Power times days."""
        ends = ((self.power_mw.before, self.days.before), (self.power_mw.after, self.days.after))
        before, after = (float(Power.from_mw(mw).over_hours(days * DAY_S / HOUR_S).mwh) for mw, days in ends)
        return Change(before=before, after=after)

    @property
    def w_per_gpu(self) -> Change:
        """Power of the facility per GPU."""
        ends = ((self.power_mw.before, self.gpus.before), (self.power_mw.after, self.gpus.after))
        before, after = (w_from_mw(mw) / gpus for mw, gpus in ends)
        return Change(before=before, after=after)

    @property
    def speed_per_gpu(self) -> float:
        """Speed-up that each GPU would need."""
        return self.gpu_days.before / self.gpu_days.after

    @staticmethod
    def _product(first: Change, second: Change) -> Change:
        return Change(before=first.before * second.before, after=first.after * second.after)


def stated(claim: str, name: str) -> Change:
    """Return a figure that a claim states before and after."""
    before, after = load_claims()[claim].figures[name]
    return Change(before=before, after=after)


def deepseek_figures() -> OwnFigures:
    """Return the figures of c14."""
    return OwnFigures(gpus=stated("c14", "gpus"), days=stated("c14", "days"), power_mw=stated("c14", "power_mw"))


DGX_H100_W = 10_200.0
"""NVIDIA DGX H100 datasheet: maximum power of the system with its eight GPUs."""
PUE = 1.25


def most_w_per_gpu() -> float:
    """Return the highest power of a DGX H100's GPU at the facility's meter, with its share of the host."""
    return DGX_H100_W / 8 * PUE


def state_bytes(policy: str, optimizer: str) -> float:
    """Return the bytes per parameter of weights, gradients, master weights and optimizer states."""
    row, kept = find_policy(policy), load_optimizers()[optimizer]
    moments = kept.full_moments * row.moment_bytes + kept.fixed_state_bytes
    return row.weight_bytes + row.master_bytes + row.gradient_bytes + moments


def state_saved(policy: str, optimizer: str = "adamw") -> Case:
    """Return the share of the training state that a policy saves compared with FP32 and AdamW."""
    before, after = state_bytes("fp32", "adamw"), state_bytes(policy, optimizer)
    what = f"{policy}, {optimizer}: {after:.4g} B / {before:.4g} B"
    return Case.exactly(1.0 - after / before, what=what, basis="arithmetic", source=POLICIES)


def zero3_saved(devices: int) -> Case:
    """Return the share of weights, gradients and optimizer states that ZeRO-3 removes from each device."""
    source = "Rajbhandari et al., ZeRO (arXiv 1910.02054), section 5: states / devices"
    return Case.exactly(1.0 - 1.0 / devices, what=f"ZeRO-3, {devices} GPUs", basis="arithmetic", source=source)


def run_flop(model: str, tokens: float) -> list[Case]:
    """Return the FLOP of a run: matrices only, with causal attention, with full attention, with full recomputation."""
    shape = find_model(model)
    causal, full = (model_flop_per_token(shape, shape.context, causal_half=half) * tokens for half in (True, False))
    source = "planner/performance/operations.py: 6 FLOP per matrix parameter and token, and attention"
    matrices = 6.0 * shape.params_active * tokens
    named = (
        ("6ND", matrices), ("6ND + causal attention", causal), ("6ND + full attention", full),
        ("8ND + attention, full recomputation", causal * 4.0 / 3.0),
    )  # fmt: skip
    return [Case.exactly(flop, what=f"{model}, {name}", basis="arithmetic", source=source) for name, flop in named]


def bought_flop(usd: float, usd_per_gpu_hour: float, mfu: float, gpu: str) -> float:
    """Return the FLOP that a sum buys at a price and a utilisation of the BF16 peak."""
    return usd / usd_per_gpu_hour * HOUR_S * mfu * find_gpu(gpu).peak_flop_per_s["bf16"]


def peak_ratio(gpu: str, frm: str, to: str) -> Case:
    """Return a GPU's dense peak in one compute type over its peak in another."""
    row = find_gpu(gpu)
    ratio = row.peak_flop_per_s[to] / row.peak_flop_per_s[frm]
    what = f"{gpu}, {frm.upper()} → {to.upper()}, peak"
    return Case.exactly(ratio, what=what, basis="datasheet", source=row.evidence.source)

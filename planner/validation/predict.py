"""Predict a published run: low, mid and high of the metric that it reports, before its result is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.evidence import Estimate
from planner.lazy import dataclass
from planner.performance.evaluation import Evaluation, evaluate
from planner.performance.memory import fits_probability, memory_range_gib, usable_bytes
from planner.performance.run import host_w
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Parameters
from planner.rates.terms import Draws, Rates, RateSet, Term, Value
from planner.units import GIB, HOUR_S, MINUTE_S, MWH_J, TERA
from planner.validation.flop_convention import counted_flop_per_token, peak_of_convention
from planner.validation.machine import FACILITY, pue_of, scope_of
from planner.validation.runs import PublishedRun, Rejected
from planner.validation.setup import NO_PRICES, Prepared

PSU_EFFICIENCY = 0.95
"""Efficiency of a node's power supplies, output over input: 80 PLUS Titanium at half load is 96 %, Platinum 94 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The 5th, 50th and 95th percentile of a run's metric, in the unit of the metric."""

    id: str
    metric: str
    low: float
    mid: float
    high: float
    filled: tuple[str, ...]
    """Defaults taken for what the row leaves open, one sentence each."""
    fits: bool
    """Whether the predicted peak memory, at mid, is within the memory that the GPU offers a process."""
    fits_probability: float
    """Probability, 0..1, that the peak memory is within it; 0 or 1 without draws."""
    memory_gib: float
    """Predicted peak memory as the driver reports it, at mid."""
    memory_filling_ratio: float
    """Predicted peak memory over the GPU's memory."""
    values: npt.NDArray[np.float64]
    """The metric under each draw, `[draw]`; one value without draws. `validate` keeps the draws of paired runs only."""

    @property
    def width_ratio(self) -> float:
        """`(high - low) / mid`."""
        return (self.high - self.low) / self.mid if self.mid else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluated:
    prepared: Prepared
    rates: Rates
    result: Evaluation

    @property
    def run(self) -> PublishedRun:
        return self.prepared.run

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """The row's own metric, `[draw]`."""
        return np.atleast_1d(np.asarray(_METRICS[self.run.metric](self), dtype=np.float64))

    @property
    def step_s(self) -> Value:
        """Step time of the row's own batch."""
        return self.result.step_s * self.prepared.batch_scale


WIDENED = {"model_error_ratio": "default_error_ratio", "memory_error_ratio": "memory_default_error_ratio"}
"""Terms that each decisive input left at its default widens, and the row that holds the amount."""


def decisive_defaults(prepared: Prepared) -> int:
    """Return how many decisive inputs of a run are defaults; the axes of a searched layout count as one."""
    return sum(default.decisive for default in prepared.filled)


def run_rates(
    prepared: Prepared, parameters: Parameters | None = None, measured: Mapping[str, Term] | None = None
) -> RateSet:
    """Return the terms of a run; each decisive input that is a default widens its model error.

    Args:
        prepared: the run, set up.
        parameters: parameter rows to use; None: the shipped ones.
        measured: terms from records of its GPU, which take precedence.
    """
    rates = resolve_rates(prepared.cluster, prepared.recipe, measured, parameters)
    defaults = decisive_defaults(prepared)
    if not defaults:
        return rates
    wider = {
        name: replace(rates.terms[name], own_sd=math.sqrt(defaults) * rates.parameters.find(row).log_sd)
        for name, row in WIDENED.items()
    }
    return replace(rates, terms=dict(rates.terms) | wider)


def _evaluate(prepared: Prepared, rates: Rates) -> _Evaluated:
    result = evaluate(prepared.recipe, prepared.cluster, prepared.layouts, rates, NO_PRICES, prepared.tokens)
    return _Evaluated(prepared=prepared, rates=rates, result=result)


def metric_values(prepared: Prepared, rates: Rates) -> npt.NDArray[np.float64]:
    """Return the run's own metric at these rates, `[draw]`; one value without draws."""
    return _evaluate(prepared, rates).values


def predict_prepared(prepared: Prepared, draws: Draws | None = None, *, rates: RateSet | None = None) -> Prediction:
    """Predict one run.

    Args:
        prepared: the run, set up.
        draws: draws of the uncertain inputs; None: mid values only, and low = mid = high.
        rates: terms to use; None: those of the run's GPU, stack and policy.
    """
    terms = rates or run_rates(prepared)
    sampled = terms.sample(draws)
    evaluated = _evaluate(prepared, sampled)
    values = evaluated.values
    of_memory = prepared.run.metric == "peak_mem_gib"
    drawn = memory_range_gib(values * GIB) if of_memory else Estimate.of_draws(values)
    memory = memory_range_gib(evaluated.result.memory_bytes).mid * GIB
    return Prediction(
        id=prepared.run.id,
        metric=prepared.run.metric,
        low=drawn.low,
        mid=drawn.mid,
        high=drawn.high,
        filled=tuple(default.text for default in prepared.filled),
        fits=memory <= usable_bytes(prepared.cluster.gpu),
        fits_probability=fits_probability(evaluated.result.memory_bytes, prepared.cluster.gpu),
        memory_gib=memory / GIB,
        memory_filling_ratio=memory / prepared.cluster.gpu.memory_bytes,
        values=values,
    )


def predict(
    prepared: Prepared | Rejected,
    draws: Draws | None = None,
    parameters: Parameters | None = None,
    measured: Mapping[str, Term] | None = None,
) -> Prediction | Rejected:
    """Predict as in `predict_prepared`, under given parameters (None: the shipped ones) and terms from records.

    A rejected row stays rejected.
    """
    if isinstance(prepared, Rejected):
        return prepared
    return predict_prepared(prepared, draws, rates=run_rates(prepared, parameters, measured))


def counted_tokens_ratio(prepared: Prepared) -> float:
    """Return the tokens that a row counts over the computed tokens; padding that is not computed still counts.

    An encoder-decoder's sample counts as the tokens of both sides, each of which passes through one half of the layers.
    """
    return prepared.nominal_ratio * (2.0 if prepared.recipe.model.kind == "encoder-decoder" else 1.0)


def _tokens_per_s(evaluated: _Evaluated) -> Value:
    return evaluated.result.tokens_per_s_per_gpu * counted_tokens_ratio(evaluated.prepared)


def _samples_per_s(evaluated: _Evaluated) -> Value:
    return evaluated.prepared.recipe.global_batch / evaluated.result.step_s


def _flop_per_s(evaluated: _Evaluated) -> Value:
    prepared = evaluated.prepared
    layout = prepared.layouts.at(0)
    per_token = counted_flop_per_token(prepared.run.flops_convention, prepared.recipe, layout.act_ckpt)
    return evaluated.result.tokens_per_s_per_gpu * per_token


def _mfu(evaluated: _Evaluated) -> Value:
    prepared = evaluated.prepared
    peak = peak_of_convention(prepared.run.flops_convention, prepared.recipe, prepared.cluster.gpu)
    return _flop_per_s(evaluated) / peak


def _memory_gib(evaluated: _Evaluated) -> Value:
    kind = evaluated.run.mem_kind or evaluated.prepared.framework.mem_kind
    items = evaluated.result.memory
    chosen = {"allocated": items.allocated, "reserved": items.reserved}.get(kind, items.total)
    return chosen / GIB


def _minutes(evaluated: _Evaluated) -> Value:
    return evaluated.result.wall_s / MINUTE_S


def _node_gpus(evaluated: _Evaluated) -> int:
    return min(evaluated.prepared.cluster.gpus_per_node, int(evaluated.prepared.layouts.gpus[0]))


def _node_power_w(evaluated: _Evaluated) -> Value:
    direct = (evaluated.result.gpu_power_w + host_w(evaluated.rates)) * _node_gpus(evaluated)
    return direct if evaluated.run.energy_scope == "node_dc" else direct / PSU_EFFICIENCY


def _energy_mwh(evaluated: _Evaluated) -> Value:
    run, gpu, result = evaluated.run, evaluated.prepared.cluster.gpu, evaluated.result
    scope = scope_of(run)
    if scope == "rated":
        return result.gpu_h * gpu.tdp_w * pue_of(run) * HOUR_S / MWH_J
    if scope == "idle":
        return result.gpu_h * (evaluated.rates.power_idle_w + host_w(evaluated.rates)) * HOUR_S / MWH_J
    joules = result.energy.gpu
    if scope == "gpu":
        return joules / MWH_J
    joules = joules + result.energy.host
    if scope in ("accelerator_system", FACILITY):
        joules = (joules + result.energy.network) * pue_of(run)
    if scope == "node_ac":
        joules = joules / PSU_EFFICIENCY
    return joules / MWH_J


_METRICS = {
    "tokens_per_s_per_gpu": _tokens_per_s,
    "step_time_s": lambda evaluated: evaluated.step_s,
    "samples_per_s": _samples_per_s,
    "tflops_per_gpu": lambda evaluated: _flop_per_s(evaluated) / TERA,
    "mfu": _mfu,
    "peak_mem_gib": _memory_gib,
    "gpu_hours": lambda evaluated: evaluated.result.gpu_h,
    "time_to_train_min": _minutes,
    "energy_mwh": _energy_mwh,
    "avg_gpu_power_w": lambda evaluated: evaluated.result.gpu_power_w,
    "avg_node_power_w": _node_power_w,
}

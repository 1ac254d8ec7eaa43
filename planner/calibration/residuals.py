"""What the fit leaves: the conformal terms of step, precision, memory and power, and the stops of whole runs.

Everything here rests on rows whose whole source was left out of the fit, or on rows that are never fitted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date

import numpy as np

from planner.calibration.fit import NOISE, Fit, Floats, Row, log_prediction, weights
from planner.evidence import EvidenceKind
from planner.performance.evaluation import evaluate
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Z90, Parameter, Parameters
from planner.rates.terms import Draws, RateSet
from planner.validation.setup import NO_PRICES, Prepared

COVERAGE = 0.90
LEAST_SD = 0.02
"""Nobody's equations are better than this."""
LEAST_ROWS, LEAST_SOURCES = 15, 3
"""A kind of run with fewer has the error of all runs."""
LOW = ("fp8", "mxfp8", "bf16", "fp16")
"""Precisions whose pairs with each other set the plain `precision_error_ratio`."""


def kind_of_run(prepared: Prepared) -> str:
    """What makes runs alike for the residual error: stack, dense or routed, and size of the job."""
    model = "moe" if prepared.recipe.model.experts else prepared.recipe.model.kind
    return f"{prepared.recipe.stack}.{model}"


def precision_rows(fit: Fit, left_out: Floats) -> list[Parameter]:
    """How far two precisions of one workload drift apart, each: from the left-out differences of pairs.

    Pairs of 16-bit with FP8 share their error evenly; what pairs with FP32 or TF32 add to that is theirs.
    """
    widths: dict[str, tuple[float, int]] = {}
    for name in ("low", "high"):
        chosen = [(i, j, w) for i, j, w in fit.pairs if _pair_kind(fit, i, j) == name]
        differences = np.array([abs(left_out[i] - left_out[j]) for i, j, _ in chosen])
        weight = np.array([w for _, _, w in chosen])
        order = np.argsort(differences)
        at = np.searchsorted(np.cumsum(weight[order]) / weight.sum(), 0.90)
        widths[name] = float(differences[order][at]) / Z90, len(chosen)
    low = widths["low"][0] / math.sqrt(2.0)
    high = math.sqrt(max(widths["high"][0] ** 2 - low**2, low**2))
    spreads = {
        "precision_error_ratio": (low, "low"),
        "precision_error_ratio.tf32": (high, "high"),
        "precision_error_ratio.fp32": (high, "high"),
    }
    return [
        _left_out_row(name, sd, f"{_PRECISION_MEANINGS[name]} ({widths[kind][1]} pairs with their source left out)")
        for name, (sd, kind) in spreads.items()
    ]


def _pair_kind(fit: Fit, i: int, j: int) -> str:
    """low: 16-bit with FP8; high: anything with FP32 or TF32."""
    precisions = {fit.items[i].prepared.run.precision, fit.items[j].prepared.run.precision}
    return "low" if precisions <= set(LOW) else "high" if precisions & {"fp32", "tf32"} else "other"


_BETWEEN_PRECISIONS = "what the equations leave out of one precision against another"
_PRECISION_MEANINGS = {
    "precision_error_ratio": _BETWEEN_PRECISIONS,
    "precision_error_ratio.tf32": f"{_BETWEEN_PRECISIONS}, TF32",
    "precision_error_ratio.fp32": f"{_BETWEEN_PRECISIONS}, FP32",
}


def conformal_sd(left_out: Floats, drawn: Floats, weight: Floats) -> float:
    """The spread that, beside each row's own drawn one, holds 90 % of the left-out residuals in the 90 % range."""
    needed = np.sqrt(np.maximum((left_out / Z90) ** 2 - drawn**2, LEAST_SD**2))
    order = np.argsort(needed)
    share = np.cumsum(weight[order]) / weight.sum()
    return float(needed[order][min(int(np.searchsorted(share, COVERAGE)), len(needed) - 1)])


def residual_error(
    fit: Fit, left_out: Floats, name: str, drawn_sd: Callable[[Prepared, Parameters], float], parameters: Parameters
) -> list[Parameter]:
    """The conformal term by kind of run: what the drawn inputs leave of the left-out residuals' 90 % width.

    A kind has a term of its own where several sources tell about it; one source says nothing of how sources differ.
    """
    kinds: dict[str, list[int]] = defaultdict(list)
    for number, item in enumerate(fit.items):
        kinds[kind_of_run(item.prepared)].append(number)
        kinds["all"].append(number)
    weight = np.array([item.weight for item in fit.items])
    drawn = np.array([drawn_sd(item.prepared, parameters) for item in fit.items])
    terms = []
    for kind, index in sorted(kinds.items()):
        few = len(index) < LEAST_ROWS or len({fit.items[i].source for i in index}) < LEAST_SOURCES
        if few and kind != "all":
            continue
        sd = conformal_sd(left_out[index], drawn[index], weight[index])
        full = name if kind == "all" else f"{name}.{kind}"
        what = "all runs" if kind == "all" else kind.replace(".", ", ")
        meaning = f"what the equations leave out: {what} ({len(index)} rows with their source left out)"
        terms.append(_left_out_row(full, sd, meaning))
    return terms


def _left_out_row(name: str, sd: float, meaning: str) -> Parameter:
    """A residual term: 1 at mid, with a spread in its logarithm."""
    return Parameter(
        id=name, value=1.0, low=math.exp(-Z90 * sd), high=math.exp(Z90 * sd), unit="ratio", meaning=meaning,
        kind=EvidenceKind.PUBLISHED, date=date.today().isoformat(),
        source="residuals of published runs with their source left out",
    )  # fmt: skip


def drawn_step_sd(prepared: Prepared, parameters: Parameters) -> float:
    """Standard deviation of the logarithm of the step under the drawn inputs.

    With the least `precision_error_ratio`, so that the rows of every precision keep their share of what is left out.
    """
    terms = dict(resolve_rates(prepared.cluster, prepared.recipe, None, parameters).terms)
    plain = parameters.find("precision_error_ratio").log_sd
    terms["precision_error_ratio"] = replace(terms["precision_error_ratio"], log_sd=plain)
    rates = RateSet(terms=terms).sample(Draws(count=201, seed=0))
    drawn = evaluate(prepared.recipe, prepared.cluster, prepared.layouts, rates, NO_PRICES, prepared.tokens)
    return float(np.log(np.ravel(drawn.step_s)).std())


def drawn_memory_sd(prepared: Prepared, parameters: Parameters) -> float:
    """The same of the peak memory."""
    rates = resolve_rates(prepared.cluster, prepared.recipe, None, parameters).sample(Draws(count=201, seed=0))
    drawn = evaluate(prepared.recipe, prepared.cluster, prepared.layouts, rates, NO_PRICES, prepared.tokens)
    return float(np.log(np.ravel(drawn.memory_bytes)).std())


def drawn_power_sd(prepared: Prepared, parameters: Parameters) -> float:
    """The same of the GPUs' power."""
    rates = resolve_rates(prepared.cluster, prepared.recipe, None, parameters).sample(Draws(count=201, seed=0))
    drawn = evaluate(prepared.recipe, prepared.cluster, prepared.layouts, rates, NO_PRICES, prepared.tokens)
    return float(np.log(np.ravel(drawn.gpu_power_w)).std())


def stops_row(corpus: Sequence[Row], prior: Parameter, parameters: Parameters) -> Parameter:
    """How much longer than their steps whole runs took, from published totals, none of which is fitted.

    Some stood still, the others not (a draw below 1 counts as 1). The spread is the one with which the drawn speed and
    the stops together put nine totals of ten, by weight, below the high end of the range.
    """
    rows = [row for row in corpus if row[0].run.group == "run_total"]
    longer = np.array([math.log(value) - log_prediction(prepared, parameters) for prepared, _, value in rows])
    stood = float(np.mean(longer > NOISE["time"]))
    order, weight = np.argsort(longer), weights(rows)
    high = float(longer[order][np.searchsorted(np.cumsum(weight[order]) / weight.sum(), COVERAGE)])
    speed, luck = np.random.default_rng(0).standard_normal((2, 20_000))
    speed *= float(np.median([drawn_step_sd(prepared, parameters) for prepared, _, _ in rows]))
    luck -= np.quantile(luck, 1.0 - stood)
    spreads = np.linspace(0.0, 1.5, 301)
    ends = np.array([np.quantile(speed + np.maximum(0.0, sd * luck), 0.95) for sd in spreads])
    sd = float(spreads[min(int(np.searchsorted(ends, high)), len(spreads) - 1)])
    value = math.exp(sd * luck.mean())
    source = f"{len(rows)} published run totals, none of which is fitted"
    low, top = (value * math.exp(side * Z90 * sd) for side in (-1, 1))
    return replace(prior, value=value, low=low, high=top, source=source, date=date.today().isoformat())

"""Fit the parameters of the model to published runs and measure what the fit cannot explain.

Three separate fits, since they share no parameters: time, memory, power (`fit.py`). Then each source is left out in
turn, the parameters are fitted to the rest, and the rows left out are predicted. Those residuals are the honest error;
what the drawn inputs do not explain of them becomes `model_error_ratio` and its siblings (`residuals.py`).
Nothing is written here: `tools/calibrate.py` does that for the shipped parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from planner.calibration.fit import (
    NOISE,
    Fit,
    Floats,
    Quantity,
    describe,
    items_of,
    log_prediction,
    moved,
    read_corpus,
)
from planner.calibration.residuals import (
    drawn_memory_sd,
    drawn_power_sd,
    drawn_step_sd,
    precision_rows,
    residual_error,
    stops_row,
)
from planner.evidence import EvidenceKind
from planner.performance.evaluation import step_of
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Z90, Parameter, Parameters, shipped_parameters
from planner.rows import CATALOG
from planner.validation.setup import Prepared

PARAMETERS = CATALOG / "parameters.csv"
TIME_METRICS = {"tokens_per_s_per_gpu": -1, "samples_per_s": -1, "tflops_per_gpu": -1, "mfu": -1, "step_time_s": 1}
"""Metrics that follow the step time alone, and how."""
POWER_METRICS = ("avg_gpu_power_w", "avg_node_power_w")


LEAST_PRIOR_SHARE = 0.5
"""Width of a fitted range over that of its prior, at least."""


def _log_step(prepared: Prepared, parameters: Parameters) -> float:
    rates = resolve_rates(prepared.cluster, prepared.recipe, None, parameters).sample()
    return float(np.log(np.ravel(step_of(prepared.recipe, prepared.cluster, prepared.layouts, rates).total)[0]))


def _names(priors: Parameters, kind: str) -> list[str]:
    """Ids of the rows that a kind of fit moves."""
    return [row.id for row in priors.rows.values() if row.log_sd > 0 and priors.families[row.family].fitted_to == kind]


def _time_sign(prepared: Prepared) -> int | None:
    return TIME_METRICS.get(prepared.run.metric) if prepared.run.group in ("throughput", "precision_pair") else None


Log = Callable[[str], object]
"""Takes one line of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a calibration found."""

    parameters: Parameters
    """Rows of `catalog/parameters.csv` in their order, new rows last."""
    report: dict[str, Any]
    """Date, errors by kind of fit and source, and the residual of each row with its source left out."""


def posterior(prior: Parameter, shift: float, sd: float, *, share: bool) -> Parameter:
    """The fitted parameter with its 90 % range.

    The posterior is too sure of itself where the model is wrong, so the range is never narrower than half of the
    prior's.

    Args:
        prior: the parameter before the fit.
        shift: how far the fit moves it, in its logarithm.
        sd: standard deviation of the posterior, in the logarithm.
        share: whether it is a share of something, so that it stays below 1.
    """
    width = Z90 * max(sd, LEAST_PRIOR_SHARE * prior.log_sd)
    low, value, high = (moved(prior.value, shift + side * width, share=share) for side in (-1, 0, 1))
    return replace(prior, value=value, low=low, high=high, prior=(prior.value, prior.low, prior.high))


def run_fit(name: str, fit: Fit, log: Log) -> tuple[list[Parameter], dict[str, object], Floats]:
    """Fit, leave sources out, report; the fitted rows, a summary, and the left-out residuals."""
    prior = fit.residuals(np.zeros(len(fit.names)))
    theta, covariance, residual, jacobian = fit.solve()
    left_out = fit.leave_out(theta, jacobian, lambda item: item.source)
    weight = np.array([item.weight for item in fit.items])
    summary: dict[str, object] = {
        "prior": describe(prior, weight),
        "fitted": describe(residual, weight),
        "left_out": describe(left_out, weight),
        "sources": {
            source: describe(left_out[rows_of], weight[rows_of])
            for source in sorted({item.source for item in fit.items})
            if len(rows_of := np.flatnonzero([item.source == source for item in fit.items]))
        },
    }
    log(f"{name}: " + ", ".join(f"{k} {v}" for k, v in summary.items() if k != "sources"))
    rows: list[Parameter] = []
    informed = np.abs(jacobian).sum(axis=0) > 1e-6
    for index, parameter in enumerate(fit.names):
        before = fit.priors.rows[parameter]
        if not informed[index]:
            continue
        shift, sd = float(theta[index]), math.sqrt(covariance[index, index])
        fitted = posterior(before, shift, sd, share=fit.is_share(parameter))
        rows.append(replace(fitted, fitted_rows=len(fit.items), date=date.today().isoformat()))
        value = fitted.value
        by_sd = shift / fit.spread[index]
        log(f"  {parameter:36} {before.value:10.4g} -> {value:10.4g}  {by_sd:+.1f} sd")
    return rows, summary, left_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One of the separate fits."""

    sign: Callable[[Prepared], int | None]
    """Sign with which the fitted quantity enters a row's residual; None: the row is not part of the fit."""
    quantity: Quantity
    error: str
    """Name of the residual term that it yields."""
    drawn_sd: Callable[[Prepared, Parameters], float]
    """Spread of a run's quantity that the drawn inputs give already."""


KINDS = {
    "time": Kind(sign=_time_sign, quantity=_log_step, error="model_error_ratio", drawn_sd=drawn_step_sd),
    "memory": Kind(
        sign=lambda prepared: 1 if prepared.run.metric == "peak_mem_gib" else None,
        quantity=log_prediction,
        error="memory_error_ratio",
        drawn_sd=drawn_memory_sd,
    ),
    "power": Kind(
        sign=lambda prepared: 1 if prepared.run.metric in POWER_METRICS else None,
        quantity=log_prediction,
        error="power_error_ratio",
        drawn_sd=drawn_power_sd,
    ),
}
"""The fits of a calibration, by name."""


def calibrate(kinds: Sequence[str], earlier: Mapping[str, Any], log: Log) -> Calibration:
    """Fit the kinds asked for and cross-validate them; the others keep their shipped rows.

    Args:
        kinds: of `KINDS`.
        earlier: the report of an earlier calibration, for the kinds that are not fitted now; may be empty.
        log: takes lines of progress.
    """
    shipped = shipped_parameters()
    priors = shipped.replaced(row.before_fit for row in shipped.rows.values())
    current = priors if set(kinds) == set(KINDS) else shipped
    report = {key: value for key, value in earlier.items() if key != "left_out_residuals"}
    residuals = dict(earlier.get("left_out_residuals", {}))
    corpus = read_corpus(current)
    for name in kinds:
        kind = KINDS[name]
        names = _names(priors, name)
        start = current.replaced(priors.rows[row] for row in names)
        items = items_of(corpus, kind.sign, kind.quantity, start)
        fit = Fit(items, names, start, kind.quantity, NOISE[name])
        fitted, summary, left_out = run_fit(name, fit, log)
        # What is drawn is what will be shipped: the fitted values with their posterior ranges.
        current = _with_residuals(kind, fit, left_out, start.replaced(fitted), priors)
        report |= {"date": date.today().isoformat(), name: summary}
        residuals[name] = {i.prepared.run.id: round(float(r), 4) for i, r in zip(items, left_out, strict=True)}
    current = current.replaced([stops_row(corpus, priors.rows["standstill_ratio"], current)])
    return Calibration(parameters=current, report=report | {"left_out_residuals": residuals})


def _with_residuals(kind: Kind, fit: Fit, left_out: Floats, fitted: Parameters, priors: Parameters) -> Parameters:
    """The fitted parameters with the residual terms that the rows left out ask for, instead of earlier ones."""
    families = (kind.error, "precision_error_ratio") if kind.error == "model_error_ratio" else (kind.error,)
    old = [
        row.id
        for row in fitted.rows.values()
        if row.family in families and row.kind == EvidenceKind.PUBLISHED and row.prior is None
    ]
    bare = fitted.without(old).replaced([replace(priors.find(kind.error), low=1.0, high=1.0)])
    rows = precision_rows(fit, left_out) if "precision_error_ratio" in families else []
    rows += residual_error(fit, left_out, kind.error, kind.drawn_sd, bare.replaced(rows))
    kept = {row.id: row for row in priors.rows.values()}
    return fitted.without(old).replaced(
        replace(row, prior=(kept[row.id].value, kept[row.id].low, kept[row.id].high)) if row.id in kept else row
        for row in rows
    )

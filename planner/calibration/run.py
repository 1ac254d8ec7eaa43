"""Fit the parameters of the model to published runs and measure what the fit cannot explain.

Three separate fits, since they share no parameters: time, memory, power (`fit.py`). Then each source is left out in
turn, the parameters are fitted to the rest, and the rows left out are predicted. Those residuals are the honest error;
what the drawn inputs do not explain of them becomes `model_error` and its siblings by kind of run (`residuals.py`).
Nothing is written here: `tools/calibrate.py` does that for the shipped parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from planner.calibration.fit import NOISE, Fit, Floats, describe, items_of, log_prediction, moved, read_corpus
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
from planner.rates.parameters import Z90, Parameter, load_parameters, read_parameters
from planner.rows import CATALOG
from planner.validation.setup import Prepared

PRIORS = CATALOG / "priors.csv"
PARAMETERS = CATALOG / "parameters.csv"
MEMORY_TERMS = ("context_gib", "nccl_gib", "fragmentation", "stored_extra", "logit_stored")
POWER_TERMS = (
    "power_idle",
    "power_matmul",
    "power_attention",
    "power_memory",
    "power_wait",
    "host_share",
    "clock_exponent",
)
OTHER_TERMS = (
    "network_share",
    "mtbf",
    "restart_s",
    "checkpoint_s",
    "evaluation_share",
    "stops",
    "model_error",
    "precision_error",
    "memory_error",
    "power_error",
    "pcie_efficiency",
    "overlap_tp",
    "expert_imbalance",
    "overlap_pp",
    "nvls",
)
TIME_METRICS = {"tokens_per_s_per_gpu": -1, "samples_per_s": -1, "tflops_per_gpu": -1, "mfu": -1, "step_time_s": 1}
"""Metrics that follow the step time alone, and how."""
POWER_METRICS = ("avg_gpu_power_w", "avg_node_power_w")


LEAST_PRIOR_SHARE = 0.5
"""Width of a fitted range over that of its prior, at least."""


def _log_step(one: Prepared) -> float:
    rates = resolve_rates(one.cluster, one.recipe).sample()
    return float(np.log(np.ravel(step_of(one.recipe, one.cluster, one.layouts, rates).total)[0]))


def _names(priors: dict[str, Parameter], kind: str) -> list[str]:
    def is_kind(name: str) -> bool:
        if name.startswith(OTHER_TERMS):
            return False
        found = "memory" if name.startswith(MEMORY_TERMS) else "power" if name.startswith(POWER_TERMS) else "time"
        return found == kind

    return [name for name, row in priors.items() if row.log_sd > 0 and is_kind(name)]


def _time_sign(one: Prepared) -> int | None:
    return TIME_METRICS.get(one.run.metric) if one.run.group in ("throughput", "precision_pair") else None


Log = Callable[[str], object]
"""Takes one line of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a calibration found."""

    parameters: dict[str, Parameter]
    """Rows of `catalog/parameters.csv` in their order, new rows last."""
    report: dict[str, Any]
    """Date, errors by kind of fit and source, and the residual of each row with its source left out."""


def posterior(prior: Parameter, shift: float, sd: float) -> Parameter:
    """The fitted parameter with its 90 % range.

    The posterior is too sure of itself where the model is wrong, so the range is never narrower than half of the
    prior's.

    Args:
        prior: the parameter before the fit.
        shift: how far the fit moves it, in its logarithm.
        sd: standard deviation of the posterior, in the logarithm.
    """
    width = Z90 * max(sd, LEAST_PRIOR_SHARE * prior.log_sd)
    low, high = (moved(prior, shift + side * width) for side in (-1, 1))
    return replace(prior, value=moved(prior, shift), low=low, high=high)


def run_fit(name: str, fit: Fit, log: Log) -> tuple[dict[str, Parameter], dict[str, object], Floats]:
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
    rows = {}
    told = np.abs(jacobian).sum(axis=0) > 1e-6
    for index, parameter in enumerate(fit.names):
        before = fit.priors[parameter]
        if not told[index]:
            continue
        shift = float(theta[index])
        rows[parameter] = posterior(before, shift, math.sqrt(covariance[index, index]))
        value = rows[parameter].value
        by_sd = shift / fit.spread[index]
        log(f"  {parameter:36} {before.value:10.4g} -> {value:10.4g}  {by_sd:+.1f} sd")
    fit.install(theta)
    return rows, summary, left_out


KINDS: dict[
    str, tuple[Callable[[Prepared], int | None], Callable[[Prepared], float], str, Callable[[Prepared], float]]
] = {
    "time": (_time_sign, _log_step, "model_error", drawn_step_sd),
    "memory": (
        lambda one: 1 if one.run.metric == "peak_mem_gib" else None,
        log_prediction,
        "memory_error",
        drawn_memory_sd,
    ),
    "power": (
        lambda one: 1 if one.run.metric in POWER_METRICS else None,
        log_prediction,
        "power_error",
        drawn_power_sd,
    ),
}
"""What is fitted: which rows, which quantity of them, the residual term it yields, and the spread already drawn."""


def calibrate(kinds: Sequence[str], earlier: Mapping[str, Any], log: Log) -> Calibration:
    """Fit the kinds asked for and cross-validate them; the others keep their shipped rows.

    Args:
        kinds: of `KINDS`.
        earlier: the report of an earlier calibration, for the kinds that are not fitted now; may be empty.
        log: takes lines of progress.
    """
    priors = read_parameters(PRIORS)
    result = dict(priors) if set(kinds) == set(KINDS) else read_parameters(PARAMETERS)
    report = {key: value for key, value in earlier.items() if key != "left_out_residuals"}
    residuals = dict(earlier.get("left_out_residuals", {}))
    installed = load_parameters()  # the cached rows that every equation reads: from here on, those of this process
    installed.clear()
    installed.update(result)
    corpus, today = read_corpus(), date.today().isoformat()
    for kind in kinds:
        keep, quantity, error, drawn = KINDS[kind]
        names = _names(priors, kind)
        installed.update({name: priors[name] for name in names})
        fit = Fit(items_of(corpus, keep, quantity), names, priors, quantity, NOISE[kind])
        rows, summary, left_out = run_fit(kind, fit, log)
        installed.update(rows)  # what is drawn is what will be shipped: the fitted values with their posterior ranges
        note = f"fitted to {len(fit.items)} published runs by `make calibrate`; prior: "
        result |= {name: replace(row, source=note + row.source, date=today) for name, row in rows.items()}
        for name in [one for one in installed if one.startswith(f"{error}.")]:
            del installed[name]  # of an earlier calibration: it would be taken for drawn
        installed[error] = replace(priors[error], low=1.0, high=1.0)
        found = precision_rows(fit, left_out, priors) if kind == "time" else []
        installed.update({row.id: row for row in found})
        found += residual_error(fit, left_out, error, drawn)
        ours = ("model_error", "precision_error") if kind == "time" else (error,)
        source = "residuals of published runs with their source left out, `make calibrate`"
        kept = {row.id for row in found} | {"precision_error.nvfp4"}
        result = {name: row for name, row in result.items() if not name.startswith(ours) or name in kept}
        result |= {row.id: replace(row, kind=EvidenceKind.PUBLISHED, source=source, date=today) for row in found}
        installed.update(result)
        report |= {"date": today, kind: summary}
        residuals[kind] = {i.prepared.run.id: round(float(r), 4) for i, r in zip(fit.items, left_out, strict=True)}
    result["stops"] = stops_row(corpus, priors["stops"])
    return Calibration(parameters=result, report=report | {"left_out_residuals": residuals})

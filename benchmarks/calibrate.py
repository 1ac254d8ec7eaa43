"""Fit the parameters of the model to published runs, once, and measure what the fit cannot explain: `make calibrate`.

Three separate fits, since they share nothing: time, memory, power (`benchmarks/fit.py`). Then whole sources are left
out, one after the other, the parameters are fitted to the rest, and the left-out rows are predicted: those residuals
are the honest error, and what the drawn inputs do not explain of them becomes `model_error` and its siblings by kind
of run (`benchmarks/residuals.py`). Writes `planner/catalog/parameters.csv` and `benchmarks/calibration.json`.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.fit import NOISE, Fit, Floats, describe, items_of, log_prediction, moved, read_corpus  # noqa: E402 - the repository is not installed
from benchmarks.residuals import (  # noqa: E402
    drawn_memory_sd,
    drawn_power_sd,
    drawn_step_sd,
    precision_rows,
    residual_error,
    stops_row,
)
from planner.evaluation import step_of  # noqa: E402
from planner.evidence import EvidenceKind  # noqa: E402
from planner.ladder import resolve_rates  # noqa: E402
from planner.parameters import Z90, Parameter, load_parameters, read_parameters  # noqa: E402
from planner.published_setup import Prepared  # noqa: E402

PRIORS = ROOT / "benchmarks" / "priors.csv"
PARAMETERS = ROOT / "planner" / "catalog" / "parameters.csv"
REPORT = ROOT / "benchmarks" / "calibration.json"
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


def run_fit(name: str, fit: Fit) -> tuple[dict[str, Parameter], dict[str, object], Floats]:
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
            source: describe(left_out[index], weight[index])
            for source in sorted({item.source for item in fit.items})
            if len(index := np.flatnonzero([item.source == source for item in fit.items]))
        },
    }
    sys.stdout.write(name + " " + json.dumps({k: v for k, v in summary.items() if k != "sources"}) + "\n")
    rows = {}
    told = np.abs(jacobian).sum(axis=0) > 1e-6
    for index, parameter in enumerate(fit.names):
        before = fit.priors[parameter]
        if not told[index]:
            continue
        value = moved(before, theta[index])
        sd = math.sqrt(covariance[index, index])
        # The posterior is too sure of itself where the model is wrong: never narrower than half of the prior.
        width = Z90 * max(sd, 0.5 * before.log_sd)
        ends = [moved(before, theta[index] + side * width) for side in (-1, 1)]
        rows[parameter] = replace(before, value=value, low=ends[0], high=ends[1])
        by_sd = theta[index] / fit.spread[index]
        sys.stdout.write(f"  {parameter:36} {before.value:10.4g} -> {value:10.4g}  {by_sd:+.1f} sd\n")
    fit.install(theta)
    return rows, summary, left_out


def write_parameters(rows: dict[str, Parameter]) -> None:
    """Write the catalogue in the order of the priors, new rows last."""
    with PARAMETERS.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["id", "value", "low", "high", "unit", "meaning", "kind", "source", "date"])
        for row in rows.values():
            figures = [f"{x:.4g}" for x in (row.value, row.low, row.high)]
            table.writerow([row.id, *figures, row.unit, row.meaning, row.kind.value, row.source, row.date])


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


def main(kinds: Sequence[str]) -> None:
    """Fit the kinds asked for, cross-validate, write; the others keep their rows."""
    priors = read_parameters(PRIORS)
    result = dict(priors) if set(kinds) == set(KINDS) else read_parameters(PARAMETERS)
    report = json.loads(REPORT.read_text(encoding="utf-8")) if REPORT.exists() else {}
    residuals = report.pop("left_out_residuals", {})
    installed = load_parameters()  # the cached rows that every equation reads: from here on, those of this process
    installed.clear()
    installed.update(result)
    corpus, today = read_corpus(), date.today().isoformat()
    for kind in kinds:
        keep, quantity, error, drawn = KINDS[kind]
        names = _names(priors, kind)
        installed.update({name: priors[name] for name in names})
        fit = Fit(items_of(corpus, keep, quantity), names, priors, quantity, NOISE[kind])
        rows, summary, left_out = run_fit(kind, fit)
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
    write_parameters(result)
    report["left_out_residuals"] = residuals
    REPORT.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name in KINDS] or list(KINDS))

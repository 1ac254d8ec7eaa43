"""Fit the parameters of the model to published runs, once, and measure what the fit cannot explain: `make calibrate`.

Maximum a posteriori in the logarithm of each parameter: the prior is `benchmarks/priors.csv` (physics, datasheets and
library facts, with their ranges), the data are the shipped published runs. Every row weighs by its series, and a
source weighs less than in proportion to its rows, so that no vendor's table decides alone. Huber loss. Three separate
fits, since they share nothing: time, memory, power.

Then whole sources are left out, one after the other, the parameters are fitted to the rest, and the left-out rows are
predicted: those residuals are the honest error, and what the drawn inputs do not explain of them becomes
`model_error` and `memory_error` by kind of run (the conformal term). Writes `planner/catalog/parameters.csv` and
`benchmarks/calibration.json`.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.evaluation import evaluate, step_of
from planner.evidence import EvidenceKind
from planner.ladder import resolve_rates
from planner.parameters import Z90, Parameter, load_parameters, read_parameters
from planner.prediction import predict_prepared
from planner.published import PublishedResult, parse_result, parse_run
from planner.published_setup import NO_PRICES, Prepared, prepare
from planner.rates import Draws, RateSet

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "planner" / "catalog" / "published_runs.csv"
PRIORS = ROOT / "benchmarks" / "priors.csv"
PARAMETERS = ROOT / "planner" / "catalog" / "parameters.csv"
REPORT = ROOT / "benchmarks" / "calibration.json"

Floats = npt.NDArray[np.float64]

NOISE = {"time": 0.10, "memory": 0.20, "power": 0.10}
"""Standard deviation of a row's own noise: single readings, rounding, allocation of nodes (3 to 5 % and more).

Peaks of one source share what its release keeps, and five sources have them: each row tells less of the others.
"""
HUBER = 0.15
SHARES = (
    "matmul_efficiency",
    "matmul_overlap",
    "attention_efficiency",
    "memory_efficiency",
    "operand_bandwidth",
    "overlap",
    "nic_efficiency",
    "nvlink_efficiency",
    "optimizer_efficiency",
    "grouped_efficiency",
)
"""Parameters that cannot exceed 1."""
STEP = 0.03
"""Finite difference in the logarithm of a parameter."""
ITERATIONS = 3
SOURCE_POWER = 0.6
"""A source with n series weighs n to this power."""
TIER_WEIGHT = {"A": 1.0, "B": 0.7, "C": 0.3}
PAIR_WEIGHT = 0.7
"""Weight of the difference of two rows of a pair, beside the rows themselves."""
COVERAGE = 0.90
LEAST_SD = 0.02
"""Nobody's equations are better than this."""
LEAST_ROWS, LEAST_SOURCES = 15, 3
"""A kind of run with fewer has the error of all runs."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One published row, ready to predict."""

    prepared: Prepared
    result: PublishedResult
    value: float
    weight: float
    base: float
    """Logarithm of prediction over publication at the prior, minus that of the fitted quantity."""
    sign: int

    @property
    def source(self) -> str:
        """Prefix of the id: one source."""
        return self.prepared.run.id.rsplit("-", 1)[0]


def read_corpus() -> list[tuple[Prepared, PublishedResult, float]]:
    """Rows that can be predicted and may teach: no flag, a number as value, no power limit left unsaid."""
    with CORPUS.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    prepared = prepare(parse_run(row, number) for number, row in enumerate(rows, 2))
    found = []
    for number, (row, one) in enumerate(zip(rows, prepared, strict=True), 2):
        result = parse_result(row, number)
        unknown_limit = "power-limited" in row["gpu"] and not row["power_limit_w"]
        if (
            isinstance(one, Prepared)
            and isinstance(result, PublishedResult)
            and not row.get("flag")
            and not unknown_limit
        ):
            try:
                found.append((one, result, float(row["value"])))
            except ValueError:
                continue  # out of memory: an inequality, not a number
    return found


def weights(rows: Sequence[tuple[Prepared, PublishedResult, float]]) -> Floats:
    """One over the size of the series, times the source's share, times the tier; mean 1."""
    series = [one.run.series or one.run.id for one, _, _ in rows]
    sizes = Counter(series)
    weight = np.array([1.0 / sizes[name] for name in series])
    source = [one.run.id.rsplit("-", 1)[0] for one, _, _ in rows]
    totals: dict[str, float] = defaultdict(float)
    for name, w in zip(source, weight, strict=True):
        totals[name] += w
    weight *= [totals[name] ** (SOURCE_POWER - 1.0) for name in source]
    weight *= [TIER_WEIGHT.get(one.run.tier or "B", 0.7) for one, _, _ in rows]
    return weight / weight.mean()


def _log_step(one: Prepared) -> float:
    rates = resolve_rates(one.cluster, one.recipe).sample()
    return float(np.log(np.ravel(step_of(one.recipe, one.cluster, one.layouts, rates).total)[0]))


def _log_prediction(one: Prepared) -> float:
    return float(np.log(predict_prepared(one).mid))


def items_of(
    rows: Sequence[tuple[Prepared, PublishedResult, float]],
    keep: Callable[[Prepared], int | None],
    quantity: Callable[[Prepared], float],
) -> list[Item]:
    """Rows of one fit; `keep` gives the sign with which the fitted quantity enters the residual, or None."""
    chosen = [(row, sign) for row in rows if (sign := keep(row[0])) is not None]
    weight = weights([row for row, _ in chosen])
    return [
        Item(
            prepared=one,
            result=result,
            value=value,
            weight=float(w),
            sign=sign,
            base=_log_prediction(one) - math.log(value) - sign * quantity(one),
        )
        for ((one, result, value), sign), w in zip(chosen, weight, strict=True)
    ]


class Fit:
    """A set of rows, the parameters they can tell about, and the least squares between them."""

    def __init__(
        self,
        items: list[Item],
        names: list[str],
        priors: dict[str, Parameter],
        quantity: Callable[[Prepared], float],
        noise: float,
    ) -> None:
        self.items, self.names, self.priors, self.quantity, self.noise = items, names, priors, quantity, noise
        self.spread = np.array([priors[name].log_sd for name in names])
        self.pairs = _pairs(items)

    def install(self, theta: Floats) -> None:
        """Set the parameters of this process: prior times exp(theta)."""
        rows = load_parameters()
        for name, shift in zip(self.names, theta, strict=True):
            prior = self.priors[name]
            rows[name] = replace(prior, value=_moved(prior, shift))

    def residuals(self, theta: Floats) -> Floats:
        """Logarithm of prediction over publication, `[row]`."""
        self.install(theta)
        return np.array([item.base + item.sign * self.quantity(item.prepared) for item in self.items])

    def jacobian(self, theta: Floats) -> Floats:
        """`[row, parameter]`, by finite differences, on two processes."""
        base = self.residuals(theta)
        moved = [theta + STEP * (np.arange(len(theta)) == j) for j in range(len(theta))]
        global _FIT  # workers inherit the fit by fork
        _FIT = self
        with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
            columns = list(pool.map(_residuals_of, moved, chunksize=4))
        return np.stack([(column - base) / STEP for column in columns], axis=1)

    def normal(self, theta: Floats, residual: Floats, jacobian: Floats, mask: Floats) -> tuple[Floats, Floats]:
        """Step towards the maximum a posteriori, and the posterior covariance."""
        robust = np.minimum(1.0, HUBER / np.maximum(np.abs(residual), 1e-9))
        w = np.array([item.weight for item in self.items]) * mask * robust / self.noise**2
        hessian = jacobian.T @ (jacobian * w[:, None]) + np.diag(1.0 / self.spread**2)
        gradient = jacobian.T @ (w * residual) + theta / self.spread**2
        for i, j, pair_weight in self.pairs:
            if mask[i] and mask[j]:
                difference, row = residual[i] - residual[j], jacobian[i] - jacobian[j]
                wp = pair_weight * min(1.0, HUBER / max(abs(difference), 1e-9)) / self.noise**2
                hessian += wp * np.outer(row, row)
                gradient += wp * difference * row
        return np.clip(-np.linalg.solve(hessian, gradient), -0.5, 0.5), np.linalg.inv(hessian)

    def solve(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Parameters, their covariance, residuals and the last Jacobian."""
        theta, everything = np.zeros(len(self.names)), np.ones(len(self.items))
        jacobian = covariance = np.zeros((0, 0))
        for _ in range(ITERATIONS):
            residual = self.residuals(theta)
            jacobian = self.jacobian(theta)
            step, covariance = self.normal(theta, residual, jacobian, everything)
            theta = theta + step
        return theta, covariance, self.residuals(theta), jacobian

    def leave_out(self, theta: Floats, jacobian: Floats, label: Callable[[Item], str]) -> Floats:
        """Residual of every row under parameters fitted without its group, `[row]`."""
        found = np.zeros(len(self.items))
        labels = np.array([label(item) for item in self.items])
        for name in sorted(set(labels)):
            mask = (labels != name).astype(np.float64)
            without = theta.copy()
            for _ in range(2):
                step, _ = self.normal(without, self.residuals(without), jacobian, mask)
                without = without + step
            found[labels == name] = self.residuals(without)[labels == name]
        return found


_FIT: Fit | None = None


def _residuals_of(theta: Floats) -> Floats:
    assert _FIT is not None
    return _FIT.residuals(theta)


def _moved(prior: Parameter, shift: float) -> float:
    """The prior moved by `shift` in the logarithm; shares bend so that they stay below 1 and keep a slope."""
    if not prior.id.startswith(SHARES) or prior.value >= 0.99:
        return prior.value * math.exp(shift)
    odds = math.log(prior.value / (1.0 - prior.value)) + shift / (1.0 - prior.value)
    return 1.0 / (1.0 + math.exp(-odds))


def _pairs(items: list[Item]) -> list[tuple[int, int, float]]:
    by_pair: dict[str, list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        if item.prepared.run.pair:
            by_pair[item.prepared.run.pair].append(index)
    return [
        (group[0], other, PAIR_WEIGHT * items[other].weight)
        for group in by_pair.values()
        for other in group[1:]
        if items[group[0]].prepared.run.precision != items[other].prepared.run.precision
    ]


def _names(priors: dict[str, Parameter], kind: str) -> list[str]:
    def is_kind(name: str) -> bool:
        if name.startswith(OTHER_TERMS):
            return False
        found = "memory" if name.startswith(MEMORY_TERMS) else "power" if name.startswith(POWER_TERMS) else "time"
        return found == kind

    return [name for name, row in priors.items() if row.log_sd > 0 and is_kind(name)]


def _time_sign(one: Prepared) -> int | None:
    return TIME_METRICS.get(one.run.metric) if one.run.group in ("throughput", "precision_pair") else None


def kind_of_run(one: Prepared) -> str:
    """What makes runs alike for the residual error: stack, dense or routed, and size of the job."""
    model = "moe" if one.recipe.model.experts else one.recipe.model.kind
    return f"{one.recipe.stack}.{model}"


def describe(residual: Floats, weight: Floats) -> dict[str, float]:
    """Median and 90th percentile of the absolute error and the bias, as ratios, by weight."""
    error = np.abs(np.expm1(residual))
    order = np.argsort(error)
    share = np.cumsum(weight[order]) / weight.sum()
    signed = np.argsort(residual)
    middle = residual[signed][np.searchsorted(np.cumsum(weight[signed]) / weight.sum(), 0.5)]
    pick = [float(error[order][min(np.searchsorted(share, q), len(error) - 1)]) for q in (0.5, 0.9)]
    return {"n": len(error), "median_abs_error": pick[0], "p90_abs_error": pick[1], "bias": float(np.expm1(middle))}


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
        value = _moved(before, theta[index])
        sd = math.sqrt(covariance[index, index])
        # The posterior is too sure of itself where the model is wrong: never narrower than half of the prior.
        width = Z90 * max(sd, 0.5 * before.log_sd)
        ends = [_moved(before, theta[index] + side * width) for side in (-1, 1)]
        rows[parameter] = replace(before, value=value, low=ends[0], high=ends[1])
        moved = theta[index] / fit.spread[index]
        sys.stdout.write(f"  {parameter:36} {before.value:10.4g} -> {value:10.4g}  {moved:+.1f} sd\n")
    fit.install(theta)
    return rows, summary, left_out


LOW = ("fp8", "mxfp8", "bf16", "fp16")
"""Precisions whose pairs with each other set the plain `precision_error`."""


def precision_rows(fit: Fit, left_out: Floats, priors: dict[str, Parameter]) -> list[Parameter]:
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
        "precision_error": (low, "low"),
        "precision_error.tf32": (high, "high"),
        "precision_error.fp32": (high, "high"),
    }
    return [
        replace(
            priors[name],
            low=math.exp(-Z90 * sd),
            high=math.exp(Z90 * sd),
            meaning=f"{priors[name].meaning} ({widths[kind][1]} pairs with their source left out)",
        )
        for name, (sd, kind) in spreads.items()
    ]


def _pair_kind(fit: Fit, i: int, j: int) -> str:
    """low: 16-bit with FP8; high: anything with FP32 or TF32."""
    both = {fit.items[i].prepared.run.precision, fit.items[j].prepared.run.precision}
    return "low" if both <= set(LOW) else "high" if both & {"fp32", "tf32"} else "other"


def conformal_sd(left_out: Floats, drawn: Floats, weight: Floats) -> float:
    """The spread that, beside each row's own drawn one, holds 90 % of the left-out residuals in the 90 % range."""
    needed = np.sqrt(np.maximum((left_out / Z90) ** 2 - drawn**2, LEAST_SD**2))
    order = np.argsort(needed)
    share = np.cumsum(weight[order]) / weight.sum()
    return float(needed[order][min(np.searchsorted(share, COVERAGE), len(needed) - 1)])


def residual_error(fit: Fit, left_out: Floats, name: str, draws_of: Callable[[Prepared], float]) -> list[Parameter]:
    """The conformal term by kind of run: what the drawn inputs leave of the left-out residuals' 90 % width.

    A kind has a term of its own where several sources tell about it; one source says nothing of how sources differ.
    """
    kinds: dict[str, list[int]] = defaultdict(list)
    for index, item in enumerate(fit.items):
        kinds[kind_of_run(item.prepared)].append(index)
        kinds["all"].append(index)
    weight = np.array([item.weight for item in fit.items])
    drawn = np.array([draws_of(item.prepared) for item in fit.items])
    found = []
    for kind, index in sorted(kinds.items()):
        few = len(index) < LEAST_ROWS or len({fit.items[i].source for i in index}) < LEAST_SOURCES
        if few and kind != "all":
            continue
        sd = conformal_sd(left_out[index], drawn[index], weight[index])
        full = name if kind == "all" else f"{name}.{kind}"
        what = "all runs" if kind == "all" else kind.replace(".", ", ")
        found.append(
            replace(
                next(iter(fit.priors.values())),
                id=full,
                value=1.0,
                low=math.exp(-Z90 * sd),
                high=math.exp(Z90 * sd),
                unit="ratio",
                meaning=f"what the equations leave out: {what} ({len(index)} rows with their source left out)",
            )
        )
    return found


def _drawn_sd(one: Prepared) -> float:
    """Standard deviation of the logarithm of the step under the drawn inputs.

    With the least `precision_error`, so that the rows of every precision keep their share of what is left out.
    """
    terms = dict(resolve_rates(one.cluster, one.recipe).terms)
    plain = load_parameters()["precision_error"].log_sd
    terms["precision_error"] = replace(terms["precision_error"], log_sd=plain)
    rates = RateSet(terms=terms).sample(Draws(count=201, seed=0))
    drawn = evaluate(one.recipe, one.cluster, one.layouts, rates, NO_PRICES, one.tokens)
    return float(np.log(np.ravel(drawn.step_s)).std())


def _drawn_memory_sd(one: Prepared) -> float:
    rates = resolve_rates(one.cluster, one.recipe).sample(Draws(count=201, seed=0))
    drawn = evaluate(one.recipe, one.cluster, one.layouts, rates, NO_PRICES, one.tokens)
    return float(np.log(np.ravel(drawn.memory_bytes)).std())


def _drawn_power_sd(one: Prepared) -> float:
    rates = resolve_rates(one.cluster, one.recipe).sample(Draws(count=201, seed=0))
    drawn = evaluate(one.recipe, one.cluster, one.layouts, rates, NO_PRICES, one.tokens)
    return float(np.log(np.ravel(drawn.gpu_power_w)).std())


def stops_row(corpus: Sequence[tuple[Prepared, PublishedResult, float]], prior: Parameter) -> Parameter:
    """How much longer than their steps whole runs took, from published totals, none of which is fitted.

    Some stood still, the others not (a draw below 1 counts as 1). The spread is the one with which the drawn speed and
    the stops together put nine totals of ten, by weight, below the high end of the range.
    """
    rows = [row for row in corpus if row[0].run.group == "run_total"]
    longer = np.array([math.log(value / predict_prepared(one).mid) for one, _, value in rows])
    stood = float(np.mean(longer > NOISE["time"]))
    order, weight = np.argsort(longer), weights(rows)
    high = float(longer[order][np.searchsorted(np.cumsum(weight[order]) / weight.sum(), COVERAGE)])
    speed, luck = np.random.default_rng(0).standard_normal((2, 20_000))
    speed *= float(np.median([_drawn_sd(one) for one, _, _ in rows]))
    luck -= np.quantile(luck, 1.0 - stood)
    spreads = np.linspace(0.0, 1.5, 301)
    ends = np.array([np.quantile(speed + np.maximum(0.0, sd * luck), 0.95) for sd in spreads])
    sd = float(spreads[min(np.searchsorted(ends, high), len(spreads) - 1)])
    value = math.exp(sd * luck.mean())
    source = f"{len(rows)} published run totals, none of which is fitted; `make calibrate`"
    low, top = (value * math.exp(side * Z90 * sd) for side in (-1, 1))
    return replace(prior, value=value, low=low, high=top, source=source, date=date.today().isoformat())


def write_parameters(rows: dict[str, Parameter]) -> None:
    """Write the catalogue in the order of the priors, new rows last."""
    with PARAMETERS.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["id", "value", "low", "high", "unit", "meaning", "kind", "source", "date"])
        for row in rows.values():
            figures = [f"{x:.4g}" for x in (row.value, row.low, row.high)]
            table.writerow([row.id, *figures, row.unit, row.meaning, row.kind.value, row.source, row.date])


ERRORS = ("model_error", "precision_error", "memory_error", "power_error")
"""Rows that are residuals, not physics."""

KINDS: dict[
    str, tuple[Callable[[Prepared], int | None], Callable[[Prepared], float], str, Callable[[Prepared], float]]
] = {
    "time": (_time_sign, _log_step, "model_error", _drawn_sd),
    "memory": (
        lambda one: 1 if one.run.metric == "peak_mem_gib" else None,
        _log_prediction,
        "memory_error",
        _drawn_memory_sd,
    ),
    "power": (
        lambda one: 1 if one.run.metric in POWER_METRICS else None,
        _log_prediction,
        "power_error",
        _drawn_power_sd,
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

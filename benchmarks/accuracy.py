"""Write `docs/accuracy.md` and its chart from the shipped published runs: `make accuracy`.

Fitted results and predictions without the row's lineage are shown side by side; the latter come from
`benchmarks/calibration.json`, which `make calibrate` writes.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from benchmarks.accuracy_chart import Point, draw
from benchmarks.accuracy_lineages import HEADERS as HEADS
from benchmarks.accuracy_lineages import (
    PLANNED_USD,
    WholeRun,
    budget_rows,
    budget_text,
    curve_rows,
    floor_text,
    left_out_rows,
    lineage_rows,
    trust_rows,
)
from benchmarks.accuracy_search import search_all
from benchmarks.pages.markdown import paragraph, percent, signed, table
from benchmarks.sweep.text import layouts_text
from planner.evidence import Z90
from planner.performance.operations import model_flop_per_token
from planner.validation.score import (
    BREAKDOWNS,
    TIMES,
    ScoredPair,
    ScoredRun,
    summarize,
    weighted_quantile,
    weights,
)
from planner.validation.setup import Prepared
from planner.validation.validate import Validation, validate
from reports.text.messages import word

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
PAGE, CHART = ROOT / "docs" / "accuracy.md", ROOT / "docs" / "accuracy.svg"
RUN_TOTALS = ROOT / "planner" / "catalog" / "run_totals.csv"
LARGE_MISS = 0.30
LABELS = {
    "by_group": "Group", "by_precision": "Precision", "by_gpu": "GPU", "by_framework": "Framework", "by_size": "Size",
    "by_year": "GPU's year", "by_stack": "Stack",
}  # fmt: skip
FEWEST = 5
"""Groups with fewer rows are not listed."""


def read(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file of this folder or the catalogue."""
    path = BENCHMARKS / name if (BENCHMARKS / name).exists() else ROOT / "planner" / "catalog" / name
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


class LeftOut:
    """Residuals of rows under parameters fitted without the row's lineage, and the stated spread."""

    def __init__(self) -> None:
        self.report = json.loads((BENCHMARKS / "calibration.json").read_text(encoding="utf-8"))
        self.date: str = self.report["date"]
        self.by_id: dict[str, float] = {name: pair[0] for name, pair in self.report["left_out"].items()}
        self.sd: dict[str, float] = {name: pair[1] for name, pair in self.report["left_out"].items()}

    def errors(self, rows: Iterable[ScoredRun]) -> tuple[np.ndarray, list[ScoredRun]]:
        """Return the signed errors, `[row]`, and the rows that have a residual."""
        scored = [row for row in rows if row.counts and row.id in self.by_id]
        return np.array([math.expm1(self.by_id[row.id]) for row in scored]), scored

    def quantiles(self, rows: Iterable[ScoredRun]) -> tuple[float | None, float | None]:
        """Return the weighted median and 90th percentile of the absolute error."""
        errors, scored = self.errors(rows)
        if not scored:
            return None, None
        weight = weights(scored)
        return weighted_quantile(np.abs(errors), weight, 0.5), weighted_quantile(np.abs(errors), weight, 0.9)

    def coverage(self, rows: Iterable[ScoredRun]) -> float | None:
        """Return the share inside the range for predictions made without the row's lineage."""
        _, scored = self.errors(rows)
        if not scored:
            return None
        inside = np.array([abs(self.by_id[row.id]) <= Z90 * self.sd[row.id] for row in scored])
        weight = weights(scored)
        return float((inside * weight).sum() / weight.sum())

    def pair_error(self, pair: ScoredPair) -> float | None:
        """Return the absolute error of the ratio between two rows of one lineage, both predicted without it."""
        first, second = (self.by_id.get(row) for row in pair.ids)
        if first is None or second is None:
            return None
        turned = -1.0 if pair.metric in TIMES else 1.0
        return abs(math.expm1(turned * (second - first)))

    def whole_runs(self, rows: Iterable[ScoredRun]) -> list[WholeRun]:
        """Return published totals with the predictions made for them without their lineage."""
        return [
            WholeRun(lineage=row.run.lineage, log_error=self.by_id[row.id], log_sd=self.sd[row.id])
            for row in rows
            if row.counts and row.id in self.by_id and row.run is not None
        ]


def summary_row(name: str, rows: list[ScoredRun], left: LeftOut) -> list[str]:
    """Return one line of a breakdown."""
    fit, (median, p90) = summarize(rows), left.quantiles(rows)
    return [
        name, str(fit.n), percent(fit.median_abs_error), percent(fit.p90_abs_error), percent(median), percent(p90),
        percent(fit.bias), percent(fit.coverage, 0), percent(left.coverage(rows), 0), percent(fit.median_width, 0),
    ]  # fmt: skip


HEADERS = (
    "rows", "median", "90th percentile", "left out: median", "left out: 90th", "bias", "in range", "left out: in range",
    "width",
)  # fmt: skip


def breakdown(validation: Validation, key: Callable[[Prepared], str], left: LeftOut, label: str) -> str:
    """Return a table of one property."""
    groups: dict[str, list[ScoredRun]] = defaultdict(list)
    for row in validation.runs:
        if row.counts and row.prepared is not None:
            groups[key(row.prepared)].append(row)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return table((label, *HEADERS), (summary_row(name, rows, left) for name, rows in ordered if len(rows) >= FEWEST))


def speed_pairs(validation: Validation) -> list[ScoredPair]:
    """Return the pairs of speeds with a published ratio."""
    return [
        pair
        for pair in validation.pairs
        if pair.published_ratio and pair.metric != "peak_mem_gib" and pair.error_ratio is not None
    ]


def median_of(errors: Iterable[float | None]) -> str:
    """Return the median of the known errors, as a percentage."""
    present = [error for error in errors if error is not None]
    return percent(float(np.median(present)) if present else None)


def pairs_table(validation: Validation, left: LeftOut) -> str:
    """Return a table of the ratios between two precisions of the same work."""
    groups: dict[tuple[str, str], list[ScoredPair]] = defaultdict(list)
    for pair in speed_pairs(validation):
        groups[pair.frm, pair.to].append(pair)
    rows = []
    by_precision = ((f"{a} to {b}", pairs) for (a, b), pairs in sorted(groups.items()))
    for name, pairs in [("all", speed_pairs(validation)), *by_precision]:
        errors, ratios = [abs(p.error_ratio or 0.0) for p in pairs], [p.published_ratio or 0.0 for p in pairs]
        inside = [pair.low <= ratio <= pair.high for pair, ratio in zip(pairs, ratios, strict=True)]
        rows.append([
            name, str(len(pairs)), f"{np.median(ratios):.2f}", median_of(errors),
            percent(float(np.quantile(errors, 0.9))), median_of(left.pair_error(pair) for pair in pairs),
            percent(float(np.mean(inside)), 0),
        ])  # fmt: skip
    heads = ("pair", "pairs", "median speed-up", "median error", "90th percentile", "left out: median", "in range")
    return table(heads, rows)


def of_group(validation: Validation, *groups: str) -> list[ScoredRun]:
    """Return the rows of these groups."""
    return [row for row in validation.runs if row.run is not None and row.run.group in groups]


def targets(validation: Validation, left: LeftOut) -> str:
    """Return a table of the targets and the results."""
    rows = []

    def line(what: str, aim: str, members: list[ScoredRun], second: bool = True) -> None:
        fit, (median, p90) = summarize(members), left.quantiles(members)
        values = [percent(fit.median_abs_error), percent(median)]
        if second:
            values = [f"{a} / {b}" for a, b in zip(values, (percent(fit.p90_abs_error), percent(p90)), strict=True)]
        rows.append([what, aim, values[0], values[1] if median is not None else "not fitted", str(fit.n)])

    stated = [row for row in of_group(validation, "throughput") if row.run and row.run.tp and row.run.pp]
    line("throughput with a stated layout, median / 90th percentile", "8% / 20%", stated)
    line("peak memory, median / 90th percentile", "8% / 20%", of_group(validation, "memory"))
    line("run totals, median", "15%", of_group(validation, "run_total"), second=False)
    line("energy and power, median", "15%", of_group(validation, "energy"), second=False)
    pairs = speed_pairs(validation)
    medians = [median_of(abs(p.error_ratio or 0.0) for p in pairs), median_of(left.pair_error(p) for p in pairs)]
    rows.append(["precision pairs, median of the ratio's error", "8%", *medians, str(len(pairs))])
    coverage = [percent(validation.overall.coverage, 0), percent(left.coverage(validation.runs), 0)]
    rows.append(["published values inside the 90% range", "85 to 95%", *coverage, str(validation.overall.n)])
    stated_memory = [row for row in validation.runs if row.out_of_memory or row.metric == "peak_mem_gib"]
    verdicts = [row for row in stated_memory if row.prediction]
    wrong = sum(row.misjudged_fit for row in verdicts)
    rows.append(
        ["wrong verdicts on whether a run fits in memory, by more than 5%", "0", str(wrong), "–", str(len(verdicts))]
    )
    return table(("", "target", "fitted", "lineage left out", "rows"), rows)


def constant_baseline(validation: Validation) -> str:
    """Compare the best single TFLOP/s per GPU for A100 clusters with the planner on the same rows."""
    rows = [
        row for row in of_group(validation, "throughput")
        if row.counts and row.prepared and row.prediction and row.run
        and row.prepared.cluster.gpu.id.startswith("a100-sxm4-80gb") and (row.run.n_gpus or 0) > 8
        and row.metric in ("step_time_s", "tokens_per_s_per_gpu") and row.prepared.recipe.model.kind == "decoder"
    ]  # fmt: skip
    rate, flops = [], []
    for row in rows:
        prepared = row.prepared
        assert prepared is not None
        assert row.published
        flop = model_flop_per_token(prepared.recipe.model, prepared.recipe.seq_len)
        tokens = prepared.recipe.tokens_per_step * prepared.batch_scale / int(prepared.layouts.gpus[0])
        rate.append(row.published if row.metric == "tokens_per_s_per_gpu" else tokens / row.published)
        flops.append(flop)
    rates = np.array(rate) * np.array(flops) / 1e12
    candidates = np.linspace(rates.min(), rates.max(), 400)
    mape = [float(np.mean(np.abs(c / rates - 1.0))) for c in candidates]
    ours = float(np.mean([abs(row.error_ratio or 0.0) for row in rows]))
    best = int(np.argmin(mape))
    return paragraph(
        f"On the {len(rows)} rows for A100 clusters of more than 8 GPUs, the best single constant "
        f"({candidates[best]:.0f} TFLOP/s per GPU, fitted to these same rows) has a mean error of "
        f"{percent(mape[best])}, mpplan one of {percent(ours)}."
    )


def peers_table(validation: Validation) -> str:
    """Return a table of mpplan and each peer on the rows that the peer supports."""
    scored = {row.id: row for row in validation.runs}
    pairs = {pair.ids: pair for pair in validation.pairs}
    rows = []
    for entry in read("peers.csv"):
        ids = tuple(entry["ids"].split())
        first = scored[ids[0]]
        assert first.run is not None
        what = f"{first.run.model}, {first.run.n_gpus} x {first.run.gpu}, {first.run.precision}"
        if len(ids) == 2:
            pair = pairs[ids]
            assert pair.published_ratio is not None
            theirs, published = float(entry["ratio"]) / pair.published_ratio - 1.0, f"{pair.published_ratio:.2f} x"
            what, ours = f"{what} to {pair.to}", pair.error_ratio
        else:
            theirs, ours, published = float(entry["error_ratio"]), first.error_ratio, f"{first.published:.4g}"
        rows.append([what, entry["quantity"], published, entry["peer"], signed(theirs),
                     signed(ours), entry["how"]])  # fmt: skip
    headers = ("run", "quantity", "published", "peer", "peer's error", "mpplan's error", "how the peer was run")
    return table(headers, rows)


def reason(row: ScoredRun, reasons: list[dict[str, str]]) -> tuple[str, str]:
    """Return kind and text of the first reason whose patterns all match."""
    assert row.run is not None
    values = {
        "source": row.id.rsplit("-", 1)[0], "model": row.run.model, "gpu": row.run.gpu, "metric": row.metric,
        "precision": row.run.precision or "",
    }  # fmt: skip
    for entry in reasons:
        exact = entry["source"] in ("", values["source"])
        if exact and all(re.search(entry[key], values[key]) for key in ("model", "gpu", "metric", "precision")):
            return entry["kind"], entry["reason"]
    return "not explained yet", ""


def misses_table(validation: Validation) -> str:
    """Return a table of rows that miss by more than 30%, grouped by configuration and reason."""
    reasons = read("miss_reasons.csv")
    groups: dict[tuple[str, ...], list[ScoredRun]] = defaultdict(list)
    for row in validation.runs:
        if row.counts and row.run is not None and abs(row.error_ratio or 0.0) > LARGE_MISS:
            kind, text = reason(row, reasons)
            groups[row.run.model, row.run.gpu, row.run.precision or "", row.metric, kind, text].append(row)
    ordered = sorted(groups.items(), key=lambda item: -max(abs(row.error_ratio or 0.0) for row in item[1]))
    rows = []
    for (model, gpu, precision, metric, kind, text), members in ordered:
        errors = [row.error_ratio or 0.0 for row in members]
        worst = max(errors, key=abs)
        ids = members[0].id if len(members) == 1 else f"{members[0].id} and {len(members) - 1} more"
        rows.append([ids, f"{model}, {gpu}, {precision}", metric, signed(worst), kind, text])
    total = sum(len(members) for members in groups.values())
    share = percent(total / max(1, validation.overall.n))
    headers = ("rows", "run", "metric", "worst error", "kind", "reason")
    return f"{total} rows ({share}) have an error above 30%.\n\n" + table(headers, rows)


def search_text(validation: Validation) -> str:
    """Return what the layout search finds on the same questions."""
    predicted = (row.prepared for row in validation.runs if row.prepared is not None and row.prediction is not None)
    results = search_all(predicted)
    gains = np.array([search.gain for search in results])
    fast, top = float(np.mean(gains >= 1 - 1e-6)), float(np.mean([search.rank <= 5 for search in results]))
    return paragraph(
        f"For {len(results)} distinct questions with a published split (tp, pp, cp, ep), the unconstrained search "
        f"finds a layout that mpplan's own model rates at least as fast as the published one in {percent(fast)} of the "
        f"cases; the published split is among its five best in {percent(top)}. The median gain that it predicts is "
        f"{percent(float(np.median(gains)) - 1)}; {sum(search.layouts for search in results):,} layouts were evaluated."
    )


def points(validation: Validation) -> list[Point]:
    """Return tokens (samples of an encoder, images) per second and GPU of every scored speed."""
    result: list[Point] = []
    for row in validation.runs:
        if not row.counts or row.prepared is None or row.prediction is None or not row.published:
            continue
        prepared, gpus = row.prepared, int(row.prepared.layouts.gpus[0])
        tokens = prepared.recipe.tokens_per_step * prepared.batch_scale / gpus
        precision = prepared.recipe.policy.precision
        if row.metric == "tokens_per_s_per_gpu":
            result.append((precision, row.published, row.prediction.mid))
        elif row.metric == "step_time_s":
            result.append((precision, tokens / row.published, tokens / row.prediction.mid))
        elif row.metric == "samples_per_s":
            result.append((precision, row.published / gpus, row.prediction.mid / gpus))
    return result


def budget(validation: Validation, left: LeftOut) -> str:
    """Return what the figures of the page mean for somebody who budgets a run."""
    whole = left.whole_runs(of_group(validation, "run_total"))
    money = table(("", f"of ${PLANNED_USD:,} in the plan"), budget_rows(whole))
    trust = table(("", "whole runs", "speeds"), trust_rows(left.report))
    return "\n".join([paragraph(budget_text(whole)), money, trust]).replace("|---|---|", "|---|---:|").rstrip()


def run_totals_text(validation: Validation, left: LeftOut) -> str:
    """Return the row that an answer states beside its high figures (`planner.answer.run_totals`)."""
    whole = left.whole_runs(of_group(validation, "run_total"))
    runs, lineages, below_high = len(whole), len({run.lineage for run in whole}), sum(run.below_high for run in whole)
    source = (
        "planner/catalog/published_runs.csv, group run_total, each predicted without its lineage (docs/accuracy.md)"
    )
    return f'runs,lineages,below_high,source,date\n{runs},{lineages},{below_high},"{source}",{left.date}\n'


def main() -> None:
    """Predict, score, write."""
    validation, left = validate(read("published_runs.csv")), LeftOut()
    CHART.write_text(draw(points(validation)), encoding="utf-8")
    RUN_TOTALS.write_text(run_totals_text(validation, left), encoding="utf-8")
    skipped: dict[str, int] = defaultdict(int)
    for row in validation.runs:
        if row.reason_skipped:
            skipped[word(row.reason_skipped)] += 1
    template = (BENCHMARKS / "accuracy.template.md").read_text(encoding="utf-8")
    page = template.format(
        rows=f"{len(validation.runs):,}",
        predicted=f"{len(validation.runs) - validation.skipped:,}",
        scored=f"{validation.overall.n:,}",
        date=left.date,
        budget=budget(validation, left),
        lineages=table(HEADS, left_out_rows(left.report)),
        each_lineage=table(("lineage", "figure", "rows", "error", "in the range", "width"), lineage_rows(left.report)),
        curve=table(HEADS, curve_rows(left.report)),
        floor=paragraph(floor_text(validation.runs)),
        targets=targets(validation, left),
        overall=table(("", *HEADERS), [summary_row("all", list(validation.runs), left)]),
        breakdowns="\n".join(breakdown(validation, BREAKDOWNS[name], left, label) for name, label in LABELS.items()),
        pairs=pairs_table(validation, left),
        search=search_text(validation),
        layouts=layouts_text(read("sweep_runs.csv"), read("sweep_crossfit.csv")),
        constant=constant_baseline(validation),
        peers=peers_table(validation),
        misses=misses_table(validation),
        skipped=table(("reason", "rows"), [(k, str(n)) for k, n in sorted(skipped.items(), key=lambda i: -i[1])]),
    )
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

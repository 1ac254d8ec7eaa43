"""Score predictions against published runs: errors by row, by pair of precisions and by group, weighted by series.

The error is `mid / published - 1`. Rows of one series are repeated measurements of one configuration with other
software; together they weigh as much as one row without a series. Flagged rows, whose source contradicts itself, are
predicted but not scored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from planner.errors import Message
from planner.evidence import Estimate
from planner.lazy import dataclass
from planner.validation.predict import Prediction
from planner.validation.runs import PublishedResult, PublishedRun, Rejected
from planner.validation.setup import Prepared

FIT_MARGIN_RATIO = 0.05
"""Margin of a misjudged fit: it counts only where the predicted peak is further than this from the GPU's memory."""

PRECISION_ORDER = ("fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4")
"""Precisions from widest to narrowest; a pair goes from an earlier to a later one."""

TIMES = ("step_time_s", "time_to_train_min")
"""Metrics whose ratio between precisions is inverted, so that it reads as a speed-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRun:
    """One row with its published value and its prediction, or the reason why there is none."""

    run: PublishedRun | None
    """None where the row could not be read."""
    id: str
    metric: str
    published: float | None
    out_of_memory: bool
    """Whether the source states that the configuration does not fit."""
    prediction: Prediction | None
    prepared: Prepared | None
    reason_skipped: str | Message | None
    learned_from: bool = False
    """Whether the prediction was learned from this very row, which then enters no score."""

    @property
    def error_ratio(self) -> float | None:
        """`mid / published - 1`; None without a prediction or a published value."""
        if self.prediction is None or not self.published:
            return None
        return self.prediction.mid / self.published - 1.0

    @property
    def inside(self) -> bool | None:
        """Whether the published value is inside the predicted range; None without a prediction or a published value."""
        if self.prediction is None or not self.published:
            return None
        return self.prediction.low <= self.published <= self.prediction.high

    @property
    def counts(self) -> bool:
        """Whether the row enters a score: predicted, published, not flagged and not learned from."""
        return self.error_ratio is not None and self.run is not None and not self.run.flag and not self.learned_from

    @property
    def misjudged_fit(self) -> bool:
        """Whether it was predicted to fit though published as out of memory, or the reverse, beyond the margin."""
        if self.prediction is None or self.run is None or self.run.flag:
            return False
        filling = self.prediction.memory_filling_ratio
        if self.out_of_memory:
            return filling < 1.0 - FIT_MARGIN_RATIO
        return self.published is not None and self.run.metric == "peak_mem_gib" and filling > 1.0 + FIT_MARGIN_RATIO


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPair:
    """The ratio between two precisions of one workload: a speed-up, or the second one's memory over the first one's."""

    pair: str
    metric: str
    frm: str
    to: str
    ids: tuple[str, str]
    published_ratio: float | None
    low: float
    mid: float
    high: float

    @property
    def error_ratio(self) -> float | None:
        """`mid / published_ratio - 1`."""
        return self.mid / self.published_ratio - 1.0 if self.published_ratio else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Scores of a set of rows; None where the set is empty."""

    n: int
    median_abs_error: float | None
    p90_abs_error: float | None
    bias: float | None
    """Median signed error."""
    coverage: float | None
    """Share of published values inside the 90 % range."""
    median_width: float | None
    """Median of `(high - low) / mid`."""


def score_runs(
    prepared: Sequence[Prepared | Rejected],
    predictions: Sequence[Prediction | Rejected],
    results: Sequence[PublishedResult | Rejected],
    learned_from: Collection[int] = (),
) -> list[ScoredRun]:
    """Combine predictions and results row by row; rows at the places that were learned from are marked."""
    scored = [_scored(p, q, r) for p, q, r in zip(prepared, predictions, results, strict=True)]
    return [replace(row, learned_from=True) if number in learned_from else row for number, row in enumerate(scored)]


def _scored(
    prepared: Prepared | Rejected, prediction: Prediction | Rejected, result: PublishedResult | Rejected
) -> ScoredRun:
    refused = next((item for item in (prepared, prediction) if isinstance(item, Rejected)), None)
    unread = result if isinstance(result, Rejected) else None
    reasons = [item.reason for item in (refused, unread) if item is not None]
    run_prepared = None if isinstance(prepared, Rejected) else prepared
    return ScoredRun(
        run=run_prepared.run if run_prepared else None,
        id=result.id,
        metric=run_prepared.run.metric if run_prepared else (refused.metric if refused else ""),
        published=None if isinstance(result, Rejected) else result.value,
        out_of_memory=not isinstance(result, Rejected) and result.out_of_memory,
        prediction=None if isinstance(prediction, Rejected) else prediction,
        prepared=run_prepared,
        reason_skipped=_together(reasons),
    )


def _together(reasons: list[str | Message]) -> str | Message | None:
    """Combine several reasons into one; None where there are none."""
    if len(reasons) > 1:
        return Message.of("skipped.reasons", reasons=tuple(reasons))
    return reasons[0] if reasons else None


def score_pairs(rows: Iterable[ScoredRun]) -> list[ScoredPair]:
    """Compare every row of a pair and metric with the first row of each wider precision, draw by draw."""
    groups: dict[tuple[str, str], list[ScoredRun]] = defaultdict(list)
    for row in rows:
        run = row.run
        if run is not None and run.pair and run.precision in PRECISION_ORDER and row.prediction and not run.flag:
            groups[run.pair, row.metric].append(row)
    pairs = []
    for members in groups.values():
        ranked = sorted(members, key=_rank)
        first = {_rank(row): row for row in reversed(ranked)}
        pairs += [_pair(wide, row) for row in ranked for rank, wide in sorted(first.items()) if rank < _rank(row)]
    return pairs


def _rank(row: ScoredRun) -> int:
    return PRECISION_ORDER.index(row.run.precision) if row.run and row.run.precision else len(PRECISION_ORDER)


def _pair(wide: ScoredRun, narrow: ScoredRun) -> ScoredPair:
    assert wide.run is not None
    assert narrow.run is not None
    top, bottom = (wide, narrow) if wide.metric in TIMES else (narrow, wide)
    assert top.prediction is not None
    assert bottom.prediction is not None
    ratio = top.prediction.values / bottom.prediction.values
    drawn = Estimate.of_draws(ratio)
    published = top.published / bottom.published if top.published and bottom.published else None
    return ScoredPair(
        pair=wide.run.pair, metric=wide.metric, frm=wide.run.precision or "", to=narrow.run.precision or "",
        ids=(wide.id, narrow.id), published_ratio=published, low=drawn.low, mid=drawn.mid, high=drawn.high,
    )  # fmt: skip


def weights(rows: Sequence[ScoredRun]) -> np.ndarray:
    """Return the weight of each row, `[row]`: each series, and each row without a series, weighs 1 in total."""
    sizes: dict[str, int] = defaultdict(int)
    names = [(row.run.series or row.id) if row.run else row.id for row in rows]
    for name in names:
        sizes[name] += 1
    return np.array([1.0 / sizes[name] for name in names])


def weighted_quantile(values: np.ndarray, weight: np.ndarray, quantile: float) -> float:
    """Return the weighted quantile, by linear interpolation between the midpoints of the cumulated weights.

    With equal weights the median is the usual one.
    """
    order = np.argsort(values)
    ordered, share = values[order], weight[order]
    position = (np.cumsum(share) - 0.5 * share) / share.sum()
    return float(np.interp(quantile, position, ordered))


def summarize(rows: Iterable[ScoredRun]) -> Summary:
    """Weighted scores of the rows that count."""
    return _summary([row for row in rows if row.counts])


def _summary(used: Sequence[ScoredRun]) -> Summary:
    """Weighted scores of rows that all count."""
    if not used:
        return Summary(n=0, median_abs_error=None, p90_abs_error=None, bias=None, coverage=None, median_width=None)
    errors = np.array([row.error_ratio for row in used], dtype=np.float64)
    inside = np.array([row.inside for row in used], dtype=np.float64)
    width = np.array([row.prediction.width_ratio for row in used if row.prediction], dtype=np.float64)
    weight = weights(used)
    return Summary(
        n=len(used),
        median_abs_error=weighted_quantile(np.abs(errors), weight, 0.5),
        p90_abs_error=weighted_quantile(np.abs(errors), weight, 0.9),
        bias=weighted_quantile(errors, weight, 0.5),
        coverage=float((inside * weight).sum() / weight.sum()),
        median_width=weighted_quantile(width, weight, 0.5),
    )


def summarize_by(rows: Iterable[ScoredRun], key: Callable[[Prepared], str]) -> dict[str, Summary]:
    """Return the scores of the rows that count by a property of the runs, the largest group first."""
    groups: dict[str, list[ScoredRun]] = defaultdict(list)
    for row in rows:
        if row.counts and row.prepared is not None:
            groups[key(row.prepared)].append(row)
    return {name: _summary(groups[name]) for name in sorted(groups, key=lambda name: (-len(groups[name]), name))}


SIZES = (
    (1e9, "under 1B"),
    (13e9, "1B to 13B"),
    (70e9, "13B to 70B"),
    (200e9, "70B to 200B"),
    (float("inf"), "200B and more"),
)
"""Classes of model size by their upper end, in parameters."""


def size_class(prepared: Prepared) -> str:
    """Return the class of the model's parameter count."""
    params = prepared.recipe.model.params_total
    return next(name for end, name in SIZES if params < end)


BREAKDOWNS: dict[str, Callable[[Prepared], str]] = {
    "by_precision": lambda p: p.recipe.policy.precision,
    "by_gpu": lambda p: p.cluster.gpu.id,
    "by_group": lambda p: p.run.group or "none",
    "by_framework": lambda p: p.framework.id,
    "by_size": size_class,
    "by_year": lambda p: str(p.cluster.gpu.year),
    "by_stack": lambda p: p.recipe.stack,
    "by_metric": lambda p: p.run.metric,
    "by_lineage": lambda p: p.run.lineage or "none",
}
"""Breakdowns of a summary by a property of the run; the year is the GPU's launch year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageVote:
    """Scores of one kind of figure with one vote per lineage: each lineage's rows are averaged first."""

    lineages: int
    mean_error: float
    """Mean over lineages of the median absolute error."""
    median_error: float
    coverage: float
    """Mean over lineages of the share inside the 90 % range."""


VOTED = {"throughput": "throughput", "precision_pair": "throughput", "memory": "memory", "energy": "energy",
         "run_total": "run_total"}  # fmt: skip
"""Kind of figure in which a row votes, by the group of the row."""


def votes(rows: Iterable[ScoredRun]) -> dict[str, LineageVote]:
    """Return the votes by kind of figure; rows without a lineage form one lineage."""
    members: dict[str, dict[str, list[ScoredRun]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.counts and row.run is not None and row.run.group in VOTED:
            members[VOTED[row.run.group]][row.run.lineage].append(row)
    return {kind: _vote(lineages.values()) for kind, lineages in sorted(members.items())}


def _vote(lineages: Iterable[list[ScoredRun]]) -> LineageVote:
    groups = list(lineages)
    errors = [float(np.median([abs(row.error_ratio or 0.0) for row in rows])) for rows in groups]
    inside = [float(np.mean([bool(row.inside) for row in rows])) for rows in groups]
    return LineageVote(
        lineages=len(groups), mean_error=float(np.mean(errors)), median_error=float(np.median(errors)),
        coverage=float(np.mean(inside)),
    )  # fmt: skip

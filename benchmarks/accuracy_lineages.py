"""The part of the page on lineages: left out, after learning, how much two differ, and what that means for a budget."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.pages.markdown import percent
from planner.evidence import Z90
from planner.rates.qualifiers import shape_key
from planner.validation.score import ScoredRun

FIGURES = {"time": "throughput", "memory": "memory", "power": "power", "run": "run totals and their energy"}
ENOUGH = 3
"""Number of rows from which a lineage on the learning curve must have learned."""
HEADERS = ("", "lineages", "error: mean", "error: median", "in the range", "width of the range")

Entry = Mapping[str, Any]
"""Result of a lineage, figure and number of learned rows in `benchmarks/calibration.json`."""


PLANNED_USD = 100_000
"""Cost in the plan of the budget examples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRun:
    """The published GPU time of a whole run compared with the prediction without its lineage."""

    lineage: str
    log_error: float
    """Logarithm of predicted over published."""
    log_sd: float
    """Standard deviation stated with the prediction, in its logarithm."""

    @property
    def actual_ratio(self) -> float:
        """GPU time of the run over the middle of its range."""
        return float(np.exp(-self.log_error))

    @property
    def high(self) -> float:
        """High end of its range over the middle."""
        return float(np.exp(Z90 * self.log_sd))

    @property
    def below_high(self) -> bool:
        """Whether the run took no more than the high end."""
        return -self.log_error <= Z90 * self.log_sd


def votes(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the scores with one vote per lineage: number, mean and median error, coverage, width."""
    errors, inside, widths = (np.array([entry[name] for entry in entries]) for name in ("error", "coverage", "width"))
    return (
        str(len(entries)), percent(float(errors.mean())), percent(float(np.median(errors))),
        percent(float(inside.mean()), 0), percent(float(np.median(widths)), 0),
    )  # fmt: skip


def left_out_rows(report: Entry) -> list[tuple[str, ...]]:
    """Return scores by figure for left-out lineages with nothing learned and every draw put through the equations."""
    groups = _by(report["drawn"], "figure")
    return [(label, *votes(groups[name])) for name, label in FIGURES.items() if name in groups]


def lineage_rows(report: Entry) -> list[tuple[str, ...]]:
    """Return the left-out scores of every lineage with at least two rows."""
    rows: list[tuple[str, ...]] = []
    for name, label in FIGURES.items():
        entries = [entry for entry in report["drawn"] if entry["figure"] == name and entry["rows"] > 1]
        for entry in sorted(entries, key=lambda entry: -entry["rows"]):
            rows.append((
                entry["lineage"], label, str(entry["rows"]), percent(entry["error"]), percent(entry["coverage"], 0),
                percent(entry["width"], 0),
            ))  # fmt: skip
    return rows


def curve_rows(report: Entry) -> list[tuple[str, ...]]:
    """Return the learning curve of the lineages that have enough rows to learn from three."""
    rows: list[tuple[str, ...]] = []
    for name, label in FIGURES.items():
        entries = [entry for entry in report["curve"] if entry["figure"] == name]
        able = {entry["lineage"] for entry in entries if entry["learned"] == ENOUGH}
        for count, members in sorted(_by(entries, "learned").items()):
            voters = [entry for entry in members if entry["lineage"] in able]
            rows += [(f"{label}, {count} learned", *votes(voters))] if voters else []
    return rows


def _by(entries: Iterable[Entry], name: str) -> dict[Any, list[Entry]]:
    groups: dict[Any, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry[name]].append(entry)
    return groups


def apart(runs: Iterable[ScoredRun]) -> list[float]:
    """Return the distance of two lineages on one question, for each pair: the absolute log ratio of their speeds.

    One question is one model (by its shape), GPU, precision, number of GPUs, sequence length and kind of training. The
    speed is tokens per second and GPU, the median of a lineage's rows.
    """
    speeds: dict[tuple[object, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in runs:
        if row.counts and row.run is not None and row.prepared is not None and row.published:
            speed = _tokens_per_s_per_gpu(row)
            if speed is not None:
                prepared = row.prepared
                key = (
                    shape_key(prepared.recipe.model), prepared.cluster.gpu.id, prepared.recipe.policy.precision,
                    row.run.n_gpus, row.run.seq_len, prepared.recipe.method,
                )  # fmt: skip
                speeds[key][row.run.lineage].append(speed)
    return [
        float(abs(np.log(np.median(lineages[first]) / np.median(lineages[second]))))
        for lineages in speeds.values()
        for first, second in combinations(sorted(lineages), 2)
    ]


def _tokens_per_s_per_gpu(row: ScoredRun) -> float | None:
    assert row.prepared is not None
    assert row.published is not None
    prepared, gpus = row.prepared, int(row.prepared.layouts.gpus[0])
    tokens = prepared.recipe.tokens_per_step * prepared.batch_scale / gpus
    if row.metric == "tokens_per_s_per_gpu":
        return row.published
    if row.metric == "step_time_s":
        return tokens / row.published
    if row.metric == "samples_per_s":
        return row.published * prepared.recipe.seq_len / gpus
    return None


def floor_text(runs: Iterable[ScoredRun]) -> str:
    """Return, in words, how much two lineages differ, and what that means for a planner that does not know the team."""
    distances = apart(runs)
    if not distances:
        return "No two lineages report one question."
    typical = float(np.expm1(np.median(distances)))
    # The best answer for both is halfway, at half of their distance from each.
    best = float(np.expm1(np.median(distances) / 2.0))
    return (
        f"In {len(distances)} pairs, two lineages report results for the same question (model, GPU, precision, number "
        f"of GPUs, sequence length): their results differ by {percent(typical)} at the median, software releases and "
        f"layouts included. A planner exactly halfway between them is off by {percent(best)} for both. Without "
        f"knowing the team, it can get closer to one only by being further off for the other."
    )


def budget_text(whole: Sequence[WholeRun]) -> str:
    """Return, in words, how much to set aside."""
    below, teams = sum(run.below_high for run in whole), len({run.lineage for run in whole})
    high = float(np.median([run.high for run in whole]))
    worst = max(run.actual_ratio for run in whole)
    share = f"All {below}" if below == len(whole) else f"{below} of them"
    return (
        f"**Set aside the high figure of the range, about {high:.1f} times the central estimate.** "
        f"mpplan predicted {len(whole)} published whole runs by {teams} teams, each without data "
        f"from its own team. {share} used no more GPU time than the high figure of their range; the worst used "
        f"{worst:.1f} times the central estimate. This covers GPU time at a fixed price. If the price is still open, "
        f"its range comes on top; a firm offer removes it. Costs other than GPUs are not included."
    )


def budget_rows(whole: Sequence[WholeRun]) -> list[tuple[str, str]]:
    """Return, in words and dollars, the costs of whole runs if the plan of each had stated the same cost."""
    ratios = np.array([run.actual_ratio for run in whole])
    return [
        ("the typical high figure of such a plan: set this aside", _usd(float(np.median([run.high for run in whole])))),
        ("half of the published runs would have cost no more than", _usd(float(np.quantile(ratios, 0.5)))),
        ("nine in ten no more than", _usd(float(np.quantile(ratios, 0.9)))),
        ("the most expensive", _usd(float(ratios.max()))),
        ("the cheapest", _usd(float(ratios.min()))),
    ]


def trust_rows(report: Entry) -> list[tuple[str, str, str]]:
    """Return how reliable whole runs and speeds are for a new team, and after runs of its own; one vote per team."""
    drawn = _by(report["drawn"], "figure")
    before, after = ([_learned(report, figure, count) for figure in ("run", "time")] for count in (0, ENOUGH))
    teams = " and ".join(str(len(entries)) for entries in after)
    lines = (
        ("how often the published result was inside the range", [drawn[figure] for figure in ("run", "time")], 3),
        ("typical error of the central estimate", [drawn[figure] for figure in ("run", "time")], 2),
        (
            f"the same, for the {teams} teams with over {ENOUGH} runs: before learning from {ENOUGH} of their runs",
            before,
            2,
        ),
        ("after", after, 2),
        ("width of their range divided by the central estimate: before", before, 4),
        ("after", after, 4),
    )

    def cell(entries: Sequence[Entry], place: int) -> str:
        return votes(entries)[place] if entries else "–"

    return [(what, cell(runs, place), cell(speeds, place)) for what, (runs, speeds), place in lines]


def _learned(report: Entry, figure: str, count: int) -> list[Entry]:
    """Return the entries of the learning curve at a count, for lineages that have enough rows."""
    entries = [entry for entry in report["curve"] if entry["figure"] == figure]
    able = {entry["lineage"] for entry in entries if entry["learned"] == ENOUGH}
    return [entry for entry in entries if entry["learned"] == count and entry["lineage"] in able]


def _usd(ratio: float) -> str:
    """Return a multiple of the plan's cost, in thousands."""
    return f"${round(ratio * PLANNED_USD, -3):,.0f}"

"""Learn from some rows of each lineage in a file, predict the others, and compare with nothing learned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.answer.document import Document
from planner.calibration.design import own_repeats
from planner.calibration.learn import learn
from planner.calibration.linear import Observation, figure_of, observe
from planner.lazy import dataclass
from planner.rates.parameters import Figure, Parameters
from planner.validation.physical_limits import checked
from planner.validation.runs import parse_result, parse_run
from planner.validation.score import ScoredRun
from planner.validation.setup import prepare
from planner.validation.validate import MeasuredOf, Validation, unmeasured, validate


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutScore:
    """Score on the held-out rows of one lineage and figure."""

    median_abs_error: float
    coverage: float
    median_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageScore:
    """Scores of one lineage and figure before and after learning, on the same held-out rows."""

    lineage: str
    figure: Figure
    rows: int
    learned_from: tuple[str, ...]
    before: HeldOutScore
    after: HeldOutScore


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedValidation:
    """A validation with parameters learned from each lineage's own rows, and the scores before and after."""

    validation: Validation
    count: int
    seed: int
    scores: tuple[LineageScore, ...]

    def mean(self, figure: Figure) -> tuple[HeldOutScore, HeldOutScore] | None:
        """Return the scores before and after, one vote per lineage; None where no lineage has the figure."""
        scores = [score for score in self.scores if score.figure is figure]
        if not scores:
            return None
        return _mean([score.before for score in scores]), _mean([score.after for score in scores])


def _mean(scores: Sequence[HeldOutScore]) -> HeldOutScore:
    return HeldOutScore(
        median_abs_error=float(np.mean([score.median_abs_error for score in scores])),
        coverage=float(np.mean([score.coverage for score in scores])),
        median_width=float(np.mean([score.median_width for score in scores])),
    )


def learn_and_validate(
    rows: Sequence[Mapping[str, str]],
    count: int,
    seed: int,
    shipped: Parameters,
    progress: Callable[[int], None] | None = None,
    measured_of: MeasuredOf = unmeasured,
) -> LearnedValidation:
    """For each lineage, learn from `count` rows of each figure and predict the others.

    Repeats (the same quantity of one configuration measured again) are either all learned from or all predicted. A
    file without lineages is treated as one lineage.

    Args:
        rows: text by column name.
        count: rows of each figure to learn from, chosen at random; none where fewer than two configurations would be
            left.
        seed: seed of the random choice.
        shipped: parameters with the joint posterior of a new lineage.
        progress: called with the number of rows predicted so far.
        measured_of: terms from records of a run's GPU, which are not learned again.
    """
    by_lineage = observations_by_lineage(rows)
    chosen = {name: choose(list(members.values()), count, seed) for name, members in by_lineage.items()}
    learned = {
        name: learn(
            [replace(own[0], measured=measured_of(own[0].prepared, shipped)) for own in groups], shipped, name
        ).parameters
        for name, groups in chosen.items()
        if groups
    }
    kept = {id(repeat) for groups in chosen.values() for repeats in groups for repeat in repeats}
    aside = {number for members in by_lineage.values() for number, o in members.items() if id(o) in kept}
    before = validate(rows, learned_from=aside, measured_of=measured_of)
    after = validate(rows, progress=progress, parameters_of=learned.get, learned_from=aside, measured_of=measured_of)
    return LearnedValidation(
        validation=after, count=count, seed=seed, scores=tuple(_scores(before.runs, after.runs, chosen))
    )


def observations_by_lineage(rows: Sequence[Mapping[str, str]]) -> dict[str, dict[int, Observation]]:
    """Return the rows that can be learned from, by lineage and place in the file (0: the first row)."""
    prepared = prepare([parse_run(cells, line=number + 2) for number, cells in enumerate(rows)])
    result: dict[str, dict[int, Observation]] = defaultdict(dict)
    for number, (cells, item) in enumerate(zip(rows, prepared, strict=True)):
        lineage = str(cells.get("lineage") or "").strip()
        observation = observe(item, checked(item, parse_result(cells)), lineage)
        if observation is not None:
            result[lineage][number] = observation
    return dict(result)


def choose(observations: Sequence[Observation], count: int, seed: int) -> list[list[Observation]]:
    """Choose `count` configurations of each figure at random; none if under two would be left.

    Returns:
        The rows of each chosen configuration and quantity, of which the first is to be learned from.
    """
    random = np.random.default_rng(seed)
    groups = [[observations[number] for number in members] for members in own_repeats(observations)]
    chosen: list[list[Observation]] = []
    for figure in Figure:
        of_figure = [group for group in groups if group[0].figure is figure]
        if count and len(of_figure) >= count + 2:
            numbers = random.choice(len(of_figure), count, replace=False)
            chosen += [of_figure[number] for number in sorted(numbers)]
    return chosen


def _scores(
    before: Sequence[ScoredRun], after: Sequence[ScoredRun], chosen: Mapping[str, Sequence[Sequence[Observation]]]
) -> list[LineageScore]:
    groups: dict[tuple[str, Figure], list[tuple[ScoredRun, ScoredRun]]] = defaultdict(list)
    for old, new in zip(before, after, strict=True):
        if new.counts and old.counts and new.run is not None:
            groups[new.run.lineage, figure_of(new.run.metric)].append((old, new))
    scores = []
    for (lineage, figure), pairs in sorted(groups.items()):
        own = tuple(group[0].run.id for group in chosen.get(lineage, ()) if group[0].figure is figure)
        if own:
            old_score, new_score = (_score([pair[side] for pair in pairs]) for side in (0, 1))
            scores.append(
                LineageScore(
                    lineage=lineage, figure=figure, rows=len(pairs), learned_from=own, before=old_score,
                    after=new_score,
                )
            )  # fmt: skip
    return scores


def _score(rows: Sequence[ScoredRun]) -> HeldOutScore:
    return HeldOutScore(
        median_abs_error=float(np.median([abs(row.error_ratio or 0.0) for row in rows])),
        coverage=float(np.mean([bool(row.inside) for row in rows])),
        median_width=float(np.median([row.prediction.width_ratio for row in rows if row.prediction])),
    )


def to_learning_document(learned: LearnedValidation) -> Document:
    """Return the part `learning` of the document `mpplan.validate/1`."""
    means = {figure.value: learned.mean(figure) for figure in Figure}
    return {
        "count": learned.count,
        "seed": learned.seed,
        "by_figure": {name: _both(*pair) for name, pair in means.items() if pair is not None},
        "lineages": [
            {
                "lineage": score.lineage, "figure": score.figure.value, "rows": score.rows,
                "learned_from": list(score.learned_from), **_both(score.before, score.after),
            }
            for score in learned.scores
        ],
    }  # fmt: skip


def _both(before: HeldOutScore, after: HeldOutScore) -> Document:
    return {
        name: {
            "median_abs_error": score.median_abs_error, "coverage": score.coverage, "median_width": score.median_width
        }
        for name, score in (("before", before), ("after", after))
    }  # fmt: skip

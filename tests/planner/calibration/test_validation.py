"""Learning from part of a file: chosen at random by series, repeats aside, scored on the rest alone."""

from __future__ import annotations

import pytest

from planner.calibration.validation import choose, learn_and_validate, observations_by_lineage, to_learning_document
from planner.rates.parameters import Figure, shipped_parameters
from planner.validation.predict import predict_prepared
from planner.validation.runs import PublishedRun, parse_run
from planner.validation.setup import Prepared, prepare_run
from tests.planner.calibration.own_runs import ROW, observation


def row(name: str, factor: float, lineage: str, **cells: str) -> dict[str, str]:
    cells = ROW | {"id": name, "lineage": lineage, "group": "throughput"} | cells
    run = parse_run(cells)
    assert isinstance(run, PublishedRun)
    prepared = prepare_run(run)
    assert isinstance(prepared, Prepared)
    return cells | {"value": str(factor * predict_prepared(prepared).mid)}


def lineage(name: str, factor: float, count: int = 6) -> list[dict[str, str]]:
    return [
        row(f"{name}-{n}", factor, name, n_gpus=str(8 * 2**n), global_batch_seqs=str(64 * 2**n)) for n in range(count)
    ]


@pytest.fixture(scope="module")
def learned():
    return learn_and_validate(lineage("slow", 0.75) + lineage("fast", 1.25), 3, 0, shipped_parameters())


def test_learning_from_three_rows_of_each_lineage_lowers_the_error_of_the_others(learned):
    before, after = learned.mean(Figure.TIME)

    assert before.median_abs_error > 0.2
    assert after.median_abs_error < 0.5 * before.median_abs_error
    assert after.median_width < before.median_width
    assert learned.mean(Figure.MEMORY) is None


def test_rows_that_were_learned_from_are_marked_and_enter_no_score(learned):
    marked = [run.id for run in learned.validation.runs if run.learned_from]
    scores = {score.lineage: score for score in learned.scores}

    assert sorted(marked) == sorted(scores["slow"].learned_from + scores["fast"].learned_from)
    assert scores["slow"].rows == 3
    assert learned.validation.overall.n == 6


def test_the_choice_is_the_seeds():
    rows = list(observations_by_lineage(lineage("a", 1.0))["a"].values())
    chosen = [[own[0].run.id for own in choose(rows, 2, seed)] for seed in (0, 0, 1)]

    assert chosen[0] == chosen[1]
    assert chosen[0] != chosen[2]


def test_repeats_are_learned_from_or_predicted_together():
    rows = [*lineage("a", 0.9, count=4), row("again", 0.9, "a", series="s"), row("once-more", 0.9, "a", series="s")]
    learned = learn_and_validate(rows, 3, 2, shipped_parameters())
    series = {run.id for run in learned.validation.runs if run.run and run.run.series}

    aside = {run.id for run in learned.validation.runs if run.learned_from}
    assert series <= aside or not series & aside


def test_rows_of_one_configuration_are_repeats_without_a_series_too():
    rows = lineage("a", 0.9, count=5)
    again = [cells | {"id": f"{cells['id']}-again"} for cells in rows]
    learned = learn_and_validate([*rows, *again], 3, 2, shipped_parameters())
    aside = {run.id.removesuffix("-again") for run in learned.validation.runs if run.learned_from}

    assert sum(run.learned_from for run in learned.validation.runs) == 6
    assert aside == set(learned.scores[0].learned_from)
    assert learned.scores[0].rows == 4


def test_a_speed_and_a_memory_under_one_name_are_two_rows():
    speeds = lineage("a", 0.9, count=6)
    memory = [row(cells["id"], 1.1, "a", **_but_result(cells), metric="peak_mem_gib") for cells in speeds]
    learned = learn_and_validate([*speeds, *memory], 3, 0, shipped_parameters())

    assert [score.rows for score in learned.scores] == [3, 3]


def _but_result(cells: dict[str, str]) -> dict[str, str]:
    return {column: text for column, text in cells.items() if column not in ("id", "lineage", "metric", "value")}


def test_a_lineage_with_too_few_rows_is_predicted_without_learning():
    learned = learn_and_validate(lineage("small", 0.8, count=3), 3, 0, shipped_parameters())

    assert learned.scores == ()
    assert learned.validation.overall.n == 3


def test_a_file_without_lineages_is_one_lineage():
    rows = [{**cells, "lineage": ""} for cells in lineage("a", 0.9) + lineage("b", 0.9)]

    assert list(observations_by_lineage(rows)) == [""]


def test_at_least_two_configurations_are_left_to_predict():
    rows = [observation(id=str(number), n_gpus=str(8 * (number + 1))) for number in range(4)]

    assert len(choose(rows, 2, 0)) == 2
    assert choose(rows, 3, 0) == []


def test_the_document_has_each_lineage_and_the_mean_of_each_figure(learned):
    document = to_learning_document(learned)

    assert document["count"] == 3
    assert set(document["by_figure"]) == {"time"}
    assert {entry["lineage"] for entry in document["lineages"]} == {"slow", "fast"}
    assert document["lineages"][0]["before"]["median_abs_error"] > document["lineages"][0]["after"]["median_abs_error"]

"""Checks on a file of own runs: what may teach, what is refused, and what would explain a value that cannot be."""

from __future__ import annotations

import pytest

from mpplan.api.calibrations import calibration_of, observed
from planner.errors import InputFileError
from tests.mpplan.commands.planning.test_validate import ROW

OWN = ROW | {"act_ckpt": "none", "pair": "", "group": ""}


def test_rows_that_may_teach_are_observed_and_the_others_named():
    observations, warnings = observed(
        [OWN, OWN | {"id": "empty", "value": ""}, OWN | {"id": "odd", "gpu": ""}], "runs.csv"
    )

    assert [observation.run.id for observation in observations] == ["x-1"]
    assert warnings == ["not learned from: empty: value: no number; odd: gpu: blank"]


def test_a_flag_is_given_as_the_reason():
    _, warnings = observed([OWN, OWN | {"id": "flagged", "flag": "does not add up"}], "runs.csv")

    assert warnings == ["not learned from: flagged: does not add up"]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"value": "7e-1"}, r"1/\d[\d,]* of what this configuration can do"),
        ({"metric": "step_time_s", "value": "90000"}, r"\d[\d,]* times what this configuration takes"),
    ],
)
def test_a_value_that_no_stack_explains_is_refused_in_words_that_fit_its_metric(cells, words):
    with pytest.raises(InputFileError, match=words):
        calibration_of([OWN | cells], source="runs.csv")


def test_a_run_with_a_bad_layout_is_learned_from_with_a_warning():
    document, warnings = calibration_of([OWN, OWN | {"id": "slow", "value": "900"}], source="runs.csv")

    assert document["runs"] == 2
    assert any(line.startswith("slow: value: 900 tokens_per_s_per_gpu is 1/") for line in warnings)


def test_nothing_is_four_times_as_fast_as_predicted():
    with pytest.raises(InputFileError, match="times what this configuration can do"):
        calibration_of([OWN | {"n_gpus": "64", "global_batch_seqs": "64", "value": "40000"}], source="runs.csv")


def test_a_document_is_worded_and_keeps_its_messages():
    document, warnings = calibration_of([OWN], source="runs.csv")

    assert warnings == []
    assert document["source"] == "runs.csv"
    assert all(isinstance(entry["words"], str) and "key" in entry["words_message"] for entry in document["learned"])

"""Checks on a file of own runs: what may teach, what is refused, and what would explain a value that cannot be."""

from __future__ import annotations

import json

import pytest

from mpplan.api.calibrations import calibration_of, observed
from planner.calibration.document import read_calibration
from planner.errors import InputFileError
from planner.rates.parameters import shipped_parameters
from planner.validation.predict import predict_prepared, run_rates
from planner.validation.runs import parse_run
from planner.validation.setup import prepare
from planner.validation.template import COLUMNS as TEMPLATE
from planner.validation.validate import DRAWS
from tests.mpplan.commands.planning.test_validate import ROW

OWN = ROW | {"act_ckpt": "none", "pair": "", "group": ""}


def test_rows_that_may_teach_are_observed_and_the_others_named():
    observations, warnings = observed(
        [OWN, OWN | {"id": "empty", "value": ""}, OWN | {"id": "odd", "gpu": ""}], "runs.csv"
    )

    assert [observation.run.id for observation in observations] == ["x-1"]
    assert warnings == ["not learned from: empty: value: no number; odd: gpu: blank"]


def test_energy_without_its_meter_is_said_to_be_that_of_the_building():
    """The GPUs' own meters, which Zeus and nvidia-smi read, show half as much; the template had no column for it."""
    energy = OWN | {"id": "e", "metric": "energy_mwh", "value": "5", "tokens_total": "100B"}

    _, blank = observed([OWN, energy, energy | {"id": "f", "pue": "1.1"}], "runs.csv")
    _, stated = observed([OWN, energy | {"energy_scope": "gpu"}], "runs.csv")

    assert blank == [
        "e, f: energy_scope: blank, taken as metered for the whole building, with a PUE of 1.1, 1.25; "
        "give gpu for the GPUs' own meters"
    ]
    assert stated == []
    assert {"energy_scope", "pue", "power_limit_w"} <= set(TEMPLATE)


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


def test_a_run_twice_as_fast_as_predicted_is_learned_from_with_a_warning():
    _, warnings = calibration_of([OWN | {"gpu": "l40s", "value": "6500"}], source="runs.csv")

    assert warnings[0].startswith("x-1: value: 6500 tokens_per_s_per_gpu is 2.")
    assert "times what this configuration can do: check it" in warnings[0]


def test_what_to_do_about_slow_runs_is_said_once():
    slow = [
        OWN | {"id": f"slow-{n}", "value": "900", "n_gpus": str(8 * (n + 2)), "global_batch_seqs": str(64 * (n + 2))}
        for n in range(7)
    ]
    _, warnings = calibration_of([OWN, *slow], source="runs.csv")

    (told,) = (line for line in warnings if "check" in line)
    assert "; slow-4: value: 900" in told
    assert told.endswith("of what this configuration can do (and 2 rows more): check them; they move what is learned")


def test_seven_copies_of_one_slow_run_are_one_run_of_little_weight():
    slow = [OWN | {"id": f"slow-{number}", "value": "900"} for number in range(7)]
    _, warnings = calibration_of([OWN, *slow], source="runs.csv")

    (told,) = (line for line in warnings if "check" in line)
    assert told.endswith("(and 2 rows more): check them; they are given little weight")


def test_a_slow_row_among_others_is_said_to_be_given_little_weight():
    usual = [OWN | {"id": f"r-{n}", "n_gpus": str(8 * n), "global_batch_seqs": str(64 * n)} for n in (2, 4, 8, 16)]
    document, warnings = calibration_of([*usual, OWN | {"id": "slow", "value": "900"}], source="runs.csv")

    assert any(line.endswith("check it; it is given little weight") for line in warnings)
    assert document["rows"][-1]["error_after"] > 0.7 * document["rows"][-1]["error_before"]


def test_what_is_beyond_the_card_is_refused_however_near_it_is():
    speed = OWN | {"act_ckpt": "full", "value": "20000"}
    memory = OWN | {"id": "x-2", "metric": "peak_mem_gib", "value": "95"}

    with pytest.raises(InputFileError, match=r"^runs.csv: x-1: value: 20,000 .* one H100 SXM5 80.GB does at most 989"):
        calibration_of([OWN, speed], source="runs.csv")
    with pytest.raises(InputFileError, match=r"^runs.csv: x-2: value: a peak of 95 GiB is more than the 79.6 GiB of"):
        calibration_of([OWN, memory], source="runs.csv")


def test_a_document_is_worded_and_keeps_its_messages():
    document, warnings = calibration_of([OWN], source="runs.csv")

    assert warnings == []
    assert document["source"] == "runs.csv"
    assert all(isinstance(entry["words"], str) and "key" in entry["words_message"] for entry in document["learned"])


def test_contradictions_beyond_five_rows_are_counted():
    rows = [OWN | {"id": f"r-{number}", "value": str(5000 + 900 * (number % 2))} for number in range(6)]

    _, warnings = calibration_of(rows, source="runs.csv")

    assert sum("disagrees with" in line for line in warnings) == 5
    assert "1 more row contradicts others" in warnings


@pytest.mark.parametrize(
    ("metric", "value", "others"),
    [("gpu_hours", "4500", {"tokens_total": "100B"}), ("avg_gpu_power_w", "450", {}), ("peak_mem_gib", "60", {})],
)
def test_a_range_is_told_as_wide_as_a_validation_shows_it(home, metric, value, others):
    """To first order it came out narrower: failures teach nothing, and no GPU draws more than its power limit."""
    row = OWN | others | {"metric": metric, "value": value}
    document, _ = calibration_of([row], source="runs.csv")
    (home / "own.json").write_text(json.dumps(document), encoding="utf-8")
    learned = read_calibration(home / "own.json", shipped_parameters()).parameters

    (run,) = prepare([parse_run(row)])
    before, after = (predict_prepared(run, DRAWS, rates=run_rates(run, rows)) for rows in (None, learned))

    (told,) = document["width_ratio"].values()
    assert told == pytest.approx(after.width_ratio / before.width_ratio, rel=1e-3)

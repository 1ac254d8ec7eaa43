import csv
import json
from dataclasses import replace

import pytest

from planner.rates.parameters import shipped_parameters
from planner.rates.terms import Draws
from planner.rows import CATALOG
from planner.validation.predict import Prediction
from planner.validation.runs import ANSWERS, COLUMNS, Rejected, parse_run
from planner.validation.setup import Prepared, prepare
from planner.validation.validate import predict_rows, to_validation_document, validate

FEW = Draws(count=21, seed=1)


@pytest.fixture(scope="module")
def corpus() -> list[dict[str, str]]:
    with (CATALOG / "published_runs.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def every(rows: list[dict[str, str]], step: int) -> list[dict[str, str]]:
    """A cross-section: all sources, groups and families, at a fraction of the time."""
    return rows[::step]


def test_blank_answers_give_the_same_predictions(corpus):
    rows = every(corpus, 29)
    blank = [row | dict.fromkeys(ANSWERS, "") for row in rows]
    told, untold = validate(rows, FEW), validate(blank, FEW)

    first = [(r.id, r.prediction and (r.prediction.low, r.prediction.mid, r.prediction.high)) for r in told.runs]
    second = [(r.id, r.prediction and (r.prediction.low, r.prediction.mid, r.prediction.high)) for r in untold.runs]
    assert first == second
    assert {r.published for r in untold.runs} == {None}
    assert untold.overall.n == 0


def test_wrong_answers_do_not_move_a_prediction(corpus):
    rows = every(corpus, 40)
    wrong = [row | {"value": "1", "second_metric": "mfu", "second_value": "0.9", "source": "elsewhere"} for row in rows]

    assert [p.mid for _, p in predict_rows(rows, None) if hasattr(p, "mid")] == [
        p.mid for _, p in predict_rows(wrong, None) if hasattr(p, "mid")
    ]


def test_a_run_s_id_pair_series_and_source_do_not_move_a_prediction(corpus):
    rows = every(corpus, 40)
    renamed = [row | {"id": f"r{i}", "pair": "", "series": "", "tier": "", "flag": ""} for i, row in enumerate(rows)]

    assert [p.mid for _, p in predict_rows(rows, None) if hasattr(p, "mid")] == [
        p.mid for _, p in predict_rows(renamed, None) if hasattr(p, "mid")
    ]


def test_the_document_is_plain_json_with_the_keys_of_the_design(corpus):
    document = json.loads(json.dumps(to_validation_document(validate(every(corpus, 25), FEW)), allow_nan=False))

    assert document["schema"] == "mpplan.validate/1"
    assert {"id", "metric", "published", "low", "mid", "high", "error_ratio", "inside", "filled", "fits_predicted",
            "fits_probability", "reason_skipped"} <= set(document["runs"][0])  # fmt: skip
    assert {"overall", "by_precision", "by_gpu", "by_group"} <= set(document["summary"])
    assert {"n", "median_abs_error", "p90_abs_error", "bias", "coverage"} <= set(document["summary"]["overall"])
    for pair in document["pairs"]:
        assert {"pair", "from", "to", "published_ratio", "low", "mid", "high", "error_ratio"} <= set(pair)


def test_nearly_every_row_that_has_what_is_needed_is_predicted(corpus):
    # docs/accuracy.md: shape (or a catalogue model), seq_len, batch, gpu, n_gpus, precision; tokens for totals, energy
    def complete(row: dict[str, str]) -> bool:
        shape = row["n_layers"] and row["hidden"] and row["n_heads"]
        batch = row["global_batch_seqs"] or row["micro_batch"]
        tokens = row["tokens_total"] or row["metric"] not in ("gpu_hours", "time_to_train_min", "energy_mwh")
        family = row["family"] == "cnn" or (shape and row["seq_len"])
        gpu = not row["gpu"].startswith("tpu")
        return bool(family and batch and row["n_gpus"] and row["precision"] and tokens and gpu)

    rows = every([row for row in corpus if complete(row)], 3)
    skipped = [result for result in prepare(parse_run(row) for row in rows) if isinstance(result, Rejected)]

    assert len(rows) > 700
    assert len(skipped) / len(rows) < 0.01, skipped


def test_the_shipped_corpus_has_no_notes_and_a_source_for_every_row(corpus):
    assert set(corpus[0]) <= set(COLUMNS) - {"notes"}
    assert len(corpus) == 4698
    assert all(row["lineage"] for row in corpus)
    assert all(len(row["source"]) > 5 for row in corpus)
    assert len({row["id"] for row in corpus}) == len(corpus)


def test_equal_configurations_are_computed_once():
    row = {"model": "Llama3-8B", "gpu": "h100-sxm5-80gb", "n_gpus": "8", "precision": "bf16", "seq_len": "8192",
           "global_batch_seqs": "8", "micro_batch": "1", "metric": "step_time_s"}  # fmt: skip
    outcomes = predict_rows([row | {"id": str(i)} for i in range(50)], None)

    assert len({id(prediction.values) for _, prediction in outcomes}) == 1
    assert [prediction.id for _, prediction in outcomes] == [str(i) for i in range(50)]


LINE = {"model": "Llama3-8B", "gpu": "h100-sxm5-80gb", "n_gpus": "8", "precision": "bf16", "seq_len": "8192",
        "global_batch_seqs": "8", "micro_batch": "1", "metric": "step_time_s", "group": "throughput",
        "value": "2.0"}  # fmt: skip


def test_rows_of_a_lineage_are_predicted_by_its_own_parameters_and_others_by_the_shipped_ones():
    known = shipped_parameters()
    slower = known.replaced([replace(known.rows["stack_error_ratio"], value=1.25)])
    rows = [LINE | {"id": name, "lineage": name} for name in ("ours", "theirs")]
    outcomes = predict_rows(rows, None, parameters_of=lambda lineage: slower if lineage == "ours" else None)
    mids = [prediction.mid for _, prediction in outcomes if isinstance(prediction, Prediction)]

    assert mids[0] == pytest.approx(1.25 * mids[1])
    assert [prepared.run.lineage for prepared, _ in outcomes if isinstance(prepared, Prepared)] == ["ours", "theirs"]


def test_rows_that_were_learned_from_are_predicted_and_enter_no_score():
    rows = [LINE | {"id": "taught"}, LINE | {"id": "asked", "value": "3.0"}]
    validation = validate(rows, None, learned_from=(0,))
    document = to_validation_document(validation)

    assert [row.learned_from for row in validation.runs] == [True, False]
    assert validation.runs[0].prediction is not None
    assert validation.overall.n == 1
    assert validation.overall.bias == pytest.approx(validation.runs[1].error_ratio)
    assert [entry["learned_from"] for entry in document["runs"]] == [True, False]


def test_every_lineage_has_one_vote_however_many_rows_it_has():
    rows = [LINE | {"id": str(i), "lineage": "many", "value": "2.0"} for i in range(9)]
    rows.append(LINE | {"id": "alone", "lineage": "few", "value": "4.0"})
    validation = validate(rows, None)
    vote = to_validation_document(validation)["summary"]["one_vote_a_lineage"]["throughput"]
    many, few = (abs(validation.runs[i].error_ratio or 0.0) for i in (0, 9))

    assert vote["lineages"] == 2
    assert vote["mean_error"] == pytest.approx((many + few) / 2)
    assert abs(many - few) > 0.01

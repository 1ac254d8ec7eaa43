import pytest

from planner.rows import CATALOG, read_rows
from planner.validation.runs import (
    ANSWERS,
    COLUMNS,
    CONFIGURATION,
    PublishedRun,
    Rejected,
    parse_result,
    parse_run,
    unlabelled,
)

ROW = {
    "id": "x-1", "group": "throughput", "model": "Llama3-8B", "precision": "bf16", "gpu": "h100-sxm5-80gb",
    "n_gpus": "8",
    "metric": "tokens_per_s_per_gpu", "value": "10000", "seq_len": "8192", "micro_batch": "1",
}  # fmt: skip


def reason(**cells: str) -> str:
    rejected = parse_run(ROW | cells)
    assert isinstance(rejected, Rejected)
    return rejected.reason


def test_a_row_becomes_a_typed_run():
    run = parse_run(ROW | {"power_limit_w": "500", "precision": "BF16"})

    assert isinstance(run, PublishedRun)
    assert (run.n_gpus, run.seq_len, run.precision, run.power_limit_w) == (8, 8192, "bf16", 500.0)
    assert run.global_batch_seqs is None


@pytest.mark.parametrize("pue", ["0.9", "0", "12.5"])
def test_a_pue_that_no_building_has_is_refused(pue):
    assert reason(pue=pue) == f"pue: `{pue}` is not a number from 1 to 5"


def test_no_answer_has_a_field_in_a_run():
    assert set(CONFIGURATION) & set(ANSWERS) == set()
    assert set(COLUMNS) == set(CONFIGURATION) | set(ANSWERS)


def test_runs_that_differ_in_labels_alone_are_one_without_them():
    labels = {"id": "x-2", "group": "memory", "pair": "p", "series": "s", "tier": "B", "flag": "odd", "lineage": "a"}
    run, labelled, other = (parse_run(ROW | cells) for cells in ({}, labels, {"n_gpus": "16"}))

    assert unlabelled(run) == unlabelled(labelled)
    assert unlabelled(run) != unlabelled(other)


def test_a_missing_column_counts_as_blank():
    run = parse_run({"id": "x", "metric": "step_time_s", "gpu": "h100-sxm5-80gb"})

    assert isinstance(run, PublishedRun)
    assert run.n_gpus is None
    assert run.precision is None


def test_counts_are_read_as_people_write_them_and_other_numbers_are_not():
    run = parse_run(ROW | {"tokens_total": "1.5T", "params_total": "8B", "seq_len": "4k", "vocab": "128,256"})

    assert isinstance(run, PublishedRun)
    assert (run.tokens_total, run.params_total, run.seq_len, run.vocab) == (1.5e12, 8e9, 4000, 128_256)
    assert reason(tokens_total="100X") == "tokens_total: `100X` is not a number of at least 0"
    assert reason(pue="1,25") == "pue: `1,25` is not a number of at least 0; with a decimal point: 1.25"
    assert reason(tp="1k") == "tp: `1k` is not a number of at least 0"


def test_commas_between_groups_of_three_digits_are_read_in_every_number():
    commas = ROW | {"n_gpus": "1,024", "seq_len": "8,192", "tokens_total": "1,500B", "power_limit_w": "1,000.5"}
    run = parse_run(commas)

    assert (run.n_gpus, run.seq_len, run.tokens_total, run.power_limit_w) == (1024, 8192, 1.5e12, 1000.5)
    assert parse_result({"id": "a", "value": "9,000"}).value == 9000.0


@pytest.mark.parametrize("text", ["0,45", "81,92", "1,0240", ",192", "8,192,"])
def test_other_commas_are_not(text):
    assert "is not a number of at least 0" in parse_run(ROW | {"seq_len": text}).reason
    assert "is not a number of at least 0" in parse_result({"id": "a", "value": text}).reason


def test_a_cell_that_is_no_number_is_named():
    assert reason(n_gpus="many") == "n_gpus: `many` is not a number of at least 0"
    assert reason(n_gpus="0") == "n_gpus: 0 must be above 0"
    assert reason(seq_len="2048.5") == "seq_len: `2048.5` is not a whole number"
    assert "micro_batch: `-1`" in reason(micro_batch="-1")
    assert "pue: `nan`" in reason(pue="nan")


def test_what_a_run_is_made_with_is_read_and_blank_where_nothing_is_said():
    cells = {"lineage": "torchtitan", "optimizer": "adamw-8bit", "offload": "optimizer", "fused_loss": "Y",
             "in_backward": "no"}  # fmt: skip
    run, bare = parse_run(ROW | cells), parse_run(ROW)

    assert isinstance(run, PublishedRun)
    assert isinstance(bare, PublishedRun)
    assert [getattr(run, name) for name in cells] == ["torchtitan", "adamw-8bit", "optimizer", "y", "no"]
    assert [getattr(bare, name) for name in cells] == ["", "", "", "", ""]


@pytest.mark.parametrize(
    ("column", "known"),
    [
        ("offload", "none, optimizer, activations"),
        ("fused_loss", "y, yes, n, no"),
        ("loss", "full, chunked, fused"),
        ("in_backward", "y, yes, n, no"),
        ("mem_kind", "allocated, reserved, device"),
    ],
)
def test_a_word_that_a_column_does_not_know_is_refused_with_the_column_s_name(column, known):
    assert reason(**{column: "Maybe"}) == f"{column}: unknown `maybe`; known are {known}"


@pytest.mark.parametrize(("loss", "fused"), [("full", "y"), ("chunked", "no"), ("Fused", "0")])
def test_two_columns_of_the_loss_that_contradict_each_other_are_refused(loss, fused):
    assert reason(loss=loss, fused_loss=fused).startswith(f"loss: `{loss.lower()}` contradicts fused_loss `")


@pytest.mark.parametrize(("loss", "fused"), [("full", "n"), ("chunked", "yes"), ("fused", "1"), ("fused", "")])
def test_two_columns_of_the_loss_may_agree(loss, fused):
    run = parse_run(ROW | {"loss": loss, "fused_loss": fused})

    assert isinstance(run, PublishedRun)
    assert run.loss == loss


@pytest.mark.parametrize(("text", "modules"), [("0", 0), ("0.0", 0), ("1", 1), ("", None)])
def test_no_module_of_multi_token_prediction_is_not_a_blank_cell(text, modules):
    run = parse_run(ROW | {"mtp_layers": text, "tp": "0"})

    assert isinstance(run, PublishedRun)
    assert (run.mtp_layers, run.tp) == (modules, None)


def test_every_wrong_cell_of_a_row_is_named():
    assert reason(n_gpus="many", seq_len="long").count(";") == 1


def test_a_metric_in_an_unknown_unit_is_refused_with_the_known_ones():
    assert reason(metric="step_time_ms").startswith("metric: unknown `step_time_ms`; known are tokens_per_s_per_gpu")


def test_a_row_without_a_gpu_or_an_id_is_refused_by_its_line():
    rejected = parse_run(ROW | {"id": "", "gpu": ""}, line=7)

    assert isinstance(rejected, Rejected)
    assert (rejected.id, rejected.reason) == ("line 7", "gpu: blank")


def test_an_out_of_memory_statement_is_an_answer_without_a_value():
    result = parse_result(ROW | {"value": "oom"})

    assert not isinstance(result, Rejected)
    assert result.out_of_memory
    assert result.value is None


def test_a_value_that_is_no_number_is_a_reason():
    result = parse_result(ROW | {"value": "fast"})

    assert isinstance(result, Rejected)
    assert result.reason == "value: `fast` is not a number of at least 0"


@pytest.mark.parametrize("value", ["1e-300", "1e300", "1e-13"])
def test_a_value_that_no_run_has_is_refused(value):
    assert parse_result(ROW | {"value": value}).reason == f"value: `{value}` is not a number between 1e-12 and 1e+15"


def test_no_whole_run_that_counts_is_a_speed_of_its_own_source_times_the_steps():
    # such a row says nothing of how long a run stands still
    rows = [row.cells for row in read_rows(CATALOG / "published_runs.csv")]
    step_s = {
        (row["source"], row["model"], row["n_gpus"], row["seq_len"], row["global_batch_seqs"]): float(row["value"])
        for row in rows
        if row["metric"] == "step_time_s"
    }
    repeated = {}
    for row in rows:
        step = step_s.get((row["source"], row["model"], row["n_gpus"], row["seq_len"], row["global_batch_seqs"]))
        if row["group"] == "run_total" and row["metric"] == "time_to_train_min" and step is not None:
            steps = float(row["tokens_total"]) / float(row["global_batch_seqs"]) / float(row["seq_len"])
            if float(row["value"]) == pytest.approx(steps * step / 60.0, rel=1e-3):
                repeated[row["id"]] = row["flag"]

    assert len(repeated) == 5  # found at all
    assert all(repeated.values())

import csv

from planner.validation import runs
from planner.validation.runs import PublishedResult, PublishedRun, parse_result, parse_run
from planner.validation.template import COLUMNS, template_text


def test_a_template_has_only_columns_that_are_read_and_all_that_are_required():
    assert set(COLUMNS) <= set(runs.COLUMNS)
    assert set(runs.REQUIRED) <= set(COLUMNS)
    assert {"value", "lineage", "flops_convention"} <= set(COLUMNS)


def test_a_template_is_comments_and_one_header_line():
    lines = template_text().splitlines()

    assert [line for line in lines if not line.startswith("# ")] == [",".join(COLUMNS)]
    assert lines[-1].startswith("id,model,precision,gpu,n_gpus,")
    assert "# tp: degree of tensor parallelism; blank: searched" in lines
    assert template_text().endswith("\n")


def test_a_line_of_a_template_is_read_as_a_run_with_its_answer():
    cells = {"id": "mine", "model": "Llama3-8B", "precision": "bf16", "gpu": "h100-sxm5-80gb", "n_gpus": "8",
             "seq_len": "8192", "micro_batch": "1", "optimizer": "adamw-8bit", "metric": "step_time_s",
             "value": "2.5"}  # fmt: skip
    header = template_text().splitlines()[-1]
    line = ",".join(cells.get(name, "") for name in header.split(","))
    (row,) = csv.DictReader([header, line])
    run, result = parse_run(row), parse_result(row)

    assert isinstance(run, PublishedRun)
    assert isinstance(result, PublishedResult)
    assert (run.id, run.n_gpus, run.optimizer, run.metric) == ("mine", 8, "adamw-8bit", "step_time_s")
    assert result.value == 2.5


def test_every_column_has_a_comment():
    assert all(COLUMNS.values())
    assert "like the seven columns below" in COLUMNS["n_layers"]
    shape = list(COLUMNS)[list(COLUMNS).index("n_layers") + 1 :][:7]
    assert shape == ["hidden", "n_heads", "n_kv_heads", "ffn_hidden", "vocab", "n_experts", "top_k"]

"""Files of runs to which rows are added, and what the user typed."""

from __future__ import annotations

import pytest

from mpplan.api.comparisons import given_of, replaced_values, with_rows
from planner.errors import InputFileError, UsageError

ROW = {"id": "a", "metric": "step_time_s", "value": "2"}


def test_flags_are_read_as_estimate_reads_them():
    given = given_of({"model": "llama-3-8b", "gpu": "h100", "gpus": "64", "price": "2.5", "precision": None})

    assert given.model is not None
    assert given.gpu is not None
    assert (given.model.name, given.gpu.id, given.gpus) == ("llama-3-8b", "h100-sxm5-80gb", 64)
    assert (given.price_usd_per_gpu_h, given.precision) == (2.5, None)
    assert given_of({"method": "QLoRA"}).method == "qlora"
    with pytest.raises(UsageError):
        given_of({"precision": "fp7"})
    with pytest.raises(UsageError):
        given_of({"method": "prayer"})


@pytest.mark.parametrize("model", ["resnet-50", "vit-b-16"])
def test_a_model_that_sees_images_is_refused(model):
    with pytest.raises(UsageError, match="vision model"):
        given_of({"model": model})


def test_columns_of_the_file_stay_and_those_that_it_lacks_are_added(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text('# note\nid,mine,metric,value\nb,"x, y",mfu,0.4\n', encoding="utf-8")

    assert with_rows(path, [ROW | {"gpu": "l4"}]).splitlines() == [
        "# note", "id,mine,metric,value,gpu", 'b,"x, y",mfu,0.4,', "a,,step_time_s,2,l4",
    ]  # fmt: skip


def test_a_file_that_a_spreadsheet_saved_keeps_its_separator(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text('# note\nID;Mine;metric;value\na;"x; y";step_time_s;3\nb;x, y;mfu;0.4\n', encoding="utf-8")

    assert with_rows(path, [ROW | {"framework": "torchtitan, stack typical"}]).splitlines() == [
        "# note", "id;Mine;metric;value;framework", "b;x, y;mfu;0.4;", "a;;step_time_s;2;torchtitan, stack typical",
    ]  # fmt: skip
    assert replaced_values(path, [ROW]) == [("a", "3", "2")]


def test_a_file_with_decimal_commas_keeps_them(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("id;metric;value;notes\nb;mfu;0,4;v1.5\n", encoding="utf-8")

    assert with_rows(path, [ROW | {"value": "2.125", "notes": "v1.5"}]).splitlines()[1:] == [
        "b;mfu;0,4;v1.5", "a;step_time_s;2,125;v1.5",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [("a,b\n1,2\n", "`id` and `metric`"), ("id,metric\n1,2,3\n", "expected 2 cells"), ("id,metric\n1\n", "2 cells"),
     ('id,metric\n"a\n', "not a CSV file"), ("id,id,metric\n", "`id` and `metric`")],
)  # fmt: skip
def test_a_file_that_is_none_of_runs_is_left_alone(tmp_path, text, words):
    path = tmp_path / "runs.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputFileError, match=words):
        with_rows(path, [ROW])


def test_a_new_file_has_the_columns_of_the_template():
    header, row = with_rows(None, [ROW]).splitlines()

    assert header.startswith("id,model,precision,gpu,n_gpus")
    assert row.startswith("a,,,")

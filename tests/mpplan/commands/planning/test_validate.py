import csv
import io
import json
import sys

import pytest

from mpplan.commands.planning.validate import _json

ROW = {
    "id": "x-1", "group": "throughput", "model": "Llama3-8B", "precision": "bf16", "gpu": "h100-sxm5-80gb",
    "n_gpus": "8",
    "seq_len": "8192", "global_batch_seqs": "8", "micro_batch": "1", "tp": "1", "pp": "1", "act_ckpt": "selective",
    "framework": "torchtitan", "metric": "tokens_per_s_per_gpu", "value": "7000", "pair": "p1",
}  # fmt: skip


def text(*rows: dict[str, str]) -> str:
    out = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return out.getvalue()


@pytest.fixture
def file(home):
    def write(*rows: dict[str, str]) -> str:
        (home / "runs.csv").write_text(text(*rows), encoding="utf-8")
        return "runs.csv"

    return write


def test_a_long_document_is_written_as_json_writes_it(monkeypatch):
    document = {"runs": [{"id": f"ä{number}", "error_ratio": None, "mid": number / 7} for number in range(50)]}
    monkeypatch.setattr("mpplan.commands.planning.validate.CHUNKS", 7)

    assert _json(document) == json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    with pytest.raises(ValueError, match="nan"):
        _json({"mid": float("nan")})


def test_the_document_has_prediction_answer_and_error(run, file):
    fp8 = ROW | {"id": "x-2", "precision": "fp8", "value": "9000"}
    result = run("validate", file(ROW, fp8), "--json", "--quiet")
    document = json.loads(result.out)

    assert (result.code, result.err) == (0, "")
    first = document["runs"][0]
    assert first["published"] == 7000
    assert first["low"] < first["mid"] < first["high"]
    assert first["error_ratio"] == pytest.approx(first["mid"] / 7000 - 1)
    assert first["fits_predicted"] is True
    (pair,) = document["pairs"]
    assert (pair["from"], pair["to"]) == ("bf16", "fp8")
    assert pair["published_ratio"] == pytest.approx(9000 / 7000)
    assert 1.0 < pair["mid"] < 2.0


def test_an_out_of_memory_row_has_a_verdict_and_no_error(run, file):
    large = ROW | {"model": "Llama3-70B", "metric": "peak_mem_gib", "value": "OOM", "act_ckpt": "none"}
    row = json.loads(run("validate", file(large), "--json", "--quiet").out)["runs"][0]

    assert row["out_of_memory"] is True
    assert row["published"] is None
    assert row["fits_predicted"] is False
    assert row["error_ratio"] is None


def test_the_table_says_how_many_were_predicted_and_why_not(run, file):
    result = run("validate", file(ROW, ROW | {"id": "x-2", "gpu": "h900"}, ROW | {"id": "x-3", "seq_len": ""}))

    assert result.code == 0
    assert "3 runs: 1 predicted, 2 skipped, 1 scored (repeats of one configuration count as one run)" in result.out
    assert "unknown GPU `h900`; did you mean" in result.out
    assert "seq_len: blank" in result.out
    assert "median error" in result.out
    assert "rows/s" in result.err


def test_what_no_card_can_do_is_scored_and_named(run, file):
    full = ROW | {"id": "x-2", "metric": "peak_mem_gib", "value": "81920"}
    result = run("validate", file(ROW, ROW | {"id": "x-3", "value": "21000"}, full))

    assert "3 runs: 3 predicted, 0 skipped" in result.out
    assert "warning: x-3: value: 21,000 tokens_per_s_per_gpu would need" in result.err
    assert "one H100 SXM5 80 GB does at most 989.0 in BF16; it counts like any other row" in result.err
    assert "warning: x-2: value: a peak of 81,920 GiB is more than the 79.6 GiB" in result.err
    assert "x-1" not in result.err


def test_a_batch_that_cannot_be_on_its_gpus_is_warned_about_and_scored(run, file):
    rows = [ROW | {"id": "few", "global_batch_seqs": "3"}, ROW | {"id": "uneven", "global_batch_seqs": "20"}]
    result = run("validate", file(*rows, ROW), "--json")

    few = "global_batch_seqs: 8 data-parallel ranks with micro_batch 1 need at least 8 sequences per step; 3 is too few"
    assert f"few: {few}; it counts like any other row" in result.err
    assert "uneven: global_batch_seqs: 20 sequences do not divide evenly over 8 data-parallel ranks" in result.err
    assert "x-1:" not in result.err
    assert all(row["mid"] for row in json.loads(result.out)["runs"])


def test_every_row_is_printed_when_asked_for(run, file):
    result = run("validate", file(ROW, ROW | {"id": "x-2"}), "--all", "--quiet")

    assert [line.split()[0] for line in result.out.splitlines() if line.startswith("x-")] == ["x-1", "x-2"]


def test_one_row_is_one_row(run, file):
    result = run("validate", file(ROW))

    assert "1 run: 1 predicted" in result.out
    assert result.err.startswith("1 row in ")


def test_stdin_is_read(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text(ROW).encode())))
    result = run("validate", "-", "--json", "--quiet")

    assert result.code == 0
    assert json.loads(result.out)["runs"][0]["id"] == "x-1"


def test_the_document_can_go_to_a_file(run, file, home):
    result = run("validate", file(ROW), "--json", "-o", "scores.json", "--quiet")

    assert (result.code, result.out) == (0, "")
    assert json.loads((home / "scores.json").read_text(encoding="utf-8"))["schema"] == "mpplan.validate/1"


@pytest.mark.parametrize(
    ("values", "warns"), [(("nan", "0"), True), (("nan", "7000"), False), (("", "0"), False), (("OOM", "nan"), False)]
)
def test_a_file_without_a_row_that_could_be_predicted_is_warned_about(run, file, values, warns):
    result = run("validate", file(*(ROW | {"id": f"r-{value}", "value": value} for value in values)))

    assert result.code == 0
    assert ("warning: no row could be predicted; every row gives its reason" in result.err) is warns


def test_cells_that_are_no_numbers_and_unknown_units_are_reasons_not_crashes(run, file):
    rows = [
        ROW | {"id": "a", "n_gpus": "eight"},
        ROW | {"id": "b", "metric": "step_time_ms"},
        ROW | {"id": "c", "value": "fast"},
        ROW | {"id": "d", "precision": "int3"},
        ROW | {"id": "e", "seq_len": "0"},
        ROW | {"id": "f", "tp": "3"},
    ]
    result = run("validate", file(*rows), "--json", "--quiet")
    reasons = {row["id"]: row["reason_skipped"] for row in json.loads(result.out)["runs"]}

    assert result.code == 0
    assert reasons["a"].startswith("n_gpus: `eight`")
    assert reasons["b"].startswith("metric: unknown `step_time_ms`")
    assert reasons["c"] == "value: `fast` is not a number of at least 0"
    assert reasons["d"] == "precision: unknown `int3`"
    assert reasons["e"] == "seq_len: blank"
    assert reasons["f"] == "layout: tp x pp x cp = 3 does not divide 8 GPUs"


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"", 3, "expected a header line, found nothing"),
        (b"id,model,precision,gpu,n_gpus\n", 3, "metric: expected a column of this name"),
        (b"id,model,precision,gpu,n_gpus,metric\n", 3, "expected a row, found none"),
        (b"\xff\xfe\x00id", 3, "expected text in UTF-8"),
        (b'id,model,precision,gpu,n_gpus,metric\n"a,b\n', 3, "not a CSV file"),
    ],
)
def test_a_file_that_is_no_list_of_runs_is_one_error_with_a_hint(run, home, content, code, message):
    (home / "bad.csv").write_bytes(content)
    result = run("validate", "bad.csv")

    assert result.code == code
    assert result.err.startswith("error: bad.csv")
    assert message in result.err
    assert "hint: " in result.err
    assert "Traceback" not in result.err


def test_a_missing_file_is_a_usage_error(run):
    result = run("validate", "nowhere.csv")

    assert result.code == 2
    assert "cannot read `nowhere.csv`" in result.err


@pytest.mark.long
def test_tens_of_thousands_of_rows_of_few_configurations_are_answered(run, file):
    rows = [ROW | {"id": f"r{i}", "micro_batch": str(1 + i % 2), "value": str(6000 + i % 1000)} for i in range(30_000)]
    result = run("validate", file(*rows), "--quiet")

    assert result.code == 0
    assert "30000 runs: 30000 predicted, 0 skipped" in result.out


def test_of_very_many_rows_that_cannot_be_read_the_first_twenty_are_named(run, home) -> None:
    header = "id,model,precision,gpu,n_gpus,metric,value"
    junk = [f"j{number},?,bf16,h100-sxm5-80gb,x,mfu,0.4" for number in range(3000)]  # more than one chunk
    (home / "junk.csv").write_text("\n".join((header, *junk)) + "\n", encoding="utf-8")

    result = run("validate", "junk.csv", "--all")

    assert result.code == 0
    assert "3000 runs: 0 predicted, 3000 skipped" in result.out
    assert sum(line.lstrip().startswith("j") for line in result.out.splitlines()) == 20
    assert "and 2,980 more rows that cannot be read" in result.out

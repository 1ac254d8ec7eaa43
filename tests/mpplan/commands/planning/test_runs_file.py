"""Reading a file of runs: its cells, and the columns that no such file has."""

from __future__ import annotations

import pytest

from mpplan.commands.planning.runs_file import read_runs
from planner.errors import InputFileError
from planner.rows import CATALOG
from planner.validation.runs import COLUMNS
from tests.mpplan.commands.planning.test_validate import ROW, text


def test_rows_hold_the_cells_that_are_filled_and_comments_and_chunks_cost_none(home) -> None:
    rows = "".join(f"r{number},m,,h100,8,mfu,\n" for number in range(4001))
    text = "\ufeff# a comment\n# another\nid, model ,precision,gpu,n_gpus,metric,value\n" + rows
    (home / "runs.csv").write_text(text, encoding="utf-8")

    read = read_runs("runs.csv")

    assert len(read) == 4001
    assert read[-1] == {"id": "r4000", "model": "m", "gpu": "h100", "n_gpus": "8", "metric": "mfu"}


HEADER = "id,model,precision,gpu,n_gpus,metric,value"


def test_commas_at_the_end_of_a_row_shift_no_column(home):
    (home / "runs.csv").write_text(
        f"{HEADER}\na,m,bf16,h100,8,mfu,0.4,\nb,m,bf16,h100,8,mfu,0.4,,,\nc,m,bf16,h100,8,mfu\n"
    )

    first, second, third = read_runs("runs.csv")

    assert first == {
        "id": "a", "model": "m", "precision": "bf16", "gpu": "h100", "n_gpus": "8", "metric": "mfu", "value": "0.4",
    }  # fmt: skip
    assert second == first | {"id": "b"}
    assert third == {name: cell for name, cell in first.items() if name != "value"} | {"id": "c"}


def test_a_row_with_more_cells_than_columns_is_an_error_with_its_line(home):
    (home / "runs.csv").write_text(f"# note\n{HEADER}\na,m,bf16,h100,8,mfu,0.4\n\nb,m, x,bf16,h100,8,mfu,0.4\n")

    with pytest.raises(InputFileError, match=r"runs\.csv:5: expected 7 cells, found 8") as caught:
        read_runs("runs.csv")
    assert caught.value.hint == "quote cells that contain a comma"


@pytest.mark.parametrize(("separator", "called"), [(";", "semicolon"), ("\t", "tab")])
def test_cells_are_separated_by_what_separates_the_header(home, separator, called):
    rows = (HEADER, "a,m,bf16,h100,8,mfu,0.4", 'b,"m, of ours",bf16,h100,8,mfu,0.5')
    header, first, second = (line.replace('"', "").replace(",", separator) for line in rows)
    second = second.replace(f"m{separator} of", "m, of")
    (home / "runs.csv").write_text(f"# id, model: as they are\n\n{header}\n{first}\n{second}\n")

    plain, quoted = read_runs("runs.csv")

    assert (plain["model"], plain["value"], quoted["model"], quoted["value"]) == ("m", "0.4", "m, of ours", "0.5")
    (home / "runs.csv").write_text(f"{header}\n{first}{separator}1\n")
    with pytest.raises(InputFileError) as caught:
        read_runs("runs.csv")
    assert caught.value.hint == f"quote cells that contain a {called}"


def test_names_of_columns_may_be_in_capitals(home, capsys):
    (home / "runs.csv").write_text(f"{HEADER.upper()},Seq_Len\na,m,bf16,h100,8,mfu,0.4,8192\n")

    assert read_runs("runs.csv")[0] == {
        "id": "a", "model": "m", "precision": "bf16", "gpu": "h100", "n_gpus": "8", "metric": "mfu", "value": "0.4",
        "seq_len": "8192",
    }  # fmt: skip
    assert capsys.readouterr().err == ""


def test_of_two_columns_of_one_name_the_first_is_read(home, capsys):
    (home / "runs.csv").write_text(f"{HEADER},value\na,m,bf16,h100,8,mfu,0.4,0.9\n")

    assert read_runs("runs.csv")[0]["value"] == "0.4"
    assert "`value.1`" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["validate", "calibrate"])
def test_columns_that_no_run_has_are_named_with_what_may_be_meant(run, home, command):
    row = {name: cell for name, cell in ROW.items() if name != "pair"}
    (home / "runs.csv").write_text(text(row | {"lineag": "us", "qqq": "1", "tokens_per_sec_per_gpu": "7000"}))

    warned = next(line for line in run(command, "runs.csv").err.splitlines() if "runs.csv:1:" in line)

    assert "`lineag` (did you mean `lineage`?), `qqq`, `tokens_per_sec_per_gpu` (did you mean" in warned
    assert "`tokens_per_s_per_gpu`, whose name belongs in `metric` and its figure in `value`?)" in warned
    assert warned.endswith("are not columns of a file of runs: not read")
    assert "runs.csv:1:" not in run(command, "runs.csv", "--quiet").err


def test_of_very_many_strange_columns_five_are_named_and_of_one_that_is_known_none(home, capsys):
    (home / "runs.csv").write_text(text(ROW | {f"qq{number}": "1" for number in range(8)}))
    read_runs("runs.csv")
    assert "`qq4` and 3 more are not columns" in capsys.readouterr().err

    (home / "runs.csv").write_text(text(ROW | dict.fromkeys(COLUMNS, "") | ROW | {"": "a comma at the end"}))
    read_runs("runs.csv")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["published_runs.csv", "sweep_runs.csv"])
def test_the_shipped_files_have_no_strange_column(name, capsys):
    read_runs(str(CATALOG / name))

    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        ("id,model,precision,gpu,n_gpus", "add the column metric; docs/accuracy.md describes it"),
        ("id,model,precision,gpu", "add the columns n_gpus, metric; docs/accuracy.md describes them"),
    ],
)
def test_missing_columns_are_named_in_the_hint(home, header, hint):
    (home / "runs.csv").write_text(f"{header}\n{'x,' * header.count(',')}x\n", encoding="utf-8")

    with pytest.raises(InputFileError) as caught:
        read_runs("runs.csv")
    assert caught.value.hint == hint


EUROPEAN = [
    "a;m;bf16;h100;16;mfu;0,425",
    "b;m;bf16;h100;1.024;step_time_s;1,234",
    "c;m;bf16;h100;8;step_time_s;1.234,5",
]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("separator", [";", "\t"])
def test_numbers_of_a_file_with_decimal_commas_are_read_with_points(home, separator, encoding):
    content = "\r\n".join([HEADER.replace(",", ";"), *EUROPEAN]).replace(";", separator)
    (home / "runs.csv").write_bytes(content.encode(encoding))

    rows = read_runs("runs.csv")

    assert [(row["n_gpus"], row["value"]) for row in rows] == [("16", "0.425"), ("1024", "1.234"), ("8", "1234.5")]


def test_between_commas_and_beside_decimal_points_a_comma_separates_thousands(home):
    (home / "runs.csv").write_text(f'{HEADER}\na,m,bf16,h100,"1,024",step_time_s,1.234\n')
    assert [(row["n_gpus"], row["value"]) for row in read_runs("runs.csv")] == [("1,024", "1.234")]
    semicolons = HEADER.replace(",", ";")
    (home / "runs.csv").write_text(f"{semicolons}\na;m;bf16;h100;1,024;step_time_s;1.234\nb;m;bf16;h100;8;mfu;0.4\n")
    assert read_runs("runs.csv")[0]["n_gpus"] == "1,024"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (["a;m;bf16;h100;8;mfu;0,425", "b;m;bf16;h100;8;mfu;0.425"],
         r"runs\.csv:3: value: expected one decimal mark in the whole file, found `0\.425` here and `0,425` in "),
        (["a;m;bf16;h100;8;step_time_s;1,234"], r"runs\.csv:2: value: `1,234` may have a decimal mark or"),
        (["a;m;bf16;h100;1.024;step_time_s;8"], r"runs\.csv:2: n_gpus: `1\.024` may have a decimal mark or"),
    ],
)  # fmt: skip
def test_numbers_that_can_be_read_in_two_ways_are_refused(home, rows, says):
    (home / "runs.csv").write_text("\n".join([HEADER.replace(",", ";"), *rows]))

    with pytest.raises(InputFileError, match=says):
        read_runs("runs.csv")


def test_utf_16_without_a_mark_is_refused(home):
    (home / "runs.csv").write_bytes(f"{HEADER}\na,m,bf16,h100,8,mfu,0.4\n".encode("utf-16-le"))

    with pytest.raises(InputFileError, match="expected text in UTF-8, found a NUL"):
        read_runs("runs.csv")

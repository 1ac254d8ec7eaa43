"""`mpplan export`: bills that sum, in forms that finance reads."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest

SMALL = ("--params", "7B", "--gpus", "8", "--precision", "fp8")


@pytest.fixture
def plan(run, home):
    """A saved answer with own machines and lines beside."""
    (home / "own.toml").write_text("", encoding="utf-8")
    (home / "beside.toml").write_text("[experiments]\nratio = 0.5\n", encoding="utf-8")
    done = run("estimate", *SMALL, "--own", "own.toml", "--beside", "beside.toml", "--embodied", "--json", "--quiet")
    (home / "plan.json").write_text(done.out, encoding="utf-8")
    return "plan.json"


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_the_default_is_every_line_of_every_plan_as_csv(run, plan):
    result = run("export", plan)
    fp8 = [row for row in rows(result.out) if (row["view"], row["precision"]) == ("plans", "fp8")]

    assert (result.code, result.err) == (0, "")
    assert [row["line"] for row in fp8 if row["parent"] == "total"] == ["gpu_owned", "electricity", "experiments"]
    for column in ("usd_low", "usd_mid", "usd_high"):
        assert sum(Decimal(row[column]) for row in fp8 if row["is_leaf"] == "True") == Decimal(fp8[0][column])
    assert float(fp8[0]["embodied_kg_mid"]) > 0
    assert float(fp8[0]["sci_kg_mid"]) > float(fp8[0]["carbon_kg_mid"])


def test_focus_is_the_asked_plan_and_plainly_an_estimate(run, plan):
    bill = rows(run("export", plan, "--format", "focus").out)

    assert {row["x_Precision"] for row in bill} == {"fp8"}
    assert {row["x_IsEstimate"] for row in bill} == {"true"}
    assert {row["ProviderName"] for row in bill} == {"own machines"}
    assert {row["PricingCategory"] for row in bill} == {"Other"}


def test_focus_of_another_plan_is_chosen_by_precision_and_view(run, plan):
    bill = rows(run("export", plan, "--format", "focus", "--precision", "bf16", "--view", "same-deadline").out)

    assert {row["x_Precision"] for row in bill} == {"bf16"}


def test_the_answer_may_come_from_stdin_and_go_to_a_file(run, plan, home, monkeypatch):
    class Bytes:
        buffer = io.BytesIO((home / plan).read_bytes())

    monkeypatch.setattr("sys.stdin", Bytes())
    result = run("export", "-", "-o", "bill.csv")

    assert result.err == "wrote bill.csv\n"
    assert rows((home / "bill.csv").read_text(encoding="utf-8"))


def test_a_file_that_ends_in_parquet_is_one(run, plan, home):
    pq = pytest.importorskip("pyarrow.parquet")

    assert run("export", plan, "-o", "bill.parquet").code == 0
    assert pq.read_table(home / "bill.parquet").num_rows > 10


BAD = {
    "an unknown form": (("--format", "xlsx"), 2, "xlsx", "cost-csv"),
    "an unknown view": (("--format", "focus", "--view", "all"), 2, "--view", "same-deadline"),
    "a precision that is not there": (("--format", "focus", "--precision", "nvfp4"), 2, "nvfp4", "fp8"),
    "a choice where every plan is held": (("--precision", "fp8"), 2, "--precision", "focus"),
    "a place that is not there": (("-o", "none/bill.csv"), 2, "none/bill.csv", ""),
}


@pytest.mark.parametrize(("arguments", "code", "message", "hinted"), BAD.values(), ids=BAD)
def test_bad_input_gets_one_error_line_a_hint_and_its_code(run, plan, arguments, code, message, hinted):
    result = run("export", plan, *arguments)
    error, hint = result.err.splitlines()

    assert (result.code, result.out) == (code, "")
    assert error.startswith("error: ")
    assert message in error
    assert hinted in hint


def test_an_answer_whose_lines_were_tampered_with_is_refused(run, plan, home):
    text = (home / plan).read_text(encoding="utf-8")
    at = text.index('"cost_lines"')
    (home / plan).write_text(text[:at] + text[at:].replace('"mid": ', '"mid": 1', 1), encoding="utf-8")
    result = run("export", plan)

    assert (result.code, result.out) == (3, "")
    assert "sums to" in result.err


def test_what_is_no_answer_is_refused(run, home):
    (home / "x.json").write_text("{}", encoding="utf-8")

    assert run("export", "x.json").code == 3
    assert run("export", "none.json").code == 2

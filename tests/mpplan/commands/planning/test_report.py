"""`mpplan report` from its command line: forms, outputs, two answers, and every bad input."""

from __future__ import annotations

import json
import os
import stat

import pytest

from tests.reports import sample


@pytest.fixture
def plan(home):
    """A saved answer in the working directory."""
    path = home / "plan.json"
    path.write_text(json.dumps(sample.document()), encoding="utf-8")
    return path


def test_a_page_is_written_and_said_on_stderr(run, plan, home):
    result = run("report", "plan.json", "-o", "plan.html")

    assert (result.code, result.out, result.err) == (0, "", "wrote plan.html\n")
    assert (home / "plan.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("plan.md", "# Training plan"),
        ("plan.txt", "FP8 trains"),
        ("plan.csv", "view,precision"),
        ("plan.json", "{"),
        ("plan.htm", "<!doctype html>"),
        ("plan", "<!doctype html>"),
    ],
)
def test_the_form_follows_the_name_of_the_output(run, plan, home, name, start):
    (home / "answer.json").write_bytes(plan.read_bytes())

    assert run("report", "answer.json", "-o", name, "--quiet").err == ""
    assert (home / name).read_text(encoding="utf-8").startswith(start)


def test_a_form_that_is_asked_for_wins_over_the_name(run, plan, home):
    run("report", "plan.json", "-o", "plan.html", "--format", "markdown")

    assert (home / "plan.html").read_text(encoding="utf-8").startswith("# Training plan")


def test_without_an_output_the_page_goes_to_stdout(run, plan):
    result = run("report", "plan.json")

    assert result.out.startswith("<!doctype html>")
    assert result.err == ""


def test_title_language_and_what_is_left_out_reach_the_report(run, plan):
    result = run("report", "plan.json", "--format", "markdown", "--lang", "zh", "--title", "极光", "--redact", "prices")

    assert result.code == 0
    assert "# 极光" in result.out
    assert "此副本略去：价格" in result.out
    assert "美元" not in result.out


def test_parts_to_leave_out_may_be_listed_with_a_comma(run, plan):
    assert "names and prices" in run("report", "plan.json", "--format", "markdown", "--redact", "names,prices").out


def test_two_answers_are_compared_by_the_names_of_their_files(run, plan, home):
    (home / "later.json").write_bytes(plan.read_bytes())
    result = run("report", "plan.json", "later.json", "--format", "terminal")

    assert result.code == 0
    assert result.out.startswith("later costs as much as plan")


def test_a_page_that_is_written_keeps_no_colour(run, plan, home):
    run("report", "plan.json", "-o", "plan.txt")

    assert "\x1b" not in (home / "plan.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("nothing.json",), 2, "cannot read `nothing.json`"),
        (("plan.json", "--format", "docx"), 2, "--format: unknown `docx`"),
        (("plan.json", "--lang", "fr"), 2, "--lang: unknown `fr`"),
        (("plan.json", "--redact", "dates"), 2, "--redact: unknown `dates`"),
        (("plan.json", "--logo", "nothing.png"), 2, "--logo: cannot read"),
        (("plan.json", "-o", "no/such/folder/plan.html"), 2, "cannot write"),
        (("plan.json", "-o", "."), 2, "cannot write"),
        (("plan.json", "-o", "plan.xlsx"), 2, "--output: a report cannot be written as `.xlsx`"),
        (("-", "-"), 2, "both answers would be read from stdin"),
        (("broken.json",), 3, "broken.json:1: not JSON"),
        (("other.json",), 3, "schema: expected `mpplan.estimate/2`, found `mpplan.verify/1`"),
        (("cut.json",), 3, "cut.json: plans: missing"),
    ],
)
def test_bad_input_is_one_line_with_a_hint_and_an_exit_code(run, plan, home, arguments, code, message):
    (home / "broken.json").write_text("{", encoding="utf-8")
    (home / "other.json").write_text('{"schema": "mpplan.verify/1"}', encoding="utf-8")
    cut = {key: value for key, value in sample.document().items() if key != "plans"}
    (home / "cut.json").write_text(json.dumps(cut), encoding="utf-8")
    result = run("report", *arguments)

    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.err.startswith("error: ")


def test_a_place_that_cannot_be_written_is_found_before_the_answer_is_read(run, home):
    result = run("report", "nothing.json", "-o", "no/such/folder/plan.html")

    assert "cannot write" in result.err
    assert "nothing.json" not in result.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(run, plan, home):
    locked = home / "locked"
    locked.mkdir()
    locked.chmod(stat.S_IRUSR | stat.S_IXUSR)

    assert run("report", "plan.json", "-o", "locked/plan.html").code == 2


def test_a_failed_report_leaves_the_old_file_whole(run, plan, home):
    (home / "plan.html").write_text("old", encoding="utf-8")
    run("report", "plan.json", "-o", "plan.html", "--logo", "nothing.png")

    assert (home / "plan.html").read_text(encoding="utf-8") == "old"
    assert [path.name for path in home.iterdir() if path.name.startswith(".mpplan")] == []

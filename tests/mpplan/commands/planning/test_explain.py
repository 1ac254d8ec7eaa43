"""`mpplan explain` from its command line."""

from __future__ import annotations

import json

import pytest

from tests.reports import sample


@pytest.fixture
def plan(home):
    """A saved answer in the working directory."""
    path = home / "plan.json"
    path.write_text(json.dumps(sample.document()), encoding="utf-8")
    return path


@pytest.mark.parametrize("figure", ["cost", "energy", "time", "memory", "carbon", "tokens", "cost_usd"])
def test_a_figure_is_taken_apart_as_a_tree(run, plan, figure):
    result = run("explain", "plan.json", figure)

    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("FP8 on H100 SXM5 80\u00a0GB\n")
    assert "─ " in result.out


def test_lines_are_whole_in_a_pipe_and_fit_a_terminal_whose_width_is_known(run, plan, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = run("explain", "plan.json", "time").out
    monkeypatch.setenv("COLUMNS", "60")
    fitted = run("explain", "plan.json", "time").out

    assert max(len(line) for line in whole.splitlines() if " = " in line) > 96
    assert max(map(len, fitted.splitlines())) <= 60


def test_another_precision_can_be_asked_for(run, plan):
    assert run("explain", "plan.json", "cost", "--precision", "tf32").out.startswith("TF32 on H100")


def test_a_copy_without_prices_says_that_they_were_left_out_of_it(run, plan):
    assert run("report", "plan.json", "--redact", "prices", "-o", "copy.json").code == 0
    result = run("explain", "copy.json", "cost")

    assert result.code == 0
    assert "prices were left out of this copy" in result.out
    assert "no price was found" not in result.out


def test_json_is_a_document_of_its_own(run, plan):
    document = json.loads(run("explain", "plan.json", "carbon", "--json").out)

    assert (document["schema"], document["figure"]) == ("mpplan.explain/1", "carbon")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("plan.json", "happiness"), 2, "no figure `happiness`"),
        (("plan.json", "cost", "--precision", "nvfp4"), 2, "no plan in nvfp4"),
        (("plan.json", "cost", "--gpu", "tpu"), 2, "no plan in fp8 on tpu"),
        (("nothing.json", "cost"), 2, "cannot read"),
        (("broken.json", "cost"), 3, "not JSON"),
    ],
)
def test_bad_input_is_one_line_with_a_hint(run, plan, home, arguments, code, message):
    (home / "broken.json").write_text("{", encoding="utf-8")
    result = run("explain", *arguments)

    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert "hint: " in result.err

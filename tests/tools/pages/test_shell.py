"""The terminal of the worked examples: commands run as typed, in a folder of their own."""

from __future__ import annotations

import pytest

from tools.pages.shell import Shell, _without_progress


def test_a_command_is_that_of_this_source_tree_with_its_pipes(tmp_path):
    result = Shell(tmp_path).run("mpplan --version | tr a-z A-Z")

    assert result.code == 0
    assert result.out.startswith("MPPLAN ")


def test_what_one_command_writes_the_next_one_reads(tmp_path):
    shell = Shell(tmp_path)
    shell.run("echo 7B > size")

    assert shell.run("cat size").out == "7B\n"
    assert [result.command for result in shell.results] == ["echo 7B > size", "cat size"]


def test_an_error_is_kept_with_its_code(tmp_path):
    result = Shell(tmp_path).run("mpplan estimate --params nonsense")

    assert result.code == 2
    assert result.shown.startswith("error: ")


@pytest.mark.parametrize(("name", "text"), [("MPPLAN_ESTIMATE_GPU", "none-such"), ("COLUMNS", "31")])
def test_settings_of_the_developer_do_not_reach_a_page(tmp_path, monkeypatch, name, text):
    plain = Shell(tmp_path).run("mpplan gpus | head -5")
    monkeypatch.setenv(name, text)

    assert Shell(tmp_path).run("mpplan gpus | head -5") == plain


def test_lines_that_only_a_slow_machine_prints_are_no_part_of_a_page():
    text = "planning, 5 s so far\nlearning, about 12 s left\nerror: no plan, 5 s so far, they say\n"

    assert _without_progress(text) == "error: no plan, 5 s so far, they say\n"

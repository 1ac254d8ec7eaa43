"""The lazy group: commands are found by name and converted only where needed."""

from __future__ import annotations

import json

import pytest
import typer

from mpplan.commands import COMMANDS
from mpplan.group import NAMES, load_command, plain


def test_command_names_are_unique_and_their_files_bear_them():
    assert len(set(NAMES)) == len(NAMES)
    assert [command.target for command in COMMANDS if f".{command.name}:" not in command.target] == []


def test_text_and_switches_pass_and_numbers_are_still_converted():
    app = typer.Typer()
    seen = []

    @app.command()
    def command(text: str = "", number: int = 0, switch: bool = False) -> None:
        seen.append((text, number, switch))

    click_command = plain(typer.main.get_command(app))
    click_command.main(["--text", "7", "--number", "7", "--switch"], standalone_mode=False)
    click_command.main([], standalone_mode=False)

    assert seen == [("7", 7, True), ("", 0, False)]


def test_a_switch_in_the_environment_is_converted(run, monkeypatch, home):
    monkeypatch.setenv("MPPLAN_ESTIMATE_QUIET", "yes")

    assert run("estimate", "--params", "7B", "--gpus", "8", "--report", "plan.html").err == ""


def test_a_switch_with_a_strange_value_in_the_environment_is_a_usage_error(run, monkeypatch):
    monkeypatch.setenv("MPPLAN_ESTIMATE_QUIET", "perhaps")
    result = run("estimate", "--params", "7B")

    assert result.code == 2
    assert result.err.startswith("error: ")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("mpplan estimate --precisi", "--precision"),
        ("mpplan estimate --gpu h100 --gpu a100 --precisi", "--precision"),
        ("mpplan nonsense --precisi", ""),
    ],
)
def test_completion_prints_no_error_about_words_before_or_about_a_configuration_file(shell, home, words, offered):
    (home / "mpplan.toml").write_text("not TOML", encoding="utf-8")
    count = str(len(words.split()) - 1)
    result = shell(_MPPLAN_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=count)

    assert result.err == ""
    assert result.out.split() == offered.split()


def test_a_loaded_command_keeps_its_help():
    estimate = load_command(next(command for command in COMMANDS if command.name == "estimate"))

    assert estimate.name == "estimate"
    assert estimate.help


@pytest.mark.parametrize(
    "words",
    [
        ("estimate", "--params", "7B", "--gpu", "h100", "--gpu", "a100"),
        ("estimate", "--gpu=h100,a100", "--params", "7B", "--gpu=b200", "--json"),
        ("probe", "--precision", "bf16", "--device", "cpu", "--precision", "fp8"),
        ("numerics", "--task", "char-lm", "--task", "digits-cnn"),
    ],
)
def test_a_list_that_is_given_twice_is_refused_before_anything_is_dropped(run, words):
    result = run(*words)
    names = [word.split("=")[0] for word in words]
    (flag,) = {name for name in names if name.startswith("--") and names.count(name) > 1}

    assert result.code == 2
    assert result.err == f"error: `{flag}` is given twice\nhint: give one list with commas: `{flag} A,B`\n"
    assert result.out == ""


def test_a_flag_of_one_value_may_be_given_again_as_an_alias_of_a_shell_does(run):
    asked = ("estimate", "--params", "7B", "--gpus", "16", "--json")
    first, repeated = run(*asked), run(*asked[:3], "--gpus", "8", *asked[3:])

    answers = [json.loads(result.out) | {"created_at": ""} for result in (first, repeated)]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", ["records", "prices"])
def test_the_help_of_a_group_shows_the_summary_of_each_subcommand_whole(run, name):
    group = load_command(next(command for command in COMMANDS if command.name == name))
    told = " ".join(run(name, "--help").out.split())

    assert [inner for inner, command in group.commands.items() if command.help.splitlines()[0] not in told] == []
    assert "..." not in told.partition("Commands:")[2]

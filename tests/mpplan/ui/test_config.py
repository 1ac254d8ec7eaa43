"""`mpplan.toml`: what is read, what wins, and what a mistake in it gets."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import typer

from mpplan.commands import COMMANDS
from mpplan.group import NAMES, load_command
from mpplan.ui.config import ConfigFile, config_paths, defaults_for, read_config
from planner.errors import InputFileError, UsageError

ESTIMATE = next(command for command in COMMANDS if command.name == "estimate")


def defaults(tmp_path: Path, *texts: str) -> dict[str, object]:
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"{number}.toml")
        paths[-1].write_text(text, encoding="utf-8")
    return defaults_for(read_config(paths), NAMES, "estimate", load_command(ESTIMATE))


def test_values_become_the_text_that_a_flag_would_carry(tmp_path):
    text = """
        [estimate]
        gpu = ["h100-sxm5-80gb", "h200-sxm-141gb"]
        pue = 1.12
        gpus = 64
        as-of = 2026-01-02
        strict = true
    """

    assert defaults(tmp_path, text) == {
        "gpu": "h100-sxm5-80gb,h200-sxm-141gb",
        "pue": "1.12",
        "gpus": "64",
        "as_of": "2026-01-02",
        "strict": True,
    }


def test_a_list_is_joined_for_a_flag_that_takes_several(tmp_path):
    path = tmp_path / "mpplan.toml"
    path.write_text("[fit]\nseq-len = [2048, 4096]\n", encoding="utf-8")
    fit = next(command for command in COMMANDS if command.name == "fit")

    assert defaults_for(read_config([path]), NAMES, "fit", load_command(fit)) == {"seq_len": "2048,4096"}


def test_a_file_that_lies_beside_the_defaults_is_found_from_anywhere(tmp_path):
    (tmp_path / "ours.json").write_text("{}", encoding="utf-8")
    (tmp_path / "records").mkdir()
    text = """
        [estimate]
        calibration = "ours.json"
        records = "records"
        quote = "not-there.toml"
        lengths = "400"
        report = "ours.json"
        provider = "records"
    """

    assert defaults(tmp_path, text) == {
        "calibration": str(tmp_path / "ours.json"),
        "records": str(tmp_path / "records"),
        "quote": "not-there.toml",
        "lengths": "400",
        "report": "ours.json",
        "provider": "records",
    }


def test_the_later_file_wins_key_by_key(tmp_path):
    assert defaults(tmp_path, "[estimate]\npue = 1.1\ngpus = 8\n", "[estimate]\npue = 1.3\n") == {
        "pue": "1.3",
        "gpus": "8",
    }


def test_tables_of_other_commands_are_left_alone(tmp_path):
    assert defaults(tmp_path, "[probe]\nanything = 1\n") == {}


def test_files_that_do_not_exist_are_no_error(tmp_path):
    assert read_config([tmp_path / "none.toml"]) == ()


def test_the_working_directory_is_stronger_than_the_users(home):
    user, local = config_paths()

    assert user.parent != local.parent
    assert local == Path("mpplan.toml")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[estimate]\n\ngpuz = 1\n", "0.toml:3: estimate.gpuz: not a flag of `mpplan estimate`", "did you mean `gpu`"),
        ("[estimat]\n", "0.toml:1: estimat: not a command", "did you mean `estimate`?"),
        ("gpu = 1\n", "0.toml:1: gpu: not a command", "did you mean `gpus`?"),
        ("estimate = 1\n", "0.toml:1: estimate: expected a table", "write `[estimate]`"),
        ("[estimate]\nstrict = 1\n", "0.toml:2: estimate.strict: expected true or false", "after `--strict`"),
        ("[estimate]\ngpu = true\n", "0.toml:2: estimate.gpu: expected text, a number or a list", "after `--gpu`"),
        ("[estimate]\ngpus = [8, 16]\n", "0.toml:2: estimate.gpus: expected one value, text or a number", "`--gpus`"),
        ("[estimate]\ngpu = [true]\n", "0.toml:2: estimate.gpu: expected text, a number or a list", "after `--gpu`"),
        ("[estimate]\nseq-len = 1024\nseq_len = 2048\n", "0.toml:3: estimate.seq_len: given twice", "and `seq_len`"),
        ("[estimate]\n[estimate.gpu]\nx = 1\n", "0.toml:2: estimate.gpu: expected text, a number", "after `--gpu`"),
        ("[estimate]\n\ngpu = \n", "0.toml:3: not TOML: Invalid value", "toml.io"),
        ("[estimate\n", "0.toml:1: not TOML", "toml.io"),
        ("[estimate]\ngpu = " + "[" * 5000, "0.toml:1: tables or lists are nested too deeply", "a few levels"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(tmp_path, text, message, hint):
    with pytest.raises(InputFileError) as caught:
        defaults(tmp_path, text)

    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.exit_code == 3


def test_a_file_that_is_not_text_is_named(tmp_path):
    path = tmp_path / "mpplan.toml"
    path.write_bytes(b"\xff\xfe[estimate]")

    with pytest.raises(InputFileError, match="expected UTF-8 text"):
        read_config([path])


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "mpplan.toml"
    path.write_bytes(b"\xef\xbb\xbf[estimate]\npue = 1.1\n")

    assert read_config([path])[0].tables == {"estimate": {"pue": 1.1}}


@pytest.mark.parametrize(("make", "kind"), [(os.mkdir, "a directory"), (os.mkfifo, "a pipe")])
def test_what_is_no_file_is_named_and_not_skipped(tmp_path, make, kind):
    path = tmp_path / "mpplan.toml"
    make(path)

    with pytest.raises(InputFileError, match=f"expected a file, found {kind}"):
        read_config([path])


def test_a_link_that_leads_nowhere_is_named_and_not_skipped(tmp_path):
    path = tmp_path / "mpplan.toml"
    path.symlink_to("gone.toml")

    with pytest.raises(UsageError, match="is a link to a file that does not exist"):
        read_config([path])


def test_subcommands_have_tables_of_their_own():
    app = typer.Typer()

    @app.callback()
    def root() -> None:
        pass

    @app.command("list")
    def listing(gpu: str = "") -> None:
        pass

    group = typer.main.get_command(app)
    file = ConfigFile(name="f", text="", tables={"prices": {"list": {"gpu": "x"}}})

    assert defaults_for([file], ["prices"], "prices", group) == {"list": {"gpu": "x"}}
    with pytest.raises(InputFileError, match="not a subcommand of `mpplan prices`"):
        defaults_for([ConfigFile(name="f", text="", tables={"prices": {"lost": {}}})], ["prices"], "prices", group)


def test_an_unreadable_file_is_a_usage_error(tmp_path, monkeypatch):
    path = tmp_path / "mpplan.toml"
    path.write_text("", encoding="utf-8")

    def refuse(self: Path, encoding: str) -> str:
        raise PermissionError(13, "Permission denied")  # root, as CI is, may read everything

    monkeypatch.setattr(Path, "read_text", refuse)

    with pytest.raises(UsageError, match="Permission denied"):
        read_config([path])


def test_the_users_file_is_read_and_the_working_directorys_is_stronger(run, home):
    user, local = config_paths()
    user.parent.mkdir(parents=True)
    user.write_text('[estimate]\npue = 1.4\nseq-len = "2048"\n', encoding="utf-8")
    local.write_text("[estimate]\npue = 1.1\n", encoding="utf-8")
    question = json.loads(run("estimate", "--params", "7B", "--gpus", "8", "--json").out)["question"]

    assert (question["pue"]["value"], question["pue"]["source"]) == (1.1, "file")
    assert (question["seq_len"]["value"], question["seq_len"]["source"]) == (2048, "file")


def test_a_variable_is_stronger_than_a_file_and_a_flag_than_both(run, home, monkeypatch):
    (home / "mpplan.toml").write_text("[estimate]\npue = 1.1\nseq-len = 1024\n", encoding="utf-8")
    monkeypatch.setenv("MPPLAN_ESTIMATE_PUE", "1.2")
    monkeypatch.setenv("MPPLAN_ESTIMATE_SEQ_LEN", "2048")
    out = run("estimate", "--params", "7B", "--gpus", "8", "--seq-len", "4096", "--json").out
    question = json.loads(out)["question"]

    assert (question["pue"]["value"], question["pue"]["source"]) == (1.2, "environment")
    assert (question["seq_len"]["value"], question["seq_len"]["source"]) == (4096, "flag")


def test_a_mistake_in_the_file_stops_the_command_but_not_its_help(run, home):
    (home / "mpplan.toml").write_text("[estimate]\nprecison = 'fp8'\n", encoding="utf-8")
    result = run("estimate", "--params", "7B", "--gpus", "8")

    assert result.code == 3
    assert result.err == (
        "error: mpplan.toml:2: estimate.precison: not a flag of `mpplan estimate`\nhint: did you mean `precision`?\n"
    )
    assert run("estimate", "--help").code == 0
    assert run("gpus").code == 0

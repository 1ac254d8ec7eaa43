"""The program as a whole: help, version, usage errors, failures, pipes."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mpplan import app, group
from mpplan.commands import COMMANDS
from mpplan.version import __version__

ROOT = Path(__file__).parents[2]


def test_help_lists_every_command_on_stdout(run):
    result = run("--help")

    assert result.code == 0
    assert result.err == ""
    assert [name for name in group.NAMES if f"\n  {name} " not in result.out] == []


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        (("estimate",), {"5"}),
        (("probe",), {"6"}),
        (("check",), {"6"}),
        (("numerics",), {"5"}),
        (("prices", "check"), {"5"}),
        (("prices", "refresh"), {"5"}),
    ],
)
def test_the_help_of_strict_names_the_exit_codes_of_its_own_command(run, command, codes):
    shown = " ".join(run(*command, "--help").out.split()).partition("--strict ")[2].partition(" --")[0]

    assert set(re.findall(r"\d", shown)) == codes


def test_no_command_prints_the_help_on_stderr_and_is_a_usage_error(run):
    result = run()

    assert result.code == 2
    assert result.out == ""
    assert "Usage: mpplan" in result.err


def test_version_prints_the_version(run):
    assert run("--version").out == f"mpplan {__version__}\n"


def test_a_misspelt_command_gets_its_near_name(run):
    result = run("estimat")

    assert result.code == 2
    assert result.out == ""
    assert result.err == "error: `mpplan` has no command `estimat`\nhint: did you mean `estimate`?\n"


def test_a_misspelt_flag_gets_its_near_names(run):
    result = run("estimate", "--precison", "fp8")

    assert result.code == 2
    assert result.err == "error: `mpplan estimate` has no option `--precison`\nhint: did you mean `--precision`?\n"


def test_a_misspelt_subcommand_gets_its_near_name(run):
    result = run("prices", "lst")

    assert result.code == 2
    assert result.err == "error: `mpplan prices` has no command `lst`\nhint: did you mean `list`?\n"


def test_a_group_without_its_subcommand_prints_its_help_on_stderr(run):
    result = run("records")

    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("Usage: mpplan records")
    assert " show " in result.err


def test_an_argument_too_many_is_a_usage_error(run):
    result = run("estimate", "70B")

    assert result.code == 2
    assert "70B" in result.err
    assert result.err.endswith("\nhint: see `mpplan estimate --help`\n")


def test_a_flag_without_its_value_is_a_usage_error_in_the_common_form(run):
    result = run("estimate", "--params")

    assert result.code == 2
    assert result.err.startswith("error: ")
    assert result.err.endswith("\nhint: see `mpplan estimate --help`\n")


def test_an_unexpected_failure_exits_1_and_says_version_and_where_to_report(run, monkeypatch):
    monkeypatch.setattr(app, "program", lambda: 1 / 0)

    result = run("gpus")

    assert result.code == 1
    assert result.err.startswith(f"error: mpplan {__version__} failed unexpectedly: ZeroDivisionError")
    assert "report it" in result.err
    assert "Traceback" not in result.err


def test_debug_shows_the_traceback_of_an_unexpected_failure(run, monkeypatch):
    monkeypatch.setattr(app, "program", lambda: 1 / 0)
    monkeypatch.setenv("MPPLAN_DEBUG", "1")

    assert "Traceback (most recent call last)" in run("gpus").err


def test_an_interrupt_exits_130(run, monkeypatch):
    def interrupted(command):
        raise KeyboardInterrupt

    monkeypatch.setattr(group, "load_command", interrupted)

    result = run("gpus")

    assert result.code == 130
    assert result.err == "error: interrupted\n"


INTERRUPTED_WHILE_LOADING = """
import os, signal, sys


class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "mpplan.group":
            os.kill(os.getpid(), signal.SIGINT)


signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
sys.meta_path.insert(0, Interrupting())
from mpplan.__main__ import run
sys.exit(run())
"""


@pytest.mark.parametrize(("closed", "shown"), [("", "error: interrupted\n"), ("2>&-", "")])
def test_an_interrupt_while_the_program_loads_exits_130_without_a_traceback(home, closed, shown):
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -c "$1" gpus {closed}', sys.executable, INTERRUPTED_WHILE_LOADING],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", shown)


def test_a_variable_does_not_turn_every_call_into_version(run, monkeypatch):
    monkeypatch.setenv("MPPLAN_VERSION", "1")

    assert "Usage: mpplan" in run("--help").out


def test_a_reader_that_stops_early_is_not_an_error(home):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "mpplan", "gpus"],
        stdout=write,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    os.close(write)

    assert done.stderr == b""
    assert done.returncode == 0


def test_a_full_disk_behind_stdout_is_an_error_in_words(home):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mpplan", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )

    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot write the output: No space left on device\nhint: ")


def test_a_path_that_the_system_refuses_is_no_bug_of_ours(run, monkeypatch):
    def refuse():
        raise PermissionError(13, "Permission denied", "/srv/data")

    monkeypatch.setattr(app, "program", refuse)
    result = run("gpus")

    assert result.code == 2
    assert result.err.splitlines()[0] == "error: cannot use `/srv/data`: Permission denied"


@pytest.mark.parametrize("flag", ["--model", "--calibration", "--numerics", "--network-file", "--quote"])
@pytest.mark.parametrize("name", ["x" * 300, "~no-such-user/x", "\udcff"])
def test_a_name_that_no_file_can_have_is_a_usage_error(run, flag, name):
    given = [] if flag == "--model" else ["--params", "125M", "--gpus", "8"]
    result = run("estimate", *given, flag, name)

    assert result.code == 2
    assert result.err.startswith("error: ")


def test_a_terminal_without_the_letters_gets_no_traceback(shell):
    result = shell("gpus", PYTHONIOENCODING="ascii")

    assert result.code == 0
    assert result.err == ""


def test_a_document_on_stdout_is_utf_8_whatever_the_locale(run, shell, home):
    encodings = ("ascii", "cp1252", "utf-16")
    name = "Côte ≥ 東京"
    tariff = f'name = "{name}"\n[[period]]\nfrom = 0\nto = 24\nusd_per_kwh = 0.1\n'
    (home / "tariff.toml").write_text(tariff, encoding="utf-8")
    question = ("estimate", "--params", "125M", "--gpus", "8", "--tariff", "tariff.toml", "--quiet")

    saved = shell(*question, "--json", PYTHONIOENCODING="ascii").out
    assert name in saved
    (home / "plan.json").write_text(saved, encoding="utf-8")
    for form, encoding in zip(("json", "csv", "html"), encodings, strict=True):
        usual = run("report", "plan.json", "--format", form)
        assert (usual.code, usual.err) == (0, "")
        printed = shell("report", "plan.json", "--format", form, PYTHONIOENCODING=encoding)
        assert (printed.code, printed.err) == (0, ""), encoding
        assert printed.out.splitlines() == usual.out.splitlines(), encoding


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_line_in_the_list_is_the_first_line_of_the_commands_own_help(command):
    own = (group.load_command(command).help or "").strip().splitlines()[0]

    assert own == command.help


def test_no_command_opens_a_connection_unless_asked(run, monkeypatch):
    asked = []
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: asked.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **_: asked.append(address) or [])
    for arguments in (
        ("estimate", "--params", "7B", "--gpus", "8", "--format", "html"),
        ("gpus",),
        ("models",),
        ("prices", "list"),
        ("records",),
    ):
        run(*arguments)

    assert asked == []
    run("prices", "refresh", "--source", "azure", "--address", "http://127.0.0.1:9/")
    assert asked != []

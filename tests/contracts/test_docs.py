"""The documents say what the program does: help blocks, exit codes, commands, links."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import mpplan
from planner import errors

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
HELP_BLOCK = re.compile(r"```console\n\$ (mpplan[^\n]* --help)\n(.*?)```", flags=re.DOTALL)
COMMANDS = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
HELP_BLOCKS = HELP_BLOCK.findall(COMMANDS)


def help_of(command: str) -> str:
    environment = {**os.environ, "COLUMNS": "100", "TERMINAL_WIDTH": "100", "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout


def test_the_page_of_commands_shows_the_help_of_the_program_and_of_the_main_job():
    assert [command for command, _ in HELP_BLOCKS] == ["mpplan --help", "mpplan estimate --help"]


@pytest.mark.parametrize(("command", "shown"), HELP_BLOCKS, ids=[command for command, _ in HELP_BLOCKS])
def test_a_help_block_of_the_page_is_what_the_program_prints(command, shown):
    assert shown == help_of(command)


def test_the_flags_that_python_takes_are_those_that_the_page_says():
    sections = re.findall(r"^(\S.*):\n((?:  .*\n)+)", dict(HELP_BLOCKS)["mpplan estimate --help"], re.MULTILINE)
    titles = [title for title, _ in sections]
    question = "".join(rows for _, rows in sections[: titles.index("Evidence") + 1])
    flags = re.findall(r"^  (?:-\w, )?--([a-z-]+)", question, re.MULTILINE)

    assert (titles[0], titles[titles.index("Evidence") + 1 :]) == ("The model", ["Output", "Limits", "Options"])
    assert {flag.replace("-", "_") for flag in flags} == set(inspect.signature(mpplan.estimate).parameters)


@pytest.mark.parametrize("command", ["mpplan claims --help", "mpplan records import --help", "mpplan check --help"])
def test_help_names_no_type_of_python(command):
    assert re.findall(r"<[a-z\[\]]+>", help_of(command)) == []


def test_the_table_of_exit_codes_holds_every_code_of_the_program():
    page = (ROOT / "docs/exit-codes.md").read_text(encoding="utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, flags=re.MULTILINE)}
    raised = {
        error.exit_code for error in vars(errors).values() if isinstance(error, type) and issubclass(error, Exception)
    }

    assert listed == raised | {0, 130}


def test_the_readme_lists_the_same_exit_codes():
    page = (ROOT / "docs/exit-codes.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1:3] for row in page.splitlines() if re.match(r"\| \d", row)]

    assert [(code, meaning) for code, meaning in rows if f"|{code}|{meaning}|" not in README] == []


def test_the_help_lists_the_same_exit_codes():
    page = (ROOT / "docs/exit-codes.md").read_text(encoding="utf-8")
    meanings = re.findall(r"^\| (\d+) \| ([^|]+?) \|", page, flags=re.MULTILINE)

    listed = " ".join(help_of("mpplan --help").split()).partition("Exit codes: ")[2]

    assert listed == "; ".join(f"{code} {meaning}" for code, meaning in meanings).replace("`", "") + "."


def test_the_readmes_two_commands_are_the_makefiles():
    commands = re.findall(r"^```sh\n(.*?)\n```", README, flags=re.DOTALL | re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert len(commands) >= 2
    assert commands[0].replace("python3 -m venv", "$(PYTHON) -m venv", 1) in makefile
    assert f"PYTHON=$(PYTHON) {commands[1]}" in makefile


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_the_pages_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target and not target.startswith("mailto:")]

    assert [target for target in local if not (page.parent / target).exists()] == []


MAIN_JOB = "mpplan estimate --params 70B --precision fp8 --report plan.html"
CAPTURE = re.compile(rf"```console\n\$ {MAIN_JOB}\n.*?```", flags=re.DOTALL)


def test_the_readme_shows_what_the_main_job_prints():
    (shown,) = CAPTURE.findall(README)

    assert [
        word for word in ("FP8", "BF16", "TF32", "On the same GPUs", "FP8 on more or fewer") if word not in shown
    ] == []


def capture() -> str:
    """The first screen of the main job, as a terminal of 80 columns shows it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", *MAIN_JOB.split()],
            capture_output=True,
            text=True,
            check=True,
            cwd=folder,
            env={**environment, "XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder},
        )
    first_screen = done.stdout.split("\nHow each precision runs")[0]
    return f"```console\n$ {MAIN_JOB}\n{first_screen}…\n{done.stderr}```"


if __name__ == "__main__":
    renewed = HELP_BLOCK.sub(lambda block: f"```console\n$ {block[1]}\n{help_of(block[1])}```", COMMANDS)
    (ROOT / "docs/commands.md").write_text(renewed, encoding="utf-8")
    (ROOT / "README.md").write_text(CAPTURE.sub(lambda _: capture(), README), encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_writes_percent_as_the_program_prints_it(page):
    assert re.findall(r"[^\n]{0,20}[0-9]\s+%(?![(\w])", page.read_text(encoding="utf-8")) == []

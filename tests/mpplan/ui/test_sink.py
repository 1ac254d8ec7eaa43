"""The sink: what a terminal would obey is printed as text, from whatever it comes and however it is printed."""

from __future__ import annotations

import io
import json
import logging
import re
import sys

import pytest
import typer

from mpplan.ui.sink import cleaned, folded, uncleaned, visible
from tests.mpplan.named import Names, asked, toml

ATTACK = "\x1b]52;c;aGk=\x07\x1b[2J\x1b[1;31m\x9b31m\x08\x7f\u202e\u2066"
"""Fills the clipboard (OSC 52) and rings, clears the screen (CSI), a colour of ours, C1, BS, DEL, two bidi marks."""
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters but tab and line feed, and what changes the direction of text (UAX 9) or ends a line."""


class Terminal(io.StringIO):
    """A stream where a person looks."""

    def isatty(self) -> bool:
        return True


def test_a_control_character_is_shown_by_its_number():
    assert visible("a\x1b[2Jb\x9b\u202ec") == r"a\u001b[2Jb\u009b\u202ec"


def test_text_and_layout_stay_as_they_are():
    text = "größer ≥ 1\t中文 🙂\nsecond line\r\n"

    assert visible(text) == text


def test_a_return_without_a_line_feed_would_overwrite_the_line_and_is_shown():
    assert visible("error\rdone") == r"error\u000ddone"


def test_what_stays_on_one_line_has_no_line_ends():
    assert folded("plan\nerror: no\u2028x\x1b") == r"plan error: no x\u001b"


def test_a_json_text_reads_back_as_it_was():
    value = {"name": ATTACK + '"\\', "other\x9b": "\u2028"}

    assert json.loads(visible(json.dumps(value, ensure_ascii=False))) == value


def test_every_way_of_printing_goes_through_the_sink(capsys):
    with cleaned():
        sys.stdout.write(ATTACK)
        sys.stderr.write(ATTACK)
        sys.stdout.writelines([ATTACK])
        typer.echo(ATTACK)
        typer.secho(ATTACK, err=True)
        logging.StreamHandler().handle(logging.makeLogRecord({"msg": ATTACK}))
    captured = capsys.readouterr()

    assert captured.out.count("52;c;aGk=") == 3
    assert captured.err.count("52;c;aGk=") >= 3
    assert OBEYED.findall(captured.out + captured.err) == []


def test_on_a_terminal_only_the_program_s_own_colours_pass(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with cleaned():
        sys.stderr.write("\x1b[1;31merror:\x1b[0m \x1b[8mhidden \x1b[2J\x1b]0;title\x07")

    assert terminal.getvalue() == "\x1b[1;31merror:\x1b[0m " r"\u001b[8mhidden \u001b[2J\u001b]0;title\u0007"


def test_the_streams_are_put_back_and_bytes_have_a_way_of_their_own(capsys):
    before = sys.stdout
    with cleaned():
        assert not hasattr(sys.stdout, "buffer")
        assert uncleaned(sys.stdout) is before
        with cleaned():
            assert uncleaned(sys.stdout) is before

    assert sys.stdout is before


@pytest.mark.parametrize(
    "arguments",
    [
        (f"x{ATTACK}",),
        ("estimate", f"--{ATTACK}", "1"),
        ("estimate", "--params", ATTACK),
        ("estimate", "--model", ATTACK),
        ("estimate", "--model", f"{ATTACK}.json"),
        ("estimate", "--params", "7B", "--gpu", ATTACK),
        ("estimate", "--params", "7B", "--precision", ATTACK),
        ("estimate", "--params", "7B", "--provider", ATTACK),
        ("estimate", "--params", "7B", "--quote", ATTACK),
        ("estimate", "--params", "7B", "--report", f"{ATTACK}/x"),
        ("report", ATTACK),
        ("report", "x", "--lang", ATTACK),
        ("export", "x", "--format", ATTACK),
        ("explain", ATTACK, ATTACK),
        ("records", "show", ATTACK),
        ("records", ATTACK),
        ("check", ATTACK),
        ("prices", "add", "--gpus", ATTACK),
        ("prices", "list", "--as-of", ATTACK),
        ("validate", ATTACK),
        ("gpus", ATTACK),
    ],
    ids=lambda arguments: " ".join(arguments).replace(ATTACK, "ATTACK"),
)
def test_an_error_that_repeats_a_value_has_no_control_characters(run, arguments):
    result = run(*arguments)

    assert result.code in (2, 3)
    assert OBEYED.findall(result.out + result.err) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mpplan.toml", f"{toml(ATTACK)} = 1\n"),
        ("mpplan.toml", f"[estimate]\n{toml(ATTACK)} = 1\n"),
        ("mpplan.toml", f"[estimate]\ngpu = {toml(ATTACK)}\n"),
        ("config.json", json.dumps({"model_type": ATTACK})),
        ("quote.toml", f"{toml(ATTACK)} = 1\n"),
        ("quote.toml", f"vendor = 1\ngpu = {toml(ATTACK)}\n"),
        ("plan.json", json.dumps({"schema": ATTACK})),
        ("runs.csv", f"id,model\n{ATTACK},{ATTACK}\n"),
        ("runs.csv", f"{ATTACK}\n1\n"),
        ("record.jsonl", json.dumps({ATTACK: 1}) + "\n"),
    ],
)
def test_an_error_that_repeats_a_file_has_no_control_characters(run, home, name, text):
    (home / name).write_text(text, encoding="utf-8")
    arguments = {
        "mpplan.toml": ("estimate", "--params", "7B"), "config.json": ("estimate", "--model", name),
        "quote.toml": ("estimate", "--params", "7B", "--quote", name), "plan.json": ("report", name),
        "runs.csv": ("validate", name), "record.jsonl": ("check", name),
    }  # fmt: skip
    result = run(*arguments[name])

    assert result.out + result.err != ""
    assert OBEYED.findall(result.out + result.err) == []


def test_nothing_that_is_named_reaches_the_screen_with_its_control_characters(run, home):
    printed = []

    def kept(*arguments: str) -> str:
        result = run(*arguments)
        assert result.code == 0, result.err
        printed.append(result)
        return result.out

    names = Names(word="w" + ATTACK)
    for name, text in asked(home, names, kept).items():
        (home / f"{name}.json").write_text(text, encoding="utf-8")
        assert json.loads(text)["model"]["name"].startswith("w")
        for form in ("terminal", "markdown", "csv", "json", "html"):
            kept("report", f"{name}.json", "--format", form)
        for form in ("cost-csv", "focus"):
            kept("export", f"{name}.json", "--format", form)
        kept("explain", f"{name}.json", "cost")
        kept("explain", f"{name}.json", "cost", "--json")
    record = str(names.path(home, "records file", ".jsonl"))
    runs = names.file("runs file", ".csv")
    for arguments in (("check", record), ("validate", runs), ("prices", "list"), ("prices", "list", "--json")):
        printed.append(run(*arguments))
    controls = {c for result in printed for c in OBEYED.findall(result.out.replace("\r\n", "\n") + result.err)}

    assert controls == set()
    assert any("52;c;aGk=" in result.out for result in printed)

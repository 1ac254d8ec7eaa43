"""stderr: one form for errors, colour only for people."""

from __future__ import annotations

import io
import re
import sys

import pytest

from mpplan.ui.console import fail, message_line, note, warn


class Terminal(io.StringIO):
    """stderr where a person looks."""

    def isatty(self) -> bool:
        return True


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()  # set inside the test: pytest puts its own stream back between fixtures and test
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return stream


def test_an_error_is_message_line_and_its_hint_another(capsys):
    fail("first\n  second", "do\nthis")

    assert capsys.readouterr().err == "error: first second\nhint: do this\n"


def test_an_error_without_a_hint_is_message_line(capsys):
    fail("broken")

    assert capsys.readouterr().err == "error: broken\n"


def test_notes_and_warnings_go_to_stderr_unless_quiet(capsys):
    note("wrote plan.html")
    warn("a price is stale")
    note("unsaid", quiet=True)
    warn("unsaid", quiet=True)
    captured = capsys.readouterr()

    assert captured.out == ""
    assert captured.err == "wrote plan.html\nwarning: a price is stale\n"


def test_colour_is_for_terminals(monkeypatch):
    terminal = terminal_of(monkeypatch)
    fail("broken", "mend it")

    assert terminal.getvalue() == "\x1b[1;31merror:\x1b[0m broken\n\x1b[36mhint:\x1b[0m mend it\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_color_and_dumb_terminals_get_none(monkeypatch, name, value):
    terminal = terminal_of(monkeypatch)
    monkeypatch.setenv(name, value)
    fail("broken")

    assert terminal.getvalue() == "error: broken\n"


def test_message_line_folds_every_kind_of_space():
    assert message_line(" a\n\tb\r\n c ") == "a b c"


def test_messages_are_wrapped_on_a_terminal_alone(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    fail("word " * 30)
    assert len(capsys.readouterr().err.splitlines()) == 1

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    fail("word " * 30, "other " * 20)
    warn("text " * 30)
    note("done " * 30)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().err).splitlines()  # without colours

    assert max(len(line) for line in lines) <= 60
    assert [line.split()[0] for line in lines if not line.startswith("  ")] == ["error:", "hint:", "warning:", "done"]

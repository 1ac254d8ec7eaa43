"""Progress on stderr: nothing of short work, lines in a log, one moving line on a terminal, silence when asked."""

from __future__ import annotations

import io
import re
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from mpplan.ui import progress
from mpplan.ui.progress import IN_LOG, ON_TERMINAL, Pace, counted, working

AT_ONCE = Pace(first_s=0.0, every_s=0.01)
LIMIT_S = 120.0
"""Only what hangs takes longer."""


class Log(io.StringIO):
    """What a log is sent, of which one can wait for a number of messages: a busy machine takes its time for them."""

    def __init__(self) -> None:
        super().__init__()
        self.messages = threading.Semaphore(0)

    def flush(self) -> None:
        """A message is whole."""
        self.messages.release()

    def await_messages(self, count: int) -> None:
        """Wait until so many have come."""
        for _ in range(count):
            assert self.messages.acquire(timeout=LIMIT_S)


class Terminal(Log):
    """What a terminal is sent."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes for the messages, however long a busy machine takes."""
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 1000.0))


def test_work_that_is_done_at_once_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with working("planning"):
        pass
    tell = counted(2, "rows")
    assert tell is not None
    tell(1)
    tell(2)

    assert capsys.readouterr().err == ""


def test_long_work_says_a_line_now_and_then_in_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", log := Log())
    with working("planning", pace=AT_ONCE):
        log.await_messages(2)
    lines = log.getvalue().splitlines()

    assert len(lines) >= 2
    assert [line for line in lines if not re.fullmatch(r"planning, \d+ s so far", line)] == []


def test_the_line_is_wiped_from_a_terminal_when_the_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with working("planning", pace=AT_ONCE):
        terminal.await_messages(1)
    *_, last, blanks, rest = terminal.getvalue().split("\r")

    assert re.fullmatch(r"planning, \d+ s so far", last)
    assert (blanks, rest) == (" " * len(last), "")


def test_it_is_wiped_when_the_work_fails_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())

    def fail() -> None:
        terminal.await_messages(1)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"), working("planning", pace=AT_ONCE):
        fail()

    assert terminal.getvalue().endswith("\r")


def test_work_of_a_known_size_says_how_much_is_left(stopped_clock: None, capsys: pytest.CaptureFixture[str]) -> None:
    tell = counted(4, "rows", pace=Pace(first_s=0.0, every_s=60.0))
    assert tell is not None
    for done in (1, 2, 3, 4):
        tell(done)

    assert capsys.readouterr().err == "1 of 4 rows, about 0 s left\n"  # the next line is due in a minute


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with working("planning", quiet=True, pace=AT_ONCE):
        time.sleep(0.03)

    assert counted(4, "rows", quiet=True) is None
    assert capsys.readouterr().err == ""


def test_a_log_gets_a_line_each_few_seconds() -> None:
    assert (ON_TERMINAL.first_s, IN_LOG.first_s, IN_LOG.every_s) == (2.0, 5.0, 5.0)


def test_the_first_rows_foretell_no_time(stopped_clock, capsys):
    tell = counted(300, "rows", pace=Pace(first_s=0.0, every_s=0.0))
    assert tell is not None
    tell(1)
    tell(150)
    first, later = capsys.readouterr().err.splitlines()

    assert first == "1 of 300 rows, 0 s so far"
    assert later.startswith("150 of 300 rows, about ")

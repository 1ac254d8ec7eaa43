"""Progress on stderr: nothing of short work, lines in a log, one moving line on a terminal, silence when asked."""

from __future__ import annotations

import io
import sys
import time

import pytest

from mpplan.ui.progress import IN_LOG, ON_TERMINAL, Pace, counted, working

AT_ONCE = Pace(first_s=0.0, every_s=0.01)


class Terminal(io.StringIO):
    """What a terminal is sent."""

    def isatty(self) -> bool:
        return True


def test_work_that_is_done_at_once_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with working("planning"):
        pass
    tell = counted(2, "rows")
    assert tell is not None
    tell(1)
    tell(2)

    assert capsys.readouterr().err == ""


def test_long_work_says_a_line_now_and_then_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    with working("planning", pace=AT_ONCE):
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()

    assert len(lines) >= 2
    assert set(lines) == {"planning, 0 s so far"}


def test_the_line_is_wiped_from_a_terminal_when_the_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with working("planning", pace=AT_ONCE):
        time.sleep(0.05)

    assert terminal.getvalue().startswith("\rplanning, 0 s so far")
    assert terminal.getvalue().endswith(f"\r{' ' * len('planning, 0 s so far')}\r")


def test_it_is_wiped_when_the_work_fails_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())

    def fail() -> None:
        time.sleep(0.05)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"), working("planning", pace=AT_ONCE):
        fail()

    assert terminal.getvalue().endswith("\r")


def test_work_of_a_known_size_says_how_much_is_left(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_the_first_rows_foretell_no_time(capsys):
    tell = counted(300, "rows", pace=Pace(first_s=0.0, every_s=0.0))
    assert tell is not None
    tell(1)
    tell(150)
    first, later = capsys.readouterr().err.splitlines()

    assert first == "1 of 300 rows, 0 s so far"
    assert later.startswith("150 of 300 rows, about ")

"""Notes, warnings and errors on stderr, in one form; coloured only on a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from textwrap import wrap

from mpplan.ui.sink import folded, visible
from mpplan.ui.streams import silence

LEAST_COLUMNS = 40
"""Minimum width of lines; text in a narrower terminal would be hard to read."""


def _paint(text: str, code: str) -> str:
    """Colour a word when stderr is a terminal and `NO_COLOR` is not set (no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty():
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def _print(text: str) -> None:
    """Write a line to stderr; ignore a closed pipe or a full disk, because the answer matters more."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def message_line(text: str) -> str:
    """Fold a message onto one line, so that `error:` can be grepped and read aloud; a narrow terminal wraps it."""
    return visible(" ".join(text.split()))


def _wrapped(label: str, text: str) -> str:
    """Wrap a message under its label on a terminal; elsewhere use one line, for `grep`."""
    if not sys.stderr.isatty():
        return f"{label} {text}".lstrip()
    width = max(shutil.get_terminal_size().columns, LEAST_COLUMNS)
    lines = wrap(
        f"{label} {text}".lstrip(), width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines)


def _told(label: str, code: str, text: str) -> None:
    shown = _wrapped(label, message_line(text))
    _print(_paint(label, code) + shown.removeprefix(label))


def note(text: str, *, quiet: bool = False) -> None:
    """Print a note about completed work, for example `wrote plan.html`; silent with `--quiet`."""
    if not quiet:
        _print(_wrapped("", folded(text)))


def warn(text: str, *, quiet: bool = False) -> None:
    """Print a warning about something that did not stop the work; silent with `--quiet`."""
    if not quiet:
        _told("warning:", "33", text)


def fail(message: str, hint: str | None = None) -> None:
    """Print `error:` and, where there is a next action, `hint:`."""
    _told("error:", "1;31", message)
    if hint:
        _told("hint:", "36", hint)


def show_help(text: str) -> None:
    """Print a help text unchanged, line by line, to stderr, because the user has not typed a command yet."""
    _print(text)


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the hint for a misspelt name: the nearest known name, or else `otherwise`."""
    from planner.rows import near_names  # needed only after a mistake

    near = near_names(name, known, 1)
    return f"did you mean `{near[0]}`?" if near else otherwise

"""Notes, warnings and errors on stderr, in one form; coloured only on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from mpplan.ui.sink import folded, visible
from mpplan.ui.streams import silence


def _paint(text: str, code: str) -> str:
    """Colour a word when stderr is a terminal and `NO_COLOR` is not set (no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty():
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def _print(text: str) -> None:
    """Write a line on stderr; lost where nobody takes it (a closed pipe, a full disk): the answer matters more."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def message_line(text: str) -> str:
    """Fold a message onto one line, so that `error:` can be grepped and read aloud."""
    return visible(" ".join(text.split()))


def note(text: str, *, quiet: bool = False) -> None:
    """Print what was done, for example `wrote plan.html`; silent with `--quiet`."""
    if not quiet:
        _print(folded(text))


def warn(text: str, *, quiet: bool = False) -> None:
    """Print a warning about something that did not stop the work; silent with `--quiet`."""
    if not quiet:
        _print(f"{_paint('warning:', '33')} {message_line(text)}")


def fail(message: str, hint: str | None = None) -> None:
    """Print `error:` and, where there is a next action, `hint:`."""
    _print(f"{_paint('error:', '1;31')} {message_line(message)}")
    if hint:
        _print(f"{_paint('hint:', '36')} {message_line(hint)}")


def show_help(text: str) -> None:
    """Print a help text, line by line as it is: what was typed is no command yet."""
    _print(text)


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The hint for a misspelt name: the nearest one, or else what to do instead."""
    from planner.rows import near_names  # needed only after a mistake

    near = near_names(name, known, 1)
    return f"did you mean `{near[0]}`?" if near else otherwise

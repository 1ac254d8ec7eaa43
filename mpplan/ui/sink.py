r"""The only way to the screen: escape control characters on stdout and stderr, whichever code prints them.

Names come from files by other people (a model's config.json, records, price rows, runs) and from the command line.
A terminal obeys control characters in them: it may change its title, fill the clipboard, move the cursor or reverse
text. Each unsafe character (`planner.text.UNSAFE`) is therefore printed as `\u001b`, which JSON reads back as the
character itself. Line ends and tabs stay, and so do the few colours that the program itself writes on a terminal.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from mpplan.ui.streams import buffered
from planner.text import UNSAFE

_UNSAFE = rf"(?!\t|\r?\n)[{UNSAFE}]"
"""All unsafe characters except layout; a carriage return without a line feed would go back to the start of the line."""
_COLOURS = r"\x1b\[(?:0|1|2|33|36|1;31)m"
"""Sequences that the program writes on a terminal: bold, dim, and the colours of `warning:`, `error:` and `hint:`."""
_COLOURS_OR_UNSAFE = f"({_COLOURS})|{_UNSAFE}"
"""Not compiled before it is used, because a set of so many characters takes a third of a millisecond."""


def visible(text: str) -> str:
    r"""Return a text with every unsafe character as `\uXXXX`, except tabs and line ends.

    Unlike `one_line` and `clean`, this loses nothing, because another program may read the output as data.
    """
    return text if text.isprintable() else re.sub(_UNSAFE, _escaped, text)


def folded(text: str) -> str:
    """Make a text visible as in `visible`, and replace line ends and tabs by spaces so that it stays on one line."""
    return text if text.isprintable() else visible(re.sub(r"\s", " ", text))


def _escaped(match: re.Match[str]) -> str:
    return rf"\u{ord(match[0]):04x}"


def _kept_or_escaped(match: re.Match[str]) -> str:
    return match[1] or _escaped(match)


class Sink:
    """A text stream that escapes what is written to it and otherwise behaves like the wrapped stream.

    It has no `buffer`, so that no library can bypass it.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        """The wrapped stream, used directly for the program's own output: progress and binary formats."""

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write an escaped text; return the length of the original text."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.stream.isatty():
            self.stream.write(re.sub(_COLOURS_OR_UNSAFE, _kept_or_escaped, text))
        else:
            self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)


def uncleaned(stream: TextIO) -> TextIO:
    """Return the stream behind a sink, for bytes and cursor movement; callers must clean what they write there."""
    return stream.stream if isinstance(stream, Sink) else stream


@contextmanager
def cleaned() -> Iterator[None]:
    """Send everything that is printed inside the context through a sink."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_sink_over(stream) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def _sink_over(stream: TextIO) -> Any:
    return stream if stream is None or isinstance(stream, Sink) else Sink(buffered(stream))

r"""The one way to the screen: control characters are shown as text on stdout and stderr, whoever prints them.

Names come from files that others wrote (a model's config.json, records, price rows, runs) and from the command line.
A terminal obeys what is in them: it retitles its window, fills the clipboard, moves the cursor, turns text around. So
each unsafe character (`planner.text.UNSAFE`) is printed as `\u001b`, which JSON reads back as the character itself.
Line ends and tabs stay, and so do the program's own few colours on a terminal.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from planner.text import UNSAFE

_UNSAFE = rf"(?!\t|\r?\n)[{UNSAFE}]"
"""All but what lays text out; a return without a line feed goes back to the start of the line."""
_COLOURS = r"\x1b\[(?:0|1|2|33|36|1;31)m"
"""What the program itself writes on a terminal: bold, dim, and the colours of `warning:`, `error:` and `hint:`."""
_PIPED, _ON_TERMINAL = re.compile(_UNSAFE), re.compile(f"({_COLOURS})|{_UNSAFE}")


def visible(text: str) -> str:
    r"""A text with every unsafe character as `\uXXXX`, but for tabs and line ends.

    Unlike `one_line` and `clean`, it loses nothing: what is printed may be data that another program reads.
    """
    return text if text.isprintable() else _PIPED.sub(_escaped, text)


def folded(text: str) -> str:
    """The same for what has to stay on one line."""
    return text if text.isprintable() else visible(re.sub(r"\s", " ", text))


def _escaped(match: re.Match[str]) -> str:
    return rf"\u{ord(match[0]):04x}"


def _kept_or_escaped(match: re.Match[str]) -> str:
    return match[1] or _escaped(match)


class Sink:
    """A text stream that cleans what is written to it; the rest is the stream's own.

    It has no `buffer`, so that no library finds a way around it.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        """Where cleaned text goes, and what the program writes itself: progress, binary formats."""

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write a text cleaned; returns the length of what was given."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.stream.isatty():
            self.stream.write(_ON_TERMINAL.sub(_kept_or_escaped, text))
        else:
            self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)


def uncleaned(stream: TextIO) -> TextIO:
    """The stream behind a sink, for bytes and for what moves the cursor; who writes there cleans it."""
    return stream.stream if isinstance(stream, Sink) else stream


@contextmanager
def cleaned() -> Iterator[None]:
    """Within it, everything that is printed goes through a sink."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_sink_over(stream) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def _sink_over(stream: TextIO) -> Any:
    return stream if stream is None or isinstance(stream, Sink) else Sink(stream)

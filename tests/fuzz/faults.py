"""What an outcome may not show, whatever the program was asked."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.fuzz.case import DIED, HUNG

CODES = (0, 2, 3, 4, 5, 6, 7, 8)
"""Those of docs/exit-codes.md that a case may end with: not 1, our fault, nor 130, since nobody interrupts."""
ANSWERED = (0, 5, 6, 7)
"""Codes with which there is an answer on stdout."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
_NO_NUMBER = re.compile(r"(?<![\w./`-])[-+]?(?:nan|inf|infinity)(?![\w./`-])", re.IGNORECASE)
"""Between backticks it is what a file says, repeated."""
_LABEL = re.compile(r"^\S+(?= {2})", re.MULTILINE)
"""The first column of a table, which names what a file may have named."""


def faults(case: Any, outcome: Any) -> list[str]:
    """Everything that is wrong with an outcome, in sentences; none where nothing is.

    Args:
        case: of any surface; where it has `arguments`, what they say may be repeated.
        outcome: at least `code`, `out` and `err`; an outcome of `tests.fuzz.case` also has the `files` written.
    """
    if outcome.code == HUNG:
        return ["it did not end within its time"]
    if outcome.code == DIED:
        return ["the process died"]
    out = outcome.out if isinstance(outcome.out, str) else outcome.out.decode("utf-8", "replace")
    words, files = getattr(case, "arguments", ()), getattr(outcome, "files", {})
    numbers = _numbers(words, out) if outcome.code in ANSWERED and out else ()
    return [*_ending(outcome), *_screen(out, outcome.err), *numbers, *_left(outcome.code, files)]


def _ending(outcome: Any) -> Iterator[str]:
    if outcome.code not in CODES:
        yield f"exit {outcome.code} in {_raised_in(outcome.err)}: {_last_line(outcome.err)}"
    elif "Traceback (most recent" in outcome.err:
        yield f"a traceback: {_last_line(outcome.err)}"
    elif outcome.code in (2, 3, 4, 8) and "error: " not in outcome.err and "Usage: " not in outcome.err:
        yield f"exit {outcome.code} without an error in words"


def _raised_in(err: str) -> str:
    """Where the last traceback ends, as `file:function`."""
    frames = re.findall(r'File "(?:.*/)?([^"/]+/[^"/]+)", line \d+, in (\S+)', err)
    return ":".join(frames[-1]) if frames else "nowhere"


def _last_line(err: str) -> str:
    lines = [line for line in err.splitlines() if not line.startswith("hint:")] or [""]
    return lines[-1][:300]


def _screen(out: str, err: str) -> Iterator[str]:
    for name, text in (("stdout", out), ("stderr", err)):
        control = None if text.startswith("%PDF") else _CONTROL.search(text)
        if control:
            around = text[max(0, control.start() - 40) : control.end() + 20]
            yield f"a control character on {name}: {around!r}"


def _numbers(words: Iterable[str], out: str) -> Iterator[str]:
    """Figures of an answer that are none, or out of order."""
    if out.lstrip()[:1] in ("{", "["):
        try:
            document = json.loads(out, parse_constant=_refuse)
        except ValueError as error:
            yield f"stdout is no JSON: {error}"
            return
        yield from sorted(set(_disorder(document, "")))[:3]
    elif not any(_NO_NUMBER.search(word) for word in words):
        figures = "" if out.startswith(("%PDF", "<!")) else _LABEL.sub("", out)
        lost = _NO_NUMBER.search(figures)
        if lost:
            yield f"`{lost[0]}` on stdout: {figures[max(0, lost.start() - 40) : lost.end() + 20]!r}"


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} in a document")


def _disorder(value: Any, path: str) -> Iterator[str]:
    """Ranges that are out of order and numbers beyond floats, with the path of their key."""
    if isinstance(value, dict):
        ends = [value.get(key) for key in ("low", "mid", "high")]
        figures = [end for end in ends if isinstance(end, int | float)]
        slack = 1e-9 * max((abs(figure) for figure in figures), default=0.0)
        if len(figures) == 3 and not (figures[0] <= figures[1] + slack and figures[1] <= figures[2] + slack):
            yield f"{path}: low {figures[0]}, mid {figures[1]}, high {figures[2]}"
        for key, inner in value.items():
            yield from _disorder(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _disorder(inner, f"{path}[]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{path}: {value}"


def _left(code: int, files: Mapping[str, bytes]) -> Iterator[str]:
    """Temporary files, documents cut short, and results of a run that failed."""
    for name, content in files.items():
        if "/.mpplan-" in name or name.endswith((".tmp", ".part")):
            yield f"a temporary file is left: {name}"
        is_page = name.endswith(".html") and not content.startswith(b"{")  # a name that JSON may be given, too
        if is_page and not content.rstrip().endswith(b"</html>") and code in ANSWERED:
            yield f"{name} is cut short"
        if code in (2, 3) and name.startswith("here/"):
            yield f"exit {code} and {name} was written"

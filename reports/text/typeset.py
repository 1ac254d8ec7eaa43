"""Spacing of Chinese sentences composed of pieces: remove superfluous spaces at the joints, and add missing ones."""

from __future__ import annotations

import re
from functools import cache

_MARKS = "[\x02-\x04]*"
_FULL = "，。；：、？！（）“”"
"""Full-width punctuation marks, which include their own space."""
_BESIDE = f"(?<=[{_FULL}])({_MARKS}) +| +({_MARKS})(?=[{_FULL}])|(?<=[一-鿿]) +(?=[一-鿿])"
_LACKING = "(?<=[一-鿿])(?=(?:GPU|CPU|MFU|HFU)(?![A-Za-z]))|(?:(?<=GPU)|(?<=GiB)|(?<=CO₂e))(?=\x03?[一-鿿])"
"""Positions where a Latin label follows Chinese text, or where a figure with a Latin unit precedes it."""


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when it is first used: reports in English need neither."""
    return re.compile(pattern)


def typeset(text: str) -> str:
    """Return a sentence without blanks beside full-width marks or between Chinese words, except in quoted code."""
    quoted = text.split("`")
    quoted[::2] = [_compiled(_LACKING).sub(" ", _compiled(_BESIDE).sub(r"\1\2", part)) for part in quoted[::2]]
    return "`".join(quoted)

"""Chinese sentences put together from pieces: the spaces that their joints leave too many, or lack."""

from __future__ import annotations

import re

_MARKS = "[\x02-\x04]*"
_FULL = "，。；：、？！（）“”"
"""Marks of a full width hold their own space."""
_BESIDE = re.compile(f"(?<=[{_FULL}])({_MARKS}) +| +({_MARKS})(?=[{_FULL}])")
_LACKING = re.compile("(?<=[一-鿿])(?=(?:GPU|CPU|MFU|HFU)(?![A-Za-z]))|(?:(?<=GPU)|(?<=GiB)|(?<=CO₂e))(?=\x03?[一-鿿])")
"""Where a label that begins in Latin letters follows a Chinese one, or a figure whose unit is Latin precedes one."""


def typeset(text: str) -> str:
    """A sentence without blanks beside marks of a full width, outside of what is quoted as code."""
    quoted = text.split("`")
    quoted[::2] = [_LACKING.sub(" ", _BESIDE.sub(r"\1\2", part)) for part in quoted[::2]]
    return "`".join(quoted)

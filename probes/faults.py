"""Errors of a device: which of them leave it unusable, and how they are told."""

from __future__ import annotations

import re


class DeviceLost(Exception):  # noqa: N818 - a state, not a mistake
    """The CUDA context is broken; only a new process can go on."""


def is_lost(error: BaseException) -> bool:
    """Whether an error leaves the CUDA context broken."""
    text = str(error)
    return any(part in text for part in ("CUDA error", "device-side assert", "illegal memory access"))


def cleaned(error: BaseException) -> str:
    """An error in one short line without paths, which may name a user."""
    first = (str(error).strip().splitlines() or [""])[0]
    text = re.sub(r"(?:[A-Za-z]:)?[/\\][^\s'\"]*", "…", first)
    return f"{type(error).__name__}: {text}"[:200]

"""Lists of names in a sentence."""

from __future__ import annotations

from collections.abc import Iterable


def listed(names: Iterable[str], limit: int = 12) -> str:
    """Join names with commas; beyond `limit` of them, only the number of the rest is given."""
    every = list(names)
    shown = ", ".join(every[:limit])
    return shown if len(every) <= limit else f"{shown} and {len(every) - limit} more"

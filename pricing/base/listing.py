"""Lists of names in a sentence."""

from __future__ import annotations

from collections.abc import Iterable


def listed(names: Iterable[str], limit: int = 12) -> str:
    """Join names with commas; beyond `limit` of them, only the number of the rest is given."""
    all_names = list(names)
    shown = ", ".join(all_names[:limit])
    return shown if len(all_names) <= limit else f"{shown} and {len(all_names) - limit} more"

"""Near names for a name that is unknown."""

from __future__ import annotations

from collections.abc import Iterable


def near_names(name: str, known: Iterable[str], limit: int = 5) -> tuple[str, ...]:
    """The known names closest in spelling, best first, case ignored."""
    from difflib import get_close_matches

    by_lower = {one.lower(): one for one in known}
    return tuple(by_lower[one] for one in get_close_matches(name.lower(), by_lower, n=limit, cutoff=0.5))


def listed(names: Iterable[str], limit: int = 12) -> str:
    """Names in a sentence, cut off after `limit`."""
    every = list(names)
    shown = ", ".join(every[:limit])
    return shown if len(every) <= limit else f"{shown} and {len(every) - limit} more"

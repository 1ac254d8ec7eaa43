"""How many examples a property test tries where the default is too many or too few."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100
"""Examples of a property to which the number given to `examples` compares."""


def examples(count: int) -> settings:
    """As many as `count` is to `USUAL` of what the profile tries: a third of it in a test run, ten times in a fuzz."""
    return settings(max_examples=max(1, count * settings.default.max_examples // USUAL))

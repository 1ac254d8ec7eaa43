"""A saving as shown: its size, which way it goes and how sure that is, decided once for sentences and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.lazy import dataclass
from reports.text.language import Figure, Words

ABOUT_THE_SAME = 0.05
"""A saving that may be none is told as `about the same` while its middle is below this share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSaving:
    """A relative saving, ready to be worded as more or less."""

    figure: Figure
    """Its size without a sign, with its range seen from the same side."""
    less: bool
    """Whether the middle is a saving; else it is an extra."""
    unsure: bool
    """Whether the range reaches over zero, so that it may as well be none."""
    rounds_to_none: bool
    """Whether the middle reads as zero."""

    @property
    def hedged(self) -> bool:
        """Whether a sentence tells it with what it may be instead, a clause of its own."""
        return self.unsure and self.figure.value >= ABOUT_THE_SAME

    @property
    def is_none(self) -> bool:
        """Whether there is neither a saving nor a range."""
        return not self.figure.span and round(self.figure.value, 3) == 0


def shown_saving(saving: Mapping[str, Any], words: Words) -> ShownSaving:
    """A saving of the document, `low mid high` as shares of the original; negative is more."""
    less, unsure = saving["mid"] >= 0, saving["low"] < 0 < saving["high"]
    low, high = (saving["low"], saving["high"]) if less else (-saving["high"], -saving["low"])
    quantity = "change" if unsure else "percent"  # tenths would tell nothing beside a range that reaches over zero
    figure = words.figure(quantity, {"low": low, "mid": abs(saving["mid"]), "high": high})
    assert figure is not None
    none = figure.text == words.value("change", 0.0)
    return ShownSaving(figure=figure, less=less, unsure=unsure, rounds_to_none=none)

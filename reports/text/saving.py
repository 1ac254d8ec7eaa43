"""A saving as displayed: its size, direction and certainty, determined once for sentences and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.lazy import dataclass
from reports.text.language import Figure, Words, strong

ABOUT_THE_SAME = 0.05
"""A saving whose range includes zero is worded as `about the same` if its middle is below this share."""
ZERO = 0.0005
"""A share below this reads as `0.0%`."""
LEAST_END = 0.005
"""An end of a range from this share on is told beside a middle of zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSaving:
    """A relative saving, ready to be worded as more or less."""

    figure: Figure
    """Size without a sign, with its range in the same direction."""
    less: bool
    """Whether the middle is a saving; otherwise it is an increase."""
    unsure: bool
    """Whether the range includes zero, so that there may be no saving."""
    rounds_to_none: bool
    """Whether the middle rounds to zero."""
    at_most: str = ""
    """The far end of the range, without a sign, where the middle and the other end are zero; otherwise empty. An
    offer's minimum term makes two costs equal until one run is longer than the term."""

    @property
    def hedged(self) -> bool:
        """Whether a sentence mentions the possible opposite in a separate clause."""
        return self.unsure and self.figure.value >= ABOUT_THE_SAME

    @property
    def is_none(self) -> bool:
        """Whether there is neither a saving nor a range."""
        return not self.figure.span and round(self.figure.value, 3) == 0


def shown_saving(saving: Mapping[str, Any], words: Words) -> ShownSaving:
    """Return a saving as displayed, from `low mid high` as shares of the original; negative means more."""
    at_one_end = one_sided(saving)
    less = saving["high"] > -saving["low"] if at_one_end else saving["mid"] >= 0
    unsure = saving["low"] < 0 < saving["high"] and not at_one_end
    low, high = (saving["low"], saving["high"]) if less else (-saving["high"], -saving["low"])
    quantity = "change" if unsure or at_one_end else "percent"  # tenths are spurious beside a range that includes zero
    figure = words.figure(quantity, {"low": low, "mid": abs(saving["mid"]), "high": high})
    assert figure is not None
    none = figure.text == words.value("change", 0.0)
    at_most = words.value("change", high) if at_one_end else ""
    return ShownSaving(figure=figure, less=less, unsure=unsure, rounds_to_none=none, at_most=at_most)


def saving_phrase(saving: ShownSaving, other: str, words: Words) -> str:
    """Return a saving in words, with its figure marked for `Words.spans`."""
    if saving.is_none:
        return words("compare.same", other=other)
    if saving.at_most:
        key = "compare.same_or_less" if saving.less else "compare.same_or_more"
        return words(key, other=other, share=strong(saving.at_most))
    if saving.unsure and not saving.hedged:
        return words("compare.unsure", other=other, span=saving.figure.span)
    key = "compare.less" if saving.less else "compare.more"
    if saving.hedged:
        key = "compare.perhaps_less" if saving.less else "compare.perhaps_more"
    return words(key, share=strong(saving.figure.text), other=other, span=words.ranged(saving.figure))


def one_sided(saving: Mapping[str, Any]) -> bool:
    """Return whether only one end of a range differs from zero."""
    near, far = sorted((abs(saving["low"]), abs(saving["high"])))
    return bool(abs(saving["mid"]) < ZERO and near < ZERO and far >= LEAST_END)

"""Patterns that are recognised in the free text of a published run's columns, and their meanings.

These columns hold a source's own words and have no fixed values. A text that matches none of these patterns says
nothing. Columns with a few known words, such as ZeRO's and FSDP's, are read by `columns`; networks are read by
`hardware.network`.
"""

from __future__ import annotations

import re

from planner.lazy import dataclass
from planner.training.releases import mid_month, year_of_release


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPattern:
    """A pattern in the text of a column."""

    column: str
    pattern: str
    """Regular expression, searched for in the text in lower case."""
    meaning: str
    """Meaning of a match."""

    def match(self, text: str) -> re.Match[str] | None:
        """Return where the text has the word; None where it does not."""
        return re.search(self.pattern, text.lower())

    def says(self, text: str) -> bool:
        """Return whether the text has the word."""
        return self.match(text) is not None


NOT_A_GPU = TextPattern(column="gpu", pattern=r"^tpu", meaning="no GPU: the row is not predicted")
LIMITED = TextPattern(
    column="gpu",
    pattern=r"power-limited",
    meaning="the part ran below its datasheet's power; without `power_limit_w` by an unknown amount",
)
RELEASE = TextPattern(
    column="framework",
    pattern=r"\bv?(2[0-9])\.(0[1-9]|1[0-2])\b",
    meaning="a release named by its year and month, like `NeMo 25.04`",
)
YEAR = TextPattern(
    column="framework", pattern=r"\((20[0-9]{2})\)", meaning="the year of the software: `torchtitan (2024)`"
)
RECOMPUTE_COUNTED = TextPattern(
    column="flops_convention",
    pattern=r"hardware|recompute counted|\b8n\b",
    meaning="the forward pass that checkpointing runs again is counted",
)
HALVED = TextPattern(column="flops_convention", pattern=r"halved", meaning="of attention the causal half is counted")
NOT_HALVED = TextPattern(
    column="flops_convention",
    pattern=r"non-causal|not causal",
    meaning="attention is counted in full, as where a text has neither this nor `halved`",
)
PARAMETERS_ONLY = TextPattern(
    column="flops_convention",
    pattern=r"8n only|logits excluded",
    meaning="6 or 8 FLOP per parameter of the layers: no attention, no output layer",
)
BF16_PEAK = TextPattern(
    column="flops_convention",
    pattern=r"vs 989 tf|peak 312",
    meaning="the MFU is over the dense BF16 peak, whatever the run's precision: that of H100 or A100",
)
PATTERNS = (
    NOT_A_GPU, LIMITED, RELEASE, YEAR, RECOMPUTE_COUNTED, HALVED, NOT_HALVED, PARAMETERS_ONLY, BF16_PEAK,
)  # fmt: skip
"""All patterns."""


def limit_unsaid(gpu: str, power_limit_w: float | None) -> bool:
    """Return whether a row states that its part ran below the datasheet's power without stating how far."""
    return power_limit_w is None and LIMITED.says(gpu)


def software_year(framework: str) -> float | None:
    """Return the decimal year of the software: `NeMo 25.04`, `torchtitan (2024)`, or a version with a known date.

    None where the name has none of these.
    """
    release, year = RELEASE.match(framework), YEAR.match(framework)
    if release:
        return mid_month(2000 + int(release[1]), int(release[2]))
    return int(year[1]) + 0.5 if year else year_of_release(framework)

"""Which GPU of the catalogue a price list means: `H100` alone may be one of three parts.

The rules of `gpu_names.csv` are tried in order on `provider name instance`; a name that fits none is left out and
counted, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from planner.rows import Row, read_rows
from pricing.base.folder import DATA


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRule:
    """A pattern, and the memory that a part must have where the name does not say."""

    pattern: re.Pattern[str]
    memory_gib_low: float
    memory_gib_high: float
    gpu: str


@lru_cache(maxsize=1)
def name_rules() -> tuple[NameRule, ...]:
    """The rules in their order."""
    return tuple(_rule(row) for row in read_rows(DATA / "gpu_names.csv"))


def _rule(row: Row) -> NameRule:
    try:
        pattern = re.compile(row.text("pattern"))
    except re.error as error:
        raise row.fail("pattern", f"a regular expression ({error})") from None
    low, high = row.opt_number("memory_gib_low"), row.opt_number("memory_gib_high")
    return NameRule(
        pattern=pattern,
        memory_gib_low=0.0 if low is None else low,
        memory_gib_high=float("inf") if high is None else high,
        gpu=row.text("gpu"),
    )


@lru_cache(maxsize=50_000)
def identify(provider: str, name: str, instance: str, memory_gib: float | None = None) -> str | None:
    """The catalogue id that a line of a price list means, None where it is not sure.

    Args:
        provider: slug.
        name: the list's name of the GPU, for example `A100-80GB`.
        instance: the list's name of the machine, for example `p5.48xlarge`.
        memory_gib: of one GPU, where the list says.
    """
    text = f"{provider} {name} {instance}".lower()
    for rule in name_rules():
        bounded = rule.memory_gib_low > 0 or rule.memory_gib_high < float("inf")
        if bounded and (memory_gib is None or not rule.memory_gib_low <= memory_gib <= rule.memory_gib_high):
            continue
        if rule.pattern.search(text):
            return rule.gpu
    return None

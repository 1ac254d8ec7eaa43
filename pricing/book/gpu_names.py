"""Identify the catalogue GPU behind a name in a price list, where `H100` alone may be one of three parts.

The rules of `gpu_names.csv` are tried in order on `provider name instance`. A name that matches none is left out and
counted; nothing is guessed.
"""

from __future__ import annotations

import re
from functools import lru_cache

from planner.lazy import dataclass
from planner.rows import Row, read_rows
from pricing.base.folder import DATA


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRule:
    """A pattern for names, and bounds on the memory that distinguish parts with the same name."""

    pattern: re.Pattern[str]
    memory_gib_low: float
    memory_gib_high: float
    gpu: str


@lru_cache(maxsize=1)
def name_rules() -> tuple[NameRule, ...]:
    """Return the rules in the order in which they are tried."""
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
    """Return the catalogue id of the GPU that a line of a price list names; None where no rule matches.

    Args:
        provider: slug of the provider.
        name: the GPU's name in the list, for example `A100-80GB`.
        instance: the machine's name in the list, for example `p5.48xlarge`.
        memory_gib: memory of one GPU; None where the list does not state it.
    """
    text = f"{provider} {name} {instance}".lower()
    for rule in name_rules():
        bounded = rule.memory_gib_low > 0 or rule.memory_gib_high < float("inf")
        if bounded and (memory_gib is None or not rule.memory_gib_low <= memory_gib <= rule.memory_gib_high):
            continue
        if rule.pattern.search(text):
            return rule.gpu
    return None

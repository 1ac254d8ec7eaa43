"""Which GPU of the catalogue a price list means: `H100` alone may be one of three parts.

The rules of `gpu_names.csv` are tried in order on `provider name instance`; a name that fits none is left out and
counted, never guessed.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import lru_cache

from pricing.book.rows import DATA


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
    with (DATA / "gpu_names.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            NameRule(
                pattern=re.compile(row["pattern"]),
                memory_gib_low=float(row["memory_gib_low"] or 0),
                memory_gib_high=float(row["memory_gib_high"] or "inf"),
                gpu=row["gpu"],
            )
            for row in csv.DictReader(file)
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

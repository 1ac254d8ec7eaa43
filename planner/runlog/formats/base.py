"""A way of writing logs of training (`LogFormat`), and numbers as frameworks write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from planner.lazy import dataclass
from planner.runlog.amounts import as_number
from planner.runlog.events import DamagedError, Event
from planner.units import GIGA, MEGA, MILLI, TERA, ungrouped


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """How one framework logs training."""

    name: str
    """Of the framework, as the column `framework` of a file of runs has it."""
    marks: tuple[str, ...]
    """A line without any of these is none of its lines."""
    read: Callable[[str], Iterator[Event]]
    """What a line tells; raises `DamagedError`."""
    joins: bool = False
    """Whether its lines stand in logs of other frameworks, whose steps then count."""


def amount(key: str, text: str) -> float:
    """A number above 0.

    Raises:
        DamagedError: it is none.
    """
    number = as_number(text)
    if not number:
        raise DamagedError(key, text)
    return number


SUFFIXES = {"K": 1 / MILLI, "M": MEGA, "B": GIGA, "T": TERA}
"""Of numbers that are shortened to a few digits."""


def human_amount(key: str, text: str) -> float:
    """A number above 0 that may end in a suffix: `4.71K`.

    Raises:
        DamagedError: it is none.
    """
    return amount(key, text[:-1]) * SUFFIXES[text[-1]] if text[-1:] in SUFFIXES else amount(key, text)


def optional(text: str | None, scale: float = 1.0) -> float | None:
    """A number above 0 in its unit; None where there is none, or it is no number."""
    number = None if text is None else as_number(ungrouped(text))
    return number * scale if number else None


_PERCENT_FROM = 1.5
"""An MFU without a unit from which on it is one in percent."""


def mfu_of(text: str | None) -> float | None:
    """An MFU as a ratio: `32.75%`, `32.75` or `0.3275`; None where it is no number."""
    if text is None:
        return None
    number = optional(text.removesuffix("%"))
    if number is None:
        return None
    return number / 100 if text.endswith("%") or number >= _PERCENT_FROM else number


TFLOPS_KEYS = ("tflops", "tflops_per_gpu", "tflops_per_device", "tflop/s/gpu", "throughput per gpu (tflop/s/gpu)",
               "model_tflops_per_gpu", "hardware_tflops_per_gpu")  # fmt: skip
"""Names of TFLOP/s per GPU, in small letters."""
MFU_KEYS = ("mfu", "mfu(%)", "mfu_percent", "train/mfu", "perf/mfu", "model_flops_utilization")
"""Names of an MFU, in small letters."""
TPS_KEYS = ("tps", "throughput(tps)", "tokens_per_sec_per_gpu", "tokens_per_second_per_gpu", "tokens/s/gpu", "wps",
            "tokens per gpu per second (tgs)")  # fmt: skip
"""Names of tokens per second and GPU, in small letters."""


def rates_of(pairs: Mapping[str, str]) -> dict[str, Any]:
    """The printed rates among the pairs of a line, as fields of `Step`."""
    small = {name.strip().lower(): value.strip() for name, value in pairs.items()}

    def first(names: tuple[str, ...]) -> str | None:
        return next((small[name] for name in names if name in small), None)

    return {
        "tflops_per_gpu": optional(first(TFLOPS_KEYS)),
        "mfu_ratio": mfu_of(first(MFU_KEYS)),
        "tokens_per_s_per_gpu": optional(first(TPS_KEYS)),
    }


_PIPED = re.compile(r"\|?\s*([^|:]{1,80}):\s*([^|]{1,80}?)\s*(?=\||$)")


def piped(text: str) -> dict[str, str]:
    """The pairs of a line like `lr: 1e-4 | global batch size: 128 |`, names in small letters."""
    return {name.strip().lower(): value for name, value in _PIPED.findall(text)}

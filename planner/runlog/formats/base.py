"""Interface of a format of training logs (`LogFormat`), and readers for numbers as frameworks write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from planner.lazy import dataclass
from planner.runlog.amounts import as_number
from planner.runlog.events import DamagedError, Event
from planner.units import GIGA, MEGA, MILLI, TERA, ungrouped

Reader: TypeAlias = "Callable[[str], Iterator[Event]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """How one framework logs training."""

    name: str
    """Name of the framework, as in the column `framework` of a file of runs."""
    marks: tuple[str, ...]
    """Substrings of its lines; a line without any of them is not in this format."""
    read: Reader
    """Reads the events of a line; raises `DamagedError`."""
    begin: Callable[[], Reader] | None = None
    """Returns a reader for the lines of one log that remembers earlier lines; None if each line stands alone."""
    joins: bool = False
    """Whether its lines appear in logs of other frameworks, whose steps then take precedence."""


def amount(key: str, text: str) -> float:
    """Read a number above 0.

    Raises:
        DamagedError: the text is not such a number.
    """
    number = as_number(text)
    if not number:
        raise DamagedError(key, text)
    return number


SUFFIXES = {"K": 1 / MILLI, "M": MEGA, "B": GIGA, "T": TERA}
"""Suffixes of numbers that are shortened to a few digits, with their factors."""


def human_amount(key: str, text: str) -> float:
    """Read a number above 0 that may end in a suffix: `4.71K`.

    Raises:
        DamagedError: the text is not such a number.
    """
    return amount(key, text[:-1]) * SUFFIXES[text[-1]] if text[-1:] in SUFFIXES else amount(key, text)


def optional(text: str | None, scale: float = 1.0) -> float | None:
    """Read a number above 0 and multiply it by `scale`; None if there is no text, or it is not such a number."""
    number = None if text is None else as_number(ungrouped(text))
    return number * scale if number else None


PERCENT_FROM = 1.5
"""Value from which on an MFU without a unit is taken to be in percent."""


def mfu_of(text: str | None, *, percent: bool = False) -> float | None:
    """Read an MFU as a ratio, from `32.75%`, `32.75` or `0.3275`; None if the text is not a number above 0.

    Args:
        text: the MFU as printed; None if there is none.
        percent: whether its name says that it is in percent.
    """
    if text is None:
        return None
    number = optional(text.removesuffix("%"))
    if number is None:
        return None
    return number / 100 if percent or text.endswith("%") or number >= PERCENT_FROM else number


TFLOPS_KEYS = ("tflops", "tflops_per_gpu", "tflops_per_device", "tflop/s/gpu", "throughput per gpu (tflop/s/gpu)",
               "model_tflops_per_gpu", "hardware_tflops_per_gpu")  # fmt: skip
"""Names of TFLOP/s per GPU, in lower case."""
MFU_PERCENT_KEYS = ("mfu(%)", "mfu_percent")
MFU_KEYS = ("mfu", *MFU_PERCENT_KEYS, "train/mfu", "perf/mfu", "model_flops_utilization")
"""Names of an MFU, in lower case."""
TPS_KEYS = ("tps", "throughput(tps)", "tokens_per_sec_per_gpu", "tokens_per_second_per_gpu", "tokens/s/gpu", "wps",
            "tokens per gpu per second (tgs)")  # fmt: skip
"""Names of tokens per second and GPU, in lower case."""


def rates_of(pairs: Mapping[str, str]) -> dict[str, Any]:
    """Read the printed rates among the pairs of a line, as fields of `Step`."""
    small = {name.strip().lower(): value.strip() for name, value in pairs.items()}

    def first(names: tuple[str, ...]) -> str | None:
        return next((small[name] for name in names if name in small), None)

    percent = first(MFU_PERCENT_KEYS)
    return {
        "tflops_per_gpu": optional(first(TFLOPS_KEYS)),
        "mfu_ratio": mfu_of(first(MFU_KEYS)) if percent is None else mfu_of(percent, percent=True),
        "tokens_per_s_per_gpu": optional(first(TPS_KEYS)),
    }


_PIPED = re.compile(r"\|?\s*([^|:]{1,80}):\s*([^|]{1,80}?)\s*(?=\||$)")


def piped(text: str) -> dict[str, str]:
    """Read the pairs of a line like `lr: 1e-4 | global batch size: 128 |`, with names in lower case."""
    return {name.strip().lower(): value for name, value in _PIPED.findall(text)}

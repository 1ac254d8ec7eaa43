"""Check the tokens per second that a log prints against its steps, batch and GPUs, and correct these where they differ.

Frameworks print the rate per GPU (torchtitan's `tps`, nanotron's `tokens_per_sec_per_gpu`), so that the printed rate
times the step time is the batch of a GPU. Where the plan's GPUs or batch disagree with it, the run used other values.
Some scripts print the rate of all GPUs under the same name; a rate beyond a GPU's peak FLOP/s, or printed TFLOP/s,
reveals that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from planner.comparison.basis import Basis
from planner.comparison.conventions import counts_of, flop_per_token, peaks_of
from planner.comparison.pace import Durations
from planner.comparison.planned import Planned
from planner.lazy import dataclass
from planner.runlog.log import Floats, RunLog
from planner.training.method import find_method
from planner.units import TERA

AGREE_RATIO = 0.05
"""Tolerance between the printed rate and the rate from the steps: logs average over other intervals."""
FIT_RATIO = 0.02
"""Tolerance between a derived number of GPUs, or batch, and the nearest whole number that divides."""
LEAST_COUNT, MOST_COUNT = 0.6, 1.7
"""Range of printed TFLOP/s over the printed rate, in units of 6N: every counting convention lies within it."""
SPLITS = ("tp", "pp", "cp")
"""Ways to split a model whose GPUs share sequences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedRate:
    """The result of checking the printed tokens per second."""

    verdict: str
    """`agrees`: it matches the steps. `gpus`, `global_batch`: the run used other values than the plan, which the rate
    reveals. `total`: the rate is that of all GPUs. `impossible`: the rate can be neither that of one GPU nor that of
    all. `differs`: GPUs, batch or sequence length are not the run's."""
    printed: float
    """Tokens per second, the median over the lines."""
    expected: float
    """Tokens per second and GPU from the steps, with GPUs and batch from log, flags and plan."""
    planned: int | None = None
    """The plan's value of `gpus` or `global_batch`."""

    @property
    def settled(self) -> bool:
        """Whether rate, GPUs and batch are consistent."""
        return self.verdict not in ("differs", "impossible")


def step_rates(log: RunLog, basis: Basis, durations: Durations) -> Floats:
    """Return the tokens per second and GPU of each line from its step time, `[line]`; NaN where unknown."""
    if basis.tokens_per_step is None or basis.gpus is None or basis.tokens_per_sequence is None:
        return np.full(len(log.steps), np.nan)
    seconds = log.steps.duration_s if log.durations_from == "printed" else durations.seconds
    sequences = log.steps.sequences * find_method(basis.method).sequences_per_example
    stated = np.isnan(sequences) | (basis.sources.get("global_batch") == "flag")
    tokens = np.where(stated, basis.tokens_per_step, sequences * basis.tokens_per_sequence)
    return np.asarray(tokens / seconds / basis.gpus, dtype=np.float64)


def printed_rates(log: RunLog, basis: Basis, durations: Durations, checked: PrintedRate | None) -> Floats:
    """Return the tokens per second and GPU of each line, `[line]`: the printed rate, else the rate from the step time.

    A printed rate of all GPUs is divided by their number; an impossible one is replaced. Warm-up lines are included,
    since what they print refers to their own time.
    """
    printed = log.steps.tokens_per_s_per_gpu
    if np.all(np.isnan(printed)) or (checked is not None and checked.verdict == "impossible"):
        return step_rates(log, basis, durations)
    return printed / (basis.gpus or 1) if checked is not None and checked.verdict == "total" else printed


def check_printed_rate(
    log: RunLog, basis: Basis, planned: Planned | None, durations: Durations
) -> tuple[Basis, PrintedRate | None]:
    """Correct the basis by the printed rate and return the verdict.

    The verdict is None where no rate is printed or too much is unknown.
    """
    steady = durations.steady
    printed, of_steps = log.steps.tokens_per_s_per_gpu[steady], step_rates(log, basis, durations)[steady]
    comparable = ~np.isnan(printed) & ~np.isnan(of_steps)
    if not np.any(comparable) or basis.gpus is None:
        return basis, None
    ratio = float(np.median(printed[comparable] / of_steps[comparable]))
    value, expected = float(np.median(printed[comparable])), float(np.median(of_steps[comparable]))

    def judged(verdict: str, planned: int | None = None) -> PrintedRate:
        return PrintedRate(verdict=verdict, printed=value, expected=expected, planned=planned)

    filled = 1.0 if basis.recipe is None else basis.recipe.mean_len / basis.recipe.seq_len
    if _near(ratio) or _near(ratio * filled):  # the printed rate may include padding
        return basis, judged("agrees")
    above, counted = _above_peak(basis, value), _counted(log, basis, value)
    all_gpus = basis.gpus > 1 and _near(ratio / basis.gpus)
    if all_gpus and (above or (counted is not None and counted < LEAST_COUNT)):
        return basis, judged("total")
    if above:
        return basis, judged("impossible")
    one_gpu = counted is not None and LEAST_COUNT <= counted <= MOST_COUNT
    if filled < 1.0 or (not one_gpu and (all_gpus or counted is not None)):
        return basis, judged("differs")
    corrected = _corrected(log, basis, planned, ratio)
    if corrected is None:
        return basis, judged("differs")
    return corrected, judged("gpus" if corrected.gpus != basis.gpus else "global_batch", _planned(corrected, basis))


def _planned(corrected: Basis, basis: Basis) -> int | None:
    return basis.gpus if corrected.gpus != basis.gpus else basis.global_batch


def _near(ratio: float) -> bool:
    return abs(ratio - 1.0) <= AGREE_RATIO


def _above_peak(basis: Basis, rate: float) -> bool:
    """Return whether the rate, taken as one GPU's, would exceed its peak in the run's type."""
    if basis.recipe is None or basis.gpu is None or basis.precision is None:
        return False
    peak = next((peak.flop_per_s for peak in peaks_of(basis.gpu, basis.precision) if peak.own), math.inf)
    return rate * flop_per_token(basis.recipe, counts_of(basis.recipe)[0]) > peak


def _counted(log: RunLog, basis: Basis, rate: float) -> float | None:
    """Return the FLOP per token implied by printed TFLOP/s and printed rate, in units of 6N; None without either."""
    tflops = log.steps.tflops_per_gpu[~np.isnan(log.steps.tflops_per_gpu)]
    if basis.recipe is None or not len(tflops):
        return None
    return float(np.median(tflops)) * TERA / rate / flop_per_token(basis.recipe, counts_of(basis.recipe)[0])


def _corrected(log: RunLog, basis: Basis, planned: Planned | None, ratio: float) -> Basis | None:
    """Return the basis with GPUs, else batch, that give the printed rate; None if neither is the plan's, or fits."""
    batch, gpus = basis.global_batch, basis.gpus
    assert batch is not None  # known, since the rate of a step was known
    assert gpus is not None
    layout = {} if planned is None else planned.plan.get("layout") or {}
    split = math.prod(int(log.facts.get(name) or layout.get(name) or 1) for name in SPLITS)
    if basis.sources.get("gpus") == "plan":
        number = _whole(gpus / ratio, lambda n: _divides(batch, n, split))
        return None if number is None else _with(basis, "gpus", number)
    if basis.sources.get("global_batch") == "plan":
        number = _whole(batch * ratio, lambda n: _divides(n, gpus, split))
        return None if number is None else _with(basis, "global_batch", number)
    return None


def _with(basis: Basis, name: str, number: int) -> Basis:
    recipe = basis.recipe
    sources, differs = {**basis.sources, name: "log"}, (*basis.differs, name)
    if name == "gpus":
        return replace(basis, gpus=number, sources=sources, differs=differs)
    recipe = None if recipe is None else replace(recipe, global_batch=number)
    return replace(basis, global_batch=number, recipe=recipe, sources=sources, differs=differs)


def _whole(value: float, fits: Callable[[int], bool]) -> int | None:
    """Return the nearest whole number within `FIT_RATIO` that fits."""
    near = range(max(math.ceil(value / (1.0 + FIT_RATIO)), 1), math.floor(value * (1.0 + FIT_RATIO)) + 1)
    return min((n for n in near if fits(n)), key=lambda n: abs(n - value), default=None)


def _divides(batch: int, gpus: int, split: int) -> bool:
    """Return whether every GPU, or every group of GPUs that share sequences, gets the same number of them."""
    return batch % gpus == 0 or (gpus % split == 0 and batch % (gpus // split) == 0)

"""Implausible values in the user's runs: which are refused, which are questioned, and the likely slip of units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InputFileError
from planner.lazy import dataclass
from planner.units import DAY_S, GIB, GIGA, HOUR_S, MEGA, MIB, MINUTE_S, MWH_J

if TYPE_CHECKING:
    from planner.calibration.linear import Observation
    from planner.calibration.own_runs import OwnRow

FAR_RATIO = 4.0
"""A run this much faster than predicted cannot be true, because predictions are already close to what a GPU can do.
A run this much slower is questioned."""
FAST_RATIO = 2.0
"""A run this much faster than predicted is questioned, and so are a memory, a power and an energy this far from their
predictions to either side: a bad layout slows a run, but explains none of them."""
HOPELESS_RATIO = 30.0
"""A run this much slower than predicted cannot be true: the worst published layouts are 15 times slower."""
LARGEST_PRINTED_RATIO = 1e6
"""Ratios beyond this are not printed in digits."""
SLIP_TOLERANCE_RATIO = 1.6
"""A slip of units explains a ratio if the two differ by less than this factor."""
AS_LIKELY = 1.25
"""A second slip of units is also suggested if it explains the ratio almost as well, within this factor."""
LITTLE_SHARE = 0.25
"""Below this share of a row's distance to its prediction, its weight in what is learned is called little."""
RATES = ("tokens_per_s_per_gpu", "samples_per_s", "tflops_per_gpu", "mfu")
"""Metrics for which a larger value is faster."""
TIMES = ("step_time_s", "time_to_train_min", "gpu_hours")
"""Metrics for which a smaller value is faster."""
CHECK = "check the value, its unit and the configuration; leave the row out if it describes something else"
SHOWN = 5
"""Maximum number of rows named in one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """A row that is used for learning although its value is far from the prediction."""

    number: int
    """Index of the row."""
    words: str


def odd_values(observations: Sequence[Observation], source: str) -> list[Odd]:
    """Return the odd rows; refuse values that the hardware or any software cannot explain.

    Such values are usually a slip of units or the total of a cluster. A run that is merely much slower than predicted
    may have a bad layout, and a run twice as fast may have a good one.

    Raises:
        InputFileError: names the row and the likely cause.
    """
    from planner.validation.physical_limits import why_impossible
    from reports.text.messages import word

    odd = []
    predicted = _predictor()
    for number, observation in enumerate(observations):
        run = observation.run
        ratio = observation.value / predicted(observation)
        cause = _cause(observation, ratio)
        impossible = why_impossible(observation.prepared, observation.value)
        if impossible is not None:
            raise InputFileError(f"{source}: {run.id}: {word(impossible)}", hint=cause or CHECK)
        gain = ratio if run.metric in RATES else 1.0 / ratio
        if 1.0 / (FAR_RATIO if run.metric in (*RATES, *TIMES) else FAST_RATIO) < gain < FAST_RATIO:
            continue
        what = f"{run.id}: value: {observation.value:g} {run.metric} is {_ratio_in_words(run.metric, ratio)}"
        if gain >= FAR_RATIO or gain <= 1.0 / HOPELESS_RATIO or (cause and gain <= 1.0 / FAR_RATIO):
            raise InputFileError(f"{source}: {what}", hint=cause or CHECK)
        odd.append(Odd(number=number, words=f"{what} ({cause})" if cause else what))
    return odd


def _predictor() -> Callable[[Observation], float]:
    """Return a function for the median prediction of a row; runs that differ only in labels share the result."""
    from planner.validation.predict import predict_prepared, run_rates
    from planner.validation.runs import unlabelled

    known: dict[object, float] = {}

    def predicted(observation: Observation) -> float:
        key = unlabelled(observation.run)
        if key not in known:
            rates = run_rates(observation.prepared, None, observation.measured)
            known[key] = predict_prepared(observation.prepared, rates=rates).mid
        return known[key]

    return predicted


def _ratio_in_words(metric: str, ratio: float) -> str:
    verb = "can do" if metric in RATES else "takes"
    if not 1.0 / LARGEST_PRINTED_RATIO < ratio < LARGEST_PRINTED_RATIO:
        times = "over a million times" if ratio > 1.0 else "less than a millionth of"
    elif ratio >= 1.0:
        times = f"{ratio:,.0f} times" if ratio >= FAR_RATIO else f"{ratio:.1f} times"
    else:
        times = f"1/{1.0 / ratio:,.0f} of" if ratio <= 1.0 / FAR_RATIO else f"{ratio:.0%} of"
    return f"{times} what this configuration {verb}"


def odd_words(odd: Sequence[Odd], rows: Sequence[OwnRow]) -> list[str]:
    """Word the warnings about rows far from their predictions; the weight of a row depends on whether other rows agree.

    Args:
        odd: the odd rows.
        rows: all rows after learning.
    """
    downweighted = [entry for entry in odd if rows[entry.number].learned_share < LITTLE_SHARE]
    influential = [entry for entry in odd if rows[entry.number].learned_share >= LITTLE_SHARE]
    return [
        *_asked(downweighted, "check it; it is given little weight", "check them; they are given little weight"),
        *_asked(influential, "check it; it moves what is learned", "check them; they move what is learned"),
    ]


def _asked(odd: Sequence[Odd], of_one: str, of_several: str) -> Iterator[str]:
    if not odd:
        return
    left = len(odd) - SHOWN
    more = f" (and {left} row{'' if left == 1 else 's'} more)" if left > 0 else ""
    yield f"{'; '.join(entry.words for entry in odd[:SHOWN])}{more}: {of_one if len(odd) == 1 else of_several}"


def _cause(observation: Observation, ratio: float) -> str | None:
    """Return the slip of units that would explain this ratio of value to prediction, or None if no known slip does."""
    run = observation.run
    gpus, per_node = float(run.n_gpus or 1), float(observation.prepared.cluster.gpus_per_node)
    micro_batches = float(observation.prepared.layouts.grad_accum[0])
    seq_len = float(observation.prepared.recipe.seq_len)
    size = _Size(gpus=gpus, per_node=per_node, seq_len=seq_len, micro_batches=micro_batches)
    slips, instead = SLIPS[run.metric]
    off = {
        question: abs(float(np.log(ratio / factor)))
        for question, factor in ((question, factor(size)) for question, factor in slips.items())
        if abs(np.log(factor)) > np.log(FAR_RATIO) / 2.0
    }
    near = sorted((how_far, question) for question, how_far in off.items() if how_far < np.log(SLIP_TOLERANCE_RATIO))
    asked = [question for how_far, question in near[:2] if how_far <= near[0][0] + np.log(AS_LIKELY)]
    return f"{', or '.join(asked)}? {instead}" if asked else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """The sizes by which a value may have been multiplied or divided."""

    gpus: float
    per_node: float
    seq_len: float
    micro_batches: float
    """Micro-batches of one rank in an optimizer step."""

    @property
    def node(self) -> float:
        """GPUs per node, or 1 if all GPUs are in one node."""
        return self.per_node if self.per_node < self.gpus else 1.0

    @property
    def nodes(self) -> float:
        return max(self.gpus / self.per_node, 1.0)


def _by(factor: float) -> Callable[[_Size], float]:
    return lambda _: factor


SLIPS: Mapping[str, tuple[Mapping[str, Callable[[_Size], float]], str]] = {
    "step_time_s": ({
        "is it in milliseconds": _by(1e3), "is it in minutes": _by(1.0 / MINUTE_S), "is it in hours": _by(1.0 / HOUR_S),
        "is it divided by the number of GPUs": lambda size: 1.0 / size.gpus,
        "is it for one micro-batch": lambda size: 1.0 / size.micro_batches,
    }, "give the seconds of a whole optimizer step"),
    "time_to_train_min": ({
        "is it in seconds": _by(MINUTE_S), "is it in hours": _by(MINUTE_S / HOUR_S),
        "is it in days": _by(MINUTE_S / DAY_S), "is it in GPU-minutes": lambda size: size.gpus,
        "is it in GPU-hours": lambda size: size.gpus * MINUTE_S / HOUR_S,
    }, "give the minutes of the whole run"),
    "gpu_hours": ({
        "is it the time on the clock": lambda size: 1.0 / size.gpus, "is it in GPU-minutes": _by(HOUR_S / MINUTE_S),
        "is it in GPU-seconds": _by(HOUR_S), "is it in GPU-days": _by(HOUR_S / DAY_S),
        "is it in node-hours": lambda size: 1.0 / size.node,
    }, "give the hours of all GPUs together"),
    "energy_mwh": ({
        "is it in kWh": _by(1e3), "is it in Wh": _by(1e6), "is it in GWh": _by(1e-3),
        "is it in GJ": _by(MWH_J / GIGA), "is it in MJ": _by(MWH_J / MEGA),
        "is it for one GPU": lambda size: 1.0 / size.gpus, "is it for one node": lambda size: 1.0 / size.nodes,
    }, "give the MWh of all GPUs together"),
    "peak_mem_gib": ({
        "is it in MiB": _by(GIB / MIB), "is it in bytes": _by(GIB),
        "is it for all GPUs together": lambda size: size.gpus, "is it for a whole node": lambda size: size.node,
    }, "give the GiB of one GPU"),
    "avg_gpu_power_w": ({
        "is it in kW": _by(1e-3), "is it in milliwatts": _by(1e3),
        "is it for all GPUs together": lambda size: size.gpus, "is it for a whole node": lambda size: size.node,
    }, "give the watts of one GPU"),
    "avg_node_power_w": ({
        "is it in kW": _by(1e-3), "is it for one GPU": lambda size: 1.0 / size.per_node,
        "is it for all nodes together": lambda size: size.nodes,
    }, "give the watts of one node"),
    "samples_per_s": ({
        "is it for one GPU": lambda size: 1.0 / size.gpus, "is it for one node": lambda size: 1.0 / size.nodes,
        "is it in tokens": lambda size: size.seq_len,
    }, "give the samples of all GPUs together"),
    "mfu": ({"is it in percent": _by(100.0)}, "give a share below 1"),
    "tflops_per_gpu": ({
        "is it for the whole cluster": lambda size: size.gpus, "is it for a whole node": lambda size: size.node,
        "is it in GFLOP/s": _by(1e3), "is it in PFLOP/s": _by(1e-3),
    }, "give the TFLOP/s of one GPU"),
    "tokens_per_s_per_gpu": ({
        "is this the cluster's rate": lambda size: size.gpus, "is this the node's rate": lambda size: size.node,
        "is it in thousands": _by(1e-3), "is it in sequences": lambda size: 1.0 / size.seq_len,
    }, "give the tokens per second of one GPU"),
}  # fmt: skip
"""By metric: the possible slips of units with the factor of each, and the value to give instead."""

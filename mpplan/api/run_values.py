"""Values of own runs that cannot be true, or hardly: what is refused, what is asked about, and the slip behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InputFileError
from planner.lazy import dataclass
from planner.units import DAY_S, GIB, HOUR_S, MIB, MINUTE_S

if TYPE_CHECKING:
    from planner.calibration.linear import Observation
    from planner.calibration.own_runs import OwnRow

FAR_RATIO = 4.0
"""A run this much faster than predicted cannot be true: predictions already lie near what a GPU can do. One this much
slower is asked about."""
FAST_RATIO = 2.0
"""A run this much faster is asked about."""
HOPELESS_RATIO = 30.0
"""A run this much slower cannot be true either: the worst published layouts are 15 times slower than predicted."""
PAST_COUNTING = 1e6
"""A ratio beyond is not told in digits."""
ABOUT = 1.6
"""A slip of units explains a ratio if the two differ by less than this factor."""
AS_LIKELY = 1.25
"""A second slip is asked about too where it explains the ratio as well but for this factor."""
LITTLE_SHARE = 0.25
"""Share of a row's distance to its prediction, below which what is learned of it is called little."""
RATES = ("tokens_per_s_per_gpu", "samples_per_s", "tflops_per_gpu", "mfu")
"""Metrics of which more is faster."""
TIMES = ("step_time_s", "time_to_train_min", "gpu_hours")
"""Metrics of which less is faster."""
CHECK = "check the value, its unit and the configuration; leave the row out if it describes something else"
SHOWN = 5
"""Rows named in one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """A row that is learned from although its value is far from what is predicted."""

    number: int
    """Of the row."""
    words: str


def odd_values(observations: Sequence[Observation], source: str) -> list[Odd]:
    """Refuse values beyond the hardware, and those that no software explains: a slip of units, the total of a cluster.

    A run that is merely much slower than predicted may have a bad layout, and one twice as fast a good one.

    Raises:
        InputFileError: names the row and what would explain it.
    """
    from planner.validation.possible import why_impossible
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
        if 1.0 / FAR_RATIO < gain < (FAST_RATIO if run.metric in (*RATES, *TIMES) else FAR_RATIO):
            continue
        what = f"{run.id}: value: {observation.value:g} {run.metric} is {_compared(run.metric, ratio)}"
        if gain >= FAR_RATIO or gain <= 1.0 / HOPELESS_RATIO or (cause and gain <= 1.0 / FAR_RATIO):
            raise InputFileError(f"{source}: {what}", hint=cause or CHECK)
        odd.append(Odd(number=number, words=f"{what} ({cause})" if cause else what))
    return odd


def _predictor() -> Callable[[Observation], float]:
    """The middle of the prediction of a row, worked out once for runs that differ in labels alone."""
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


def _compared(metric: str, ratio: float) -> str:
    verb = "can do" if metric in RATES else "takes"
    if not 1.0 / PAST_COUNTING < ratio < PAST_COUNTING:
        times = "over a million times" if ratio > 1.0 else "less than a millionth of"
    elif ratio >= 1.0:
        times = f"{ratio:,.0f} times" if ratio >= FAR_RATIO else f"{ratio:.1f} times"
    else:
        times = f"1/{1.0 / ratio:,.0f} of" if ratio <= 1.0 / FAR_RATIO else f"{ratio:.0%} of"
    return f"{times} what this configuration {verb}"


def odd_words(odd: Sequence[Odd], rows: Sequence[OwnRow]) -> list[str]:
    """Warnings about rows far from what is predicted: how much they teach depends on whether the others agree.

    Args:
        odd: these rows.
        rows: all rows as learned from.
    """
    little = [entry for entry in odd if rows[entry.number].learned_share < LITTLE_SHARE]
    much = [entry for entry in odd if rows[entry.number].learned_share >= LITTLE_SHARE]
    return [
        *_asked(little, "check it; it is given little weight", "check them; they are given little weight"),
        *_asked(much, "check it; it moves what is learned", "check them; they move what is learned"),
    ]


def _asked(odd: Sequence[Odd], of_one: str, of_several: str) -> Iterator[str]:
    if not odd:
        return
    left = len(odd) - SHOWN
    more = f" (and {left} row{'' if left == 1 else 's'} more)" if left > 0 else ""
    yield f"{'; '.join(entry.words for entry in odd[:SHOWN])}{more}: {of_one if len(odd) == 1 else of_several}"


def _cause(observation: Observation, ratio: float) -> str | None:
    """The slip of units that would explain a value so many times the predicted one; None where none known does."""
    run = observation.run
    gpus, per_node = float(run.n_gpus or 1), float(observation.prepared.cluster.gpus_per_node)
    size = _Size(gpus=gpus, per_node=per_node, seq_len=float(observation.prepared.recipe.seq_len))
    slips, instead = SLIPS[run.metric]
    off = {
        question: abs(float(np.log(ratio / factor)))
        for question, factor in ((question, factor(size)) for question, factor in slips.items())
        if abs(np.log(factor)) > np.log(FAR_RATIO) / 2.0
    }
    near = sorted((how_far, question) for question, how_far in off.items() if how_far < np.log(ABOUT))
    asked = [question for how_far, question in near[:2] if how_far <= near[0][0] + np.log(AS_LIKELY)]
    return f"{', or '.join(asked)}? {instead}" if asked else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """What a value may have been multiplied or divided by."""

    gpus: float
    per_node: float
    seq_len: float

    @property
    def node(self) -> float:
        """GPUs of one of several nodes; 1 where there is one node."""
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
    }, "give the seconds of a whole optimizer step"),
    "time_to_train_min": ({
        "is it in seconds": _by(MINUTE_S), "is it in hours": _by(MINUTE_S / HOUR_S),
        "is it in days": _by(MINUTE_S / DAY_S), "is it in GPU-minutes": lambda size: size.gpus,
        "is it in GPU-hours": lambda size: size.gpus * MINUTE_S / HOUR_S,
    }, "give the minutes of the whole run"),
    "gpu_hours": ({
        "is it the time on the clock": lambda size: 1.0 / size.gpus, "is it in GPU-minutes": _by(HOUR_S / MINUTE_S),
        "is it in GPU-seconds": _by(HOUR_S), "is it in GPU-days": _by(HOUR_S / DAY_S),
    }, "give the hours of all GPUs together"),
    "energy_mwh": ({
        "is it in kWh": _by(1e3), "is it in Wh": _by(1e6), "is it in GWh": _by(1e-3),
        "is it of one GPU": lambda size: 1.0 / size.gpus, "is it of one node": lambda size: 1.0 / size.nodes,
    }, "give the MWh of all GPUs together"),
    "peak_mem_gib": ({
        "is it in MiB": _by(GIB / MIB), "is it in bytes": _by(GIB),
        "is it of all GPUs together": lambda size: size.gpus, "is it of a whole node": lambda size: size.node,
    }, "give the GiB of one GPU"),
    "avg_gpu_power_w": ({
        "is it in kW": _by(1e-3), "is it of all GPUs together": lambda size: size.gpus,
        "is it of a whole node": lambda size: size.node,
    }, "give the watts of one GPU"),
    "avg_node_power_w": ({
        "is it in kW": _by(1e-3), "is it of one GPU": lambda size: 1.0 / size.per_node,
        "is it of all nodes together": lambda size: size.nodes,
    }, "give the watts of one node"),
    "samples_per_s": ({
        "is it of one GPU": lambda size: 1.0 / size.gpus, "is it of one node": lambda size: 1.0 / size.nodes,
        "is it in tokens": lambda size: size.seq_len,
    }, "give the samples of all GPUs together"),
    "mfu": ({"is it in percent": _by(100.0)}, "give a share below 1"),
    "tflops_per_gpu": ({
        "is it of the whole cluster": lambda size: size.gpus, "is it of a whole node": lambda size: size.node,
        "is it in GFLOP/s": _by(1e3), "is it in PFLOP/s": _by(1e-3),
    }, "give the TFLOP/s of one GPU"),
    "tokens_per_s_per_gpu": ({
        "is this the cluster's rate": lambda size: size.gpus, "is this the node's rate": lambda size: size.node,
        "is it in thousands": _by(1e-3), "is it in sequences": lambda size: 1.0 / size.seq_len,
    }, "give the tokens per second of one GPU"),
}  # fmt: skip
"""What a value may be by mistake, with the factor that it makes, and what to give instead, by metric."""

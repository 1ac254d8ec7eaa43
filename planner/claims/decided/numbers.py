"""Claims about number formats: the range of FP16, and the defaults of dynamic loss scales."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.claims.case import Case
from planner.claims.claim import load_claims
from planner.claims.decided.decision import Decider, Decision
from planner.claims.evidence.formats import largest_fp16, smallest_normal_fp16
from planner.claims.evidence.known import Known
from planner.claims.evidence.trained import DynamicRun, power
from planner.training.loss_scalers import load_loss_scalers


def largest(known: Known) -> Decision:
    """c26: the largest finite value of FP16 and where overflow starts."""
    figures = load_claims()["c26"].figures
    (top,), (rounded,), (overflows,) = (figures[name] for name in ("largest", "rounded", "overflows"))
    return Decision(cases=largest_fp16(top, rounded, overflows))


def smallest(known: Known) -> Decision:
    """c27: the smallest normal value of FP16."""
    return Decision(cases=[smallest_normal_fp16()])


def dynamic_scale(known: Known) -> Decision:
    """c28: where dynamic loss scales start, grow and fall: by default, and along the scale's path in training."""
    figures = load_claims()["c28"].figures
    cases = [
        Case.exactly(
            value, what=f"{scaler.name}, {what}", basis="published", source=scaler.source, unit=unit,
            claimed=(figures[what][0], figures[what][-1]),
        )
        for scaler in load_loss_scalers().values()
        for what, value, unit in (
            ("init_scale", scaler.initial_scale, "scale"),
            ("growth_factor", scaler.growth_factor, "ratio"),
            ("backoff_factor", scaler.backoff_factor, "ratio"),
            ("growth_interval", scaler.growth_interval_steps, "steps"),
        )
    ]  # fmt: skip
    trained = known.training
    on_path = [
        case for part in trained.scaling for run in part.runs
        for case in _on_path(part.task, run, trained.source, figures)
    ]  # fmt: skip
    return Decision(cases=[*cases, *on_path])


def _on_path(task: str, run: DynamicRun, source: str, figures: Mapping[str, tuple[float, ...]]) -> Iterator[Case]:
    """Return the factors by which the scale changed and, beside the verdict, its last value and the skipped steps."""
    name = f"{task}, {run.start:,.0f}, interval {run.growth_interval:,}"
    fallen, grown = run.factors()
    for factors, what in ((fallen, "backoff_factor"), (grown, "growth_factor")):
        if factors:
            claimed = (figures[what][0], figures[what][0])
            yield Case.of(
                factors, what=f"{name}, {what}", basis="trained", source=source, unit="ratio", claimed=claimed
            )
    last = power(run.path_log2[-1][1])
    for value, what, unit in (
        (last, "last scale", "scale"), (float(run.skipped), f"skipped of {run.steps:,}", "steps")
    ):  # fmt: skip
        yield Case.exactly(value, what=f"{name}, {what}", basis="trained", source=source, unit=unit, beside=True)


DECIDERS: dict[str, Decider] = {"c26": largest, "c27": smallest, "c28": dynamic_scale}

"""Where a run is slower than its plan: within its steps, by part where the log has timers, and outside them."""

from __future__ import annotations

from planner.comparison.basis import Basis
from planner.comparison.pace import Pace
from planner.comparison.planned import Planned
from planner.comparison.time_use import OUTSIDE, TimeUse
from planner.evidence import Estimate
from planner.lazy import dataclass
from planner.runlog.log import RunLog

PLAN_PARTS = {
    "compute": ("matmul", "attention", "memory_bound", "recompute", "launch"),
    "communication": ("tp_comm", "cp_comm", "ep_comm", "pp_comm", "dp_comm"),
    "optimizer": ("optimizer", "offload"),
    "bubble": ("bubble",),
    "other": ("jitter", "allocator"),
}
"""Items of a plan's step by the part that timers measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GapRow:
    """One part of the time per kept step."""

    part: str
    """`step`; `data`, `compute`, `communication`, `optimizer` or `rest` of a step; or `outside`, all other time."""
    outside: bool
    log_s: float
    """Seconds per kept step."""
    plan_s: float | None
    """None where the plan does not have such a part."""

    @property
    def excess_s(self) -> float:
        """Seconds beyond the plan; all seconds of a part that the plan does not have."""
        return self.log_s - (self.plan_s or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A run beside its plan, in seconds per kept step (steps that were not replayed)."""

    step_s: float
    """The log's median step time."""
    plan_step_s: Estimate
    """The plan's step time, scaled to the log's tokens per GPU."""
    inside: bool
    """Whether the log's step time is in the plan's range."""
    log_total_s: float | None
    """Wall-clock time per kept step; None where the log has no times."""
    plan_total_s: float
    """The plan's wall-clock time per kept step: its step time over its goodput."""
    rows: tuple[GapRow, ...]
    """Parts in descending order of their excess."""

    @property
    def ratio(self) -> float:
        """The log's step time over the plan's, less 1."""
        return self.step_s / self.plan_step_s.mid - 1.0

    @property
    def main(self) -> GapRow | None:
        """The part with more than half of the excess time; None where there is no excess or no such part."""
        behind = sum(row.excess_s for row in self.rows if row.excess_s > 0 and row.part != "step")
        parts = [row for row in self.rows if row.part != "step" and row.excess_s > 0]
        return parts[0] if parts and behind > 0 and parts[0].excess_s > behind / 2 else None


def parts_of(log: RunLog, pace: Pace | None, data_s: float | None) -> dict[str, float]:
    """Return the seconds of a step by part, as far as the log has timers; empty where it has none.

    Communication is taken from the rank that waits least, since the others wait for it; data loading is taken from the
    slowest rank, since a slow loader delays every rank.
    """
    parts: dict[str, float] = {}
    if "forward" in log.parts or "backward" in log.parts:
        parts["compute"] = sum(log.parts[name].most_s for name in ("forward", "backward") if name in log.parts)
    if "communication" in log.parts:
        parts["communication"] = log.parts["communication"].least_s
    if "optimizer" in log.parts:
        parts["optimizer"] = log.parts["optimizer"].most_s
    if data_s is not None:
        parts["data"] = data_s
    elif "data" in log.parts:
        parts["data"] = log.parts["data"].most_s
    if parts and pace is not None and log.durations_from != "timers":
        other_s = pace.step_s.mid - sum(parts.values())
        if other_s > 0:
            parts["rest"] = other_s
    return parts


def gap_of(
    planned: Planned,
    basis: Basis,
    pace: Pace,
    use: TimeUse,
    parts: dict[str, float],
    kept_steps: float,
    tokens_per_gpu: float | None = None,
) -> Gap | None:
    """Compare a run with its plan; None where the log's batch or GPUs are unknown.

    Args:
        planned: the plan.
        basis: the run.
        pace: its steps.
        use: its wall-clock time.
        parts: parts of a step, from `parts_of`.
        kept_steps: number of kept steps, over which the time outside steps is spread.
        tokens_per_gpu: tokens of a step per GPU, where that is not the batch over the GPUs.
    """
    if basis.tokens_per_step is None or basis.gpus is None:
        return None
    plan = planned.plan
    own = planned.recipe.tokens_per_step / plan["gpus"]
    scale = (tokens_per_gpu or basis.tokens_per_step / basis.gpus) / own
    ends = plan.get("step_range_s") or dict.fromkeys(("low", "mid", "high"), plan["step_s"]["total"])
    step = Estimate(low=ends["low"] * scale, mid=ends["mid"] * scale, high=ends["high"] * scale)
    goodput = (plan.get("goodput_ratio") or {}).get("mid") or 1.0
    expected = {
        name: scale * sum(plan["step_s"].get(item, 0.0) for item in items) for name, items in PLAN_PARTS.items()
    }
    rows = _inside(parts, expected, pace.step_s.mid, step.mid)
    steps = max(kept_steps, 1.0)
    if use.wall_s is not None:
        spent = sum(kind.seconds for kind in use.spent if kind.kind in OUTSIDE) / steps
        rows.append(GapRow(part="outside", outside=True, log_s=spent, plan_s=step.mid * (1.0 / goodput - 1.0)))
    total = None if use.wall_s is None else use.wall_s / steps
    return Gap(
        step_s=pace.step_s.mid, plan_step_s=step, inside=step.low <= pace.step_s.mid <= step.high, log_total_s=total,
        plan_total_s=step.mid / goodput, rows=tuple(sorted(rows, key=lambda row: -row.excess_s)),
    )  # fmt: skip


def _inside(parts: dict[str, float], expected: dict[str, float], step_s: float, plan_s: float) -> list[GapRow]:
    """Return the whole step, and its parts where the log has them; the plan's bubble and jitter belong to the rest."""
    rows = [GapRow(part="step", outside=False, log_s=step_s, plan_s=plan_s)]
    if not parts:
        return rows
    plan = {name: expected[name] for name in ("compute", "communication", "optimizer")} | {"data": 0.0}
    plan["rest"] = expected["bubble"] + expected["other"]
    timed = [name for name in parts if name != "rest"]
    plan["rest"] += sum(plan[name] for name in ("compute", "communication", "optimizer") if name not in timed)
    return rows + [
        GapRow(part=name, outside=False, log_s=seconds, plan_s=plan[name]) for name, seconds in parts.items()
    ]

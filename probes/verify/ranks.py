"""Verification over several ranks: from half of the ranks to all, and from one layout to the others.

Predictions use the steps of ranks alone, the overlap, and the collectives of groups of at most half the ranks, as a
smaller job would have measured them. Steps over all ranks are predicted from these, run and compared. With two ranks
there is no smaller group; their own collectives are then used, and steps are predicted from these parts alone.

With `--verify-from`, predictions use nothing of this run, but only the record of a smaller one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from planner.measured.ranks.steps import predict_step
from planner.records.jsonl import read_measurements
from planner.records.measurement import Measurement
from probes.session.suite import Session
from probes.timing.trial import Point, PointGroup

BUDGETS_S = {"cuda": 240.0, "cpu": 150.0}
"""Time in seconds in addition to the suite's."""
VERIFY = "verify/"
"""Prefix of the ids of checks; those from a smaller run also state its number of ranks."""
STEPS = "parallel-step"
"""Name of the workload whose steps are predicted."""


def verify_ranks(session: Session) -> list[Measurement]:
    """Predict, run and record every step over all ranks for which there is time.

    Raises:
        DeviceLost: the device or the communication broke; finished steps are in the record.
    """
    end_s = session.options.budget_s or session.elapsed_s + BUDGETS_S[session.device.kind]
    session.bench = replace(session.bench, end_s=session.began + end_s)
    parts, called = tuple(smaller(session.ledger.known.values(), session.team.size)), VERIFY
    if session.options.verify_from is not None:
        parts = _earlier(session, session.options.verify_from)
        called = f"{VERIFY}from-{max(len(point.ranks.names) for point in parts)}/"
    planned = [
        (group, target)
        for workload in session.workloads
        if workload.name == STEPS
        for group in workload.groups(session.plan)
        for point in group.points
        if (target := target_of(point, parts, called)) is not None
    ]
    session.listener.planned(len(planned), sum(group.estimate_s / len(group.points) for group, _ in planned))
    done: list[Measurement] = []
    for group, target in planned:
        estimate_s = group.estimate_s / len(group.points)
        if session.ledger.is_done(target):
            done.append(session.ledger.known[target.probe_id])
        elif session.elapsed_s + estimate_s < end_s:
            name = f"checking {target.setup.parallel} over {session.team.size} ranks"
            done += session.measure(PointGroup(name=name, points=[target], estimate_s=estimate_s), estimate_s)
    return done


def smaller(points: Iterable[Measurement], world: int) -> Iterable[Measurement]:
    """Yield the points that a job of half the ranks would also have: all but the collectives of larger groups."""
    most = max(world // 2, 2)
    for point in points:
        if point.kind != "collective" or (point.communication.world or 0) <= most:
            yield point


def _earlier(session: Session, path: str) -> tuple[Measurement, ...]:
    """Return the points of an earlier record, which rank 0 reads for all.

    They are used unchanged. On a CPU with fewer cores than ranks, this leaves open how much the ranks slow each other
    down: the canary beside each batch divides away all contention that was absent while the canary was watched.
    """
    team = session.team
    return team.shared(read_measurements(Path(path)).latest() if team.leads else ())


def target_of(point: Point, parts: tuple[Measurement, ...], called: str = VERIFY) -> Point | None:
    """Return the step under the id of a check, with its prediction; None if nothing can be predicted."""
    if not point.messages or point.unsupported is not None:
        return None
    predicted = predict_step(point, point.messages, point.recipe.id, parts)
    if predicted.time_s is None:
        return None
    return replace(point, probe_id=f"{called}{point.probe_id}", kind="verify", predicted=predicted)

"""The run of a verification: anchors, predictions, targets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from planner.measured.device import measured_rates
from planner.measured.rates import MeasuredRates
from planner.records.measurement import Measurement
from probes.device.faults import cleaned, is_lost
from probes.memory.peaks import release
from probes.memory.side import TrackedCase
from probes.memory.tracker import Tracked, count_params
from probes.session.group import failure_of
from probes.session.listener import Progress
from probes.session.suite import Session
from probes.timing.trial import Point, PointGroup
from probes.verify.cases import VerifyCase, anchors, targets
from probes.verify.document import LOUD_ANCHORS, is_loud
from probes.verify.predict import predict
from probes.workloads.end_to_end import model_point

BUDGETS_S = {"cuda": 480.0, "cpu": 90.0}
"""Time on top of the suite's."""


ANCHOR_TRIES = 2
"""Times that anchors are measured while something else runs."""
MIN_QUIET_ANCHORS = 2
"""Fewer quiet ones, and the prediction rests on figures that are slow by an unknown factor."""


def verify(session: Session) -> list[Measurement]:
    """Predict, run and write down every target for which there is time.

    Raises:
        DeviceLost: the device broke; what was done is written.
    """
    planned = targets(session.plan)
    families = {case.family for case in planned}
    needed = [case for case in anchors(session.plan) if case.family in families]
    fresh = session.device.kind == "cpu"
    missing = [case for case in needed if fresh or not session.ledger.is_done(_anchor_point(session, case))]
    end_s = session.elapsed_s + BUDGETS_S[session.device.kind]
    if session.options.budget_s is not None:
        end_s = session.options.budget_s
    session.listener.planned(len(missing) + len(planned), sum(case.estimate_s for case in [*missing, *planned]))
    session.tracker.start([_tracked_case(case) for case in _in_order(needed, planned)])
    checker = _Checker(session, needed)
    done: list[Measurement] = []
    for case in planned:
        point = _target_point(session, case)
        if session.ledger.is_done(point):
            done.append(session.ledger.known[point.probe_id])
        elif session.elapsed_s + checker.estimate_s(case) < end_s:
            done += _checked(checker, case, point)
    return done


def _checked(checker: _Checker, case: VerifyCase, point: Point) -> list[Measurement]:
    """One target; what goes wrong while it is predicted is its own result too.

    Raises:
        DeviceLost: the device broke.
    """
    try:
        return checker.check(case, point)
    except Exception as error:
        failed = failure_of(point, error)
    release()  # only here: until the error was dropped, it held on to memory
    return [checker.session.write(point, failed.figures)]


class _Checker:
    """Measures the anchors of a family when its first target comes, and keeps what they rest on."""

    def __init__(self, session: Session, needed: Iterable[VerifyCase]) -> None:
        self.session = session
        self._anchors: dict[tuple[str, str, bool], list[VerifyCase]] = {}
        for case in needed:
            self._anchors.setdefault(case.family, []).append(case)
        self._known: dict[tuple[str, str, bool], list[tuple[Measurement, float | None]]] = {}
        # A CPU's speed wanders with its neighbours; its anchors are measured right before their targets.
        self._fresh = session.device.kind == "cpu"

    def check(self, case: VerifyCase, point: Point) -> list[Measurement]:
        """One target: predicted first, then run."""
        session = self.session
        known = self._measured(case)
        session.listener.started(
            Progress(label=f"predicting {case.model.name}", done_s=session.elapsed_s, left_s=case.estimate_s)
        )
        tracked = self._track(case)
        work = replace(point, counts=replace(point.counts, params=tracked.params))
        quiet = sum(not is_loud(anchor) for anchor, _ in known)
        predicted = replace(
            point,
            predicted=predict(work, tracked.peak_bytes, known, self._rates()),
            tracked_peak_bytes=tracked.peak_bytes,
            note=LOUD_ANCHORS if quiet < MIN_QUIET_ANCHORS else None,
        )
        group = PointGroup(name=f"checking {case.model.name}", points=[predicted], estimate_s=case.estimate_s)
        return session.measure(group, case.estimate_s)

    def estimate_s(self, case: VerifyCase) -> float:
        """Expected time of a target, with those of its anchors that are still to be measured."""
        is_done = self.session.ledger.is_done
        family = [] if case.family in self._known else self._anchors.get(case.family, [])
        open_ = [anchor for anchor in family if self._fresh or not is_done(_anchor_point(self.session, anchor))]
        return case.estimate_s + sum(anchor.estimate_s for anchor in open_)

    def _measured(self, case: VerifyCase) -> list[tuple[Measurement, float | None]]:
        """The anchors of a family with their tracked peaks, measured side by side when its first target comes."""
        if case.family not in self._known:
            cases = {
                _anchor_point(self.session, anchor).probe_id: anchor for anchor in self._anchors.get(case.family, [])
            }
            points = [_anchor_point(self.session, anchor) for anchor in cases.values()]
            missing = [point for point in points if self._fresh or not self.session.ledger.is_done(point)]
            for _ in range(ANCHOR_TRIES):
                if missing:
                    estimate_s = sum(cases[point.probe_id].estimate_s for point in missing)
                    name = f"small steps of {case.model.family} in {case.recipe.id}"
                    self.session.measure(PointGroup(name=name, points=missing, estimate_s=estimate_s), estimate_s)
                missing = [point for point in points if is_loud(self.session.ledger.known[point.probe_id])]
            lines = [self.session.ledger.known[point.probe_id] for point in points]
            self._known[case.family] = [
                (line, self._track(cases[line.probe_id]).peak_bytes) for line in lines if line.status == "ok"
            ]
        return self._known[case.family]

    def _track(self, case: VerifyCase) -> Tracked:
        try:
            return self.session.tracker.result(_tracked_case(case))
        except Exception as error:  # a kernel without rules for fake tensors: time and energy can still be predicted
            if is_lost(error):
                raise
            self.session.listener.noted(f"the memory of {case.model.name} is not predicted: {cleaned(error)}")
            return Tracked(peak_bytes=None, params=count_params(_tracked_case(case).model))

    def _rates(self) -> MeasuredRates:
        return measured_rates(self.session.ledger.known.values())


def _tracked_case(case: VerifyCase) -> TrackedCase:
    """A case as its memory is tracked: what is compiled saves what the same step saves without."""
    return TrackedCase(model=replace(case.model, compiled=False), recipe_id=case.recipe.id)


def _in_order(needed: Iterable[VerifyCase], planned: Iterable[VerifyCase]) -> list[VerifyCase]:
    """Anchors and targets as their memory is wanted: each family's anchors right before its first target."""
    by_family: dict[tuple[str, str, bool], list[VerifyCase]] = {}
    for anchor in needed:
        by_family.setdefault(anchor.family, []).append(anchor)
    return [case for target in planned for case in [*by_family.pop(target.family, []), target]]


def _anchor_point(session: Session, case: VerifyCase) -> Point:
    return model_point(session.plan, case.model, case.recipe)


def _target_point(session: Session, case: VerifyCase) -> Point:
    point = model_point(session.plan, case.model, case.recipe)
    return replace(point, probe_id=point.probe_id.replace("end_to_end/", "verify/", 1), kind="verify")

"""A verification run: measures anchors, predicts targets, then runs the targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from planner.measured.device import measured_rates
from planner.measured.layers.host import with_host
from planner.measured.rates import MeasuredRates
from planner.records.measurement import Measurement
from probes.device.faults import cleaned, is_lost
from probes.memory.peaks import release
from probes.memory.side_process import TrackedCase
from probes.memory.tracker import Tracked, count_params
from probes.session.group import failure_of
from probes.session.listener import Progress
from probes.session.suite import Session
from probes.timing.trial import Point, PointGroup
from probes.verify.cases import VerifyCase, anchors, targets
from probes.verify.document import DISTURBED_ANCHORS, is_disturbed
from probes.verify.points import anchor_point, target_point
from probes.verify.predict import predict
from probes.verify.together import check_family
from probes.workloads.expected import START_S

BUDGETS_S = {"cuda": 480.0, "cpu": 55.0}
"""Time in seconds in addition to the suite's."""


ANCHOR_TRIES = 2
"""How often anchors are measured if something else runs at the same time."""
MIN_UNDISTURBED_ANCHORS = 2
"""With fewer undisturbed anchors, the prediction depends on figures that are slow by an unknown factor."""


def share_s(session: Session) -> float:
    """Return a verification's share of a time limit that it shares with a suite, in proportion to expected times.

    It is 0 if the suite has its default time, in addition to which a verification has its own.
    """
    if session.options.budget_s is None:
        return 0.0
    groups = session.groups() if session.options.measure else []
    in_suite = {point.probe_id for group in groups for point in group.points}
    planned = [case for case in targets(session.plan) if not session.ledger.is_done(target_point(session, case))]
    planned = [case for case in planned if case.recipe.unsupported_on(session.device) is None]
    families = {case.family for case in planned}
    missing = {anchor_point(session, case).probe_id: case for case in anchors(session.plan) if case.family in families}
    own_s = sum(case.estimate_s for case in planned) + sum(
        case.estimate_s
        for probe_id, case in missing.items()
        if probe_id not in in_suite and probe_id not in session.ledger.known
    )
    suite_s = sum(group.estimate_s for group in groups)
    left_s = max(session.options.budget_s - session.elapsed_s - (START_S if session.plan.on_gpu else 0.0), 0.0)
    if session.options.spent_s:  # an earlier process has divided it already, and the suite had its share
        return min(own_s, left_s)
    return left_s * own_s / (own_s + suite_s) if own_s else 0.0


def verify(session: Session) -> list[Measurement]:
    """Predict, run and record every target for which there is time.

    Raises:
        DeviceLost: the device broke; finished targets are in the record.
    """
    planned = targets(session.plan)
    families = {case.family for case in planned}
    needed = [case for case in anchors(session.plan) if case.family in families]
    missing = [case for case in needed if not session.ledger.is_done(anchor_point(session, case))]
    end_s = session.elapsed_s + BUDGETS_S[session.device.kind]
    if session.options.budget_s is not None:
        end_s = session.options.budget_s
    session.bench = replace(session.bench, end_s=session.began + end_s)
    if session.device.kind == "cpu":
        return _by_family(session, needed, planned, end_s)
    session.listener.planned(len(missing) + len(planned), sum(case.estimate_s for case in [*missing, *planned]))
    session.tracker.start([_tracked_case(case) for case in _in_order(needed, planned)])
    checker = _Checker(session, needed)
    done: list[Measurement] = []
    for case in planned:
        point = target_point(session, case)
        if session.ledger.is_done(point):
            done.append(session.ledger.known[point.probe_id])
        elif session.elapsed_s + checker.estimate_s(case) < end_s:
            done += _checked(checker, case, point)
    return done


def _by_family(
    session: Session, anchors: Sequence[VerifyCase], planned: Sequence[VerifyCase], end_s: float
) -> list[Measurement]:
    """Verify one family after another while there is time."""
    families = dict.fromkeys(case.family for case in planned)
    session.listener.planned(len(families), end_s - session.elapsed_s)
    done: list[Measurement] = []
    for family in families:
        small = [case for case in anchors if case.family == family]
        large = [case for case in planned if case.family == family]
        points = [target_point(session, case) for case in large]
        if all(session.ledger.is_done(point) for point in points):
            done += [session.ledger.known[point.probe_id] for point in points]
        else:
            done += check_family(session, small, large, partial(tracked, session), end_s)
    return done


def _checked(checker: _Checker, case: VerifyCase, point: Point) -> list[Measurement]:
    """Check one target; a failure of its prediction is recorded as its result too.

    Raises:
        DeviceLost: the device broke.
    """
    try:
        return checker.check(case, point)
    except Exception as error:
        failed = failure_of(point, error)
    release()  # only here, because the error held on to memory
    return [checker.session.write(point, failed.figures)]


def tracked(session: Session, case: VerifyCase) -> Tracked:
    """Return the tracked peak memory of a case's step; its peak is None if a kernel has no rules for fake tensors."""
    try:
        return session.tracker.result(_tracked_case(case))
    except Exception as error:  # a kernel without rules for fake tensors: time and energy can still be predicted
        if is_lost(error):
            raise
        session.listener.noted(f"the memory of {case.model.name} is not predicted: {cleaned(error)}")
        return Tracked(peak_bytes=None, params=count_params(_tracked_case(case).model))


class _Checker:
    """Measures the anchors of a family before its first target, and keeps the data for its predictions."""

    def __init__(self, session: Session, needed: Iterable[VerifyCase]) -> None:
        self.session = session
        self._anchors: dict[tuple[str, str, bool], list[VerifyCase]] = {}
        for case in needed:
            self._anchors.setdefault(case.family, []).append(case)
        self._known: dict[tuple[str, str, bool], list[tuple[Measurement, float | None]]] = {}

    def check(self, case: VerifyCase, point: Point) -> list[Measurement]:
        """Predict one target, then run it."""
        session = self.session
        known = self._measured(case)
        session.listener.started(
            Progress(label=f"predicting {case.model.name}", done_s=session.elapsed_s, left_s=case.estimate_s)
        )
        bookkeeping = tracked(session, case)
        work = replace(point, counts=replace(point.counts, params=bookkeeping.params))
        undisturbed = sum(not is_disturbed(anchor) for anchor, _ in known)
        predicted = replace(
            point,
            predicted=predict(work, bookkeeping.peak_bytes, known, self._rates()),
            tracked_peak_bytes=bookkeeping.peak_bytes,
            note=DISTURBED_ANCHORS if undisturbed < MIN_UNDISTURBED_ANCHORS else None,
        )
        group = PointGroup(name=f"checking {case.model.name}", points=[predicted], estimate_s=case.estimate_s)
        return session.measure(group, case.estimate_s)

    def estimate_s(self, case: VerifyCase) -> float:
        """Return the expected time of a target, including those of its anchors that are still to be measured."""
        is_done = self.session.ledger.is_done
        family = [] if case.family in self._known else self._anchors.get(case.family, [])
        open_ = [anchor for anchor in family if not is_done(anchor_point(self.session, anchor))]
        return case.estimate_s + sum(anchor.estimate_s for anchor in open_)

    def _measured(self, case: VerifyCase) -> list[tuple[Measurement, float | None]]:
        """Return a family's anchors with their tracked peaks, measured side by side before its first target."""
        if case.family not in self._known:
            cases = {
                anchor_point(self.session, anchor).probe_id: anchor for anchor in self._anchors.get(case.family, [])
            }
            points = [anchor_point(self.session, anchor) for anchor in cases.values()]
            missing = [point for point in points if not self.session.ledger.is_done(point)]
            for _ in range(ANCHOR_TRIES):
                if missing:
                    estimate_s = sum(cases[point.probe_id].estimate_s for point in missing)
                    name = f"small steps of {case.model.family} in {case.recipe.id}"
                    self.session.measure(PointGroup(name=name, points=missing, estimate_s=estimate_s), estimate_s)
                known = self.session.ledger.known
                lines = [known[point.probe_id] for point in points if point.probe_id in known]  # less those out of time
                missing = [point for point in points if point.probe_id in known and is_disturbed(known[point.probe_id])]
            self._known[case.family] = [
                (line, tracked(self.session, cases[line.probe_id]).peak_bytes) for line in lines if line.status == "ok"
            ]
        return self._known[case.family]

    def _rates(self) -> MeasuredRates:
        points = tuple(self.session.ledger.known.values())
        return with_host(measured_rates(points), points)


def _tracked_case(case: VerifyCase) -> TrackedCase:
    """Return the case whose memory is tracked: a compiled step saves the same tensors as an eager one."""
    return TrackedCase(model=replace(case.model, compiled=False), recipe_id=case.recipe.id)


def _in_order(needed: Iterable[VerifyCase], planned: Iterable[VerifyCase]) -> list[VerifyCase]:
    """Return anchors and targets in the order in which their memory is needed: anchors before their first target."""
    by_family: dict[tuple[str, str, bool], list[VerifyCase]] = {}
    for anchor in needed:
        by_family.setdefault(anchor.family, []).append(anchor)
    return [case for target in planned for case in [*by_family.pop(target.family, []), target]]

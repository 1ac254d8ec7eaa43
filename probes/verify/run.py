"""The run of a verification: anchors, predictions, targets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from planner.measured_rates import MeasuredRates, measured_rates
from planner.measurement import Measurement
from probes.listener import Progress
from probes.session import Session
from probes.tracker import Tracked, track
from probes.verify.cases import VerifyCase, anchors, targets
from probes.verify.predict import predict
from probes.workloads.end_to_end import build_model_trial, model_point
from probes.workloads.interface import Group, Point
from probes.workloads.whole_models import facts_of

BUDGETS_S = {"cuda": 480.0, "cpu": 90.0}
"""Time on top of the suite's."""
MAX_ANCHORS = 6
"""Anchors of a family whose memory is tracked."""


def verify(session: Session) -> list[Measurement]:
    """Predict, run and write down every target for which there is time.

    Raises:
        DeviceLost: the device broke; what was done is written.
    """
    planned = targets(session.plan)
    wanted = {case.family for case in planned}
    needed = [case for case in anchors(session.plan) if case.family in wanted]
    missing = [case for case in needed if not session.ledger.is_done(_anchor_point(session, case))]
    end_s = session.elapsed_s + BUDGETS_S[session.device.kind]
    if session.options.budget_s is not None:
        end_s = session.options.budget_s
    session.listener.planned(len(missing) + len(planned), sum(case.estimate_s for case in [*missing, *planned]))
    checker = _Checker(session, needed)
    done: list[Measurement] = []
    for case in planned:
        point = _target_point(session, case)
        if session.ledger.is_done(point):
            done.append(session.ledger.known[point.probe_id])
        elif session.elapsed_s + case.estimate_s < end_s:
            done += checker.check(case, point)
    return done


class _Checker:
    """Measures the anchors of a family when its first target comes, and keeps what they rest on."""

    def __init__(self, session: Session, needed: Iterable[VerifyCase]) -> None:
        self._session = session
        self._anchors: dict[tuple[str, str, bool], list[VerifyCase]] = {}
        for case in needed:
            self._anchors.setdefault(case.family, []).append(case)
        self._known: dict[tuple[str, str, bool], list[tuple[Measurement, float]]] = {}

    def check(self, case: VerifyCase, point: Point) -> list[Measurement]:
        """One target: predicted first, then run."""
        session = self._session
        known = self._measured(case)
        session.listener.started(
            Progress(label=f"predicting {case.model.name}", done_s=session.elapsed_s, left_s=case.estimate_s)
        )
        tracked = self._track(case)
        shape = replace(_blank(session), **{**facts_of(case.model), "kind": "verify", "params": tracked.params})
        prediction = predict(shape, tracked.peak_bytes, known, self._rates())
        facts = {**point.facts, **prediction.fields(), "memory_tracker_peak_bytes": tracked.peak_bytes}
        group = Group(
            name=f"checking {case.model.name}", points=[replace(point, facts=facts)], estimate_s=case.estimate_s
        )
        return session.measure(group, case.estimate_s)

    def _measured(self, case: VerifyCase) -> list[tuple[Measurement, float]]:
        if case.family not in self._known:
            found = []
            for anchor in self._anchors.get(case.family, []):
                one = self._anchor(anchor)
                if one.status == "ok":
                    found.append((one, self._track(anchor).peak_bytes))
            self._known[case.family] = found[:MAX_ANCHORS]
        return self._known[case.family]

    def _anchor(self, case: VerifyCase) -> Measurement:
        point = _anchor_point(self._session, case)
        if self._session.ledger.is_done(point):
            return self._session.ledger.known[point.probe_id]
        group = Group(name=f"small step {case.model.name}", points=[point], estimate_s=case.estimate_s)
        return self._session.measure(group, case.estimate_s)[0]

    def _track(self, case: VerifyCase) -> Tracked:
        device = self._session.device
        case.recipe.activate()
        plain = replace(case.model, compiled=False)
        make = partial(build_model_trial, plain, case.recipe.id, self._session.options.seed, device)
        return track(make, device.kind)

    def _rates(self) -> MeasuredRates:
        return measured_rates(self._session.ledger.known.values())


def _anchor_point(session: Session, case: VerifyCase) -> Point:
    return model_point(session.plan, case.model, case.recipe)


def _target_point(session: Session, case: VerifyCase) -> Point:
    point = model_point(session.plan, case.model, case.recipe)
    return replace(point, probe_id=point.probe_id.replace("end_to_end/", "verify/", 1), kind="verify")


def _blank(session: Session) -> Measurement:
    """A line of this session to be filled with a shape."""
    known = next(iter(session.ledger.known.values()))
    return Measurement(
        suite_version=known.suite_version,
        run_id=known.run_id,
        probe_id="",
        seq=0,
        status="ok",
        kind="verify",
        device_kind=known.device_kind,
        device_name=known.device_name,
    )

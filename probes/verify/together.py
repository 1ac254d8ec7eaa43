"""Verification on a CPU: the steps to predict are measured in turns with the small steps behind the prediction.

A CPU's speed drifts within seconds, so compared steps are measured side by side. A prediction is made when the first
target of its family is about to be recorded, from the samples of the anchors alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from planner.measured.device import measured_rates
from planner.records.measurement import Measurement
from probes.memory.tracker import Tracked
from probes.session.bench import PointResult
from probes.session.suite import Session
from probes.timing.trial import Point, PointGroup
from probes.verify.cases import VerifyCase
from probes.verify.document import DISTURBED_ANCHORS, is_disturbed
from probes.verify.points import anchor_point, target_point
from probes.verify.predict import predict

FLOP_PER_S = 5e10
"""Approximate FP32 rate of one CPU thread, used if the record holds no layer of a recipe."""
STEPS, FIXED_S = 9.0, 1.0
"""Steps of a case including warm-up and memory, and seconds for building and tracking it. If this is too little, the
group still ends on time, with fewer samples of each case."""
UNDISTURBED_SHARE = 0.5
"""Share of a family's anchors; with fewer undisturbed ones, a prediction is not judged."""

Track = Callable[[VerifyCase], Tracked]


def check_family(
    session: Session, anchors: Sequence[VerifyCase], targets: Sequence[VerifyCase], track: Track, end_s: float
) -> list[Measurement]:
    """Measure the anchors of one family and as many of its targets as time allows.

    Args:
        session: holds the record to write to.
        anchors: small runs of one recipe and implementation.
        targets: runs that are predicted from them, most valuable first.
        track: returns the tracked peak memory of a case.
        end_s: end of all measurements, in seconds since the session began.

    Returns:
        The lines of the targets that ran.
    """
    left_s = end_s - session.elapsed_s - sum(_estimate_s(session, case) for case in anchors)
    chosen: list[VerifyCase] = []
    for case in targets:
        left_s -= _estimate_s(session, case)
        if left_s < 0:
            break
        chosen.append(case)
    if not chosen:
        return []
    tracked = {case.model.name: track(case) for case in [*anchors, *chosen]}
    small = [anchor_point(session, case) for case in anchors]
    large = [
        replace(point, tracked_peak_bytes=tracked[case.model.name].peak_bytes)
        for case in chosen
        for point in (target_point(session, case),)
    ]
    predictor = _Predictor(session, dict(zip((p.probe_id for p in small), anchors, strict=True)), tracked)
    params = {point.probe_id: tracked[case.model.name].params for point, case in zip(large, chosen, strict=True)}

    def finish(result: PointResult) -> PointResult:
        count = params.get(result.point.probe_id)
        return result if count is None else replace(result, point=predictor.predicted(result.point, count))

    recipe = chosen[0].recipe.id
    estimate_s = end_s - session.elapsed_s
    group = PointGroup(name=f"{len(chosen)} steps in {recipe}", points=[*small, *large], estimate_s=estimate_s)
    wanted = set(params)
    return [line for line in session.measure(group, estimate_s, finish) if line.probe_id in wanted]


class _Predictor:
    """Predicts from the anchors in the record, which are written before any target."""

    def __init__(self, session: Session, anchors: dict[str, VerifyCase], tracked: dict[str, Tracked]) -> None:
        self._session, self._anchors, self._tracked = session, anchors, tracked

    def predicted(self, target: Point, params: int) -> Point:
        """Return the target with its predicted figures."""
        lines = self._session.ledger.known
        known = [
            (lines[name], self._tracked[case.model.name].peak_bytes)
            for name, case in self._anchors.items()
            if name in lines and lines[name].status == "ok"
        ]
        undisturbed = sum(not is_disturbed(line) for line, _ in known)
        work = replace(target, counts=replace(target.counts, params=params))
        return replace(
            target,
            predicted=predict(work, target.tracked_peak_bytes, known, measured_rates(lines.values())),
            note=DISTURBED_ANCHORS if undisturbed < max(2.0, UNDISTURBED_SHARE * len(self._anchors)) else None,
        )


def _estimate_s(session: Session, case: VerifyCase) -> float:
    """Return the approximate time of a case, from the layers of its recipe in the record."""
    rates = [
        (line.counts.flop_model or 0.0) / line.time.median_s
        for line in session.ledger.known.values()
        if line.kind == "block" and line.setup.recipe == case.recipe.id and line.time.median_s
    ]
    flop = target_point(session, case).counts.flop_model or 0.0
    return FIXED_S + STEPS * flop / (median(rates) if rates else FLOP_PER_S)

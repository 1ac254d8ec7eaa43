"""The points of a verification: anchors under the suite's names, targets under names of their own."""

from __future__ import annotations

from dataclasses import replace

from probes.session.suite import Session
from probes.timing.trial import Point
from probes.verify.cases import VerifyCase
from probes.workloads.end_to_end import model_point


def anchor_point(session: Session, case: VerifyCase) -> Point:
    """Return the point of a small run from which targets are predicted."""
    return model_point(session.plan, case.model, case.recipe)


def target_point(session: Session, case: VerifyCase) -> Point:
    """Return the point of a run that is predicted."""
    point = model_point(session.plan, case.model, case.recipe)
    return replace(point, probe_id=point.probe_id.replace("end_to_end/", "verify/", 1), kind="verify")

"""The points of a verification: anchors as the suite names them, targets under names of their own."""

from __future__ import annotations

from dataclasses import replace

from probes.session.suite import Session
from probes.timing.trial import Point
from probes.verify.cases import VerifyCase
from probes.workloads.end_to_end import model_point


def anchor_point(session: Session, case: VerifyCase) -> Point:
    """A small run to predict from."""
    return model_point(session.plan, case.model, case.recipe)


def target_point(session: Session, case: VerifyCase) -> Point:
    """A run to predict."""
    point = model_point(session.plan, case.model, case.recipe)
    return replace(point, probe_id=point.probe_id.replace("end_to_end/", "verify/", 1), kind="verify")

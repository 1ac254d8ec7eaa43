"""One run of the probes in this process: the measurements, then the predictions that they are held to."""

from __future__ import annotations

from dataclasses import replace

from probes.device.faults import DeviceLost
from probes.record.options import Options
from probes.session.listener import Listener
from probes.session.suite import Outcome, Session
from probes.verify.run import verify


def run(options: Options, listener: Listener | None = None) -> Outcome:
    """Run the probes in this process.

    Raises:
        MpplanError: the device, the options or the record cannot be used.
    """
    session = Session(options, listener)
    try:
        outcome = session.run()
        if options.verify and outcome.lost_device is None:
            outcome = _verified(session, outcome)
        return outcome
    finally:
        session.close()


def _verified(session: Session, outcome: Outcome) -> Outcome:
    lost = None
    try:
        verify(session)
    except DeviceLost as error:
        lost = str(error)
    return replace(outcome, points=session.ledger.written, lost_device=lost)

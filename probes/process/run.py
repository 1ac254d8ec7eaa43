"""One run of the probes in this process: the measurements, then the predictions that they are held to."""

from __future__ import annotations

import os
from dataclasses import replace

from probes.device.device import Device, open_device
from probes.device.faults import DeviceLost
from probes.ranks.join import CLOCKS_APART_S, Arrival, clocks_apart_s, join, leave
from probes.ranks.team import ALONE, Place, Team
from probes.record.options import Options
from probes.record.provenance import provenance
from probes.session.listener import Listener
from probes.session.suite import Outcome, Session
from probes.verify.ranks import verify_ranks
from probes.verify.run import verify


def run(
    options: Options, listener: Listener | None = None, team: Team = ALONE, device: Device | None = None
) -> Outcome:
    """Run the probes in this process.

    Args:
        options: what to measure.
        listener: told of what happens.
        team: the ranks that measure together.
        device: this process's, where it is open already.

    Raises:
        MpplanError: the device, the options or the record cannot be used.
    """
    session = Session(options, listener, team, device)
    try:
        outcome = session.run()
        if options.verify and outcome.lost_device is None:
            outcome = _verified(session, outcome)
        return outcome
    finally:
        session.close()


def run_as_rank(options: Options, place: Place, listener: Listener) -> Outcome:
    """Run the probes in this process as one of several, when all have arrived.

    Raises:
        MpplanError: a rank did not arrive or differs, or the device, the options or the record cannot be used.
    """
    team, device = join(place, lambda: _opened(options, place), options.join_s)
    apart_s, rank = clocks_apart_s(team)
    if abs(apart_s) > CLOCKS_APART_S:
        name = place.name_of(rank)
        listener.noted(f"the clock of {name} is {apart_s:+.0f} s from rank 0's: times of day differ, durations do not")
    if device.kind == "cpu" and place.local_world > (cores := len(os.sched_getaffinity(0))):
        listener.noted(f"{place.local_world} processes share {cores} cores: each waits for the others")
    outcome = run(options, listener, team, device)
    team.line_up()
    leave()
    return outcome


def _opened(options: Options, place: Place) -> tuple[Device, Arrival]:
    """The device of this rank, and what all ranks must have in common with it."""
    device = open_device(options.device, place.local_rank)
    where = provenance(device)
    return device, Arrival(
        rank=place.rank,
        device=device.name,
        torch=where.software.torch_version or "",
        driver=where.software.driver_version or "",
        nccl=where.software.nccl_version or "",
        mpplan=where.software.mpplan_version or "",
    )


def _verified(session: Session, outcome: Outcome) -> Outcome:
    lost = None
    try:
        if session.team.size > 1:
            verify_ranks(session)
        else:
            verify(session)
    except DeviceLost as error:
        lost = str(error)
    return replace(outcome, points=session.ledger.written, lost_device=lost)

"""One run of the probes in this process: the measurements, then a verification of predictions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from probes.device.device import Device, open_device
from probes.device.faults import DeviceLost
from probes.ranks.failure_reports import FailureWatcher
from probes.ranks.join import Arrival, clock_note, join, leave
from probes.ranks.team import ALONE, Place, Team
from probes.record.options import Options
from probes.record.provenance import provenance
from probes.sensors import OpenedSensor, open_sensor
from probes.session.listener import Listener
from probes.session.outcome import Outcome
from probes.session.suite import Session
from probes.verify.ranks import verify_ranks
from probes.verify.run import share_s, verify

LINGER_S = 1.0
"""Seconds that rank 0 stays after a loss that it noticed itself: torchrun names the first rank that it misses."""


def run(
    options: Options,
    listener: Listener | None = None,
    team: Team = ALONE,
    device: Device | None = None,
    opened: OpenedSensor | None = None,
    abandon: Callable[[Outcome], object] | None = None,
) -> Outcome:
    """Run the probes in this process.

    Args:
        options: what to measure.
        listener: is notified of events.
        team: the ranks that measure together.
        device: this process's device, if it is already open.
        opened: its sensor.
        abandon: see `run_as_rank`.

    Raises:
        MpplanError: the device, the options or the record cannot be used.
    """
    session = Session(options, listener, team, device, opened)
    watcher = None
    if abandon is not None and team.leads:
        watcher = FailureWatcher(team.failure_reports, lambda reason: _abandon(session, reason, abandon))
    try:
        outcome = session.run(keep_s=share_s(session) if options.verify and team.size == 1 else 0.0)
        if options.verify and outcome.lost_device is None:
            outcome = _verified(session, outcome)
        return outcome
    finally:
        if watcher is not None:
            watcher.stop()
        session.close()


def _abandon(session: Session, reason: str, end: Callable[[Outcome], object]) -> None:
    outcome = session.abandon(reason)
    session.team.failure_reports.mark_written()
    end(outcome)


def run_as_rank(
    options: Options, place: Place, listener: Listener, abandon: Callable[[Outcome], object] | None = None
) -> tuple[Outcome, Team]:
    """Run the probes in this process as one of several ranks, once all have arrived; `part_ways` leaves the team.

    Args:
        options: what to measure.
        place: the place of this rank.
        listener: is notified of events.
        abandon: ends this process, from another thread, if rank 0 waits for a rank that has reported a loss.

    Raises:
        MpplanError: a rank did not arrive or differs, or the device, the options or the record cannot be used.
    """
    sensors: list[OpenedSensor] = []
    team, device = join(place, lambda: _opened(options, place, sensors), options.join_s)
    if (note := clock_note(team)) is not None:
        listener.noted(note)
    if device.kind == "cpu" and place.local_world > (cores := len(os.sched_getaffinity(0))):
        listener.noted(f"{place.local_world} processes share {cores} cores: each waits for the others")
    outcome = run(options, listener, team, device, sensors[0], abandon)
    if outcome.lost_device is not None:  # the ranks can no longer leave together
        if team.leads:
            time.sleep(LINGER_S)
            team.failure_reports.mark_written()
        else:
            team.failure_reports.wait_until_written()
    return outcome, team


def part_ways(team: Team) -> None:
    """Leave the others when all is measured and written; a failure now, here or elsewhere, costs nothing."""
    with suppress(DeviceLost, RuntimeError):
        team.line_up()
        leave()


def _opened(options: Options, place: Place, sensors: list[OpenedSensor]) -> tuple[Device, Arrival]:
    """Open this rank's device, and return it with the properties that all ranks must share.

    The sensor is opened before the GPU gets a context of this process.
    """
    device = open_device(options.device, _gpu_index(options, place))
    sensors.append(open_sensor(device.kind, device.uuid))
    where = provenance(device)
    device.as_current()  # a GPU that cannot be used is then reported to all ranks
    return device, Arrival(
        rank=place.rank,
        device=device.name,
        torch=where.software.torch_version or "",
        driver=where.software.driver_version or "",
        nccl=where.software.nccl_version or "",
        mpplan=where.software.mpplan_version or "",
        gpu=device.hashed,
    )


def _gpu_index(options: Options, place: Place) -> int:
    """Return the index of this rank's GPU; 0 if each process sees only one GPU, as Slurm may bind them."""
    if options.device == "cpu":
        return 0
    import torch

    return 0 if torch.cuda.is_available() and torch.cuda.device_count() == 1 else place.local_rank


def _verified(session: Session, outcome: Outcome) -> Outcome:
    lost = None
    try:
        if session.team.size > 1:
            verify_ranks(session)
        else:
            verify(session)
    except DeviceLost as error:
        lost = session.team.part(str(error))
    return replace(outcome, points=session.ledger.written, lost_device=lost)

"""What each of several ranks finds out with its team, as JSON of rank 0: a program of four ranks."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from probes.device.clock import CpuClock
from probes.device.device import open_device
from probes.device.faults import PeerFailed
from probes.ranks.clock import TeamClock
from probes.ranks.join import Arrival, clock_note, clocks_apart_s, join, leave, place_from_environment
from probes.ranks.team import Team, kinds_of_groups
from probes.timing.trial import CallTrial
from tests.probes.ranks.forked import fork_ranks


def failed_alone(team: Team) -> list[str | None]:
    """What all know where rank 2 fails while the others compare their times."""
    if team.place.rank == 2:
        return team.failures("no memory")
    try:
        team.maxima([1.0] * 100)
    except PeerFailed:
        return team.failures(None)
    return []


def ahead(team: Team) -> str | None:
    """What all are told where the clock of rank 2 is an hour ahead."""
    real_time = time.time
    if team.place.rank == 2:
        time.time = lambda: real_time() + 3600.0
    try:
        return clock_note(team)
    finally:
        time.time = real_time


def main() -> None:
    place = place_from_environment()
    assert place is not None
    device = open_device("cpu")
    team, _ = join(place, lambda: (device, Arrival(rank=place.rank, device=device.name)), 600.0)
    groups = {kind[0]: team.group(*kind).ranks for kind in kinds_of_groups(place)}
    slow = CallTrial(call=lambda: time.sleep(0.3 if place.rank == 1 else 0.005))
    batch = TeamClock(CpuClock(), team).batch(slow, samples=3, iterations=1)
    told = {
        "rank": place.rank,
        "agreed": team.agree(place.rank == 0),
        "of_first": team.of_first(10.0 + place.rank),
        "failures": failed_alone(team),
        "no_failures": team.failures(None),
        "many": team.maxima([float(i if i % 4 == place.rank else 0) for i in range(150)]),
        "maxima": team.maxima([float(place.rank), -float(place.rank)]),
        "shared": team.shared({"from": place.rank}),
        "groups": groups,
        "samples_s": batch.samples_s,
        "own_s": batch.own_s,
        "apart_s": clocks_apart_s(team)[0],
        "agreeing": clock_note(team),
        "an_hour_ahead": ahead(team),
    }
    told_by_all = team.gather(told)
    if team.leads:
        Path(sys.argv[1]).write_text(json.dumps(told_by_all), encoding="utf-8")
    team.line_up()
    leave()


if __name__ == "__main__":
    sys.exit(max(map(abs, fork_ranks(4, main, "torch.distributed"))))

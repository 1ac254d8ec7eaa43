"""How ranks find each other: each one reports its place, device and software; rank 0 waits for all and compares.

torchrun starts the processes and keeps a store that all of them reach. Nothing is measured, and no process group is
made, before every rank has arrived with the same kind of device and the same software.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from planner.errors import CannotMeasureError, MpplanError, UsageError
from planner.lazy import dataclass
from probes.device.device import Device
from probes.ranks.failure_reports import FailureReports
from probes.ranks.team import COLLECTIVE_LIMIT_S, Place, Team

POLL_S = 0.2
HEAR_S = 3.0
SHOWN_RANKS = 8
CLOCKS_APART_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """What a rank reports about itself when it arrives."""

    rank: int
    device: str = ""
    torch: str = ""
    driver: str = ""
    nccl: str = ""
    mpplan: str = ""
    gpu: str | None = None
    """Hash of its GPU's UUID."""
    problem: str | None = None
    """Why the rank cannot take part."""
    hint: str | None = None
    exit_code: int = 4


def place_from_environment(environment: Mapping[str, str] = os.environ) -> Place | None:
    """Return this process's place from torchrun's variables; None if torchrun did not start it, or started it alone.

    Raises:
        UsageError: the variables contradict each other.
    """
    if "RANK" not in environment or int(environment.get("WORLD_SIZE", "1")) < 2:
        return None
    place = Place(
        rank=int(environment["RANK"]),
        world=int(environment["WORLD_SIZE"]),
        local_rank=int(environment.get("LOCAL_RANK", "0")),
        local_world=int(environment.get("LOCAL_WORLD_SIZE", "1")),
    )
    if place.world % place.local_world or place.rank % place.local_world != place.local_rank:
        raise UsageError(
            f"{place.world} ranks with {place.local_world} on this node: every node must have the same number",
            hint="start torchrun with the same `--nproc-per-node` on every node",
        )
    return place


def join(place: Place, open_own: Callable[[], tuple[Device, Arrival]], limit_s: float) -> tuple[Team, Device]:
    """Arrive, wait for the others, and make the process group.

    Args:
        place: the place of this rank.
        open_own: opens this rank's device and reports device and software.
        limit_s: longest wait for a rank, in seconds.

    Raises:
        CannotMeasureError: a rank did not arrive, cannot take part, or differs from rank 0.
        UsageError: a rank has no GPU of its own: it shares one, or its GPU does not exist.
    """
    import torch.distributed as dist

    device: Device | None = None
    try:
        device, arrival = open_own()
    except MpplanError as error:
        arrival = Arrival(
            rank=place.rank,
            problem=str(error.message),
            hint=str(error.hint) if error.hint else None,
            exit_code=error.exit_code,
        )
    store = dist.PrefixStore("mpplan", _store(place, limit_s))
    store.set(f"arrived/{place.rank}", json.dumps(asdict(arrival)))
    if place.rank == 0:
        arrived = _arrived(store, place, limit_s)
        verdict = _verdict(arrived, place, limit_s)
        store.set("verdict", json.dumps(verdict))
        if verdict["problem"]:
            _let_them_hear(store, arrived)
    else:
        verdict = _heard(store, place, limit_s)
    if verdict["problem"]:
        raise _error(verdict)
    assert device is not None, "rank 0 lets nobody go on who has no device"
    backend = "nccl" if device.kind == "cuda" else "gloo"
    device.as_current()
    dist.init_process_group(
        backend,
        store=dist.PrefixStore("ranks", store),
        rank=place.rank,
        world_size=place.world,
        timeout=timedelta(seconds=COLLECTIVE_LIMIT_S),
        device_id=device.torch if device.kind == "cuda" else None,
    )
    return Team(place, backend, FailureReports(store)), device


def leave() -> None:
    """Close the process group."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


def _store(place: Place, limit_s: float) -> Any:
    """Connect to the store that torchrun keeps, or to one kept by rank 0 if torchrun keeps none."""
    import torch.distributed as dist

    host, port = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
    keeps = place.rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    try:
        return dist.TCPStore(
            host, int(port), is_master=keeps, wait_for_workers=False, timeout=timedelta(seconds=limit_s)
        )
    except (dist.DistError, ValueError) as error:
        raise CannotMeasureError(
            f"the store of torchrun at {host}:{port} does not answer",
            hint="check `--rdzv-endpoint`, and that its port is open between the nodes",
        ) from error


def _let_them_hear(store: Any, arrived: Sequence[Arrival]) -> None:
    """Give the others time to read the verdict, before the store may end with this process."""
    import torch.distributed as dist

    others = [f"heard/{arrival.rank}" for arrival in arrived if arrival.rank > 0]
    with suppress(dist.DistError, RuntimeError):
        store.wait(others, timedelta(seconds=HEAR_S))


def _arrived(store: Any, place: Place, limit_s: float) -> list[Arrival]:
    """Return the ranks that arrived in time, in order."""
    end = time.monotonic() + limit_s
    arrived: dict[int, Arrival] = {}
    while len(arrived) < place.world:
        for rank in range(place.world):
            if rank not in arrived and store.check([f"arrived/{rank}"]):
                arrived[rank] = Arrival(**json.loads(store.get(f"arrived/{rank}")))
        if len(arrived) == place.world or time.monotonic() >= end or any(a.problem for a in arrived.values()):
            break
        time.sleep(POLL_S)
    return [arrived[rank] for rank in sorted(arrived)]


def _verdict(arrived: Sequence[Arrival], place: Place, limit_s: float) -> dict[str, Any]:
    """Return whether the ranks can measure together, and the reason if not."""
    for arrival in arrived:
        if arrival.problem:
            name = place.name_of(arrival.rank)
            return {"problem": f"{name}: {arrival.problem}", "hint": arrival.hint, "exit_code": arrival.exit_code}
    missing = sorted(set(range(place.world)) - {arrival.rank for arrival in arrived})
    if missing:
        shown = ", ".join(place.name_of(rank) for rank in missing[:SHOWN_RANKS])
        more = f" and {len(missing) - SHOWN_RANKS} more" if len(missing) > SHOWN_RANKS else ""
        what = f"{shown}{more} did not arrive within {limit_s:.0f} s"
        return {"problem": what, "hint": "look at its output; `--join-timeout` waits longer", "exit_code": 4}
    if (problem := shared_gpu(arrived, place)) is not None:
        return {"problem": problem, "hint": "start as many ranks on a node as it has GPUs", "exit_code": 2}
    return {"problem": mixed(arrived, place), "hint": "measure only nodes of the same kind together", "exit_code": 4}


def shared_gpu(arrived: Sequence[Arrival], place: Place) -> str | None:
    """Return the first two ranks that opened the same GPU, in words; None if each rank has its own."""
    first: dict[str, int] = {}
    for arrival in arrived:
        if arrival.gpu is not None and first.setdefault(arrival.gpu, arrival.rank) != arrival.rank:
            return f"{place.name_of(arrival.rank)} has the same GPU as rank {first[arrival.gpu]}"
    return None


def mixed(arrived: Sequence[Arrival], place: Place) -> str | None:
    """Return the first difference between a rank and rank 0, in words; None if all are alike."""
    labels = {"device": "", "torch": "torch ", "driver": "driver ", "nccl": "NCCL ", "mpplan": "mpplan "}
    first = arrived[0]
    for key, label in labels.items():
        for other in arrived[1:]:
            expected, actual = getattr(first, key), getattr(other, key)
            if expected != actual:
                return f"{place.name_of(other.rank)} has {label}{actual or 'none'}, rank 0 {label}{expected or 'none'}"
    return None


def _heard(store: Any, place: Place, limit_s: float) -> dict[str, Any]:
    """Return what rank 0 decided.

    Raises:
        CannotMeasureError: rank 0 did not answer.
    """
    import torch.distributed as dist

    try:
        store.wait(["verdict"], timedelta(seconds=limit_s + 30.0))
    except (dist.DistError, RuntimeError) as error:
        raise CannotMeasureError(
            f"rank 0 did not arrive within {limit_s:.0f} s", hint="check the output of its node"
        ) from error
    verdict: dict[str, Any] = json.loads(store.get("verdict"))
    store.set(f"heard/{place.rank}", "")
    return verdict


def _error(verdict: Mapping[str, Any]) -> MpplanError:
    kind = UsageError if verdict["exit_code"] == UsageError.exit_code else CannotMeasureError
    return kind(verdict["problem"], hint=verdict["hint"])


def clocks_apart_s(team: Team) -> tuple[float, int]:
    """Return the largest difference of a rank's clock from rank 0's, in seconds, and that rank.

    All ranks read their clock right after a barrier, which ends on all of them within a round trip.
    """
    team.line_up()
    clocks = team.gather(time.time())
    apart = [clock - clocks[0] for clock in clocks]
    rank = max(range(len(apart)), key=lambda i: abs(apart[i]))
    return apart[rank], rank


def clock_note(team: Team) -> str | None:
    """Return a note about clocks that disagree; None if they agree."""
    apart_s, rank = clocks_apart_s(team)
    if abs(apart_s) <= CLOCKS_APART_S:
        return None
    name = team.place.name_of(rank)
    return f"the clock of {name} is {apart_s:+.0f} s from rank 0's: times of day differ, durations do not"

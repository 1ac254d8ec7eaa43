"""Gates of several ranks: what disturbs one rank disturbs all, and load from the team's own ranks disturbs none."""

from __future__ import annotations

from collections.abc import Collection

from probes.ranks.team import Team
from probes.timing.device_gate import DeviceGate
from probes.timing.quiet import WINDOW_S, CpuReading, Gate, read_cpu


class TeamGate:
    """The gates of the GPUs of all ranks; the worst one decides."""

    def __init__(self, gate: Gate, team: Team) -> None:
        self._gate, self._team = gate, team
        self.window_s = gate.window_s

    @property
    def others(self) -> int:
        """See `DeviceGate.others`; the largest value of any rank. All ranks must ask at the same time."""
        return int(self._team.maxima([float(getattr(self._gate, "others", 0))])[0])

    def for_kinds(self, kinds: Collection[str]) -> TeamGate:
        """See `DeviceGate.for_kinds`."""
        gate = self._gate.for_kinds(kinds) if isinstance(self._gate, DeviceGate) else self._gate
        return TeamGate(gate, self._team)

    def open(self) -> object:
        """Record the state before a window."""
        return self._gate.open()

    def judge(self, start: object) -> float | None:
        """Return the largest share of any rank; None if no rank can read it."""
        share = self._gate.judge(start)
        worst = self._team.maxima([-1.0 if share is None else share])[0]
        return None if worst < 0 else worst

    def accepts(self, ratio: float | None) -> bool:
        """Return whether samples of a window can be trusted; all ranks judge the same share."""
        return self._gate.accepts(ratio)


class TeamLoadGate:
    """Load on the CPUs of each node that is not caused by the ranks.

    It is only read for the record: the clock judges by its canary, and part of the cost of gloo's transport is not
    attributed to any process.
    """

    window_s = WINDOW_S

    def __init__(self, team: Team) -> None:
        self._team = team

    def open(self) -> CpuReading | None:
        """Record the load before a window."""
        return read_cpu()

    def judge(self, start: object) -> float | None:
        """Return the share of CPUs that others used since `start`, on the node where it is largest."""
        end = read_cpu()
        if not isinstance(start, CpuReading) or end is None:
            cpu_s = (0.0, 0.0, 0.0)
        else:
            cpu_s = (end.busy_s - start.busy_s, end.total_s - start.total_s, end.own_s - start.own_s)
        ranks = self._team.gather(cpu_s)
        size = self._team.place.local_world
        nodes = [ranks[at : at + size] for at in range(0, len(ranks), size)]
        return max((share for node in nodes if (share := _share(node)) is not None), default=None)

    def accepts(self, ratio: float | None) -> bool:
        """Accept every window."""
        return True


def _share(ranks: list[tuple[float, float, float]]) -> float | None:
    """Return the share of a node's CPUs that its ranks did not use; their readings are nearly simultaneous."""
    busy_s, total_s = ranks[0][:2]
    if total_s <= 0:
        return None
    others = busy_s - sum(own_s for _, _, own_s in ranks)
    return min(max(others / total_s, 0.0), 1.0)

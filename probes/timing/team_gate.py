"""Gates of several ranks: what disturbs one disturbs all, and what the others of the team use disturbs nobody."""

from __future__ import annotations

from collections.abc import Collection

from probes.ranks.team import Team
from probes.timing.device_gate import DeviceGate
from probes.timing.quiet import WINDOW_S, CpuReading, Gate, read_cpu


class TeamGate:
    """The gates of the GPUs of all ranks: the worst decides."""

    def __init__(self, own: Gate, team: Team) -> None:
        self._own, self._team = own, team
        self.window_s = own.window_s

    @property
    def others(self) -> int:
        """See `DeviceGate.others`; of the rank with the most, so that all ranks must ask."""
        return int(self._team.maxima([float(getattr(self._own, "others", 0))])[0])

    def for_kinds(self, kinds: Collection[str]) -> TeamGate:
        """See `DeviceGate.for_kinds`."""
        own = self._own.for_kinds(kinds) if isinstance(self._own, DeviceGate) else self._own
        return TeamGate(own, self._team)

    def open(self) -> object:
        """Note the state before a window."""
        return self._own.open()

    def judge(self, start: object) -> float | None:
        """The largest share of any rank; None where none can read it."""
        own = self._own.judge(start)
        worst = self._team.maxima([-1.0 if own is None else own])[0]
        return None if worst < 0 else worst

    def accepts(self, ratio: float | None) -> bool:
        """Whether samples of a window may be trusted; all ranks judge the same share."""
        return self._own.accepts(ratio)


class TeamLoadGate:
    """Load on the CPUs of each node that is not of the ranks.

    It is read for the record: the clock judges by its canary, and part of what gloo's transport costs is in no name.
    """

    window_s = WINDOW_S

    def __init__(self, team: Team) -> None:
        self._team = team

    def open(self) -> CpuReading | None:
        """Note the load before a window."""
        return read_cpu()

    def judge(self, start: object) -> float | None:
        """Share of the CPUs that others used since `start` on the node where it is largest."""
        end = read_cpu()
        if not isinstance(start, CpuReading) or end is None:
            own = (0.0, 0.0, 0.0)
        else:
            own = (end.busy_s - start.busy_s, end.total_s - start.total_s, end.own_s - start.own_s)
        ranks = self._team.gather(own)
        size = self._team.place.local_world
        nodes = [ranks[at : at + size] for at in range(0, len(ranks), size)]
        return max((share for node in nodes if (share := _share(node)) is not None), default=None)

    def accepts(self, ratio: float | None) -> bool:
        """Always."""
        return True


def _share(ranks: list[tuple[float, float, float]]) -> float | None:
    """Share of a node's CPUs that was none of its ranks'; their readings are of nearly the same moment."""
    busy_s, total_s = ranks[0][:2]
    if total_s <= 0:
        return None
    others = busy_s - sum(own_s for _, _, own_s in ranks)
    return min(max(others / total_s, 0.0), 1.0)

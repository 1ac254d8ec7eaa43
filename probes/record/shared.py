"""The record of several ranks: rank 0 writes it, and all know what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planner.records.jsonl import parse_line, to_line
from planner.records.measurement import Measurement
from probes.ranks.team import Team
from probes.record.figures import Figures
from probes.record.ledger import PointLedger
from probes.sensors.interface import Trace
from probes.timing.trial import Point


class SharedLedger:
    """One record for all ranks; all call the same methods in the same order."""

    def __init__(self, ledger: PointLedger | None, team: Team) -> None:
        """Share a record.

        Args:
            ledger: the record, on rank 0; None elsewhere.
            team: all ranks.
        """
        self._ledger, self._team = ledger, team
        self.path = Path(team.shared("" if ledger is None else str(ledger.path)))
        lines = team.shared([] if ledger is None else [to_line(line) for line in ledger.known.values()])
        self.known: dict[str, Measurement] = {line.probe_id: line for line in map(_read, lines)}
        self.written = 0
        self.under_way = _SharedUnderWay(ledger, team)

    def write(self, point: Point, figures: Figures, trace: Trace | None = None) -> Measurement:
        """See `PointLedger.write`."""
        line = None if self._ledger is None else to_line(self._ledger.write(point, figures, trace))
        measurement = _read(self._team.shared(line))
        self.known[measurement.probe_id] = measurement
        self.written += 1
        return measurement

    def is_done(self, point: Point) -> bool:
        """See `PointLedger.is_done`."""
        return self._team.shared(self._ledger is not None and self._ledger.is_done(point))

    def close(self) -> None:
        """See `PointLedger.close`."""
        if self._ledger is not None:
            self._ledger.close()


class _SharedUnderWay:
    """Rank 0's note of the points under way, known to all ranks."""

    def __init__(self, ledger: PointLedger | None, team: Team) -> None:
        self._ledger = ledger
        self._left = team.shared(() if ledger is None else ledger.under_way.left_behind())
        self._twice = team.shared(() if ledger is None else ledger.under_way.left_behind_twice())

    def begin(self, probe_ids: Sequence[str]) -> None:
        """See `UnderWay.begin`."""
        if self._ledger is not None:
            self._ledger.under_way.begin(probe_ids)

    def end(self) -> None:
        """See `UnderWay.end`."""
        if self._ledger is not None:
            self._ledger.under_way.end()

    def left_behind(self) -> tuple[str, ...]:
        """See `UnderWay.left_behind`."""
        return self._left

    def left_behind_twice(self) -> tuple[str, ...]:
        """See `UnderWay.left_behind_twice`."""
        return self._twice


def _read(line: str | None) -> Measurement:
    measurement = parse_line(line or "")
    assert isinstance(measurement, Measurement), "what was just written can be read"
    return measurement

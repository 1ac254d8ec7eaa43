"""What a message costs on ranks that were measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.measured.network.messages import StepMessage
from planner.measured.ranks.collectives import MeasuredCollectives
from planner.records.communication import Communication
from planner.records.figures import TimeStatistics
from planner.records.measurement import Measurement
from tests.planner.recorded import a_measurement


def collective(op: str, world: int, size_bytes: float, time_s: float, group: str = "world") -> Measurement:
    return replace(
        a_measurement(kind="collective", probe_id=f"collective/{op}/{group}/1x{world}/{size_bytes:.0f}"),
        communication=Communication(op=op, group=group, backend="gloo", world=world, nodes=1, bytes=size_bytes),
        time=TimeStatistics(median_s=time_s),
    )


def message(op: str = "all_reduce", world: int = 4, stride: int = 1, size_bytes: float = 1e6) -> StepMessage:
    return StepMessage(op=op, world=world, stride=stride, bytes=size_bytes, count=1, phase="backward", hidden=False)


FOUR = [collective("all_reduce", 4, 1e3, 1e-4), collective("all_reduce", 4, 1e5, 1e-3),
        collective("all_reduce", 4, 1e7, 1e-1)]  # fmt: skip


@pytest.mark.parametrize(
    ("size_bytes", "seconds"),
    [
        (10.0, 1e-4),  # as long as the smallest
        (1e3, 1e-4),
        (1e4, 3.162e-4),  # halfway in both logarithms
        (1e6, 1e-2),
        (1e8, 1.0),  # ten times the largest
    ],
)
def test_a_size_between_those_measured_lies_on_a_line_of_the_logarithms(size_bytes: float, seconds: float) -> None:
    charge = MeasuredCollectives(FOUR).charge(message(size_bytes=size_bytes))

    assert charge is not None
    assert charge.seconds == pytest.approx(seconds, rel=1e-3)
    assert charge.probe_ids == tuple(point.probe_id for point in FOUR)


def test_neighbours_are_charged_as_neighbours_and_distant_ranks_as_distant() -> None:
    points = [collective("all_gather", 2, size, seconds, group) for group, size, seconds in (
        ("tp2", 1e3, 1e-5), ("tp2", 1e6, 1e-4), ("dp2", 1e3, 1e-4), ("dp2", 1e6, 1e-3))]  # fmt: skip
    known = MeasuredCollectives(points)

    near, far = known.charge(message("all_gather", 2)), known.charge(message("all_gather", 2, stride=8))

    assert near is not None
    assert far is not None
    assert (near.seconds, far.seconds) == (pytest.approx(1e-4), pytest.approx(1e-3))


def test_more_ranks_than_were_measured_take_a_rings_share_more() -> None:
    """Two ranks: 0.1 ms, and 1 ms for the bytes; four: three times the steps, and 1.5 times the bytes on the bus."""
    points = [collective("all_reduce", 2, 1e3, 1e-4), collective("all_reduce", 2, 1e6, 1.1e-3)]

    charge = MeasuredCollectives(points).charge(message(world=4))

    assert charge is not None
    assert charge.seconds == pytest.approx(3 * 1e-4 + 1.5 * 1e-3)


def test_a_send_to_the_next_rank_takes_as_long_among_more_ranks() -> None:
    points = [collective("send_recv", 2, 1e3, 1e-4), collective("send_recv", 2, 1e6, 1.1e-3)]

    charge = MeasuredCollectives(points).charge(message("send_recv", world=4))

    assert charge is not None
    assert charge.seconds == pytest.approx(1.1e-3)


def test_what_was_not_measured_costs_nothing_known_and_one_rank_nothing_at_all() -> None:
    known = MeasuredCollectives(FOUR)
    single_rank = known.charge(message("all_gather", world=1))

    assert known.charge(message("all_gather")) is None
    assert single_rank is not None
    assert single_rank.seconds == 0.0

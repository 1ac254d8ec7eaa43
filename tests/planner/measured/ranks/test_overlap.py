"""Work and communication at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.measured.ranks.overlap import Slowdowns, slowdowns
from planner.records.communication import Communication, OverlapFigures
from planner.records.measurement import Measurement
from tests.planner.recorded import a_measurement


@pytest.mark.parametrize(
    ("work_s", "communication_s", "work_ratio", "communication_ratio", "seconds"),
    [
        (10.0, 4.0, 1.0, 1.0, 10.0),  # hidden for nothing
        (4.0, 10.0, 1.0, 1.0, 10.0),
        (10.0, 0.0, 1.5, 2.0, 10.0),
        (0.0, 4.0, 1.5, 2.0, 4.0),
        (10.0, 4.0, 1.25, 1.5, 6.0 + 10.0 - 6.0 / 1.25),  # sent after 6 s, in which 4.8 s of work were done
        (4.0, 10.0, 1.25, 2.0, 5.0 + 10.0 - 5.0 / 2.0),  # worked after 5 s, in which half of that was sent
        (4.0, 4.0, 2.0, 2.0, 8.0),  # both at half their speed: nothing gained
    ],
)
def test_each_slows_the_other_down_for_as_long_as_both_run(
    work_s: float, communication_s: float, work_ratio: float, communication_ratio: float, seconds: float
) -> None:
    overlapped = Slowdowns(work_ratio=work_ratio, communication_ratio=communication_ratio)

    assert overlapped.overlapped_s(work_s, communication_s) == pytest.approx(seconds)


def overlap(op: str, work_ratio: float, communication_ratio: float) -> Measurement:
    return replace(
        a_measurement(kind="overlap", probe_id=f"overlap/{op}/{work_ratio}"),
        communication=Communication(op=op, world=2, nodes=1),
        overlap=OverlapFigures(product_slowdown_ratio=work_ratio, collective_slowdown_ratio=communication_ratio),
    )


def test_an_operation_has_its_own_slowdowns_and_another_the_median_of_all() -> None:
    points = [overlap("all_reduce", 1.2, 1.4), overlap("all_gather", 1.1, 2.0), overlap("reduce_scatter", 1.6, 1.0)]

    own, other = slowdowns(points, "all_gather"), slowdowns(points, "send_recv")

    assert (own.work_ratio, own.communication_ratio, own.probe_ids) == (1.1, 2.0, ("overlap/all_gather/1.1",))
    assert (other.work_ratio, other.communication_ratio) == (1.2, 1.4)


def test_without_measurements_nothing_is_slowed_down_and_none_gains() -> None:
    assert slowdowns([]) == Slowdowns()
    assert slowdowns([overlap("all_reduce", 0.9, 0.95)]).work_ratio == 1.0

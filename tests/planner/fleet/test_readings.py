"""A line of a record as what its members found."""

from __future__ import annotations

import pytest

from planner.fleet.readings import is_joint, reading_of, together, without
from tests.planner.fleet.fleets import Gpu, points, ranks_point
from tests.planner.recorded import a_measurement


def test_a_line_of_one_gpu_is_its_members():
    reading = reading_of("node03", points(3, Gpu(power_w=650.0))[-1], ("node03",))

    assert reading.ranks.names == ("node03",)
    assert (reading.ranks.time_s, reading.ranks.power_w, reading.ranks.energy_j) == ((0.01,), (650.0,), (6.5,))
    assert reading.slowest == "node03"


def test_a_rank_is_named_after_its_record_and_its_place():
    reading = reading_of("node03", ranks_point(3, [0.1, 0.2]), ("node03: node 0 rank 0", "node03: node 0 rank 1"))

    assert reading.ranks.names == ("node03: node 0 rank 0", "node03: node 0 rank 1")
    assert reading.slowest == "node03: node 0 rank 1"


def test_a_line_without_ranks_in_a_record_of_several_is_the_first_ones():
    reading = reading_of("node03", a_measurement(), ("node03: node 0 rank 0", "node03: node 0 rank 1"))

    assert reading.ranks.names == ("node03: node 0 rank 0",)


def test_figures_that_do_not_fit_the_names_are_not_used():
    reading = reading_of("node03", ranks_point(3, [0.1, 0.2], rank_power_w=(600.0,)), ("a", "b"))

    assert reading.ranks.power_w == ()


@pytest.mark.parametrize(
    ("changes", "joint"),
    [
        ({"kind": "collective", "parallel": None}, True),
        ({"kind": "waiting", "parallel": None}, True),
        ({"parallel": "ddp"}, True),
        ({"parallel": "alone"}, False),
        ({"kind": "gemm", "parallel": None}, False),
    ],
)
def test_ranks_wait_for_each_other_unless_each_ran_alone(changes, joint):
    assert is_joint(ranks_point(1, [0.1, 0.2], **changes)) is joint


def test_without_its_slowest_rank_a_point_that_each_ran_alone_takes_as_long_as_the_next():
    point = ranks_point(
        1, [0.1, 0.2, 0.125],
        rank_power_w=(600.0, 700.0, 620.0), power_mean_w=1920.0, rank_energy_j=(60.0, 140.0, 80.0),
        energy_j_per_iteration=280.0, rank_memory_bytes=(1e9, 3e9, 2e9), memory_allocated_peak_bytes=3e9,
    )  # fmt: skip
    reading = reading_of("n", point, ("n: node 0 rank 0", "n: node 0 rank 1", "n: node 0 rank 2"))

    remaining = without(reading, {"n: node 0 rank 1"})

    assert remaining is not None
    assert remaining.ranks.names == ("n: node 0 rank 0", "n: node 0 rank 2")
    assert remaining.point.time.median_s == pytest.approx(0.125)
    assert remaining.point.time.ci_low_s == pytest.approx(0.125)
    assert remaining.point.power.mean_w == pytest.approx(1830.0)  # three ranks at the mean of 600 and 620 W
    assert remaining.point.energy.j_per_iteration == pytest.approx(210.0)
    assert remaining.point.memory.allocated_peak_bytes == 2e9


def test_without_a_rank_that_the_others_waited_for_nothing_is_known():
    reading = reading_of("n", ranks_point(1, [0.1, 0.2], parallel="ddp"), ())

    assert without(reading, {"n: node 0 rank 1"}) is None
    assert without(reading, {"m: node 0 rank 1"}) is reading


def test_a_figure_that_one_member_lacks_is_in_no_list():
    whole = reading_of("a", points(1, Gpu())[0], ("a",))
    less = reading_of("b", points(2, Gpu(changes={"power_mean_w": None}))[0], ("b",))

    ranks = together([whole, less])

    assert (ranks.names, ranks.time_s, ranks.power_w) == (("a", "b"), (0.004, 0.004), ())

"""From half of the ranks to all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.records.communication import RankFigures
from probes.verify.ranks import crowded, smaller, target_of
from tests.planner.measured.ranks.test_collectives import collective
from tests.planner.measured.ranks.test_steps import ALONE, KNOWN, REDUCE, step
from tests.probes.build import call, point


def test_what_a_job_of_half_the_size_could_not_know_is_left_out() -> None:
    two, four = collective("all_reduce", 2, 1e6, 1e-3, "tp2"), collective("all_reduce", 4, 1e6, 1e-3)

    assert list(smaller([ALONE, two, four], 4)) == [ALONE, two]
    assert list(smaller([ALONE, two], 2)) == [ALONE, two]  # two ranks have no smaller group


def test_a_step_is_run_again_under_its_own_name_with_the_prediction_from_less() -> None:
    pytest.importorskip("torch")
    described = step("ddp", dp=4)
    planned = point(
        "parallel_step/ddp", call(), kind="parallel_step", setup=described.setup, shape=described.shape,
        counts=described.counts, messages=(REDUCE,),
    )  # fmt: skip

    target = target_of(planned, tuple(KNOWN))

    assert target is not None
    assert (target.probe_id, target.kind) == ("verify/parallel_step/ddp", "verify")
    assert target.predicted.time_s == pytest.approx(0.35 + 0.018)
    assert target_of(planned, (ALONE,)) is None  # no collectives
    assert target_of(replace(planned, messages=()), tuple(KNOWN)) is None
    assert target_of(replace(planned, unsupported="3 ranks do not divide 8 heads"), tuple(KNOWN)) is None


def test_a_step_from_an_earlier_record_says_from_how_many_ranks_it_is() -> None:
    pytest.importorskip("torch")
    described = step("ddp", dp=4)
    planned = point(
        "parallel_step/ddp", call(), kind="parallel_step", setup=described.setup, shape=described.shape,
        counts=described.counts, messages=(REDUCE,),
    )  # fmt: skip

    target = target_of(planned, tuple(KNOWN), "verify/from-2/")

    assert target is not None
    assert target.probe_id == "verify/from-2/parallel_step/ddp"


@pytest.mark.parametrize(
    ("cores", "ratio"), [(1, 2.0), (2, 2.0), (3, 4 / 3), (4, 1.0), (8, 1.0)], ids=lambda value: f"{value:.3g}"
)
def test_four_ranks_on_the_cores_of_two_take_turns(cores: int, ratio: float) -> None:
    two = replace(ALONE, ranks=RankFigures(names=("node 0 rank 0", "node 0 rank 1")))

    later = crowded(two, 4, cores)

    assert later.time.forward_median_s == pytest.approx(0.1 * ratio)
    assert later.time.median_s == pytest.approx(0.35 * ratio)
    assert later.time.ci_low_s is None
    assert crowded(ALONE, 4, 1) is ALONE  # no ranks took part

"""From half of the ranks to all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from probes.verify.ranks import smaller, target_of
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

"""What is read of a document of `mpplan numerics`, and what ships of one."""

from __future__ import annotations

import json

import pytest

from planner.claims.evidence.trained import FILE, shipped_trained, trained_of


@pytest.fixture
def document():
    return json.loads(FILE.read_text(encoding="utf-8"))


def test_what_ships_tells_of_gradients_scales_and_pairs_and_where_it_is_from():
    trained = shipped_trained()

    assert trained.flushing
    assert all(part.runs for part in trained.scaling)
    assert {(pair.metric, pair.precision) for pair in trained.pairs} == {
        (metric, name) for metric in ("loss", "accuracy") for name in ("bf16", "fp16")
    }
    assert "make claimnumerics" in trained.source


def test_flushing_is_counted_by_powers_of_two(document):
    (part, *_) = document["histograms"]
    seen = part["overall"]["tensors"]["gradients"]
    seen |= {"values": 100, "least_exponent": -27, "counts": [1, 2, 3, 94]}  # 2^-27, 2^-26, 2^-25, 2^-24
    document["histograms"] = [part]
    (flushing,) = trained_of(document, "d").flushing

    # what is below 2^-25 becomes zero: half of the smallest subnormal
    assert [flushing.fp16_flushed_ratio(scale) for scale in (0, 1, 2, 3)] == [0.03, 0.01, 0.0, 0.0]


def test_the_path_of_a_scale_is_split_into_overflows_and_growth(document):
    part = document["loss_scaling"][0]
    part["dynamic"] = [
        part["dynamic"][0] | {"path": [[0, 24.0], [1, 23.0], [21, 24.0], [22, 23.0]], "overflow_steps": [0, 21]}
    ]
    (run,) = trained_of(document | {"loss_scaling": [part]}, "d").scaling[0].runs

    assert run.factors() == ([0.5, 0.5], [2.0])


def test_a_document_of_anybody_with_absurd_figures_is_read(document):
    part = document["loss_scaling"][0]
    run = part["dynamic"][0]
    part["dynamic"] = [run | {"path": [[0, 1e300], [1, -1e300]], "init_scale_log2": 1e300}, run | {"path": []}]
    (read,) = trained_of(document | {"loss_scaling": [part]}, "d").scaling[0].runs

    assert read.factors()[1] == [2.0**-1000]
    assert read.start == 2.0**1000


def test_what_was_emulated_cut_short_or_is_of_another_baseline_is_left_out(document):
    part = document["parity"][0]
    first, second = part["pairs"][:2]
    part["pairs"] = [first | {"mode": "emulated"}, second | {"difference_low": None}, first | {"baseline": "bf16"}]
    scaling = document["loss_scaling"][0] | {"mode": "emulated"}
    empty = document["histograms"][0] | {"overall": {}}
    trained = trained_of(
        document | {"parity": [part], "loss_scaling": [scaling], "histograms": [empty], "software": None}, "d"
    )

    assert (trained.pairs, trained.scaling, trained.flushing) == ((), (), ())


def test_the_users_own_task_goes_without_its_name(document):
    part = document["parity"][0] | {"task": "secret.module:make"}

    assert {pair.task for pair in trained_of(document | {"parity": [part]}, "d").pairs} == {"own"}

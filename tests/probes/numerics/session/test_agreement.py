"""A policy is recommended only where parity and schedule of the same task and precision bear it out."""

from __future__ import annotations

import pytest

from probes.numerics.session.agreement import held_to

POLICY = {
    "precision": "fp8", "margin": 0.02, "steps": 60, "verdict": "within", "keep_high": ["norm"],
    "keep_high_kinds": {"norm": 1}, "lower": ["a", "b", "head"], "lowered_parameters_ratio": 0.9, "loss_change": 0.001,
    "loss_change_low": -0.001, "loss_change_high": 0.004, "usual": {"layers": ["a", "b"]}, "words": "keep 1 of 4 high",
}  # fmt: skip
PAIR = {"precision": "fp8", "metric": "loss", "verdict": "equivalent", "diverged": 0, "difference_high": 0.004}
DOUBTFUL = PAIR | {"verdict": "cannot_tell", "difference_high": 0.07}
LOW = {"name": "all low", "verdict": "not_equivalent", "diverged": 0, "loss_change_high": 0.09}


def parity(pair):
    return {"steps": 191, "pairs": [PAIR | {"precision": "bf16"}, pair]}


def schedule(low, precision="fp8"):
    return {"steps": 191, "precision": precision, "schedules": [{"name": "all high"}, low]}


def test_what_parity_and_schedule_bear_out_stays():
    assert held_to(POLICY, parity(PAIR), schedule(LOW | {"verdict": "equivalent"})) == POLICY
    assert held_to(POLICY, None, None) == POLICY


@pytest.mark.parametrize(
    ("beside", "words"),
    [
        ((parity(DOUBTFUL), None), "parity over 191 steps the loss rises by up to +0.07"),
        ((parity(DOUBTFUL | {"diverged": 2, "difference_high": None}), None), "2 runs ended without a finite loss"),
        ((parity(PAIR), schedule(LOW)), "the schedule with all of 191 steps low the loss rises by up to +0.09"),
    ],
)
def test_a_loss_beyond_the_margin_withdraws_it(beside, words):
    policy = held_to(POLICY, *beside)

    assert (policy["verdict"], policy["lower"], policy["lowered_parameters_ratio"]) == ("cannot_tell", [], None)
    assert words in policy["words"]
    assert "can be" not in policy["words"].replace("cannot be told", "")
    assert held_to(policy, *beside) == policy


def test_what_says_nothing_against_it_leaves_it():
    few = PAIR | {"verdict": "cannot_tell", "difference_high": None}  # one pair has no interval
    assert held_to(POLICY, parity(few), schedule(LOW, "nvfp4")) == POLICY
    keeps_more = POLICY | {"lower": ["a"]}  # parity lowered `b` too, which this policy keeps high
    assert held_to(keeps_more, parity(DOUBTFUL), None) == keeps_more
    by_accuracy = DOUBTFUL | {"metric": "accuracy"}
    assert held_to(POLICY, parity(by_accuracy), None) == POLICY

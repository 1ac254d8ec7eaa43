"""Ways that lower what is needed are offered where a plan does not fit, and no others."""

from __future__ import annotations

import pytest

from planner.errors import Message
from planner.parallelism.search import FixedLayout
from planner.planning.choice import best_on
from planner.planning.fitting.lean import MORE_MEMORY, helpful
from planner.planning.fitting.ways import leaner
from tests.planner.planning.advice.test_warnings import case

FUSED = Message.of("flag.with_value", input="loss", value="fused")
SMALL = {"params": "70B", "gpu": "rtx-4090", "tokens": "10B"}


def names(ways: tuple[Message, ...]) -> list[str]:
    return [str(dict(way.values).get("input", way.key)) for way in ways]


def test_what_lowers_nothing_is_not_offered():
    one, fixed = case(**SMALL), FixedLayout(on_given_gpus=True)
    assert best_on(one, fixed, 64).best is None

    assert FUSED in [way.flag for way in leaner(one, fixed)]
    assert names(helpful(one, fixed, 64)) == ["offload", "optimizer", MORE_MEMORY.key]
    assert best_on(case(**SMALL, optimizer="adamw-8bit"), fixed, 64).best is not None
    assert best_on(case(**SMALL, offload="optimizer"), fixed, 64).best is not None
    assert best_on(case(**SMALL, loss="fused"), fixed, 64).best is None


@pytest.mark.parametrize("left_out", ["tp", "pp", "zero"])
def test_a_split_that_was_fixed_is_what_is_named_where_it_holds_too_much(left_out):
    whole = {"tp": 1, "pp": 1, "zero": 1}
    one, fixed = case(params="70B"), FixedLayout(**whole)

    assert sorted(names(helpful(one, fixed, 512))[:-1]) == ["pp", "tp", "zero"]
    rest = FixedLayout(**{name: size for name, size in whole.items() if name != left_out})
    assert best_on(one, rest, 512).best is not None


def test_ways_that_are_enough_only_together_are_named_as_one():
    asked = {"params": "20B", "gpu": "rtx-4090"}
    (together, last) = helpful(case(**asked), FixedLayout(on_given_gpus=True, tp=1, zero=1), 8)

    assert (together.key, last) == ("hint.together", MORE_MEMORY)
    assert names(dict(together.values)["ways"]) == ["offload", "tp"]
    offloaded = case(**asked, offload="optimizer")
    assert best_on(offloaded, FixedLayout(on_given_gpus=True, zero=1), 8).best is not None
    assert best_on(offloaded, FixedLayout(on_given_gpus=True, tp=1, zero=1), 8).best is None

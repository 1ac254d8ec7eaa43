"""Ways that lower what is needed are offered where a plan does not fit, and no others."""

from __future__ import annotations

import pytest

from planner.errors import Message
from planner.parallelism.search import FixedLayout
from planner.planning.choice import best_on
from planner.planning.fitting.lean import MORE_MEMORY, helpful
from planner.planning.fitting.ways import leaner
from planner.planning.risk import WORTH_TRYING
from tests.planner.planning.advice.test_warnings import case

FUSED = Message.of("flag.with_value", input="loss", value="fused")
SMALL = {"params": "70B", "gpu": "rtx-4090", "tokens": "10B"}


def plain(way: Message) -> Message:
    """A way without its risk."""
    option = dict(way.values).get("option", way)
    assert isinstance(option, Message)
    return option


def names(ways: tuple[Message, ...]) -> list[str]:
    return [str(dict(plain(way).values).get("input", plain(way).key)) for way in ways]


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
    (way, last) = helpful(case(**asked), FixedLayout(on_given_gpus=True, tp=1, zero=1), 8)
    together = plain(way)

    assert (together.key, last) == ("hint.together", MORE_MEMORY)
    assert names(dict(together.values)["ways"]) == ["offload", "tp"]
    offloaded = case(**asked, offload="optimizer")
    assert best_on(offloaded, FixedLayout(on_given_gpus=True, zero=1), 8).best is not None
    assert best_on(offloaded, FixedLayout(on_given_gpus=True, tp=1, zero=1), 8).best is None


def test_a_way_that_is_not_safe_says_its_risk_and_one_that_risks_much_is_left_out():
    said = helpful(case(**SMALL), FixedLayout(on_given_gpus=True), 64)
    needs = {names((way,))[0]: dict(way.values).get("needs", ()) for way in said}
    told = {name: {key: value for need in some for key, value in need.values} for name, some in needs.items()}
    risks = {name: said.get("risk") for name, said in told.items()}

    assert risks.keys() == {"offload", "optimizer", MORE_MEMORY.key}
    for name, value in (("offload", "optimizer"), ("optimizer", "adamw-8bit")):
        one = case(**SMALL, **{name: value})
        choice = best_on(one, FixedLayout(on_given_gpus=True), 64)
        assert choice.safe is (risks[name] is None)
    assert told["offload"]["host_gib"] > 50
    assert any(risk is not None and 0.05 < float(str(risk)) <= WORTH_TRYING for risk in risks.values())
    # on one GPU a model of 50B would risk 26 % with all at once
    assert names(helpful(case(params="50B", gpu="rtx-4090"), FixedLayout(on_given_gpus=True), 1)) == [MORE_MEMORY.key]


def test_what_lowers_nothing_alone_is_tried_beside_what_does():
    asked = {"model": "gemma-2-9b", "gpu": "rtx-4090", "seq_len": "8192", "global_batch": "8"}
    unsplit = FixedLayout(on_given_gpus=True, tp=1, pp=1, cp=1)
    (way, last) = helpful(case(**asked), unsplit, 2)

    assert last == MORE_MEMORY
    assert names(dict(plain(way).values)["ways"]) == ["offload", "loss"]
    assert best_on(case(**asked, offload="optimizer", loss="fused"), unsplit, 2).best is not None


def test_more_memory_than_any_host_has_is_no_way():
    huge = case(params="400B", global_batch="8")

    assert "offload" not in names(helpful(huge, FixedLayout(on_given_gpus=True), 8))

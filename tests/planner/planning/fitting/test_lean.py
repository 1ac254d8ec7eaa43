"""Ways that lower what is needed are offered where a plan does not fit, and no others."""

from __future__ import annotations

import pytest

from planner.errors import Message
from planner.parallelism.search import FixedLayout
from planner.planning.choice import best_on
from planner.planning.fitting.lean import MORE_MEMORY, helpful, needs_messages
from planner.planning.fitting.ways import leaner
from planner.planning.risk import WORTH_TRYING
from planner.units import GIB
from reports.text.messages import word
from tests.planner.build import case_of

FUSED = Message.of("flag.with_value", input="loss", value="fused")
SMALL = {"params": "70B", "gpu": "rtx-4090", "tokens": "10B"}


def plain(way: Message) -> Message:
    """A way without its risk."""
    option = dict(way.values).get("option", way)
    assert isinstance(option, Message)
    return option


def names(ways: tuple[Message, ...]) -> list[str]:
    return [str(dict(plain(way).values).get("input", plain(way).key)) for way in ways]


def test_less_than_a_gib_on_the_host_is_not_called_none():
    little, more = (needs_messages(case_of(**SMALL), gib * GIB, 0.0)[0] for gib in (0.01, 1.2))

    assert word(little) == "less than 1 GiB of each host's memory"
    assert word(more) == "1 GiB of each host's memory"


def test_what_lowers_nothing_is_not_offered():
    case, fixed = case_of(**SMALL), FixedLayout(on_given_gpus=True)
    assert best_on(case, fixed, 64).best is None

    assert FUSED in [way.flag for way in leaner(case, fixed)]
    assert names(helpful(case, fixed, 64)) == ["offload", "optimizer", MORE_MEMORY.key]
    assert best_on(case_of(**SMALL, optimizer="adamw-8bit"), fixed, 64).best is not None
    assert best_on(case_of(**SMALL, offload="optimizer"), fixed, 64).best is not None
    assert best_on(case_of(**SMALL, loss="fused"), fixed, 64).best is None


@pytest.mark.parametrize("left_out", ["tp", "pp", "zero"])
def test_a_split_that_was_fixed_is_what_is_named_where_it_holds_too_much(left_out):
    whole = {"tp": 1, "pp": 1, "zero": 1}
    case, fixed = case_of(params="70B"), FixedLayout(**whole)

    assert sorted(names(helpful(case, fixed, 512))[:-1]) == ["pp", "tp", "zero"]
    remaining = FixedLayout(**{name: size for name, size in whole.items() if name != left_out})
    assert best_on(case, remaining, 512).best is not None


def test_ways_that_are_enough_only_together_are_named_as_one():
    asked = {"params": "20B", "gpu": "rtx-4090"}
    (way, last) = helpful(case_of(**asked), FixedLayout(on_given_gpus=True, tp=1, zero=1), 8)
    together = plain(way)

    assert (together.key, last) == ("hint.together", MORE_MEMORY)
    assert names(dict(together.values)["ways"]) == ["offload", "tp"]
    offloaded = case_of(**asked, offload="optimizer")
    assert best_on(offloaded, FixedLayout(on_given_gpus=True, zero=1), 8).best is not None
    assert best_on(offloaded, FixedLayout(on_given_gpus=True, tp=1, zero=1), 8).best is None


def test_a_way_that_is_not_safe_says_its_risk_and_one_that_risks_much_is_left_out():
    ways = helpful(case_of(**SMALL), FixedLayout(on_given_gpus=True), 64)
    needs = {names((way,))[0]: dict(way.values).get("needs", ()) for way in ways}
    values_by_way = {
        name: {key: value for need in messages for key, value in need.values} for name, messages in needs.items()
    }
    risks = {name: need.get("risk") for name, need in values_by_way.items()}

    assert risks.keys() == {"offload", "optimizer", MORE_MEMORY.key}
    for name, value in (("offload", "optimizer"), ("optimizer", "adamw-8bit")):
        case = case_of(**SMALL, **{name: value})
        choice = best_on(case, FixedLayout(on_given_gpus=True), 64)
        assert choice.safe is (risks[name] is None)
    assert values_by_way["offload"]["host_gib"] > 50
    assert any(risk is not None and 0.05 < float(str(risk)) <= WORTH_TRYING for risk in risks.values())
    # on one GPU a model of 50B would risk 26 % with all at once
    assert names(helpful(case_of(params="50B", gpu="rtx-4090"), FixedLayout(on_given_gpus=True), 1)) == [
        MORE_MEMORY.key
    ]


def test_what_lowers_nothing_alone_is_tried_beside_what_does():
    asked = {"model": "gemma-2-9b", "gpu": "rtx-4090", "seq_len": "8192", "global_batch": "8"}
    unsplit = FixedLayout(on_given_gpus=True, tp=1, pp=1, cp=1)
    (way, last) = helpful(case_of(**asked), unsplit, 2)

    assert last == MORE_MEMORY
    assert names(dict(plain(way).values)["ways"]) == ["offload", "loss"]
    assert best_on(case_of(**asked, offload="optimizer", loss="fused"), unsplit, 2).best is not None


def test_more_memory_than_any_host_has_is_no_way():
    huge = case_of(params="400B", global_batch="8")

    assert "offload" not in names(helpful(huge, FixedLayout(on_given_gpus=True), 8))

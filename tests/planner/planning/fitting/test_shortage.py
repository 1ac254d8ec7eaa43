"""Errors where nothing meets the targets: what is short, by how much, and hints that work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import Message, NoPlanError
from planner.parallelism.search import FixedLayout
from planner.planning.counts import fewest
from planner.planning.fitting.shortage import leaner
from tests.planner.build import parts
from tests.planner.planning.test_choice import DRAWS, FREE, case, small
from tests.planner.planning.test_counts import by

OFFLOAD = Message.of("flag.with_value", input="offload", value="optimizer")
RECOMPUTE = Message.of("flag.with_value", input="act_ckpt", value="full")


def test_a_deadline_that_no_number_meets_says_what_the_fastest_takes_and_that_hint_works():
    one = case(params="8B")
    with pytest.raises(NoPlanError) as caught:
        fewest(one, FREE, DRAWS, by(3600))

    assert caught.value.exit_code == 8
    slow, hint = parts(caught.value.message), parts(caught.value.hint)
    assert (slow["key"], slow["gpu"], slow["precision"]) == ("error.too_slow", "h100-sxm5-80gb", "bf16")
    assert slow["deadline_days"] == pytest.approx(1 / 24)
    assert fewest(one, FREE, DRAWS, by(hint["deadline_days"] * 86400)).best is not None


def test_a_deadline_beyond_what_the_batch_can_keep_busy_names_the_fastest_too():
    with pytest.raises(NoPlanError) as caught:
        fewest(case(params="1T", global_batch="8"), FREE, DRAWS, by(86400))

    assert parts(caught.value.message)["fastest_days"] > 1
    assert caught.value.hint.key == "hint.later_deadline_or_batch"


def test_with_a_deadline_and_a_budget_the_one_that_is_missed_is_named():
    one = case(params="8B")
    with pytest.raises(NoPlanError) as money:
        fewest(one, FREE, DRAWS, by(30 * 86400, budget_usd=1000))
    with pytest.raises(NoPlanError) as time:
        fewest(one, FREE, DRAWS, by(3600, budget_usd=1e9))

    dear = parts(money.value.message)
    assert (dear["key"], dear["budget_usd"], parts(dear["in_time"])["days"]) == ("error.too_dear", 1000, 30)
    assert money.value.hint.key == "hint.larger_budget"
    assert time.value.message.key == "error.too_slow"


def test_a_model_that_fits_nowhere_says_what_is_short():
    with pytest.raises(NoPlanError) as caught:
        fewest(small(memory_gib=1.0), FREE, DRAWS)

    short = parts(caught.value.message)
    assert short["key"] == "error.fits_nowhere"
    assert short["capacity_gib"] == pytest.approx(1.0 - 0.55)  # the driver keeps 0.55 GiB
    assert short["needed_gib"] == pytest.approx(short["short_gib"] + 0.45)
    assert OFFLOAD in parts(caught.value.hint)["ways"]


def test_a_batch_that_divides_into_no_layout_is_said_so():
    with pytest.raises(NoPlanError) as caught:
        fewest(small(layers=1, batch=1), FixedLayout(tp=1, pp=1, cp=1), DRAWS)

    assert parts(caught.value.message) == {"key": "error.no_even_split", "global_batch": 1}


def test_only_ways_that_are_not_taken_yet_are_offered():
    one = small()
    assert RECOMPUTE not in leaner(one, FREE)
    assert RECOMPUTE in leaner(one, FixedLayout(act_ckpt="none"))
    assert Message.of("hint.without", input="tp", value=2) in leaner(one, FixedLayout(tp=2))
    assert OFFLOAD not in leaner(replace(one, recipe=replace(one.recipe, offload="optimizer")), FREE)

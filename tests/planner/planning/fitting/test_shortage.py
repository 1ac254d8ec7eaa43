"""Errors where nothing meets the targets: what is short, by how much, and hints that work."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from planner.errors import Message, NoPlanError
from planner.parallelism.search import FixedLayout
from planner.planning.case import Case
from planner.planning.choice import best_on
from planner.planning.counting.counts import fewest, soonest
from planner.planning.fitting.lean import MORE_MEMORY
from planner.planning.fitting.ways import leaner
from planner.planning.targets import ROOM_RATIO, Targets, at_confidence
from reports.text.messages import word
from tests.planner.build import case_of, parts
from tests.planner.planning.counting.test_counts import by
from tests.planner.planning.test_choice import DRAWS, FREE, small

OFFLOAD = Message.of("flag.with_value", input="offload", value="optimizer")
RECOMPUTE = Message.of("hint.without", input="act_ckpt", value="none")


def test_a_deadline_that_no_number_meets_says_what_the_fastest_takes_and_that_hint_works():
    case = case_of(params="8B")
    with pytest.raises(NoPlanError) as caught:
        fewest(case, FREE, DRAWS, by(3600))

    assert caught.value.exit_code == 8
    slow, hint = parts(caught.value.message), parts(caught.value.hint)
    assert (slow["key"], slow["gpu"], slow["precision"]) == ("error.too_slow", "h100-sxm5-80gb", "bf16")
    assert slow["deadline_days"] == pytest.approx(1 / 24)
    assert fewest(case, FREE, DRAWS, by(hint["deadline_days"] * 86400)).best is not None


def test_a_deadline_beyond_what_the_batch_can_keep_busy_names_the_fastest_too():
    with pytest.raises(NoPlanError) as caught:
        fewest(case_of(params="1T", global_batch="8"), FREE, DRAWS, by(86400))

    assert parts(caught.value.message)["fastest_days"] > 1
    assert caught.value.hint.key == "hint.later_deadline"  # nor do larger batches keep enough busy for a day


def test_a_larger_batch_that_is_named_is_the_smallest_that_meets_the_deadline():
    asked, month_s = {"params": "1T", "gpu": "gb200"}, 30 * 86400
    with pytest.raises(NoPlanError) as caught:
        fewest(case_of(**asked), FREE, DRAWS, by(month_s))
    batch = parts(caught.value.hint)["global_batch"]

    assert fewest(case_of(**asked, global_batch=str(batch)), FREE, DRAWS, by(month_s)).safe
    with pytest.raises(NoPlanError):
        fewest(case_of(**asked, global_batch=str(batch // 2)), FREE, DRAWS, by(month_s))


def test_a_batch_that_fits_on_more_gpus_is_named_with_their_number():
    asked = {"params": "1T", "gpu": "rtx-4090", "tokens": "1B"}
    with pytest.raises(NoPlanError) as caught:
        fewest(case_of(**asked, global_batch="1"), FREE, DRAWS)
    hint = parts(caught.value.hint)

    assert hint["key"] == "hint.larger_batch"
    assert fewest(case_of(**asked, global_batch=str(hint["global_batch"])), FREE, DRAWS).gpus <= hint["gpus"]


def test_with_a_deadline_and_a_budget_the_one_that_is_missed_is_named():
    case = case_of(params="8B")
    with pytest.raises(NoPlanError) as money:
        fewest(case, FREE, DRAWS, by(30 * 86400, budget_usd=1000))
    with pytest.raises(NoPlanError) as time:
        fewest(case, FREE, DRAWS, by(3600, budget_usd=1e9))

    dear = parts(money.value.message)
    assert (dear["key"], dear["budget_usd"], parts(dear["in_time"])["days"]) == ("error.too_dear", 1000, 30)
    assert money.value.hint.key == "hint.larger_budget"
    assert time.value.message.key == "error.too_slow"


@pytest.mark.parametrize(
    ("budget_usd", "shown_usd"), [(0.5, "$0.50"), (1.5, "$1.50"), (20.0, "$20"), (1000.4, "$1,000")]
)
def test_a_small_budget_is_told_with_its_cents(budget_usd, shown_usd):
    with pytest.raises(NoPlanError) as caught:
        fewest(case_of(params="8B"), FREE, DRAWS, Targets(budget_usd=budget_usd))

    assert f"does not fit a budget of {shown_usd} with" in word(caught.value.message)


def test_a_run_told_in_examples_is_made_cheaper_by_fewer_of_them_in_whole_dollars():
    tuned = {"model": "llama-3.1-8b", "params": None, "method": "lora"}
    hints = []
    for asked in (tuned, tuned | {"tokens": "10M"}):
        with pytest.raises(NoPlanError) as caught:
            fewest(case_of(**asked), FREE, DRAWS, by(30 * 86400, budget_usd=0.01))
        least = parts(caught.value.message)["cheapest_usd"]
        hints.append(parts(caught.value.hint))
        assert hints[-1]["budget_usd"] == math.ceil(least * ROOM_RATIO)

    assert [hint["key"] for hint in hints] == ["hint.larger_budget_examples", "hint.larger_budget"]


def test_a_model_that_fits_nowhere_says_what_is_short():
    with pytest.raises(NoPlanError) as caught:
        fewest(small(memory_gib=1.0), FREE, DRAWS)

    short = parts(caught.value.message)
    assert short["key"] == "error.fits_nowhere"
    assert short["capacity_gib"] == pytest.approx(1.0 - 0.55)  # the driver keeps 0.55 GiB
    printed = float(f"{short['needed_gib']:.1f}") - float(f"{short['capacity_gib']:.1f}")
    assert f"{short['short_gib']:.1f}" == f"{printed:.1f}"  # what a reader subtracts
    assert parts(caught.value.hint) == {"key": "hint.try_ways", "ways": (MORE_MEMORY,)}


def test_a_model_that_fits_on_more_gpus_than_are_allowed_names_the_fewest_that_hold_it():
    case = case_of(params="70B", precision="fp8", tokens="1B")
    with pytest.raises(NoPlanError) as caught:
        fewest(case, FREE, DRAWS, by(most_gpus=8))

    short, hint = parts(caught.value.message), parts(caught.value.hint)
    assert (short["key"], short["most"]) == ("error.fits_not_within", 8)
    assert (hint["key"], hint["gpus"]) == ("hint.fits_above", 32)
    assert fewest(case, FREE, DRAWS, by(most_gpus=32)).safe
    assert not best_on(case, FREE, 24).safe


def test_a_hint_that_leads_to_a_plan_at_a_risk_names_it():
    case = case_of(params="7B", gpu="l4", tokens="1B")  # 8 of them hold it with a probability of running out of 17%
    with pytest.raises(NoPlanError) as caught:
        fewest(case, FREE, DRAWS, by(2 * 86400, most_gpus=8))
    with pytest.raises(NoPlanError) as safe:
        fewest(case, FREE, DRAWS, by(3600, most_gpus=64))

    hint = parts(caught.value.hint)
    assert (hint["key"], parts(hint["hint"])["key"]) == ("hint.at_risk", "hint.later_deadline_or_gpus")
    assert hint["risk"] > case.memory_risk == hint["allowed"]
    assert safe.value.hint.key == "hint.later_deadline_or_gpus"


def test_a_batch_that_divides_into_no_layout_is_said_so():
    with pytest.raises(NoPlanError) as caught:
        fewest(small(layers=1, batch=1), FixedLayout(tp=1, pp=1, cp=1), DRAWS)

    assert parts(caught.value.message) == {"key": "error.no_even_split", "global_batch": 1}


def flags(case: Case, fixed: FixedLayout) -> list[Message]:
    return [way.flag for way in leaner(case, fixed)]


def test_only_ways_that_are_not_taken_yet_are_offered():
    case = small()
    assert RECOMPUTE not in flags(case, FREE)
    assert RECOMPUTE in flags(case, FixedLayout(act_ckpt="none"))
    assert Message.of("hint.without", input="tp", value=2) in flags(case, FixedLayout(tp=2))
    assert OFFLOAD not in flags(replace(case, recipe=replace(case.recipe, offload="optimizer")), FREE)


def test_the_cheapest_that_is_named_is_the_cheapest_at_the_confidence_and_a_budget_that_is_met():
    case, counts = case_of(params="70B", precision="fp8"), (64, 96, 128, 144, 160, 256)
    with pytest.raises(NoPlanError) as caught:
        soonest(case, FREE, DRAWS, by(budget_usd=1e6, most_gpus=512))

    dear = parts(caught.value.message)
    planned = {gpus: case.evaluate(best_on(case, FREE, gpus).winner, DRAWS) for gpus in (*counts, dear["gpus"])}
    usd = {gpus: at_confidence(drawn.cost_usd, 0.8) for gpus, drawn in planned.items()}
    assert dear["cheapest_usd"] == pytest.approx(usd[dear["gpus"]])
    assert dear["cheapest_usd"] <= 1.005 * min(usd.values())  # the few that are the cheapest at mid are drawn
    at_mid = {gpus: best_on(case, FREE, gpus).scores.cost_usd.min() for gpus in counts}
    assert min(at_mid, key=lambda gpus: at_mid[gpus]) != dear["gpus"]  # at mid another one is the cheapest
    assert soonest(case, FREE, DRAWS, by(budget_usd=dear["cheapest_usd"], most_gpus=512)).best is not None


@pytest.mark.parametrize(("budget_usd", "holds_at"), [(0.97, 0.7), (0.3, None)])
def test_the_confidence_at_which_the_budget_holds_is_named_where_that_is_more_likely_than_not(budget_usd, holds_at):
    case = case_of(params="30B")
    with pytest.raises(NoPlanError) as first:
        soonest(case, FREE, DRAWS, by(budget_usd=1.0, most_gpus=512))
    budget = budget_usd * parts(first.value.message)["cheapest_usd"]
    with pytest.raises(NoPlanError) as caught:
        soonest(case, FREE, DRAWS, by(budget_usd=budget, most_gpus=512))

    hint = parts(caught.value.hint)
    assert (hint["key"] == "hint.or_confidence") == (holds_at is not None)
    if holds_at is not None:
        assert holds_at <= hint["confidence"] < 0.8
        less = Targets(budget_usd=budget, most_gpus=512, confidence_ratio=hint["confidence"])
        assert soonest(case, FREE, DRAWS, less).best is not None
        larger = parts(hint["hint"])["budget_usd"]
        assert larger % 1000 == 0
        assert soonest(case, FREE, DRAWS, by(budget_usd=larger, most_gpus=512)).best is not None


@pytest.mark.parametrize("deadline_days", [20, 40, 80])
def test_the_soonest_that_is_named_is_the_soonest_of_fewer_gpus_too(deadline_days):
    case = case_of(params="1T")
    with pytest.raises(NoPlanError) as caught:
        fewest(case, FREE, DRAWS, by(deadline_days * 86400))

    slow = parts(caught.value.message)
    assert slow["gpus"] < 100_000  # a batch of so many sequences feeds no more well
    chosen = fewest(case, FREE, DRAWS, by(slow["fastest_days"] * 86400))
    assert chosen.gpus <= slow["gpus"]


def test_the_cheapest_in_time_is_in_time_at_the_confidence():
    case, deadline_s = case_of(params="8B"), 5 * 86400.0
    with pytest.raises(NoPlanError) as caught:
        fewest(case, FREE, DRAWS, by(deadline_s, budget_usd=1000))

    dear = parts(caught.value.message)
    drawn = case.evaluate(best_on(case, FREE, dear["gpus"]).winner, DRAWS)
    assert at_confidence(drawn.wall_s, 0.8) <= deadline_s
    assert fewest(case, FREE, DRAWS, by(deadline_s, budget_usd=dear["cheapest_usd"])).best is not None


@pytest.mark.parametrize(
    ("asked", "confidence"),
    [({"params": "13B", "global_batch": "512"}, 0.95), ({"params": "8B", "precision": "fp8"}, 0.8)],
)
def test_a_deadline_that_the_soonest_meets_is_met(asked, confidence):
    case = case_of(**asked)
    with pytest.raises(NoPlanError) as caught:
        fewest(case, FREE, DRAWS, by(600, confidence=confidence))

    for room in (1.0, 1.01, 1.05):  # what one layout's ratio to mid says of another's may mislead a search
        targets = by(room * parts(caught.value.message)["fastest_days"] * 86400, confidence=confidence)
        assert targets.met_by(case.evaluate(fewest(case, FREE, DRAWS, targets).winner, DRAWS))

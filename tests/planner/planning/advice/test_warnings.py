"""Better plans close by: on somewhat fewer GPUs than were given, and at a higher risk than is allowed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.errors import Message
from planner.models.linear_attention import LinearAttention
from planner.parallelism.search import FixedLayout
from planner.planning.advice.warnings import (
    RISKY_AT_MOST,
    RISKY_ON_AVERAGE,
    RISKY_SOONER,
    _pays,
    faster_at_a_risk,
    on_whole_nodes,
    rounder_below,
    uneven_sequence,
    warnings_of,
)
from planner.planning.choice import best_given, best_on
from planner.planning.ranges import ranged_plan
from planner.planning.risk import risk_of
from planner.planning.targets import NO_TARGETS, digits_apart
from planner.rates.terms import Draws
from reports.text.messages import word
from tests.planner.build import case_of, make_question, price

DRAWS = Draws(count=101, seed=0)


MAMBA_2 = LinearAttention(layers=4, key_heads=1, key_dim=64, value_heads=16, value_dim=64)


@pytest.mark.parametrize(
    ("linear", "key"),
    [
        (None, None),
        (MAMBA_2, None),  # of which there are published runs
        (replace(MAMBA_2, value_heads=1024, value_dim=1, head_inputs=0, step_rank=32), "warning.assumed_mamba_1"),
        (replace(MAMBA_2, key_heads=16, gates=0, gate_rank=64), "warning.assumed_kda"),
        (replace(MAMBA_2, key_dim=0, head_inputs=0, gates=2), "warning.assumed_convolutions"),
    ],
)
def test_layers_of_a_speed_that_no_run_shows_are_told(linear, key):
    question = make_question(model="llama-3.2-1b", gpus="8")
    question = replace(question, model=replace(question.model, linear=linear))

    prices = {cluster.gpu.id: price(cluster.gpu.id) for cluster in question.clusters}
    keys = {warning.key for warning in warnings_of(question, prices, [], [], [])}

    assert {each for each in keys if each.startswith("warning.assumed")} == ({key} if key else set())


@pytest.mark.parametrize(
    ("asked", "warned"),
    [
        ({"examples": "50k"}, True),
        ({"examples": "50k", "lengths": "700"}, False),
        ({"tokens": "20M"}, False),
    ],
)
def test_an_unknown_length_of_the_examples_is_told_with_what_the_ranges_allow_for(asked, warned):
    question = make_question(model="llama-3.2-1b", method="lora", gpus="1", **asked)

    prices = {cluster.gpu.id: price(cluster.gpu.id) for cluster in question.clusters}
    warnings = warnings_of(question, prices, [], [], [])

    told = [warning for warning in warnings if warning.key == "warning.assumed_lengths"]
    assert [dict(warning.values) for warning in told] == ([{"low": 0.3, "high": 3.0}] if warned else [])


@pytest.mark.parametrize(("gpus", "expected"), [(752, [640, 704, 736]), (96, []), (8, []), (4, [])])
def test_rounder_numbers_of_nodes_below_the_one_given_are_looked_at(gpus, expected):
    case, fixed = case_of(params="8B", gpus=str(gpus)), FixedLayout()
    plan = ranged_plan(case, best_on(case, fixed, gpus), DRAWS).plan

    points = rounder_below(case, fixed, plan, NO_TARGETS, DRAWS)

    # 94 nodes: 92, 88 and 80, each with more factors of two; 12 nodes: 8 are too few
    assert [point.gpus for point in points] == expected


RISKY = (
    {"model": "bloom-176b", "gpus": "64", "tokens": "100B"},
    {"model": "llama-3.1-70b", "gpu": "l40s", "precision": "fp8", "gpus": "64", "tokens": "100B"},
    {"model": "llama-3.1-8b", "method": "lora", "gpu": "rtx-4090", "gpus": "8"},
)
"""Questions whose plans are slow for want of memory."""


@pytest.mark.parametrize("asked", RISKY)
def test_a_much_faster_layout_at_a_somewhat_higher_risk_is_named_with_the_flag_that_plans_it(asked):
    case, about = case_of(**asked), make_question(**asked)
    choice = best_given(case, about.fixed, about.gpus)
    warning = faster_at_a_risk(about, case, choice)
    assert warning is not None
    values = dict(warning.values)

    assert case.memory_risk < values["risk"] <= 0.15
    just_above = Message.of(warning.key, **(values | {"risk": 0.0504, "digits": digits_apart(0.0504, 0.05)}))
    assert "probability of 5.04%, above the 5.00% allowed" in word(just_above)
    assert values["digits"] == digits_apart(values["risk"], case.memory_risk)
    (flag,) = (dict(flag_message.values) for flag_message in values["flags"])
    allowed = make_question(**asked, **{flag["input"]: flag["value"]})
    bolder = best_given(replace(case, memory_risk=allowed.memory_risk), allowed.fixed, allowed.gpus)
    pace_s = [float(np.min(c.scores.wall_s[c.best])) for c in (choice, bolder)]
    assert pace_s[1] * RISKY_SOONER <= pace_s[0]
    assert pace_s[1] == pytest.approx(pace_s[0] * (1 - values["sooner"]))
    assert values["risk"] == risk_of(case, bolder.winner)


LIKELY = (
    {"model": "mixtral-8x7b", "method": "qlora", "gpu": "rtx-4090", "gpus": "2", "seq_len": "2048"},
    {"model": "llama-3.1-8b", "method": "sft", "gpu": "h100-sxm5-80gb", "gpus": "4", "seq_len": "8192"},
)
"""Questions with a much faster layout that is more likely to run than not, though far above the risk allowed."""


@pytest.mark.parametrize("asked", LIKELY)
def test_a_layout_far_above_the_risk_allowed_is_named_where_its_trial_pays_on_average(asked):
    case, about = case_of(**asked), make_question(**asked)
    choice = best_given(case, about.fixed, about.gpus)
    warning = faster_at_a_risk(about, case, choice)
    assert warning is not None
    values = dict(warning.values)

    assert RISKY_AT_MOST < values["risk"] <= 0.5
    average_ratio = values["risk"] + (1 - values["risk"]) * (1 - values["sooner"])
    assert average_ratio <= 1 / RISKY_ON_AVERAGE
    (flag,) = (dict(flag_message.values) for flag_message in values["flags"])
    allowed = make_question(**asked, **{flag["input"]: flag["value"]})
    bolder = best_given(replace(case, memory_risk=allowed.memory_risk), allowed.fixed, allowed.gpus)
    assert values["risk"] == risk_of(case, bolder.winner)
    wall_s = [float(np.min(c.scores.wall_s[c.best])) for c in (choice, bolder)]
    assert wall_s[1] == pytest.approx(wall_s[0] * (1 - values["sooner"]))


@pytest.mark.parametrize(("sooner_ratio", "risk", "pays"), [(1.3, 0.2, True), (1.3, 0.5, False), (1.6, 0.5, True)])
def test_a_trial_pays_if_the_run_ends_clearly_sooner_on_average_where_the_plan_follows_a_failure(
    sooner_ratio, risk, pays
):
    case, about = case_of(**LIKELY[0]), make_question(**LIKELY[0])
    choice = best_given(case, about.fixed, about.gpus)
    plan_s = float(choice.scores.wall_s[choice.best])

    assert choice.safe
    assert _pays(case, choice, plan_s / sooner_ratio, risk) is pays


def test_what_is_named_of_a_faster_layout_is_what_differs_from_the_plan():
    about = make_question(**RISKY[1])
    case = case_of(**RISKY[1])
    warning = faster_at_a_risk(about, case, best_given(case, about.fixed, about.gpus))

    assert warning is not None
    assert "TP2 instead of TP4 on the same hardware" in word(warning)
    assert word(warning).endswith("plan it with --memory-risk 15%")
    open_one = make_question(**{name: value for name, value in RISKY[1].items() if name != "gpus"})
    elsewhere = faster_at_a_risk(open_one, case, best_given(case, about.fixed, about.gpus))
    assert elsewhere is not None
    assert word(elsewhere).endswith("plan it with --gpus 64 --memory-risk 15%")


@pytest.mark.parametrize(("gpus", "is_named"), [("37", True), ("40", False), ("36", False)])
def test_all_gpus_of_the_nodes_are_named_where_they_end_sooner_and_cost_less(gpus, is_named):
    asked = {"params": "13B", "tokens": "300B", "gpus": gpus, "precision": "bf16"}
    about, case = make_question(**asked), case_of(**asked)
    plan = ranged_plan(case, best_given(case, about.fixed, about.gpus), DRAWS).plan

    messages = list(on_whole_nodes(case, about.fixed, plan, (), NO_TARGETS, DRAWS))

    assert len(messages) == is_named
    for text in map(word, messages):
        assert text.startswith(
            "40 × H100 SXM5 80\N{NO-BREAK SPACE}GB, the whole of 5 nodes instead of the 37 requested, "
        )
        assert "% sooner and cost " in text


@pytest.mark.parametrize(
    ("risk", "comparison"),
    [(0.12, "above 5%; for the planned one it is 12%"), (0.0546, "above 5.0%; for the planned one it is 5.5%")],
)
def test_a_risk_just_above_the_one_allowed_does_not_read_like_it(risk, comparison):
    asked, case = make_question(params="8B", gpus="8"), case_of(params="8B", gpus="8")
    plan = replace(ranged_plan(case, best_on(case, FixedLayout(), 8), DRAWS).plan, memory_risk=risk)

    texts = [word(row) for row in warnings_of(asked, {plan.gpu: price()}, (plan,), (), (case,))]

    assert [comparison in text for text in texts if "out of memory" in text] == [True]


def test_where_memory_is_no_limit_nothing_is_said_of_risk():
    case = case_of(params="1B", gpus="8")
    choice = best_on(case, FixedLayout(), 8)

    assert risk_of(case, choice.winner) <= case.memory_risk
    assert faster_at_a_risk(make_question(params="1B", gpus="8"), case, choice) is None


@pytest.mark.parametrize(("seq_len", "warns"), [("512", False), ("4096", True)])
def test_sequences_beyond_the_positions_that_a_model_learned_are_told(seq_len, warns):
    question = make_question(
        params=None, model="bert-base", gpu="a100-sxm4-80gb", gpus="8", seq_len=seq_len, tokens="1B"
    )
    keys = [
        message.key
        for message in warnings_of(question, {gpu.id: price(gpu.id) for gpu in [question.clusters[0].gpu]}, [], [], [])
    ]

    assert ("warning.positions" in keys) is warns


@pytest.mark.parametrize(
    ("seq_len", "split", "near"),
    [("131072", 1, None), ("131073", 1, 131072), ("131076", 4, 131072), ("131088", 16, None), ("8193", 1, None)],
)
def test_a_rounder_sequence_is_named_where_its_length_keeps_it_from_being_split(seq_len, split, near):
    case = case_of(model="llama-3.1-8b", gpus="64", seq_len=seq_len, tokens="1B")
    plan = ranged_plan(case, best_given(case, FixedLayout(cp=split), 64), DRAWS).plan

    warning = uneven_sequence(case, plan)

    assert (warning and dict(warning.values)["near"]) == near


def test_a_gpu_that_cannot_have_the_power_limit_of_the_others_is_told():
    question = make_question(gpu="h100-sxm5-80gb,a100-sxm4-80gb", gpus="8", power_limit="500", tokens="1B")
    warnings = warnings_of(
        question, {cluster.gpu.id: price(cluster.gpu.id) for cluster in question.clusters}, [], [], []
    )

    limits = [dict(message.values) for message in warnings if message.key == "warning.limit_as_sold"]
    assert limits == [{"gpu": "a100-sxm4-80gb", "sold_w": 400.0, "asked_w": 500.0}]

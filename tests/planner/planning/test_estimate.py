"""The main job end to end, without the rooms: a question in, an answer out."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import permutations

import numpy as np
import pytest

from planner.answer.document import to_document
from planner.answer.plan import LOWER_IS_BETTER, Answer, Plan
from planner.errors import MpplanError, NoPlanError, UsageError
from planner.evidence import EvidenceKind
from planner.planning.estimate import estimate
from planner.rates.ladder import resolve_rates
from planner.training.policies import find_policy
from planner.training.recipe import Recipe
from reports.text.messages import word
from tests.planner.build import cluster, make_question, parts, rates_and_prices, recipe

ALL = ("fp32", "tf32", "fp16", "bf16", "fp8")


def answer_of(*, detailed: bool = True, **asked: str) -> Answer:
    question = make_question(**asked)
    return estimate(question, rates_and_prices(question), created_at="2026-11-20T00:00:00+00:00", detailed=detailed)


def briefly(**asked: str) -> Answer:
    """Without the view by one deadline."""
    return answer_of(detailed=False, **asked)


def by_precision(plans: tuple[Plan, ...], gpu: str = "h100-sxm5-80gb") -> dict[str, Plan]:
    return {plan.precision: plan for plan in plans if plan.gpu == gpu}


def mid_days(plan: Plan) -> float:
    assert plan.duration_days is not None
    return plan.duration_days.mid


@cache
def main_job() -> Answer:
    return answer_of(params="70B", precision="fp8")


def test_a_budget_that_takes_as_many_gpus_as_a_default_allows_says_so():
    def names_most_gpus(**asked: str) -> bool:
        question = make_question(params="7B", **asked)
        warnings = estimate(question, rates_and_prices(question), detailed=False).warnings
        return "warning.most_gpus" in {warning.key for warning in warnings}

    assert names_most_gpus(budget="100k")
    assert not names_most_gpus(budget="100k", max_gpus="512")
    assert not names_most_gpus(budget="20k")


def test_the_main_job_compares_five_precisions_on_the_same_gpus_and_for_the_same_deadline():
    assert tuple(plan.precision for plan in main_job().plans) == ALL
    assert tuple(plan.precision for plan in main_job().same_deadline) == ALL
    assert len({plan.gpus for plan in main_job().plans}) == 1
    assert all(plan.fits for plan in main_job().plans)
    assert main_job().deadline_days == 30  # none of --gpus, --deadline, --budget: 30 days


def test_the_asked_precision_decides_how_many_gpus_and_meets_the_deadline_at_its_mid():
    fp8 = by_precision(main_job().plans)["fp8"]

    assert mid_days(fp8) <= 30
    assert fp8.gpus % 8 == 0
    assert fp8 == by_precision(main_job().same_deadline)["fp8"]
    assert all(mid_days(plan) <= 30 * (1 + 1e-9) for plan in main_job().same_deadline if plan.fits)


def test_strict_fp32_takes_longest_and_fp8_least_on_the_same_gpus_with_more_gpus_for_the_same_deadline():
    days = [mid_days(plan) for plan in main_job().plans if plan.precision != "fp16"]
    counts = [plan.gpus for plan in main_job().same_deadline if plan.fits and plan.precision != "fp16"]

    assert days == sorted(days, reverse=True)
    assert counts == sorted(counts, reverse=True)


def test_savings_are_computed_draw_by_draw():
    savings = {(s.view, s.from_, s.to, s.metric): s for s in main_job().savings}

    assert {s.metric for s in main_job().savings} == set(LOWER_IS_BETTER)
    assert all(s.from_ != s.to for s in main_job().savings)
    saving = savings["same_gpus", "bf16", "fp8", "cost_usd"]
    plans = by_precision(main_job().plans)
    bf16, fp8 = plans["bf16"].cost_usd, plans["fp8"].cost_usd
    assert bf16 is not None
    assert fp8 is not None
    assert saving.mid == pytest.approx(1 - fp8.mid / bf16.mid, abs=0.02)
    # from two ranges the saving would lie anywhere between these; with common draws it is known far better
    assert saving.high - saving.low < 0.5 * ((1 - fp8.low / bf16.high) - (1 - fp8.high / bf16.low))
    assert saving.low <= saving.mid <= saving.high < 1


def test_a_precision_saves_nothing_against_itself():
    twin = make_question(params="8B", gpus="64")
    policy = replace(find_policy("bf16"), precision="twin", id="twin")
    twin = replace(twin, policies=(*twin.policies, policy))
    # what the equations leave out of a precision is drawn apart for each: the twin shares its brother's
    shared = resolve_rates(twin.clusters[0], twin.recipe(twin.policy, twin.clusters[0])).terms["precision_error_ratio"]
    estimated = estimate(
        twin, rates_and_prices(twin, measured={"h100-sxm5-80gb": {"twin": {"precision_error_ratio": shared}}})
    )

    ours = [s for s in estimated.savings if s.from_ == "bf16" and s.to == "twin"]
    assert len(ours) == 2 * len(LOWER_IS_BETTER)
    assert all(s.low == s.mid == s.high == 0 for s in ours if s.view == "same_gpus")


def test_the_same_question_with_the_same_seed_gives_the_same_document():
    first, second = (to_document(answer_of(params="8B", seed="3")) for _ in range(2))
    other = to_document(answer_of(params="8B", seed="4"))

    assert first == second
    assert first["plans"][3]["cost_usd"] != other["plans"][3]["cost_usd"]
    # the choice rests on mids of draws: another seed may move a mid by a little, not the layout
    assert first["plans"][3]["layout"] == other["plans"][3]["layout"]


@pytest.mark.parametrize(
    ("gpu", "lacking"),
    [("v100-sxm2-32gb", {"tf32", "bf16", "fp8"}), ("a100-sxm4-80gb", {"fp8"}), ("h100-sxm5-80gb", set())],
)
def test_a_precision_that_the_gpu_lacks_is_named_and_left_out(gpu, lacking):
    estimated = briefly(params="1B", gpu=gpu, gpus="8", precision="fp16")

    assert {row.precision for row in estimated.unsupported} == lacking
    assert {plan.precision for plan in estimated.plans} == set(ALL) - lacking
    assert all(row.gpu == gpu and row.reason.key == "why.no_matrix_path" for row in estimated.unsupported)


def test_asking_for_a_precision_that_the_gpu_lacks_is_a_mistake_of_the_user():
    with pytest.raises(UsageError) as caught:
        briefly(params="8B", gpu="a100-sxm4-80gb", precision="fp8")

    lacking = parts(caught.value.message)
    assert (lacking["key"], lacking["gpu"], lacking["precision"]) == ("error.unsupported", "a100-sxm4-80gb", "fp8")
    assert caught.value.exit_code == 2
    assert (parts(caught.value.hint)["key"], parts(caught.value.hint)["precision"]) == ("hint.best_precision", "bf16")


@pytest.mark.parametrize("gpu", ["h100-sxm5-80gb", "a100-sxm4-80gb"])
def test_no_other_gpu_is_proposed_where_the_model_is_what_lacks_a_precision(gpu):
    with pytest.raises(UsageError) as caught:
        briefly(model="resnet-50", gpu=gpu, precision="fp8")

    assert (parts(caught.value.hint)["key"], parts(caught.value.hint)["precision"]) == ("hint.best_for_model", "bf16")


def test_several_gpus_give_one_comparison():
    names = ("h100-sxm5-80gb", "h200-sxm-141gb", "b200-sxm-180gb")
    estimated = answer_of(params="70B", gpu=",".join(names))

    assert {plan.gpu for plan in estimated.plans} == set(names)
    bf16 = {plan.gpu: plan for plan in estimated.plans if plan.precision == "bf16"}
    assert bf16["b200-sxm-180gb"].gpus < bf16["h100-sxm5-80gb"].gpus
    assert {s.gpu for s in estimated.savings} == set(names)


def test_one_of_several_gpus_without_a_plan_does_not_end_the_comparison():
    estimated = briefly(params="70B", gpu="h100-sxm5-80gb,v100-sxm2-16gb", precision="fp16", gpus="64")
    v100 = by_precision(estimated.plans, "v100-sxm2-16gb")

    assert by_precision(estimated.plans)["fp16"].fits
    assert not v100["fp16"].fits
    why = parts(parts(v100["fp16"].why_not)["why"])
    assert (why["key"], why["gpu"]) == ("why.does_not_fit", "v100-sxm2-16gb")
    assert why["capacity_gib"] == pytest.approx(16.0 - 0.55, abs=0.05)


def test_a_gpu_without_a_plan_has_the_same_rows_wherever_it_stands():
    orders = [
        answer_of(params="8B", gpu=f"{a},{b}", precision="fp16", gpus="8") for a, b in permutations(("h100", "t4"))
    ]
    rows = [[by_precision(plans, "t4") for plans in (order.plans, order.same_deadline)] for order in orders]

    assert not rows[0][0]["fp16"].fits
    assert rows[0][1]["fp16"].fits  # on more of them
    assert rows[0] == rows[1]


def test_if_no_gpu_has_a_plan_the_first_reason_is_the_error():
    with pytest.raises(NoPlanError) as caught:
        briefly(params="70B", gpu="v100-sxm2-16gb,t4", precision="fp16", gpus="8")

    failed = parts(caught.value.message)
    assert (failed["gpu"], parts(failed["why"])["key"]) == ("v100-sxm2-16gb", "why.does_not_fit")


def test_a_gpu_that_lacks_the_asked_precision_keeps_its_row_in_its_best_one():
    estimated = briefly(params="8B", gpu="a100-sxm4-80gb,h100-sxm5-80gb", precision="fp8", gpus="64")
    (lacking,) = estimated.unsupported
    (gap,) = estimated.gaps

    assert tuple(dict.fromkeys(plan.gpu for plan in estimated.plans)) == ("a100-sxm4-80gb", "h100-sxm5-80gb")
    assert (lacking.precision, lacking.gpu, lacking.instead) == ("fp8", "a100-sxm4-80gb", "bf16")
    assert by_precision(estimated.plans, "a100-sxm4-80gb")["bf16"].fits
    assert "fp8" not in by_precision(estimated.plans, "a100-sxm4-80gb")
    assert (gap.key, parts(gap.effect)["instead"]) == ("precision", "BF16")


def test_the_deadline_is_set_by_a_gpu_that_has_the_asked_precision_wherever_it_stands():
    orders = [f"{first},{second}" for first, second in permutations(("a100-sxm4-80gb", "h100-sxm5-80gb"))]
    days = [briefly(params="8B", gpu=gpu, precision="fp8", gpus="64").deadline_days for gpu in orders]

    assert days[0] == days[1]


def test_a_gpu_that_lacks_the_asked_precision_does_not_rescue_an_answer_without_any_plan():
    with pytest.raises(NoPlanError) as caught:
        briefly(params="70B", gpu="l4,a100-sxm4-80gb", precision="fp8", gpus="8", tokens="1B")

    assert parts(caught.value.message)["gpu"] == "l4"


def test_a_question_about_one_gpu_gets_the_same_deadline_on_as_few_and_not_on_a_whole_node():
    estimated = answer_of(params="1B", gpus="1", precision="bf16")
    counts = {plan.precision: plan.gpus for plan in estimated.same_deadline if plan.fits}

    assert counts["bf16"] == counts["fp8"] == 1
    assert 1 < counts["tf32"] < 8
    assert all(mid_days(plan) <= estimated.deadline_days * (1 + 1e-9) for plan in estimated.same_deadline if plan.fits)


def test_gpus_with_a_deadline_is_a_check():
    ok = answer_of(params="8B", gpus="64", deadline="30d")
    with pytest.raises(NoPlanError) as caught:
        answer_of(params="8B", gpus="64", deadline="1d")

    assert ok.deadline_days == 30
    assert by_precision(ok.plans)["bf16"].gpus == 64
    assert caught.value.exit_code == 8
    late = parts(caught.value.message)
    assert (late["key"], late["gpus"], late["precision"]) == ("error.over_deadline", 64, "bf16")
    assert late["over_days"] == pytest.approx(late["days"] - 1)
    assert late["digits"] == 0
    assert caught.value.hint.key == "hint.more_gpus"


def test_gpus_with_a_budget_is_a_check():
    with pytest.raises(NoPlanError) as caught:
        briefly(params="8B", gpus="64", budget="100")

    assert caught.value.exit_code == 8
    dear = parts(caught.value.message)
    assert (dear["key"], dear["over_usd"]) == ("error.over_budget", pytest.approx(dear["usd"] - 100))
    assert dear["digits"] == 0
    assert caught.value.hint.key == "hint.larger_budget"


def test_a_budget_alone_is_spent_on_the_soonest_end_up_to_the_most_gpus_and_is_kept():
    estimated, fewer = (
        briefly(params="8B", budget="1M"),
        briefly(params="8B", budget="1M", max_gpus="128"),
    )
    bf16, on_fewer = (by_precision(answer.plans)["bf16"] for answer in (estimated, fewer))

    assert bf16.probability.budget >= 0.8
    assert bf16.cost_usd.mid <= 1e6
    assert 128 < bf16.gpus <= 1024
    assert on_fewer.gpus <= 128
    assert mid_days(bf16) < mid_days(on_fewer)
    assert estimated.question["max_gpus"].source == "default"


def test_without_a_deadline_the_asked_precision_s_own_duration_at_the_confidence_is_the_deadline():
    estimated = answer_of(params="8B", gpus="64")
    asked = by_precision(estimated.plans)["bf16"]

    assert mid_days(asked) < estimated.deadline_days < asked.duration_days.high
    assert asked.probability.deadline is None  # nobody asked for it
    assert by_precision(estimated.same_deadline)["bf16"].gpus <= 64
    assert by_precision(estimated.same_deadline)["fp32"].gpus > 64


@pytest.mark.parametrize("confidence", ["50%", "0.8", "95%"])
def test_deadline_and_budget_are_met_at_the_confidence_and_every_plan_says_how_likely(confidence):
    estimated = briefly(params="8B", deadline="10d", budget="100k", confidence=confidence)
    asked = by_precision(estimated.plans)["bf16"]

    assert estimated.confidence == {"50%": 0.5, "0.8": 0.8, "95%": 0.95}[confidence]
    assert asked.probability.deadline >= estimated.confidence
    assert asked.probability.budget >= estimated.confidence
    assert all(0 <= plan.probability.deadline <= 1 for plan in estimated.plans if plan.fits)


def test_where_a_deadline_and_a_budget_cannot_both_be_met_the_deadline_that_the_budget_allows_is_named():
    with pytest.raises(NoPlanError) as caught:
        answer_of(params="8B", deadline="1d", budget="26k")
    days = parts(caught.value.hint)["deadline_days"]

    assert caught.value.message.key == "error.too_dear"
    assert days > 1
    assert by_precision(answer_of(params="8B", deadline=f"{days:.3f}d", budget="26k").plans)["bf16"].fits


def test_all_precisions_are_compared_with_one_batch_near_the_default():
    estimated = briefly(params="8B", gpus="96")
    batches = {plan.layout.global_batch for plan in estimated.plans if plan.layout}

    assert len(batches) == 1
    assert estimated.question["global_batch"].value in batches
    assert 205 <= estimated.question["global_batch"].value <= 320  # four fifths and five quarters of 256
    (given,) = {plan.layout.global_batch for plan in briefly(params="8B", gpus="96", global_batch="192").plans}
    assert given == 192


def test_a_catalogue_model_keeps_its_published_batch_unless_that_leaves_the_count_undivided():
    published, adjusted = (briefly(model="opt-175b", gpu="a100-sxm4-80gb", gpus=gpus) for gpus in ("1024", "992"))

    assert published.question["global_batch"].value == 1024  # 2M tokens in sequences of 2,048 (arXiv 2205.01068)
    assert published.question["global_batch"].source == "catalogue"
    assert adjusted.question["global_batch"].value == 992
    assert adjusted.question["global_batch"].source == "derived"
    notes = [word(estimated.question["global_batch"].note) for estimated in (published, adjusted)]
    assert "the model's published batch, kept unless it does not divide evenly over the GPUs or a batch of" in notes[0]
    assert "on 992 GPUs the model's published batch of 1,024 does not divide evenly, fits less safely" in notes[1]


def test_a_precision_that_does_not_fit_is_shown_without_figures_beside_those_that_do():
    plans = by_precision(briefly(params="8B", gpus="1", optimizer="adamw-8bit", policy="bf16-pure").plans)

    assert plans["bf16"].fits
    assert not plans["fp32"].fits
    assert plans["fp32"].cost_usd is None
    assert parts(plans["fp32"].why_not)["key"] == "why.does_not_fit"


def test_the_fixed_layout_holds_for_every_precision():
    estimated = briefly(params="8B", gpus="64", tp="4", micro_batch="1", act_ckpt="full")

    for plan in estimated.plans:
        assert plan.layout is not None
        assert (plan.layout.tp, plan.layout.micro_batch, plan.layout.act_ckpt) == (4, 1, "full")


def test_a_fixed_layout_is_never_faster_than_the_planner_s_own():
    free = by_precision(briefly(params="70B", gpus="256").plans)
    for tp in ("2", "8"):
        fixed = by_precision(briefly(params="70B", gpus="256", tp=tp).plans)
        assert all(mid_days(free[name]) <= mid_days(fixed[name]) * 1.02 for name in ALL if fixed[name].fits)


@pytest.mark.parametrize(("model", "gpus"), [("llama-3.1-8b", "64"), ("mixtral-8x7b", "256"), ("deepseek-v3", "2048")])
def test_more_tokens_are_never_cheaper(model, gpus):
    asked = {"model": model, "gpus": gpus}
    small, large = (by_precision(answer_of(**asked, tokens=t, detailed=False).plans) for t in ("1e11", "2e11"))

    for name in ALL:
        if small[name].fits:
            for metric in LOWER_IS_BETTER:
                assert getattr(small[name], metric).mid < getattr(large[name], metric).mid


def test_lora_takes_less_time_and_memory_than_full_fine_tuning():
    lora, full = (by_precision(briefly(params="8B", gpus="8", method=m).plans)["bf16"] for m in ("lora", "sft"))

    # about 4N of 6N; attention is as before, no gradient is reduced and no 8B parameters are updated
    assert 0.45 < mid_days(lora) / mid_days(full) < 0.70


def test_every_figure_says_what_it_rests_on():
    kinds = {source.kind for source in main_job().evidence}
    ids = [source.id for source in main_job().evidence]

    assert {EvidenceKind.PUBLISHED, EvidenceKind.DATASHEET, EvidenceKind.ASSUMED} <= kinds
    assert len(ids) == len(set(ids))
    assert all(source.used_in and source.source for source in main_job().evidence)
    for metric in ("step_s", "memory_gib", "cost_usd", "energy_mwh", "carbon_tco2e"):
        assert any(metric in source.used_in for source in main_job().evidence)


def test_a_measured_rate_takes_precedence_and_hardly_widens_a_range():
    asked = make_question(params="8B", gpus="64")
    term = resolve_rates(cluster(), recipe("llama-3.1-8b")).terms["linear_flop_per_s"]
    evidence = replace(term.evidence, id="measured:linear", kind=EvidenceKind.MEASURED)
    own = replace(term, value=term.value, own_sd=0.005, rests_on=(), evidence=evidence)
    model = resolve_rates(cluster(), recipe("llama-3.1-8b")).terms["model_error_ratio"]
    terms = {"linear_flop_per_s": own, "model_error_ratio": replace(model, own_sd=0.02, rests_on=())}
    measured = {"h100-sxm5-80gb": {"bf16": terms}}

    bare = estimate(asked, rates_and_prices(asked))
    better = estimate(asked, rates_and_prices(asked, measured=measured))
    before, after = (by_precision(estimated.plans)["bf16"].duration_days for estimated in (bare, better))
    assert before is not None
    assert after is not None
    # the fit ties a rate to what stands against it: one that is measured alone may leave a range a hair wider
    assert after.high / after.low < 1.02 * before.high / before.low
    assert any(source.id == "measured:linear" for source in better.evidence)


@pytest.mark.parametrize("seed", ["0", "1"])
def test_a_median_is_a_draw_so_that_its_items_sum(seed):
    for plan in briefly(params="8B", gpus="64", seed=seed).plans:
        assert plan.step_s is not None
        assert plan.step_range_s is not None
        assert plan.step_s["total"] == pytest.approx(plan.step_range_s.mid)
        assert np.isfinite(plan.step_s["total"])


def test_a_run_of_years_is_warned_of():
    estimated = briefly(params="70B", gpus="24")

    years = [parts(row)["years"] for row in estimated.warnings if row.key == "warning.years"]
    assert years
    assert min(years) > 1


@pytest.mark.parametrize(
    ("asked", "key"),
    [({"budget": "100M", "max_gpus": "24"}, "warning.years_capped"), ({"deadline": "1200d"}, "warning.years_asked")],
)
def test_a_run_of_years_on_gpus_that_nobody_gave_is_not_told_to_leave_them_out(asked, key):
    keys = {row.key for row in briefly(params="70B", **asked).warnings if row.key.startswith("warning.years")}

    assert keys == {key}


def test_a_model_that_fits_nowhere_says_what_is_short():
    with pytest.raises(MpplanError) as caught:
        briefly(params="10T", gpu="t4", precision="fp16", global_batch="64")

    assert caught.value.exit_code == 8
    assert caught.value.hint


def test_the_recipe_of_every_precision_trains_the_same_tokens_and_batch():
    asked = make_question(params="8B")
    recipes: list[Recipe] = [asked.recipe(policy, asked.clusters[0]) for policy in asked.policies]

    assert len({(recipe.seq_len, recipe.global_batch, recipe.method, recipe.optimizer.id) for recipe in recipes}) == 1


def test_a_brief_answer_has_the_gain_of_narrow_products_that_its_table_explains():
    whole, brief = (
        by_precision(answer_of(params="1B", tokens="1e9", gpus="8", precision="fp8", detailed=detailed).plans)
        for detailed in (True, False)
    )

    assert brief["fp8"].narrow_gain is not None
    assert brief["fp8"].narrow_gain == whole["fp8"].narrow_gain
    assert brief["fp8"].products == ()

# ruff: noqa: E501 - a script, a row or a sentence stays on one line
from __future__ import annotations

import pytest

from planner.errors import Message
from planner.question.asked import InputValue
from reports.page.build import build
from tests.reports import sample
from tests.reports.extras import EXTRAS


def said(spans) -> str:
    return "".join(span.text for span in spans)


def view_of(document, lang="en"):
    return build(document, lang=lang)


def test_the_headline_is_the_answer_with_its_range_and_what_it_saves():
    hero = view_of(sample.document()).hero

    assert said(hero.headline) == (
        "FP8 trains this 70B model on 1.4T tokens for about $0.86 million (0.65–1.12), "
        "31% less than BF16 (28–34) and 74% less than TF32 (71–77)."
    )
    assert [span.text for span in hero.headline if span.strong] == ["$0.86 million", "31%", "74%"]


def asked(precision, **changes):
    document = sample.document(**changes)
    document["question"]["precision"] = {"value": precision, "source": "flag"}
    return document


def test_with_bf16_asked_the_headline_says_what_fp8_would_save_in_money_and_percent():
    # BF16 costs 1 / 0.69 of FP8's $0.86 million: 31 % less is $388,000 less
    assert said(view_of(asked("bf16")).hero.headline) == (
        "BF16 trains this 70B model on 1.4T tokens for about $1.25 million (0.94–1.62), "
        "62% less than TF32 (59–65) and 4% less than FP16 (1–7). "
        "FP8 would save $0.388 million (0.349–0.426), or 31% (28–34)."
    )


def test_a_narrower_precision_that_may_cost_more_is_about_the_same():
    document = asked("bf16")
    for saving in document["savings"]:
        if (saving["from"], saving["to"]) == ("bf16", "fp8"):
            saving |= {"low": -0.02, "mid": 0.01, "high": 0.05}

    assert said(view_of(document).hero.headline).endswith("FP8 would cost about the same as BF16 (−2 to 5%).")


@pytest.mark.parametrize(
    ("ratios", "en", "zh"),
    [
        ((-0.004, 0.25, 0.45), "FP8 would cost about 25% less than BF16, though perhaps no less (0 to 45).", "改用 FP8，费用比 BF16 约省 25%，但也可能不省（0 至 45）。"),
        ((-0.30, -0.12, 0.02), "FP8 would cost about 12% more than BF16, though perhaps no more (−2 to 30).", "改用 FP8，费用比 BF16 约多 12%，但也可能不多（−2 至 30）。"),
        ((-0.183, 0.004, 0.231), "FP8 would cost about the same as BF16 (−18 to 23%).", "改用 FP8，费用与 BF16 大致相同（−18 至 23%）。"),
        ((0.0, 0.0, 0.366), "FP8 would cost as much as BF16 in the middle of the range, at most 37% less.", "改用 FP8，费用中间值与 BF16 相同，最多省 37%。"),
        ((-0.42, 0.0, 0.0), "FP8 would cost as much as BF16 in the middle of the range, at most 42% more.", "改用 FP8，费用中间值与 BF16 相同，最多多 42%。"),
    ],
)  # fmt: skip
def test_a_saving_that_may_be_none_keeps_its_middle_unless_that_is_small(ratios, en, zh):
    document = asked("bf16")
    for saving in document["savings"]:
        if (saving["from"], saving["to"]) == ("bf16", "fp8"):
            saving |= dict(zip(("low", "mid", "high"), ratios, strict=True))

    assert said(view_of(document).hero.headline).endswith(en)
    assert said(view_of(document, "zh").hero.headline).endswith(zh)


def test_a_saving_that_may_be_none_is_parted_by_a_comma_from_the_next():
    document = sample.document()
    for saving in document["savings"]:
        if (saving["from"], saving["to"]) == ("bf16", "fp8"):
            saving |= {"low": -0.02, "mid": 0.22, "high": 0.40}

    told = said(view_of(document).hero.headline)
    assert "about 22% less than BF16, though perhaps no less (−2 to 40), and 74% less than TF32" in told


def test_without_a_price_a_narrower_precision_is_compared_by_its_gpu_time_and_not_its_cost():
    document = asked("bf16")
    for plan in document["plans"] + document["same_deadline"]:
        plan |= {"cost_usd": None, "cost_lines": []}
    for saving in document["savings"]:
        if (saving["from"], saving["to"]) == ("bf16", "fp8"):
            saving |= {"low": -2.5, "mid": -2.4, "high": -2.3}

    assert said(view_of(document).hero.headline).endswith("In GPU time, FP8 would take 240% more than BF16 (230–250).")


def test_a_precision_that_takes_as_much_is_not_0_percent_less():
    document = sample.document()
    for saving in document["savings"]:
        if (saving["from"], saving["to"]) == ("bf16", "fp8"):
            saving |= {"low": 0.0, "mid": 0.0, "high": 0.0}

    assert "as much as BF16" in said(view_of(document).hero.headline)


def test_with_own_machines_the_answer_says_from_which_utilisation_on_owning_pays():
    money = {"prices": [], "owned": EXTRAS["money"]["owned"]}

    # $1.90 an own hour, $2.50 a rented one; 80 % planned, worth it from 60 %
    assert said(view_of(sample.document(money=money)).hero.setting).endswith(
        "An hour on your own GPU costs $1.90, a rented one $2.50: "
        "owning costs less above 60% utilisation, and 80% is planned."
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"break_even_low_ratio": 0.4, "break_even_high_ratio": 0.9},
         "less above 60% utilisation (between 40% and 90% over the ranges of both prices), and 80% is planned."),
        ({"break_even_low_ratio": 0.4, "break_even_high_ratio": None},
         "less above 60% utilisation (over the ranges of both prices, from 40% to none at all), and 80% is planned."),
        ({"break_even_low_ratio": 0.6, "break_even_high_ratio": 0.6}, "less above 60% utilisation, and 80% is planned."),
        ({"break_even_low_ratio": 0.4, "break_even_high_ratio": None, "break_even_utilisation_ratio": None},
         "more at any utilisation (at the most favourable ends of both ranges, less above 40%)."),
    ],
)  # fmt: skip
def test_where_owning_pays_has_a_range(changes, text):
    owned = EXTRAS["money"]["owned"][0] | changes

    assert said(view_of(sample.document(money={"prices": [], "owned": [owned]})).hero.setting).endswith(text)


def test_owning_that_never_pays_is_said():
    owned = EXTRAS["money"]["owned"][0] | {"break_even_utilisation_ratio": None}

    text = said(view_of(sample.document(money={"prices": [], "owned": [owned]})).hero.setting)
    assert text.endswith("owning costs more at any utilisation.")


def test_an_own_hour_without_its_electricity_is_a_lower_bound_and_so_is_where_owning_pays():
    owned = EXTRAS["money"]["owned"][0]
    lacking = owned | {"usd_per_gpu_h": owned["usd_per_gpu_h"] | {"at_least": True}}
    document = sample.document(money={"prices": [], "owned": [lacking]})
    never = sample.document(money={"prices": [], "owned": [lacking | {"break_even_utilisation_ratio": None}]})

    assert said(view_of(document).hero.setting).endswith(
        "An hour on your own GPU costs ≥ $1.90 without its electricity, a rented one $2.50: "
        "the break-even utilisation is at least 60%, and 80% is planned."
    )
    assert said(view_of(never).hero.setting).endswith(
        "costs ≥ $1.90 without its electricity, a rented one $2.50: owning costs more at any utilisation."
    )
    assert "每小时 ≥ 1.90 美元（不含电费），租用 2.50 美元：盈亏平衡的利用率至少为 60%" in said(
        view_of(document, "zh").hero.setting
    )


def test_the_headline_in_chinese():
    hero = view_of(sample.document(), "zh").hero

    assert said(hero.headline) == (
        "用 FP8 训练这个 70B 模型（1.4 万亿词元），约需 86 万美元（65–112），比 BF16 省 31%（28–34），比 TF32 省 74%（71–77）。"
    )


def test_the_headline_gives_the_probability_of_each_target():
    hero = view_of(sample.targets_document()).hero

    assert said(hero.headline).endswith(
        " It finishes within 30 days with 83% probability and costs no more than $1 million with more than 99% probability."
    )


def test_without_a_target_there_is_no_probability():
    assert "probability" not in said(view_of(sample.document()).hero.headline)


def test_a_target_of_its_own_is_said_alone_and_in_chinese():
    document = sample.targets_document()
    for plan in document["plans"]:
        plan["probability"] = {"deadline": 0.004, "budget": None}

    assert said(view_of(document).hero.headline).endswith(" It finishes within 30 days with less than 1% probability.")
    assert said(view_of(document, "zh").hero.headline).endswith("30 天内完成的概率为 1% 以下。")


def test_of_the_high_no_more_is_said_than_was_validated():
    checked = sample.targets_document()
    del checked["question"]["budget"]
    validated, silent = view_of(checked).hero, view_of(sample.document()).hero

    assert said(validated.budget) == (
        "The figure to budget with: $1.12 million. Checked on 39 well-known runs, given only model, GPUs and tokens: "
        "37 took no more GPU time than the high figure."
    )
    assert said(silent.budget) == "The figure to budget with: $1.12 million."


def over_budget(**chance):
    document = sample.targets_document()
    document["question"]["budget"] |= {"value": 1_000_000}
    for plan in document["plans"]:
        plan["probability"] = {"deadline": None, "budget": 0.86} | chance
    return document


def test_a_high_above_the_budget_is_not_called_the_figure_to_budget_with():
    hero, chinese = view_of(over_budget()).hero, view_of(over_budget(), "zh").hero

    assert said(hero.budget).startswith(
        "The high figure, $1.12 million, is above your budget of $1 million: "
        "14% of runs like this would overspend. Checked on"
    )
    assert hero.tiles[0].budget == "High figure, above your budget: $1.12 million"
    assert hero.tiles[1].budget.startswith("Figure to budget with")
    assert said(chinese.budget).startswith("上限 112 万美元超出预算 100 万美元：此类训练有 14% 会超支。")


def test_a_lower_bound_above_the_budget_says_that_more_would_overspend():
    document = over_budget()
    for plan in document["plans"]:
        plan["cost_usd"]["at_least"] = True

    assert said(view_of(document).hero.budget) == (
        "The high figure, ≥ $1.12 million, is above your budget of $1 million: "
        "at least 14% of runs like this would overspend, since something is missing from the cost."
    )


def test_a_budget_above_the_high_leaves_the_figure_to_budget_with():
    document = over_budget()
    document["question"]["budget"] |= {"value": 2_000_000}

    assert said(view_of(document).hero.budget).startswith("The figure to budget with: $1.12 million.")


def test_an_older_document_says_what_its_runs_are():
    document = sample.targets_document()
    for name in ("asked_runs", "asked_below_high"):
        del document["run_totals"][name]

    assert said(view_of(document).hero.budget).endswith(
        " Of 19 published training runs with a stated setup, each predicted without its own team's data, "
        "18 took no more GPU time than the high figure."
    )


def test_the_high_is_called_the_figure_to_budget_with():
    hero = view_of(sample.document()).hero

    assert said(hero.budget).startswith("The figure to budget with: $1.12 million.")
    assert hero.tiles[0].budget == "Figure to budget with: $1.12 million"


def test_three_tiles_compare_with_bf16_tf32_and_strict_fp32():
    tiles = view_of(sample.document()).hero.tiles

    assert [tile.label for tile in tiles] == ["Cost", "Time", "Energy"]
    assert [versus.label for versus in tiles[0].versus] == ["against BF16", "against TF32", "against FP32 (strict)"]
    assert [(versus.text, versus.span) for versus in tiles[0].versus] == [
        ("−31%", "28–34"),
        ("−74%", "71–77"),
        ("−96%", "93–99"),
    ]


def test_a_tile_shows_a_change_and_its_range_with_the_same_signs():
    document = asked("bf16")
    for saving in document["savings"]:
        if (saving["from"], saving["to"]) == ("fp8", "bf16"):
            saving |= {"low": -0.17, "mid": -0.07, "high": 0.01}

    versus = next(v for v in view_of(document).hero.tiles[0].versus if v.label == "against FP8")

    assert (versus.text, versus.span) == ("+7%", "−1 to 17")


@pytest.mark.parametrize(
    ("ends", "text", "span"),
    [
        ((-0.006, -0.003, -0.002), "+0.3%", "0.2–0.6"),
        ((-0.0028, 0.0031, 0.0049), "0%", ""),
        ((-0.131, -0.001, 0.124), "0%", "−12 to 13"),
        ((0.0, 0.0, 0.366), "0%", "−37 to 0"),
        ((-0.42, 0.0, 0.0), "0%", "0–42"),
    ],
    ids=["a small increase", "nothing", "nothing within a range", "at most a decrease", "at most an increase"],
)
def test_a_small_change_in_a_tile_has_the_decimals_of_its_range_and_no_sign_where_it_rounds_to_zero(ends, text, span):
    document = asked("bf16")
    for saving in document["savings"]:
        if (saving["from"], saving["to"]) == ("fp8", "bf16"):
            saving |= dict(zip(("low", "mid", "high"), ends, strict=True))

    versus = next(v for v in view_of(document).hero.tiles[0].versus if v.label == "against FP8")

    assert (versus.text, versus.span) == (text, span)


def test_the_trust_line_says_what_was_measured_how_old_prices_are_and_what_is_assumed():
    parts = [part.text for part in view_of(sample.document()).hero.trust]

    assert parts == [
        "Speeds from published measurements (2025), none made by mpplan",
        "prices dated 2026",
        "2 assumptions",
        "no gaps",
    ]


@pytest.mark.parametrize(
    ("lang", "expected"),
    [
        ("en", "price as given: 2.00 EUR at 1.10 USD (2026-11-01)"),
        ("zh", "价格由用户给出：2.00 EUR，按 2026-11-01 汇率 1.10 美元折算"),
    ],
)
def test_the_trust_line_says_that_a_price_was_converted_and_at_what_rate(lang, expected):
    rate = Message.of("price.converted", amount="2.00", currency="EUR", rate="1.10", date="2026-11-01")
    offer = Message.of("quote.basis", vendor="Acme", commitment="on-demand")
    note = Message.of("note.price", basis=Message.of("price.basis.converted", basis=offer, rows=(rate,)))
    question = sample.answer().question | {"price": InputValue(value=2.2, source="file", note=note)}

    assert expected in [part.text for part in view_of(sample.document(question=question), lang=lang).hero.trust]


@pytest.mark.parametrize("source", ["flag", "environment", "file"])
def test_the_trust_line_says_that_a_price_is_the_user_s_wherever_they_gave_it(source):
    document = sample.document()
    document["question"]["price"] = {"value": 2.1, "source": source, "note": None}

    assert "price as given" in [part.text for part in view_of(document).hero.trust]


@pytest.mark.parametrize(("of_the_answer", "expected"), [("file", True), ("default", False)])
def test_the_trust_line_speaks_of_the_price_of_the_answer_s_gpu_where_several_are_compared(of_the_answer, expected):
    document = sample.document()
    gpu = document["plans"][0]["gpu"]
    document["question"][f"price {gpu}"] = {"value": 2.1, "source": of_the_answer, "note": None}
    document["question"]["price mi300x-192gb"] = {"value": 3.0, "source": "default", "note": None}

    assert ("price as given" in [part.text for part in view_of(document).hero.trust]) is expected


def with_stand_in(gpu):
    values = {"gpu": gpu, "like": "h800-sxm5-80gb", "hour": "$2.50"}
    document = sample.document()
    document["assumptions"] += [{"id": "price_like", "text": "", "change_with": "--price-like",
                                 "text_message": {"key": "assumption.price_like", "values": values}}]  # fmt: skip
    return document


def test_a_stand_in_for_a_price_is_said_beside_the_money_and_is_not_without_gaps():
    document = with_stand_in(sample.document()["plans"][0]["gpu"])
    hero = view_of(document).hero

    assert said(hero.budget) == (
        "The figure to budget with: $1.12 million. "
        "The H100 SXM5 80\u00a0GB has no price of its own and is priced like the H800 SXM5 80\u00a0GB."
    )
    assert "no gaps" not in [part.text for part in hero.trust]
    assert said(view_of(document, "zh").hero.budget).endswith(
        "H100 SXM5 80\u00a0GB 没有自己的价格，按 H800 SXM5 80\u00a0GB 的价格计算。"
    )


def test_a_stand_in_of_another_gpu_is_not_taken_for_the_price_of_the_answer():
    assert said(view_of(with_stand_in("mi300x-192gb")).hero.budget).endswith(
        "In the comparison, the MI300X 192\u00a0GB has no price of its own and is priced like the H800 SXM5 80\u00a0GB."
    )


def test_a_price_that_was_given_is_said_to_be_given():
    question = sample.answer().question | {"price": InputValue(value=2.5, source="flag")}

    assert "price as given" in [part.text for part in view_of(sample.document(question=question)).hero.trust]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("measured", "Speeds measured on this H100 SXM5 80\u00a0GB (2025-03-01)"),
        ("shipped", "Speeds from shipped measurements of the H100 SXM5 80\u00a0GB (2025-03-01)"),
        ("transferred", "Speeds transferred from a measured GPU (2025)"),
        ("assumed", "Speeds assumed, nothing measured"),
    ],
)
def test_the_trust_line_names_the_kind_of_evidence(kind, expected):
    document = sample.document()
    for row in document["evidence"]:
        if row["id"] == "rate:h100":
            row["kind"] = kind

    assert view_of(document).hero.trust[0].text == expected


@pytest.mark.parametrize(
    ("lang", "expected"), [("en", "Speeds adjusted to 3 of your own runs"), ("zh", "速度已按 3 次自己的训练调整")]
)
def test_the_trust_line_names_own_runs_that_taught_speeds_and_leads_to_what_they_taught(lang, expected):
    calibration = {"name": "x.json", "source": "x.csv", "runs": 3, "gpus": [], "learned": []}
    speeds = sample.document() | {"calibration": calibration | {"width_ratio": {"time": 0.6}}}
    memory = sample.document() | {"calibration": calibration | {"width_ratio": {"memory": 0.6}}}

    trust = view_of(speeds, lang=lang).hero.trust[0]
    assert (trust.text, trust.href) == (expected, "#calibration")
    assert view_of(memory, lang=lang).hero.trust[0] == view_of(sample.document(), lang=lang).hero.trust[0]


def test_a_lower_bound_is_a_lower_bound_in_the_headline_the_tile_and_the_chart():
    document = sample.document(gaps=(sample.GAP,))
    for plan in document["plans"]:
        plan["cost_usd"]["at_least"] = True
    hero = view_of(document).hero

    assert "for ≥ $0.86 million" in said(hero.headline)
    assert "a lower bound" in said(hero.headline)
    assert hero.tiles[0].text == "≥ $0.86 million"
    assert hero.chart is not None
    assert all(row.at_least for row in hero.chart.drawing.rows)
    assert any("lower bounds" in alert for alert in hero.alerts)


def test_without_a_price_the_answer_is_told_in_time():
    document = sample.document()
    for plan in document["plans"] + document["same_deadline"]:
        plan |= {"cost_usd": None, "cost_lines": []}
    hero = view_of(document).hero

    assert said(hero.headline).startswith("FP8 trains this 70B model on 1.4T tokens in about 28.0 days")
    assert said(hero.headline).endswith("no price was found, so no cost is given (--price or --price-like gives one).")
    assert [tile.label for tile in hero.tiles] == ["Time", "Energy"]


def test_without_a_price_no_tile_speaks_of_a_budget():
    document = sample.document()
    for plan in document["plans"]:
        plan |= {"cost_usd": None, "cost_lines": []}
    labels = {tile.budget.split(":")[0] for tile in view_of(document).hero.tiles}

    assert labels == {"Figure to plan with"}


def test_what_does_not_fit_is_said_in_the_headline_and_the_rest_still_shown():
    document = sample.unsupported_document()
    document["question"]["precision"]["value"] = "fp32"
    view = view_of(document)

    assert said(view.hero.headline) == (
        "FP32 (strict) cannot train this 70B model on 1.4T tokens as asked: "
        "does not fit because the leanest of 120 layouts needs 150.6 GiB per GPU, "
        "71.4 GiB more than the 79.2 GiB available to a process on one A100 SXM4 80\u00a0GB."
    )
    assert view.hero.tiles == ()
    assert view.hero.table is not None


def test_precisions_left_out_are_named_with_their_reason():
    view = view_of(sample.unsupported_document())
    rows = {row.cells[0].text: row.cells[-1] for row in view.hero.table.rows}

    assert "FP8" in view.hero.alerts[0]
    assert rows["FP8"].detail == "NVIDIA A100 SXM4 80GB (Ampere) does not support FP8 matrix multiplication in hardware"
    assert rows["FP32 (strict)"].detail.startswith("does not fit because the leanest of 120 layouts")


def test_a_dearer_precision_is_said_to_cost_more():
    document = sample.document()
    document["question"]["precision"]["value"] = "fp16"
    text = said(view_of(document).hero.headline)

    assert "4% more than BF16" in text
    assert "60% less than TF32" in text


def test_a_saving_that_may_be_none_is_said_to_be_about_the_same():
    document = sample.document()
    for saving in document["savings"]:
        saving |= {"low": -0.02, "mid": 0.01, "high": 0.05}

    assert "about the same as BF16 (−2 to 5%)" in said(view_of(document).hero.headline)


def test_strict_fp32_is_drawn_as_a_reference_that_does_not_set_the_scale():
    chart = view_of(sample.document()).hero.chart
    rows = {row.label: row for row in chart.drawing.rows}

    assert (rows["FP32 (strict)"].quiet, rows["FP32 (strict)"].beyond) == (True, True)
    assert chart.drawing.ticks[-1].label == "$5 million"


def test_with_several_gpus_and_no_price_the_headline_says_that_its_gpu_is_the_first():
    document = sample.several_gpus_document()
    for plan in document["plans"] + document["same_deadline"]:
        plan |= {"cost_usd": None, "cost_lines": []}

    assert "on H100 SXM5 80\u00a0GB, the first GPU asked for" in said(view_of(document).hero.headline)
    assert "the first GPU asked for" not in said(view_of(sample.several_gpus_document()).hero.headline)


def test_with_several_gpus_the_headline_names_the_cheapest():
    assert "on B200 SXM 180\u00a0GB" in said(view_of(sample.several_gpus_document()).hero.headline)


def test_an_exact_figure_has_no_range():
    document = sample.document()
    document["plans"][-1]["cost_usd"] = {"low": 5e5, "mid": 5e5, "high": 5e5, "at_least": False}
    text = said(view_of(document).hero.headline)

    assert "for about $0.5 million, 31%" in text

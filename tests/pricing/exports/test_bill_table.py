"""The cost tree of a document in whole cents."""

from __future__ import annotations

from copy import deepcopy
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.errors import InputFileError, UsageError
from pricing.exports.bill_table import billed_plans, one_plan, unbilled_gpus


def test_every_level_sums_to_the_cent_in_every_column(document):
    for plan in billed_plans(document):
        for column in ("usd_low", "usd_mid", "usd_high"):
            assert sum(getattr(row, column) for row in plan.leaves) == getattr(plan.total, column)
            for parent in plan.rows:
                children = [row for row in plan.rows if row.parent == parent.line]
                if children:
                    assert sum(getattr(row, column) for row in children) == getattr(parent, column)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the document is copied
@given(amounts=st.lists(st.floats(0, 1e7), min_size=1, max_size=9))
def test_cents_are_never_lost_however_the_lines_fall(document, amounts):
    made = deepcopy(document)
    plan = made["plans"][0]
    ends = ("low", "mid", "high")
    plan["cost_lines"] = [
        {"id": f"l{at}", "label": "x", "usd": dict.fromkeys(ends, usd), "children": []}
        for at, usd in enumerate(amounts)
    ]
    plan["cost_usd"] = dict.fromkeys(ends, sum(amounts)) | {"at_least": False}

    billed = billed_plans(made)[0]

    assert sum(row.usd_mid for row in billed.leaves) == billed.total.usd_mid
    assert all(row.usd_mid == row.usd_mid.quantize(Decimal("0.01")) for row in billed.rows)


def test_lines_that_do_not_sum_are_refused(document):
    document["plans"][0]["cost_lines"][0]["usd"]["mid"] += 0.02

    with pytest.raises(InputFileError, match="cost_lines: total: the lines' mid sums to"):
        billed_plans(document)


def test_the_asked_precision_is_the_plan_that_is_billed(document):
    assert one_plan(document).total.precision == "fp8"
    assert one_plan(document, "bf16").total.precision == "bf16"
    assert one_plan(document, "bf16", "same_deadline").total.gpus == 64


def test_of_several_gpus_the_one_of_the_sentence_is_billed(document):
    cheaper = deepcopy(next(plan for plan in document["plans"] if plan["precision"] == "fp8"))
    cheaper["gpu"] = "b200-sxm-180gb"
    ends = dict.fromkeys(("low", "mid", "high"), 1.0)
    cheaper |= {"cost_usd": ends | {"at_least": False}}
    cheaper["cost_lines"] = [{"id": "gpu_rental", "label": "x", "usd": ends, "children": []}]
    document["plans"].append(cheaper)

    assert one_plan(document).total.gpu == "b200-sxm-180gb"
    assert one_plan(document, "bf16").total.gpu == "h100-sxm5-80gb"
    assert one_plan(document, gpu="h100").total.gpu == "h100-sxm5-80gb"


def test_a_gpu_is_named_as_in_a_question(document):
    gpu = document["plans"][0]["gpu"]

    assert one_plan(document, gpu=gpu.upper()).total.gpu == gpu
    assert one_plan(document, gpu="h100").total.gpu == "h100-sxm5-80gb"


def test_a_precision_without_a_cost_is_an_error_that_says_what_there_is(document):
    with pytest.raises(UsageError) as caught:
        one_plan(document, "fp32")

    assert caught.value.hint == "the document has fp8 on h100-sxm5-80gb, bf16 on h100-sxm5-80gb"


def test_energy_and_carbon_are_in_kwh_and_kg(document):
    plan = one_plan(document)

    assert plan.energy_kwh[1] == pytest.approx(40_000.0)
    assert plan.carbon_kg[1] == pytest.approx(15_340.0)


def test_gpus_whose_plans_fit_without_a_cost_are_not_in_the_bill(document):
    assert unbilled_gpus(document) == ()  # a plan that does not fit is no part of a bill

    for view in ("plans", "same_deadline"):
        document[view].append(document[view][0] | {"gpu": "mi300x-192gb", "cost_usd": None, "cost_lines": []})

    assert unbilled_gpus(document) == ("mi300x-192gb",)

from __future__ import annotations

import pytest

from reports.document.facts import Facts, memory_items, memory_range, rung_of
from reports.page.build import checked
from reports.text.names import pretty_gpu, pretty_slug
from tests.reports import sample


@pytest.fixture
def facts():
    return Facts(checked(sample.document()))


def test_the_asked_precision_leads_and_bf16_and_tf32_are_what_it_is_compared_with_first(facts):
    assert facts.asked == "fp8"
    assert facts.references() == ["bf16", "tf32", "fp32", "fp16"]


def test_the_first_screen_shows_the_cheapest_gpu_on_which_the_asked_precision_fits():
    assert Facts(checked(sample.several_gpus_document())).gpu == "b200-sxm-180gb"


def test_a_lower_bound_does_not_make_a_gpu_the_cheapest():
    document = sample.several_gpus_document()
    for plan in document["plans"]:
        if plan["gpu"] == "b200-sxm-180gb":
            plan["cost_usd"]["at_least"] = True

    assert Facts(checked(document)).gpu == "h100-sxm5-80gb"


def test_without_a_price_the_first_gpu_asked_for_leads_though_another_is_faster():
    document = sample.several_gpus_document()
    for plan in document["plans"]:
        plan["cost_usd"] = None

    assert Facts(checked(document)).gpu == "h100-sxm5-80gb"


def test_a_plan_that_does_not_fit_is_no_answer():
    document = sample.unsupported_document()
    document["question"]["precision"]["value"] = "fp32"

    assert Facts(checked(document)).answer is None


def test_a_saving_is_the_planner_s_own_and_of_the_asked_precision(facts):
    saving = facts.saving("cost_usd", "bf16")

    assert saving is not None
    assert (saving["to"], saving["mid"]) == ("fp8", pytest.approx(1 - 1 / 1.45))
    assert facts.saving("cost_usd", "fp8") is None


def test_sources_of_a_figure_come_best_first_and_only_of_this_gpu(facts):
    sources = facts.evidence_for("duration_days")

    assert [source["id"] for source in sources] == ["rate:h100", "gpu:h100-sxm5-80gb"]
    assert facts.evidence_for("duration_days", "a100-sxm4-80gb") == []
    assert rung_of("measured") < rung_of("shipped") < rung_of("datasheet") < rung_of("unheard of")


@pytest.mark.parametrize(
    ("slug", "name"),
    [
        ("llama-3.1-70b", "Llama-3.1-70B"),
        ("gpt-3-175b", "GPT-3-175B"),
        ("mixtral-8x7b", "Mixtral-8x7B"),
        ("deepseek-v3", "DeepSeek-V3"),
        ("resnet50", "ResNet-50"),
        ("densenet121", "DenseNet-121"),
        ("My Model", "My Model"),
    ],
)
def test_a_model_s_slug_is_written_as_people_write_it(slug, name):
    assert pretty_slug(slug) == name


@pytest.mark.parametrize(
    ("slug", "name"),
    [
        ("h100-sxm5-80gb", "H100 SXM5 80\u00a0GB"),
        ("a100-pcie-40gb", "A100 PCIe 40\u00a0GB"),
        ("rtx-4090", "RTX 4090"),
        ("mi300x", "MI300X"),
        ("cpu-local", "local CPU"),
    ],
)
def test_a_gpu_s_id_is_written_as_people_write_it(slug, name):
    assert pretty_gpu(slug) == name


def test_the_items_of_the_memory_sum_to_a_number_and_the_peak_has_a_range():
    total = {"low": 50.0, "mid": 62.0, "high": 70.0}
    plan = {"memory_gib": {"weights": 40.0, "activations": 22.0, "total": total}}

    assert memory_items(plan) == {"weights": 40.0, "activations": 22.0, "total": 62.0}
    assert memory_range(plan) == total


def test_strict_fp32_is_a_reference_unless_it_was_asked_for():
    document = sample.document()
    document["question"]["precision"]["value"] = "fp32"
    fp8, fp32 = Facts(checked(sample.document())), Facts(checked(document))

    assert [plan["precision"] for plan in fp8.plans() if fp8.is_reference(plan)] == ["fp32"]
    assert [plan["precision"] for plan in fp32.plans() if fp32.is_reference(plan)] == []


def test_a_row_of_what_is_not_supported_belongs_to_its_gpu_or_to_all(facts):
    facts.doc["unsupported"] = [{"precision": "mxfp8"}, {"precision": "nvfp4", "gpu": "b200-sxm-180gb"}]

    assert [row["precision"] for row in facts.unsupported()] == ["mxfp8"]
    assert [row["precision"] for row in facts.unsupported("b200-sxm-180gb")] == ["mxfp8", "nvfp4"]


def test_a_view_without_a_price_is_compared_by_gpu_hours(facts):
    assert facts.lead_metric() == "cost_usd"
    for plan in facts.doc["plans"]:
        plan["cost_usd"] = None

    assert facts.lead_metric() == "gpu_hours"
    assert facts.lead_metric("same_deadline") == "cost_usd"

from __future__ import annotations

import math

import pytest

from planner.errors import UsageError
from reports.document.facts import Facts
from reports.explain.derivation import CORRECTION, Node, made_of
from reports.explain.walk import ALIASES, Derivation, explain
from reports.page.build import checked
from reports.text.language import words_for
from tests.reports import sample
from tests.reports.conftest import QUESTIONS


def walk(node: Node) -> list[Node]:
    return [node, *(inner for child in node.children for inner in walk(child))]


@pytest.mark.parametrize("name", list(QUESTIONS))
def test_every_line_of_every_tree_comes_out(ask, name):
    facts = Facts(checked(ask(name)))  # read once for all figures, as `explain` reads it for each
    for plan in facts.doc["plans"]:
        if not plan["fits"]:
            continue
        facts.gpu = plan["gpu"]
        for figure, derive in Derivation(facts, plan, words_for("en")).figures().items():
            for node in walk(derive()):
                if node.children:
                    come_out = made_of(node.children, node.how)
                    to = 0.01 if node.formula.endswith("to the cent") else 1e-9
                    assert come_out == pytest.approx(node.value, rel=1e-9, abs=to), (
                        figure,
                        plan["precision"],
                        node.label,
                    )


def test_the_price_of_an_hour_has_the_note_of_its_own_gpu_where_several_are_compared():
    document = sample.document()
    for gpu, note in (("mi300x-192gb", "another"), (document["plans"][0]["gpu"], "median over 7 providers")):
        document["question"][f"price {gpu}"] = {"value": 2.5, "source": "default", "note": note}
    nodes = walk(explain(document, "cost").root)

    assert [node.note for node in nodes if node.label.startswith("Price per")] == ["median over 7 providers"]


@pytest.mark.parametrize(
    ("figure", "key"),
    [
        ("cost", "cost_usd"),
        ("time", "duration_days"),
        ("gpu-hours", "gpu_hours"),
        ("energy", "energy_mwh"),
        ("carbon", "carbon_tco2e"),
        ("mfu", "mfu"),
        ("rate", "tflops_per_gpu"),
        ("throughput", "tokens_per_s_per_gpu"),
        ("power", "gpu_power_w"),
        ("sci", "sci_kg_per_run"),
    ],
)
def test_the_root_is_the_figure_of_the_plan_with_its_range(recorded, figure, key):
    plan = next(row for row in recorded["plans"] if row["precision"] == "fp8")
    root = explain(recorded, figure).root

    assert (root.low, root.value, root.high) == pytest.approx((plan[key]["low"], plan[key]["mid"], plan[key]["high"]))


def test_a_device_of_unknown_power_has_no_energy_and_no_carbon_and_says_why(recorded):
    unknown = (
        "energy_mwh", "energy_items_mwh", "gpu_power_w", "peak_power_mw", "mean_power_mw", "carbon_tco2e",
        "carbon_market_tco2e", "carbon_with_embodied_tco2e", "sci_kg_per_run", "sci_kg_per_1e21_flop",
    )  # fmt: skip
    for plan in (*recorded["plans"], *recorded["same_deadline"]):
        plan |= dict.fromkeys(unknown)

    for figure in ("energy", "carbon", "carbon-market", "sci", "mean-power"):
        root = explain(recorded, figure).root
        assert (root.value, root.note) == (None, "no power figures are known for this GPU"), figure


def test_the_embodied_share_goes_down_to_the_source_of_making_a_gpu(recorded):
    explained = explain(recorded, "embodied")

    assert explained.root.children[0].label == "GPU-hours"
    assert "embodied" in {row["id"].split(":")[0] for row in explained.sources}


def test_cost_goes_down_to_gpus_tokens_and_the_rows_of_the_price(recorded):
    explained = explain(recorded, "cost")
    labels = {node.label for node in walk(explained.root)}
    kinds = {row["id"].split(":")[0] for row in explained.sources}

    assert {
        "GPU-hours",
        "Price per GPU-hour",
        "Time",
        "Steps",
        "Step time",
        "Goodput",
        "GPUs",
        "Tokens per parameter",
    } <= labels
    assert {"price", "kernels", "parameter", "model"} <= kinds


def test_time_is_steps_times_step_time_over_goodput(recorded):
    root = explain(recorded, "time").root
    steps, step, goodput, day = root.children  # and nothing is left over

    plan = next(p for p in recorded["plans"] if p["precision"] == "fp8")
    sequences = math.prod(plan["layout"][name] for name in ("dp", "micro_batch", "grad_accum"))
    assert steps.value == math.ceil(1_411_074_129_920 / (sequences * 4_096))
    assert step.value == pytest.approx(plan["step_s"]["total"])
    assert (goodput.power, day.value, day.power) == (-1, 86_400, -1)


def test_the_items_of_a_step_name_the_rates_of_this_precision_only(recorded):
    ids = [source for node in walk(explain(recorded, "step", precision="tf32").root) for source in node.evidence]

    assert "rate:tf32:h100-sxm5-80gb" in ids
    assert not [source for source in ids if source.startswith(("rate:fp8", "rate:bf16", "policy:fp8"))]


def test_tokens_that_were_given_are_an_input(recorded):
    recorded["question"]["tokens"] = {"value": 2e12, "source": "flag", "note": None}
    root = explain(recorded, "tokens").root

    assert (root.value, root.children, root.note) == (2e12, (), "flag")


def test_several_cost_lines_are_added_with_what_the_draws_leave_over(recorded):
    plan = next(row for row in recorded["plans"] if row["precision"] == "fp8")
    line = plan["cost_lines"][0]
    bill = line | {"id": "electricity", "label": "Electricity", "quantity": 270_116.4, "unit": "kWh",
                   "usd": {"low": 2e4, "mid": 2.7e4, "high": 4e4, "at_least": False},
                   "unit_price_usd": {"low": 0.1, "mid": 0.1, "high": 0.1, "at_least": False}}  # fmt: skip
    plan["cost_lines"] = [line, bill]
    plan["cost_usd"] |= {"mid": 9.3e5}
    root = explain(recorded, "cost").root

    assert [child.label for child in root.children] == ["GPU rental", "Electricity", CORRECTION]
    assert sum(child.value or 0 for child in root.children) == pytest.approx(9.3e5)


def test_a_plan_without_a_price_says_so_instead_of_a_number():
    document = sample.document()
    for plan in document["plans"]:
        plan |= {"cost_usd": None, "cost_lines": []}
    root = explain(document, "cost").root

    assert root.value is None
    assert "no price" in root.note


@pytest.mark.parametrize("name", [*ALIASES, "COST"])
def test_keys_of_the_document_and_everyday_words_are_understood(recorded, name):
    assert explain(recorded, name).figure == ALIASES.get(name, name.lower())


def test_an_unknown_figure_is_refused_with_the_known_ones(recorded):
    with pytest.raises(UsageError, match="no figure `happiness`") as caught:
        explain(recorded, "happiness")

    assert "cost, gpu-hours, time" in (caught.value.hint or "")


def test_a_precision_that_the_answer_lacks_is_refused_with_those_it_has(recorded):
    with pytest.raises(UsageError, match="no plan in nvfp4") as caught:
        explain(recorded, "cost", precision="nvfp4")

    assert "bf16 on h100-sxm5-80gb" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["h100", "H100 SXM5 80GB", "h100-sxm5-80gb"])
def test_a_gpu_and_a_precision_are_found_however_they_are_written(recorded, name):
    explained = explain(recorded, "cost", precision="BF16", gpu=name)

    assert (explained.precision, explained.gpu) == ("bf16", "h100-sxm5-80gb")
    assert explained.root == explain(recorded, "cost", precision="bf16").root


def test_a_plan_that_does_not_fit_has_no_figures():
    with pytest.raises(UsageError, match="fp32 has no figures"):
        explain(sample.unsupported_document(), "cost", precision="fp32")

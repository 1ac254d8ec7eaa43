"""The account of an answer: evidence once each with its figures, assumptions in sentences, gaps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from planner.costs.prices import EmbodiedRate, Ledger, OtherCosts, OwnedPrice, Quote
from planner.errors import Message
from planner.evidence import Estimate, Evidence, EvidenceKind, Gap
from planner.planning.basis import collect_assumptions, collect_evidence, collect_gaps, collect_warnings
from planner.planning.case import Case, make_case
from planner.planning.estimate import estimate
from planner.rates.parameters import shipped_parameters
from reports.text.messages import word
from reports.text.names import pretty_gpu
from tests.planner.build import SAID, make_question, parts, price, prices, rates_and_prices, site, unknown_price

briefly = partial(estimate, detailed=False)
"""What plans by one deadline would say is not asked here."""


def cases(**asked: str) -> tuple[Case, ...]:
    question = make_question(**asked)
    return tuple(make_case(question, policy, question.clusters[0], price(), site()) for policy in question.policies)


def ids(evidence) -> set[str]:
    return {source.id for source in evidence}


def test_parameters_of_one_group_are_told_in_one_row_each_with_its_own_range():
    rows = {row.id: row for row in collect_evidence(cases(params="8B"), site())}
    left_out, parameters = rows["parameters:left_out.published"], shipped_parameters().rows

    assert left_out.what.startswith("what the equations leave out, as a factor – ")
    for name in ("stack_error_ratio", "memory_error_ratio", "precision_error_ratio.fp8"):
        row = parameters[name]
        assert f"{row.meaning}: 1 ({row.low:.3g} to {row.high:.3g})" in left_out.what
    assert {"stack_error_ratio", "memory_error_ratio", "precision_error_ratio"} <= set(left_out.terms)
    assert "parameter:stack_error_ratio" not in rows


def test_what_own_runs_taught_of_a_group_is_told_apart_from_what_was_published():
    learned = shipped_parameters().rows["stack_error_ratio"]
    learned = replace(learned, value=0.9, kind=EvidenceKind.MEASURED, source="our-stack.json")
    asked = make_question(params="8B")
    case = make_case(
        asked,
        asked.policies[0],
        asked.clusters[0],
        price(),
        site(),
        parameters=shipped_parameters().replaced([learned]),
    )
    rows = {row.id: row for row in collect_evidence((case,), site())}

    assert rows["parameters:left_out.measured"].source == "our-stack.json"
    assert rows["parameters:left_out.measured"].terms == ("stack_error_ratio",)
    assert "stack_error_ratio" not in rows["parameters:left_out.published"].terms


def test_what_own_runs_taught_of_a_measured_surface_stands_beside_the_surface():
    learned = shipped_parameters().rows["attention_rate_ratio"]
    learned = replace(learned, value=0.7, kind=EvidenceKind.MEASURED, source="our-stack.json")
    asked = make_question(params="8B", precision="bf16")
    parameters = shipped_parameters().replaced([learned])
    case = make_case(asked, asked.policy, asked.clusters[0], price(), site(), parameters=parameters)
    attention_rows = [row for row in collect_evidence((case,), site()) if "attention_flop_per_s" in row.terms]

    assert {row.kind for row in attention_rows} >= {EvidenceKind.PUBLISHED, EvidenceKind.MEASURED}
    (taught,) = (row for row in attention_rows if row.id == "parameter:attention_rate_ratio")
    assert "our-stack.json" in taught.source


def test_every_source_stands_once_with_all_figures_that_rest_on_it():
    evidence = collect_evidence(cases(params="8B"), site())
    names = [source.id for source in evidence]
    by_id = {source.id: source for source in evidence}

    assert len(names) == len(set(names))
    assert by_id["gpu:h100-sxm5-80gb"].used_in == tuple(sorted(by_id["gpu:h100-sxm5-80gb"].used_in))
    assert "memory_gib" in by_id["policy:bf16"].used_in
    assert by_id["parameter:host_power_ratio"].used_in == ("carbon_tco2e", "energy_items_mwh.host", "energy_mwh")
    assert by_id["parameter:host_power_ratio"].terms == ("host_power_w",)
    assert "step_s" not in by_id["parameter:restart_s"].used_in
    assert by_id["parameter:context_gib.tuned"].used_in == ("memory_gib", "memory_gib.framework")


def test_only_what_was_used_is_listed():
    dense, experts = (ids(collect_evidence(cases(model=name), site())) for name in ("llama-3.1-8b", "mixtral-8x7b"))

    assert "parameter:overlap_ep_ratio" not in dense
    assert "parameter:overlap_ep_ratio" in experts
    assert not any(
        source_id.startswith("parameter:score_passes") for source_id in dense
    )  # fused attention stores no scores
    assert not any(source_id.startswith("gpu:v100") for source_id in dense)


def test_the_model_of_the_catalogue_is_a_source():
    assert "model:llama-3.1-8b" in ids(collect_evidence(cases(model="llama-3.1-8b"), site()))


def test_defaults_are_assumptions_with_the_input_that_replaces_them_and_given_values_are_not():
    asked = make_question(params="8B", tokens="1e12")
    by_id = {assumption.id: assumption for assumption in collect_assumptions(asked, asked.inputs, cases(params="8B"))}

    assert "tokens" not in by_id
    assert by_id["deadline"].input == "deadline"
    assert by_id["global_batch"].input == "global_batch"
    assert parts(by_id["deadline"].message)["value"] == "30d"
    assert all(row.message.key == f"assumption.{row.id}" for row in by_id.values())
    assert parts(by_id["goodput"].message)["hours"] == pytest.approx(50_761, rel=0.01)  # parameters.csv, mtbf


def test_what_a_short_name_was_taken_for_is_an_assumption():
    asked = make_question(model="llama2", gpu="h100")
    assumptions = {a.id: a for a in collect_assumptions(asked, asked.inputs, ())}

    assert word(assumptions["gpu"].message).startswith("`h100` is taken to mean h100-sxm5-80gb, the usual one")
    assert word(assumptions["model"].message).startswith("`llama2` is taken to mean llama-2-7b, the usual one")
    assert assumptions["model"].input == "model"


def test_missing_prices_and_site_facts_are_gaps():
    asked = make_question(params="8B", gpus="8")
    missing = Gap.of("price.missing", why=Message.of("price.no_row", gpu="h100-sxm5-80gb"))
    without = {"h100-sxm5-80gb": replace(unknown_price(), gap=missing)}
    dark = site(grid_gap=NO_PLACE)

    assert briefly(asked, rates_and_prices(asked)).gaps == ()
    assert briefly(asked, rates_and_prices(asked, prices=without, site=dark)).gaps == (missing, NO_PLACE)


H100 = "h100-sxm5-80gb"
POWER = Evidence(id="electricity:e003", kind=EvidenceKind.ASSUMED, what="0.08 USD", source="EIA", used_in=("cost_usd",))
NO_POWER = Gap.of("place.electricity", why=Message.of("place.no_electricity_row", region="DEU"))
NO_PLACE = Gap.of("place.grid", region="nowhere-1")
OWNED = OwnedPrice(
    price=replace(price(H100, 1.6, 2.0, 2.6), commitment="owned"),
    items_usd_per_gpu_h={"server": 1.9, "electricity": 0.1},
    break_even_utilisation_ratio=0.476,
    rental_usd_per_gpu_h=3.49,
    utilisation_ratio=0.8,
    rental_evidence=(replace(SAID, id="price:p085"),),
)


def answer_of(ledger=None, site_facts=None, priced=None, **asked):
    question = make_question(**({"params": "7B", "gpus": "8"} | asked))
    price_by_gpu = priced or {c.gpu.id: price(c.gpu.id) for c in question.clusters}
    ledgers = {} if ledger is None else dict.fromkeys(price_by_gpu, ledger)
    return briefly(
        question, rates_and_prices(question, prices=price_by_gpu, site=site_facts or site(), ledgers=ledgers)
    )


def assumed(answer):
    return {row.id: parts(row.message) for row in answer.assumptions}


FEW = Message.of("price.warning.few_providers", count=2, gpu=H100)
CLOCK = Message.of("price.warning.later_rows", count=3, as_of="2026-11-20", newest="2026-12-01")


def test_a_stale_price_is_a_gap_and_what_else_there_is_to_know_a_warning():
    stale = Gap.of("price.stale", as_of="2026-11-20", rows="p001")
    doubtful = replace(price(H100), gap=stale, warnings=(FEW,))
    answer = answer_of(priced={H100: doubtful})

    assert answer.gaps == (stale,)
    assert answer.warnings == (FEW,)


def test_stale_prices_of_some_of_the_gpus_name_them():
    stale, both = Gap.of("price.stale", as_of="2026-11-20", rows="p001"), (H100, "h200-sxm-141gb")
    fresh, old = price(H100), replace(price("h200-sxm-141gb"), gap=stale)
    (named,) = answer_of(priced={H100: fresh, old.gpu: old}, gpu=",".join(both)).gaps
    (united,) = answer_of(priced={H100: replace(fresh, gap=stale), old.gpu: old}, gpu=",".join(both)).gaps

    assert word(named.what) == "stale prices of the H200 SXM 141\N{NO-BREAK SPACE}GB"
    assert word(named.why) == word(stale.why)
    assert united == stale


def test_a_warning_that_two_gpus_share_is_said_once():
    price_by_gpu = {gpu: replace(price(gpu), warnings=(CLOCK,)) for gpu in (H100, "h200-sxm-141gb")}

    assert answer_of(priced=price_by_gpu, gpu=",".join(price_by_gpu)).warnings == (CLOCK,)


def test_an_unknown_price_of_electricity_is_a_gap_only_where_it_is_billed():
    dark = site(electricity_usd_per_kwh=None, electricity_evidence=None, electricity_gap=NO_POWER, grid_gap=NO_PLACE)

    assert answer_of(site_facts=dark).gaps == (NO_PLACE,)  # rent holds it
    assert NO_POWER in answer_of(Ledger(owned=OWNED), site_facts=dark).gaps
    assert NO_POWER not in answer_of(site_facts=dark, priced={H100: unknown_price()}).gaps  # it would not make a cost


def test_the_price_of_electricity_is_evidence_only_where_it_is_billed():
    site_facts = site(electricity_evidence=POWER)

    assert POWER.id not in ids(answer_of(site_facts=site_facts).evidence)
    assert POWER.id in ids(answer_of(site_facts=site_facts, electricity="0.08").evidence)
    assert POWER.id in ids(answer_of(Ledger(owned=OWNED), site_facts=site_facts).evidence)


def test_rows_behind_lines_beside_embodied_carbon_and_a_compared_price_are_named_with_their_figures():
    stated = Evidence(id="beside:file", kind=EvidenceKind.GIVEN, what="x", source="b.toml", used_in=("cost_usd",))
    embodied = EmbodiedRate(
        kg_co2e_per_gpu_h=Estimate.exactly(0.01), evidence=replace(SAID, id="embodied:m1", used_in=("sci_kg_per_run",))
    )
    ledger = Ledger(other_costs=OtherCosts(failed_ratio=0.1, evidence=stated), embodied=embodied, owned=OWNED)
    used = {source.id: source.used_in for source in answer_of(ledger).evidence}

    assert used["beside:file"] == ("cost_usd",)
    assert used["embodied:m1"] == ("sci_kg_per_run",)
    assert used["price:p085"] == ("rental_usd_per_gpu_h",)


def test_gpus_that_an_offer_bills_and_the_plan_leaves_idle_are_told():
    offer = Quote(vendor="A", price=price(H100), minimum_term_h=2160, minimum_gpus=256, setup_fee_usd=0)
    idle = assumed(answer_of(Ledger(quote=offer)))["idle"]
    termless = assumed(answer_of(Ledger(quote=replace(offer, minimum_term_h=0))))["idle"]

    counts = {"gpu": H100, "gpus": 256, "planned": 8}
    assert idle == {"key": "assumption.idle_for_term", "days": pytest.approx(90)} | counts
    assert termless == {"key": "assumption.idle"} | counts
    assert "idle" not in assumed(answer_of(Ledger(quote=replace(offer, minimum_gpus=8))))
    assert "idle" not in assumed(answer_of())
    question = make_question(params="7B", deadline="30d")
    chosen = briefly(question, rates_and_prices(question, ledgers={H100: Ledger(quote=offer)}))
    assert assumed(chosen)["idle"]["planned"] == chosen.plans[0].gpus


def test_an_own_hour_stands_beside_a_rented_one():
    own = assumed(answer_of(Ledger(owned=OWNED)))["own"]

    assert parts(own["hour"]) == {"key": "text.usd", "usd": 2.0}
    assert parts(own["used"])["utilisation_ratio"] == 0.8
    assert parts(own["against"]) == {
        "key": "assumption.own_cheaper_from", "rented_usd": 3.49, "utilisation_ratio": 0.476,
    }  # fmt: skip


def test_an_own_hour_without_a_price_of_electricity_does_not_claim_to_have_it():
    hour = replace(Estimate.exactly(2.0), at_least=True)
    lacking = replace(OWNED, price=replace(OWNED.price, usd_per_gpu_h=hour))

    (own,) = (row for row in answer_of(Ledger(owned=lacking)).assumptions if row.id == "own")

    assert word(own.message) == (
        f"An hour on your own {pretty_gpu(H100)} costs at least $2.00 without its electricity where 80% of all "
        "hours are used; renting one costs $3.49, and the break-even utilisation is at least 48%."
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"break_even_low_ratio": 0.3, "break_even_high_ratio": 0.7},
         "owning costs less above 48% utilisation (30% to 70% over the ranges of both prices)."),
        ({"break_even_low_ratio": 0.3},
         "owning costs less above 48% utilisation (over the ranges of both prices, from 30% to none at all)."),
        ({"break_even_low_ratio": 0.476, "break_even_high_ratio": 0.476}, "owning costs less above 48% utilisation."),
        ({"break_even_low_ratio": 0.3, "break_even_utilisation_ratio": None},
         "owning costs more at any utilisation (at the most favourable ends of both ranges, less above 30%)."),
    ],
)  # fmt: skip
def test_the_break_even_is_said_with_its_range(changes, text):
    owned = replace(OWNED, **changes)

    (own,) = (row for row in answer_of(Ledger(owned=owned)).assumptions if row.id == "own")

    assert word(own.message).endswith(f"renting one costs $3.49, and {text}")


def test_owning_that_never_pays_says_so():
    never = replace(OWNED, break_even_utilisation_ratio=None)

    own = assumed(answer_of(Ledger(owned=never)))["own"]

    assert parts(own["against"]) == {"key": "assumption.own_never_cheaper", "rented_usd": 3.49}


@pytest.mark.parametrize(
    ("commitment", "key"),
    [("spot", "assumption.spot"), ("1y", "assumption.commitment_1y"), ("3y", "assumption.commitment_3y")],
)
def test_what_a_committed_price_takes_for_granted_is_said(commitment, key):
    answer = answer_of(priced={H100: replace(price(H100), commitment=commitment)})

    assert key in [row["key"] for row in assumed(answer).values()]
    assert key not in [row["key"] for row in assumed(answer_of()).values()]


def test_a_commitment_whose_rest_is_in_the_bill_is_not_said_to_be_left_out():
    yearly = replace(price(H100), commitment="1y")
    offer = Quote(vendor="A", price=yearly, minimum_term_h=8760, minimum_gpus=1, setup_fee_usd=0)
    billed, free = (answer_of(ledger, priced={H100: yearly}) for ledger in (Ledger(quote=offer), None))

    for answer, says in ((billed, False), (free, True)):
        assert ("assumption.commitment_1y" in [row["key"] for row in assumed(answer).values()]) is says
        assert ("warning.commitment_1y" in [parts(message)["key"] for message in answer.warnings]) is says


def test_a_device_of_unknown_watts_is_a_gap_and_not_a_zero():
    (case, *_) = cases(params="8B")
    dark = replace(case, cluster=replace(case.cluster, gpu=replace(case.cluster.gpu, tdp_w=0.0)))

    assert [gap.key for gap in collect_gaps(make_question(params="8B"), [dark], site())] == ["power"]
    assert collect_gaps(make_question(params="8B"), [case], site()) == ()


def test_a_fact_of_the_place_that_names_no_figure_bears_energy_and_carbon():
    plain, named = replace(SAID, id="grid:usa", used_in=()), replace(SAID, id="pue:default", used_in=("energy_mwh",))
    site_facts = site(grid_evidence=plain, pue_evidence=named)
    used = {row.id: row.used_in for row in collect_evidence(cases(params="8B"), site_facts)}

    assert used["grid:usa"] == ("carbon_tco2e", "carbon_tco2e.grid_factor", "energy_mwh")
    assert used["pue:default"] == ("energy_items_mwh.pue_overhead", "energy_mwh")


def test_electricity_of_one_gpu_of_two_is_billed_and_its_price_then_missed():
    (rented, *_) = cases(params="8B", gpu=H100)
    (unpriced, *_) = cases(params="8B", gpu="h200-sxm-141gb")
    unpriced = replace(unpriced, electricity_on=True)
    site_facts = site(electricity_evidence=None, electricity_gap=NO_POWER)

    assert collect_gaps(make_question(params="8B"), [rented], site_facts) == ()
    assert collect_gaps(make_question(params="8B"), [rented, unpriced], site_facts) == (NO_POWER,)


def test_a_source_of_one_precision_alone_says_so():
    rows = {row.id: row for row in collect_evidence(cases(params="8B"), site())}

    assert rows["policy:fp8"].precisions == ("fp8",)
    # strict FP32 runs on CUDA cores; the output layer of FP8, BF16 and FP16 share the measured 16-bit products
    assert rows["rate:fp32:h100-sxm5-80gb"].precisions == ("fp32",)
    assert rows["kernels:matmul:h100-sxm5-80gb:bf16"].precisions == ("bf16", "fp16", "fp8")
    assert rows["parameter:norm_passes"].precisions == ()


def test_a_stand_in_that_no_gpu_needed_is_said_to_be_unused():
    asked = make_question(params="8B", gpu="h100", price_like="a100")
    own = prices(asked)
    (gpu,) = own

    (warning,) = collect_warnings(asked, own, {})
    assert word(warning) == f"--price-like a100-sxm4-80gb was not used: {pretty_gpu(gpu)} has a price of its own"
    assert collect_warnings(asked, {gpu: replace(own[gpu], like="a100-sxm4-80gb")}, {}) == ()
    assert collect_warnings(asked, {gpu: replace(own[gpu], usd_per_gpu_h=None)}, {}) == ()

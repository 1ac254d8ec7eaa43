"""The account of an answer: evidence once each with its figures, assumptions in sentences, gaps."""

from __future__ import annotations

from dataclasses import replace

from planner.account import collect_assumptions, collect_evidence
from planner.case import Case, make_case
from planner.estimate import estimate
from planner.evidence import Gap
from tests.planner.build import price, prices, question, site, unknown_price


def cases(**asked: str) -> tuple[Case, ...]:
    one = question(**asked)
    return tuple(make_case(one, policy, one.clusters[0], price(), site()) for policy in one.policies)


def ids(found) -> set[str]:
    return {one.id for one in found}


def test_every_source_stands_once_with_all_figures_that_rest_on_it():
    found = collect_evidence(cases(params="8B"), site())
    names = [one.id for one in found]
    by_id = {one.id: one for one in found}

    assert len(names) == len(set(names))
    assert by_id["gpu:h100-sxm5-80gb"].used_in == tuple(sorted(by_id["gpu:h100-sxm5-80gb"].used_in))
    assert "memory_gib" in by_id["policy:bf16"].used_in
    assert by_id["parameter:host_share"].used_in == ("carbon_tco2e", "energy_mwh")
    assert "step_s" not in by_id["parameter:restart_s"].used_in
    assert by_id["parameter:context_gib"].used_in == ("memory_gib",)


def test_only_what_was_used_is_listed():
    dense, experts = (ids(collect_evidence(cases(model=name), site())) for name in ("llama-3.1-8b", "mixtral-8x7b"))

    assert "parameter:overlap_ep" not in dense
    assert "parameter:overlap_ep" in experts
    assert not any(one.startswith("parameter:score_passes") for one in dense)  # fused attention stores no scores
    assert not any(one.startswith("gpu:v100") for one in dense)


def test_the_model_of_the_catalogue_is_a_source():
    assert "model:llama-3.1-8b" in ids(collect_evidence(cases(model="llama-3.1-8b"), site()))


def test_defaults_are_assumptions_with_the_flag_that_changes_them_and_given_values_are_not():
    asked = question(params="8B", tokens="1e12")
    found = {one.id: one for one in collect_assumptions(asked, cases(params="8B"))}

    assert "tokens" not in found
    assert found["deadline"].change_with == "--deadline"
    assert found["global_batch"].change_with == "--global-batch"
    assert "30d" in found["deadline"].text
    assert all(one.text.endswith(".") and "{" not in one.text for one in found.values())
    assert "hours of use" in found["goodput"].text


def test_missing_prices_and_site_facts_are_gaps():
    asked = question(params="8B", gpus="8")
    missing = Gap(what="price of h100-sxm5-80gb", why="no row", effect="totals are lower bounds")
    without = {"h100-sxm5-80gb": replace(unknown_price(), gap=missing)}
    dark = site(gaps=(Gap(what="grid", why="unknown zone", effect="US average"),))

    assert estimate(asked, prices(asked), site()).gaps == ()
    assert [gap.what for gap in estimate(asked, without, dark).gaps] == ["price of h100-sxm5-80gb", "grid"]

"""The inputs that an answer shows: what was found stands beside what was said, each with its source."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.costs.prices import GpuPrice
from planner.errors import Message
from planner.evidence import Estimate, Evidence, EvidenceKind
from planner.planning.basis import collect_assumptions
from planner.planning.estimate import estimate
from planner.planning.inputs import shown_inputs
from reports.text.messages import word
from tests.planner.build import make_question, parts, price, prices, rates_and_prices, site

H100 = "h100-sxm5-80gb"
GRID = Evidence(id="grid:US-TX", kind=EvidenceKind.PUBLISHED, what="Texas: 377 g of 2023, direct", source="EIA")
PUE = Evidence(id="pue:u001", kind=EvidenceKind.ASSUMED, what="PUE 1.25 (1.1 to 1.5), default", source="Epoch")
MARKET = Evidence(id="grid:market", kind=EvidenceKind.GIVEN, what="market-based 0 g", source="--market-grid")


def inputs_of(prices=None, site_facts=None, billed=False, **asked):
    question = make_question(**asked)
    return shown_inputs(
        question,
        (),
        prices or {H100: price(H100)},
        site_facts or site(),
        billed=billed,
        why_so_many="note.fewest_nodes",
    )


def test_the_price_found_is_shown_with_what_it_rests_on():
    book = replace(price(H100), evidence=())
    price_input = inputs_of({H100: book})["price"]

    assert (price_input.value, price_input.source) == (2.5, "default")
    assert parts(price_input.note) == {"key": "note.price", "basis": book.basis}


def test_a_price_of_an_offer_is_of_a_file_and_one_of_own_machines_worked_out():
    offer = replace(price(H100), commitment="1y")  # its evidence is given
    own = GpuPrice(
        gpu=H100, usd_per_gpu_h=Estimate.exactly(2.0), basis=Message.of("test.own"), evidence=(PUE,), commitment="owned"
    )

    assert inputs_of({H100: offer})["price"].source == "file"
    assert (inputs_of({H100: offer})["commitment"].value, inputs_of({H100: offer})["commitment"].source) == (
        "1y",
        "file",
    )
    assert inputs_of({H100: own})["price"].source == "derived"


def test_each_of_several_gpus_has_its_own_price():
    inputs = inputs_of({H100: price(H100), "b200-sxm-180gb": price("b200-sxm-180gb", 3, 4, 5)})

    assert (inputs[f"price {H100}"].value, inputs["price b200-sxm-180gb"].value) == (2.5, 4)


def test_facts_of_the_place_say_their_row_and_whether_it_is_of_that_place():
    inputs = inputs_of(site_facts=replace(site(), market_evidence=MARKET, grid_evidence=GRID, pue_evidence=PUE))

    assert (inputs["grid"].source, inputs["grid"].note) == ("catalogue", Message.of("note.grid", what=GRID.what))
    assert (inputs["pue"].source, inputs["pue"].note) == ("default", Message.of("note.pue", what=PUE.what))


def test_what_was_said_is_not_overwritten():
    inputs = inputs_of(pue="1.1", grid="120", price="3", commitment="spot")

    assert [inputs[name].source for name in ("pue", "grid", "price", "commitment")] == ["flag"] * 4
    assert inputs["price"].value == 3.0


def test_electricity_is_shown_where_it_is_billed():
    assert "electricity" not in inputs_of()
    assert inputs_of(billed=True)["electricity"].value == 0.08


@pytest.mark.parametrize("b200", [96, 120])
def test_where_each_gpu_has_its_own_batch_the_question_keeps_its_own_and_the_assumption_names_each(b200):
    question = make_question(params="8B", gpu=f"{H100},b200-sxm-180gb", gpus="8")
    answered = estimate(question, rates_and_prices(question), detailed=False).plans
    groups = {H100: 96, "b200-sxm-180gb": b200}
    plans = tuple(replace(p, layout=replace(p.layout, dp=groups[p.gpu], micro_batch=1, grad_accum=2)) for p in answered)

    inputs = shown_inputs(question, plans, prices(question), site(), billed=False, why_so_many="note.fewest_nodes")
    (text,) = (
        word(row.message) for row in collect_assumptions(question, inputs, (), plans) if row.id == "global_batch"
    )

    assert inputs["global_batch"].value == (192 if b200 == 96 else question.global_batch)
    assert text.startswith("Each step trains on 192 sequences (") == (b200 == 96)
    assert ("192 sequences on 8 × H100 SXM5 80\u00a0GB and 240 sequences on 8 × B200" in text) == (b200 == 120)


@pytest.mark.parametrize("method", ["sft", "lora"])
@pytest.mark.parametrize("gpus", ["8", "16", "32", "24"])
def test_to_fine_tune_the_usual_batch_is_kept_unless_another_is_a_tenth_faster_and_the_note_names_the_band(
    method, gpus
):
    asked = {"model": "llama-3.1-8b", "params": None, "method": method, "gpus": gpus}
    question = make_question(**asked)
    entry = estimate(question, rates_and_prices(question), detailed=False).question["global_batch"]
    note = parts(entry.note)

    assert (note["least"], note["most"]) == (16, 64)
    if entry.value == 32:
        assert entry.source == "default"
        return
    assert note["default"] == 32
    if 32 % int(gpus) == 0:
        taken, usual = (
            next(
                plan
                for plan in estimate(fixed, rates_and_prices(fixed), detailed=False).plans
                if plan.precision == "bf16"
            )
            for fixed in (make_question(**asked, global_batch=str(batch)) for batch in (entry.value, 32))
        )
        assert taken.gpu_hours.mid < usual.gpu_hours.mid / 1.05

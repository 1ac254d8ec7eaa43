"""Decimal numbers are computed alike, whatever context the calling program has set."""

from __future__ import annotations

import decimal
from decimal import ROUND_DOWN, Context, Decimal, FloatOperation, Inexact, Rounded

import pytest

import mpplan
from planner.costs.rounding import product_usd
from planner.decimals import own_decimals
from reports import render

CONTEXTS = {
    "few digits": Context(prec=3, rounding=ROUND_DOWN),
    "no comparison with floats": Context(traps=[FloatOperation]),
    "nothing inexact": Context(traps=[Inexact, Rounded]),
    "small exponents": Context(Emin=-2, Emax=2),
}


@pytest.fixture(params=CONTEXTS)
def of_the_caller(request):
    with decimal.localcontext(CONTEXTS[request.param]) as context:
        context.clear_flags()
        yield context


def test_a_bill_is_computed_in_a_context_of_its_own(of_the_caller):
    with own_decimals():
        assert product_usd(1_234_567.891, 2.345) == Decimal("2895061.70")  # 2 895 061.704395 to the cent

    assert decimal.getcontext() is of_the_caller
    assert not any(of_the_caller.flags.values())


def test_an_answer_does_not_depend_on_the_context_of_the_caller(of_the_caller, tmp_path):
    asked = {"params": "7B", "gpus": 64, "as_of": "2026-11-20"}
    rates = tmp_path / "tariff.toml"
    rates.write_text("[[period]]\nfrom = 0\nto = 24\nusd_per_kwh = 0.137\n", encoding="utf-8")

    def shown():
        document = mpplan.to_document(mpplan.estimate(**asked, tariff=rates))
        return document["plans"], document["money"], render(document, "csv")

    in_own_context = shown()
    assert not any(of_the_caller.flags.values())
    with decimal.localcontext(Context(prec=28)):
        assert in_own_context == shown()

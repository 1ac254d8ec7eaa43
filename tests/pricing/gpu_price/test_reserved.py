"""Reserved prices from published discounts."""

from __future__ import annotations

from decimal import Decimal

import pytest

from planner.costs.prices import GpuPrice
from planner.errors import Message
from planner.evidence import Estimate, EvidenceKind
from pricing.gpu_price.query import PriceQuery
from pricing.gpu_price.reserved import discounts, less_discount


def test_discounts_are_epochs():
    # AWS 41 % / 64 %, Google 37 / 56, Azure 25 / 49 (epoch-research/training-cost-trends@263c40a1)
    ratios = {(row.provider, row.commitment): row.discount_ratio for row in discounts()}

    assert ratios == {
        ("aws", "1y"): Decimal("0.41"),
        ("aws", "3y"): Decimal("0.64"),
        ("gcp", "1y"): Decimal("0.37"),
        ("gcp", "3y"): Decimal("0.56"),
        ("azure", "1y"): Decimal("0.25"),
        ("azure", "3y"): Decimal("0.49"),
    }


def test_the_discount_is_evidence_of_its_own_and_assumed(today):
    given = Message.of("price.basis.given")
    on_demand = GpuPrice(gpu="l4", usd_per_gpu_h=Estimate.exactly(1.0), basis=given, evidence=())
    asked = PriceQuery(gpu="l4", provider="azure", region=None, commitment="3y", as_of=today)

    price = less_discount(on_demand, asked)

    assert price.usd_per_gpu_h.mid == pytest.approx(0.51)
    assert price.commitment == "3y"
    assert [row.kind for row in price.evidence] == [EvidenceKind.ASSUMED]


def test_an_unknown_price_stays_unknown(today):
    nothing = GpuPrice(gpu="l4", usd_per_gpu_h=None, basis=Message.of("price.basis.none"), evidence=())
    asked = PriceQuery(gpu="l4", provider=None, region=None, commitment="1y", as_of=today)

    assert less_discount(nothing, asked).usd_per_gpu_h is None

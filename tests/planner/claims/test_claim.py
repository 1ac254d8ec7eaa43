"""The rows of claims: every claim of the articles, each with its reading, its unit and both languages."""

from __future__ import annotations

import pytest

from planner.claims.claim import find_claim, load_claims
from planner.claims.ledger import DECIDERS
from planner.errors import UsageError


def test_there_are_the_articles_32_claims_and_the_one_of_asynchronous_aggregation():
    assert list(load_claims()) == [f"c{number:02d}" for number in range(1, 34)]


def test_every_claim_has_something_that_decides_it():
    assert set(DECIDERS) == set(load_claims())


@pytest.mark.parametrize("claim", load_claims().values(), ids=lambda claim: claim.id)
def test_a_claim_is_whole(claim):
    assert claim.text["en"] != claim.text["zh"]
    assert any("一" <= letter <= "鿿" for letter in claim.text["zh"])
    assert claim.reading != "up_to" or claim.high is not None
    assert claim.reading != "at_least" or claim.low is not None


def test_a_claim_is_found_by_its_id_in_any_case():
    assert find_claim("C14").topic == "cost"
    with pytest.raises(UsageError) as refused:
        find_claim("c99")
    assert "unknown claim `c99`" in str(refused.value.message)

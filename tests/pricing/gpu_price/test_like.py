"""A GPU without a price, priced as another: labelled everywhere, and only where it has none."""

from __future__ import annotations

from functools import partial

import pytest

from planner.errors import UsageError
from planner.evidence import EvidenceKind
from pricing.gpu_price.like import nearest_priced, priced_or_like
from pricing.gpu_price.price import quote_gpu
from reports.text.messages import word
from reports.text.names import pretty_gpu

H800, H100, H200 = "h800-sxm5-80gb", "h100-sxm5-80gb", "h200-sxm-141gb"


@pytest.fixture
def price_of(today):
    return partial(quote_gpu, as_of=today)


def test_a_gpu_without_a_price_takes_that_of_the_stand_in_with_its_range(price_of):
    price, own = priced_or_like(H800, H100, price_of), price_of(H100)

    assert price.usd_per_gpu_h == own.usd_per_gpu_h
    assert (price.gpu, price.like, own.like) == (H800, H100, None)
    assert price.gap is None or price.gap.key != "price.missing"


def test_every_source_of_a_stand_in_says_so_and_is_an_assumption(price_of):
    price = priced_or_like(H800, H100, price_of)

    assert price.evidence
    assert {row.kind for row in price.evidence} == {EvidenceKind.ASSUMED}
    assert all(row.gpu == H800 and f"stand-in for {H800}" in row.what and H100 in row.what for row in price.evidence)
    assert not {row.id for row in price.evidence} & {row.id for row in price_of(H100).evidence}
    assert word(price.basis).startswith(f"that of the {pretty_gpu(H100)}, a stand-in for the {pretty_gpu(H800)}")


def test_a_gpu_with_a_price_keeps_it(price_of):
    assert priced_or_like(H200, H100, price_of) == price_of(H200)


def test_without_a_stand_in_the_price_stays_unknown_and_the_reason_names_the_nearest(price_of):
    price = priced_or_like(H800, None, price_of)

    assert price.usd_per_gpu_h is None
    assert pretty_gpu(H100) in word(price.gap.why)
    assert "--price-like" in word(price.gap.effect)


def test_a_stand_in_that_has_no_price_itself_leaves_it_unknown(price_of):
    price = priced_or_like(H800, "mi300x-192gb", price_of)

    assert (price.usd_per_gpu_h, price.like) == (None, None)
    why = word(price.gap.why)
    assert why.startswith(
        f"the price book has no row for {pretty_gpu(H800)}; the nearest GPU that has one is the {pretty_gpu(H100)}"
    )
    assert why.endswith(f"the {pretty_gpu('mi300x-192gb')} named by --price-like has no price either")


def test_a_provider_without_the_gpu_prices_it_as_the_stand_in(today):
    price_of = partial(quote_gpu, provider="aws", as_of=today)

    assert priced_or_like(H800, H100, price_of).usd_per_gpu_h == price_of(H100).usd_per_gpu_h
    with pytest.raises(UsageError, match="no on-demand price"):
        priced_or_like(H800, None, price_of)


# The H800 has the H100's rate and memory (export part); GB200 and GB300 are the B200 and B300 with a CPU. MI300X and
# MI325X (1,307 TFLOP/s) are nearer to an H200 (989) than to a B200 or B300 (2,250), MI355X (2,500) is not.
@pytest.mark.parametrize(
    ("gpu", "nearest"),
    [
        (H800, H100), ("gb200-186gb", "b200-sxm-180gb"), ("gb300-288gb", "b300-sxm-288gb"), ("mi300x-192gb", H200),
        ("mi325x-256gb", H200), ("mi355x-288gb", "b300-sxm-288gb"),
    ],
)  # fmt: skip
def test_the_nearest_priced_gpu_is_of_the_same_kind(gpu, nearest):
    assert nearest_priced(gpu) == nearest

"""Histograms against distributions whose shares are known, and against the formats themselves, value by value."""

from __future__ import annotations

from math import erf, log, sqrt

import pytest

from probes.numerics.formats.elements import FORMATS, find_format, rounded
from probes.numerics.formats.histogram import empty_histogram, magnitudes, swallowed_counts

torch = pytest.importorskip("torch")


def lognormal(mean: float, sd: float, count: int = 200_000) -> torch.Tensor:
    generator = torch.Generator().manual_seed(4)
    values = torch.exp(mean + sd * torch.randn(count, generator=generator, dtype=torch.float64)).float()
    return values * (1.0 - 2.0 * torch.randint(0, 2, (count,), generator=generator))


@pytest.mark.parametrize(("name", "scale_log2"), [("fp16", 0), ("fp16", 8), ("e5m2", 0), ("e5m2", 10), ("e4m3", 4)])
def test_the_flushed_share_of_a_log_normal_gradient_is_the_one_that_follows(name, scale_log2):
    mean, sd = -16.0, 2.0  # gradients around 1e-7
    element = find_format(name)
    limit = log(element.flushed_up_to) - scale_log2 * log(2.0)
    expected = 0.5 * (1.0 + erf((limit - mean) / (sd * sqrt(2.0))))

    share = magnitudes(lognormal(mean, sd)).flushed_ratio(element, scale_log2)

    assert share == pytest.approx(expected, abs=4.0 * sqrt(0.25 / 200_000))


@pytest.mark.parametrize("element", FORMATS, ids=lambda element: element.id)
@pytest.mark.parametrize("scale_log2", [-30, -7, 0, 3, 16])
def test_shares_are_those_of_the_values_rounded_one_by_one(element, scale_log2):
    x = torch.cat([lognormal(-4.0, 6.0), torch.tensor([0.0, 1.0, 0.5, 2.0**-10, 2.0**-25, 448.0, 464.0, 7.0])])
    scaled = x.double() * 2.0**scale_log2
    exact = scaled.float()
    held = rounded(exact, element)
    seen = magnitudes(x)

    nonzero = int((x != 0).sum())
    flushed = int(((held == 0) & (x != 0)).sum()) / nonzero
    beyond = int((scaled.abs() >= element.beyond_from).sum()) / nonzero

    assert seen.flushed_ratio(element, scale_log2) == pytest.approx(flushed, abs=1e-12)
    assert seen.saturated_ratio(element, scale_log2) == pytest.approx(
        beyond, abs=2e-5 if element.id in ("fp16", "bf16") else 1e-12
    )


def test_the_best_scale_brings_the_largest_value_just_below_the_limit():
    x = torch.tensor([2.0**-20, 2.0**-30, 2.0**-34])

    seen = magnitudes(x)

    assert seen.flushed_ratio(find_format("fp16")) == pytest.approx(2 / 3)  # 2^-24 is the smallest
    best = seen.best_scale_log2(find_format("fp16"))
    assert best == 10  # 2^-34 becomes 2^-24
    assert seen.flushed_ratio(find_format("fp16"), best) == 0.0
    assert empty_histogram().best_scale_log2(find_format("fp16")) is None


def test_headroom_leaves_octaves_free_above_the_largest_value():
    seen = magnitudes(torch.tensor([1.0, 2.0**-37, 2.0**-39]))

    assert seen.best_scale_log2(find_format("fp16")) == 15  # 2^16 is above 65504
    assert seen.best_scale_log2(find_format("fp16"), headroom=2) == 13


def test_a_table_of_which_most_rows_have_no_gradient_is_judged_by_those_that_have():
    gradient = torch.zeros(100)
    gradient[:4] = torch.tensor([0.01, 0.02, 0.1, 3.0])  # E2M1 begins at 0.5: what is up to 0.25 becomes zero

    seen = magnitudes(gradient)

    assert seen.flushed_ratio(find_format("e2m1")) == 0.75
    assert (seen.zeros, seen.nonzero, seen.total) == (96, 4, 100)
    assert magnitudes(torch.zeros(5)).flushed_ratio(find_format("e2m1")) == 0.0


def test_octaves_zeros_and_what_is_not_finite_are_counted():
    seen = magnitudes(torch.tensor([0.0, 0.0, 1.0, 1.5, -2.0, float("inf"), float("nan")]))

    assert (seen.zeros, seen.octaves(), seen.not_finite, seen.total) == (2, {0: 2, 1: 1}, 2, 7)
    assert (seen + seen).octaves() == {0: 4, 1: 2}


@pytest.mark.parametrize(
    ("update", "share"),
    [(2.0**-9, 10), (2.0**-8, 10), (1.01 * 2.0**-8, 0), (-(2.0**-9), 10), (-1.01 * 2.0**-9, 0)],
)
def test_an_update_of_up_to_half_a_unit_in_the_last_place_is_swallowed(update, share):
    weight = torch.ones(10)  # BF16 has 7 bits: the next number above 1 is 1 + 2^-7, the next below 1 - 2^-8

    assert swallowed_counts(weight, torch.full((10,), update), find_format("bf16")) == (share, 10)


def test_updates_that_are_zero_do_not_count_as_swallowed():
    update = torch.tensor([0.0, 0.0, 1.0, 2.0**-12])

    assert swallowed_counts(torch.ones(4), update, find_format("bf16")) == (1, 2)
    assert swallowed_counts(torch.ones(4), torch.zeros(4), find_format("bf16")) == (0, 0)

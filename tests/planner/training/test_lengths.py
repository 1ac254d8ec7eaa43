"""Lengths of examples: the mean that was asked for, and what padding makes of a batch."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import UsageError
from planner.training.lengths import Lengths


@pytest.mark.parametrize(("mean", "most"), [(100, 2048), (400, 2048), (1500, 2048), (2048, 2048), (1, 2048)])
def test_lengths_have_the_mean_that_was_asked_for_once_they_are_cut(mean, most):
    lengths = Lengths.around(mean, most)

    assert lengths.mean_tokens == pytest.approx(mean, rel=1e-3)
    assert lengths.quantiles[0] >= 1
    assert lengths.quantiles[-1] <= most


def test_the_longest_of_a_batch_is_what_drawing_batches_gives():
    lengths = Lengths.around(400, 2048)
    draws = np.random.default_rng(0).choice(lengths.quantiles, size=(200_000, 8))

    assert lengths.longest_of(8) == pytest.approx(draws.max(axis=1).mean(), rel=0.01)
    assert lengths.longest_of(1) == pytest.approx(lengths.mean_tokens)


def test_a_larger_batch_is_padded_further_but_never_beyond_the_longest():
    lengths = Lengths.around(400, 2048)
    padded = lengths.longest_of([1, 2, 4, 8, 64])

    assert list(padded) == sorted(padded)
    assert lengths.mean_tokens < padded[1] < padded[-1] <= 2048


def test_counted_lengths_are_cut_and_told_by_quantiles_where_there_are_many():
    few = Lengths.of(np.array([30.0, 10.0, 5000.0]), 1000)
    many = Lengths.of(np.arange(1.0, 100_001.0), 100_000)

    assert few.quantiles == (10.0, 30.0, 1000.0)
    assert len(many.quantiles) == 999
    assert many.mean_tokens == pytest.approx(50_000, rel=1e-3)


@pytest.mark.parametrize("mean", [0.5, 3000])
def test_a_mean_beyond_the_longest_sequence_is_refused(mean):
    with pytest.raises(UsageError, match="not between 1 and the 2048"):
        Lengths.around(mean, 2048)


@pytest.mark.parametrize("counted", [[], [0.0], [float("nan")]])
def test_lengths_that_cannot_be_are_refused(counted):
    with pytest.raises(UsageError, match="at least 1 token"):
        Lengths.of(np.array(counted), 2048)

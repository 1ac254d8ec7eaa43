"""The small training run: its rounding is that of the formats, and a loss scale does what it is for."""

from __future__ import annotations

import numpy as np
import pytest

from planner.claims.evidence.trial import SMALL, bf16, fp16, fp32, train, trial, zeroed_at


def test_bf16_rounds_to_the_nearest_and_ties_to_even():
    # bfloat16 has 8 significant bits: near 1 a step is 2^-7
    values = np.array([1.0, 1.0 + 2.0**-8, 1.0 + 3 * 2.0**-8, 1.0 + 2.0**-9, np.inf], dtype=np.float32)

    assert bf16(values).tolist() == [1.0, 1.0, 1.0 + 2.0**-6, 1.0, np.inf]


def test_bf16_agrees_with_torch():
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(0).standard_normal(4096, dtype=np.float32) * np.float32(1e-3)

    assert np.array_equal(bf16(values), torch.from_numpy(values).to(torch.bfloat16).to(torch.float32).numpy())


def test_fp16_overflows_and_fp32_is_left_as_it_is():
    values = np.array([65520.0, 1e-9], dtype=np.float32)

    assert fp16(values).tolist() == [np.inf, 0.0]
    assert fp32(values) is values


def test_a_scale_brings_back_what_fp16_flushes():
    lost = [zeroed_at("fp16", 0, scale, SMALL) for scale in (1.0, 8.0, 1024.0)]

    assert 0.1 < lost[0] < 0.4
    assert lost[0] > lost[1] > lost[2]
    assert zeroed_at("bf16", 0, 1.0, SMALL) < 0.001


def test_a_scale_that_is_too_large_overflows_and_those_steps_are_left_out():
    run = train("fp16", seed=0, scale=2.0**40)

    assert run.overflows == 400  # every step: 2^40 is far above what FP16 holds
    assert train("bf16", seed=0, scale=2.0**40).overflows == 0


def test_training_learns_and_is_the_same_every_time():
    first = trial("fp32", 0)

    assert first.accuracy > 0.8
    assert train("fp32", seed=0) == first


def test_a_dynamic_scale_halves_on_overflow_until_nothing_overflows_and_doubles_in_between():
    high = train("fp16", seed=0, scale=2.0**32, interval_steps=20)
    fixed = train("fp16", seed=0, scale=2.0**10)

    assert high.overflows >= 8
    assert 2.0**12 < high.scale < 2.0**26
    assert high.accuracy == pytest.approx(fixed.accuracy, abs=0.02)  # skipped steps cost a little
    assert (fixed.scale, fixed.overflows) == (2.0**10, 0)
    assert train("fp16", seed=0, scale=8.0, interval_steps=100).scale == 8.0 * 2**4  # four intervals of 400 steps

"""How many layers to keep: the fewest whose runs stay within the margin."""

from __future__ import annotations

import time

import pytest

torch = pytest.importorskip("torch")

from probes.numerics.instruments.policy import policy  # noqa: E402 - it needs torch
from probes.numerics.instruments.sensitivity import sensitivity  # noqa: E402
from probes.numerics.instruments.time import Slice, keep_nothing  # noqa: E402
from probes.numerics.lowering.recipes import lower_by_id  # noqa: E402
from tests.probes.numerics.planted import PLACE, task_with_a_sensitive_layer  # noqa: E402


@pytest.fixture(scope="module")
def measured():
    return sensitivity(
        task_with_a_sensitive_layer(), PLACE, lower_by_id("fp8"), Slice(ends=time.monotonic() + 20.0), keep_nothing
    )


def test_a_wide_margin_keeps_no_layer_and_a_margin_of_nothing_keeps_all(measured):
    found, bench = measured
    until = Slice(ends=time.monotonic() + 20.0)

    wide = policy(bench, found, 1e6, until, keep_nothing)
    narrow = policy(bench, found, -1.0, until, keep_nothing)

    assert wide["keep_high"] == []
    assert wide["words"].startswith("all 4 layers")
    assert len(narrow["keep_high"]) == 4
    assert narrow["words"].startswith("no layer")
    assert narrow["loss_change"] == 0.0


def test_the_usual_policy_is_measured_beside_it(measured):
    found, bench = measured

    advice = policy(bench, found, 0.005, Slice(ends=time.monotonic() + 20.0), keep_nothing)

    assert set(advice["usual"]["layers"]) == {"layer0", "layer1", "layer2"}  # the last stays high
    assert advice["usual"]["loss_change"] > advice["loss_change"]

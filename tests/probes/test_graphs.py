"""Only short kernels are captured; a trial that cannot be captured stays as it is."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")

from probes.clock import CpuClock
from probes.graphs import SHORT_S, captured_if_short
from probes.workloads.interface import CallTrial


def test_a_long_trial_is_left_alone() -> None:
    trial = CallTrial(call=lambda: time.sleep(10 * SHORT_S))

    assert captured_if_short(trial, CpuClock()) is trial

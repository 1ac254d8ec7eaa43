"""When to stop, by device and work."""

from __future__ import annotations

import pytest

from probes.session.rules import rules_for
from tests.probes.build import call, point


@pytest.mark.parametrize(
    ("kind", "device", "suite", "cap_s"),
    [
        ("gemm", "cuda", "default", 0.2),
        ("gemm", "cuda", "thorough", 1.0),
        ("block", "cuda", "default", 0.2),
        ("block", "cpu", "default", 0.8),
        ("gemm", "cpu", "thorough", 2.0),
    ],
)
def test_a_point_is_measured_for_at_most_its_kinds_time(kind: str, device: str, suite: str, cap_s: float) -> None:
    assert rules_for(point("x", call(), kind=kind), device, suite).cap_s == pytest.approx(cap_s)


def test_a_canary_on_a_gpu_settles_for_a_second_and_on_a_cpu_hardly() -> None:
    canary = point("canary", call(), kind="canary", cap_s=0.25)

    assert rules_for(canary, "cuda", "default").warmup_s == 1.0
    assert rules_for(canary, "cpu", "default").warmup_s < 0.1

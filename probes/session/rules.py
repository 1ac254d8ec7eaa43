"""When to stop measuring a point, by kind of device and kind of work."""

from __future__ import annotations

from probes.timing.protocol import Rules
from probes.timing.regime import SUSTAINED_KINDS
from probes.timing.trial import Point
from probes.workloads.expected import OTHER_CAP_S, THOROUGH_PATIENCE, gpu_cap_s, warmup_s

CANARY_SETTLE_S = 1.0
"""A GPU that has just rested or compiled runs above its sustained clock; the canary must not take that for drift."""
CPU_CAPS_S = {"block": 0.8, "end_to_end": 1.0, "verify": 1.0, "parallel_step": 3.0}
"""Longest measured time by kind of point, unless the point sets its own."""
GPU_CI_RATIO, CPU_CI_RATIO = 0.005, 0.01
"""Half the confidence interval over the median at which there are enough samples."""


def rules_for(point: Point, device_kind: str, suite: str) -> Rules:
    """Return the rules for one point.

    Args:
        point: what is measured.
        device_kind: `cuda` or `cpu`.
        suite: quick, default or thorough.
    """
    if device_kind == "cuda":
        cap_s = gpu_cap_s(point, suite)
        settle_s = CANARY_SETTLE_S if point.kind == "canary" else warmup_s(cap_s)
        return Rules(ci_ratio=GPU_CI_RATIO, cap_s=cap_s, warmup_s=settle_s)
    patience = THOROUGH_PATIENCE if suite == "thorough" else 1.0
    cap_s = patience * (point.cap_s or CPU_CAPS_S.get(point.kind, OTHER_CAP_S))
    least_s = 0.4 if point.kind in SUSTAINED_KINDS else 0.05
    return Rules(ci_ratio=CPU_CI_RATIO, cap_s=cap_s, warmup_s=min(0.3, cap_s / 6.0), min_total_s=least_s)

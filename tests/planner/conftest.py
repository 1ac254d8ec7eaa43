"""Hypothesis for this machine or a slower one: no test may fail by the clock."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("planner", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("planner")

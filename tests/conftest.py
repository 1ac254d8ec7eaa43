"""Hypothesis for every machine: no test may fail by the clock, and the same commit always gives the same verdict.

`make fuzz` looks further: thirty times the examples, each run other ones.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "steady", deadline=None, max_examples=34, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "fuzz", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("steady")

"""A fixed number of cases of a fixed seed on every surface: the same ones in each test run."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import attack, surfaces

SEED = 14
COUNTS = {"arguments": 150, "metamorphic": 11}
"""Cases of a surface: about twenty seconds on a free core."""
OTHERWISE = 100
"""Of a surface that has no `CASES_IN_TESTS`."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(surfaces()))
def test_hostile_input_breaks_nothing(name):
    surface = surfaces()[name]
    tally = attack(surface, SEED, count=getattr(surface, "CASES_IN_TESTS", COUNTS.get(name, OTHERWISE)))

    assert [(case, wrong) for case, wrong in tally.findings] == []
    assert tally.cases > 0

"""A fixed number of cases of a fixed seed on every surface: the same ones in each test run."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import attack, surfaces

SEED = 14
COUNTS = {"arguments": 40, "metamorphic": 4}
MANY = {"arguments": 150, "metamorphic": 12}
"""Cases of a surface, with each test run and with `make long`; `make fuzz` tries thousands. The other surfaces have a
test file of their own."""


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_hostile_input_breaks_nothing(name):
    tally = attack(surfaces()[name], SEED, count=COUNTS[name])

    assert [(case, wrong) for case, wrong in tally.findings] == []
    assert tally.cases > 0


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(MANY))
def test_much_hostile_input_breaks_nothing(name):
    tally = attack(surfaces()[name], SEED, count=MANY[name], first=COUNTS[name])

    assert [(case, wrong) for case, wrong in tally.findings] == []
    assert tally.cases > 0

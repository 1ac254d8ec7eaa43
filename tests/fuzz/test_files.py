"""No damaged file breaks mpplan: findings of the past, and some fresh damage of every format."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.fuzz.files import FORMATS, Case, cases, corpus, run


@pytest.mark.parametrize(("name", "case"), list(corpus()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_finding_of_the_past_does_not_come_back(name, case):
    outcome = run(case)

    assert not outcome.is_finding, outcome.err
    assert outcome.code != 3 or outcome.err.startswith("error: ")


@pytest.mark.parametrize("kind", sorted(set(FORMATS) - {"calibration"}))  # whose valid file takes half a minute to make
def test_damage_of_a_format_is_said_and_breaks_nothing(kind):
    for case in islice(cases(7, (kind,)), 6):
        outcome = run(case)

        assert not outcome.is_finding, (case.content[:200], outcome.err)


@pytest.mark.parametrize("kind", ["answer", "config", "settings", "record", "prices"])
def test_the_file_that_damage_starts_from_is_valid(kind):
    assert run(Case(kind=kind, content=FORMATS[kind].valid())).code == 0

"""Cases: the median of values with their range, and what was looked at in vain."""

from __future__ import annotations

from planner.claims.case import Case, looked_at
from planner.errors import Message


def test_several_values_become_their_median_and_their_range():
    case = Case.of([3.0, 1.0, 10.0], what="Volta", basis="published", source="somewhere")

    assert (case.low, case.mid, case.high, case.count) == (1.0, 3.0, 10.0, 3)


def test_what_was_looked_at_in_vain_has_no_value_but_a_reason():
    case = looked_at("YaFSDP", basis="published", source="a file", why=Message.of("claim.why.accuracy"))

    assert case.mid is None
    assert case.looked == Message.of("claim.why.accuracy")

"""Times of day as tools write them, and zones that must be known before two logs are laid beside each other."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from planner.runlog.moments import Clock, Moment, parse_moment, parse_utc_offset

TEN = 1795168800.0
"""2026-11-20T10:00:00 in UTC, `date -u -d 2026-11-20T10:00 +%s`."""


@pytest.mark.parametrize(
    ("text", "seconds", "zoned"),
    [
        ("2026/11/20 10:00:00.500", TEN + 0.5, False),
        ("11/20/2026 10:00:00", TEN, False),
        ("2026-11-20 10:00:00,250", TEN + 0.25, False),
        ("2026-11-20T10:00:00", TEN, False),
        ("2026-11-20T11:00:00+01:00", TEN, True),
        ("2026-11-20T10:00:00Z", TEN, True),
        ("1795168800.25", TEN + 0.25, True),
        (1795168800250, TEN + 0.25, True),
    ],
)
def test_times_are_read_with_or_without_a_zone(text: object, seconds: float, zoned: bool) -> None:
    assert parse_moment(text) == Moment(pytest.approx(seconds), zoned=zoned)


@pytest.mark.parametrize("text", ["yesterday", "", "12", "0001-01-01", "9999-12-31T23:59:59", -1, None, "x" * 50])
def test_what_is_no_time_is_none(text: object) -> None:
    assert parse_moment(text) is None


@pytest.mark.parametrize(("text", "seconds"), [("+01:00", 3600.0), ("-8", -28800.0), ("+0530", 19800.0), ("0", 0.0)])
def test_an_offset_from_utc_is_read(text: str, seconds: float) -> None:
    assert parse_utc_offset(text) == seconds


@pytest.mark.parametrize("text", ["Berlin", "+25", "1e9", ""])
def test_what_is_no_offset_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="--utc-offset"):
        parse_utc_offset(text)


def test_local_times_become_utc_by_the_offset_and_stay_where_none_is_given() -> None:
    local = Clock.of([Moment(TEN + 3600.0, zoned=False)])

    assert local.in_utc(3600.0).seconds.tolist() == [TEN]
    assert local.in_utc(3600.0).zoned
    assert local.in_utc(None) is local


def test_a_moment_is_written_with_a_zone_where_it_is_known() -> None:
    assert Moment(TEN, zoned=True).iso() == "2026-11-20T10:00:00+00:00"
    assert Moment(TEN, zoned=False).iso() == "2026-11-20T10:00:00"

"""Sizes as people write them, and conversions there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import units
from planner.errors import Message, UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [("70B", 70e9), ("1.5T", 1.5e12), ("405e9", 405e9), ("7b", 7e9), ("0.5M", 5e5), ("15_000", 15e3), ("1,000k", 1e6)],
)  # fmt: skip
def test_counts_are_read(text, value):
    assert units.parse_count(text, "--params") == value


@pytest.mark.parametrize("text", ["", "B", "70X", "-1", "0", "1e999", "nan", "inf", "7 0B", "0x10", "70BB", "１０Z"])
def test_what_is_no_positive_count_is_refused_with_the_flag_named(text):
    with pytest.raises(UsageError, match="--params") as caught:
        units.parse_count(text, "--params")

    assert "70B" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,500", 1500), ("1,234,567.5", 1234567.5), ("12,500k", 12.5e6), ("1,000.5B", 1000.5e9), (" 15,000 ", 15e3)],
)
def test_commas_separate_groups_of_three_digits(text, value):
    assert units.parse_count(text, "--tokens") == value


@pytest.mark.parametrize(
    ("parse", "text", "hint"),
    [
        (units.parse_count, "1,5T", "write 1.5T"),
        (units.parse_count, "0,500T", "write 0.500T"),
        (units.parse_count, "1,0005", "write 1.0005"),
        (units.parse_count, "10,0", "write 10.0"),
        (units.parse_count, "1,5,0", "write one number, like `70B`"),
        (units.parse_count, ",,,1,,B", "write one number, like `70B`"),
        (units.parse_count, "1000,000", "write 1000.000"),
        (units.parse_count, "1.5,000", "write one number"),
        (units.parse_duration_s, "1,5d", "write 1.5d"),
        (units.parse_power_w, "1,5 MW", "write 1.5MW"),
        (units.parse_bytes, "1,5TB", "write 1.5TB"),
    ],
)
def test_any_other_comma_is_refused_since_it_may_be_a_decimal_mark(parse, text, hint):
    with pytest.raises(UsageError, match=r"--flag: `.*` has a comma that does not separate thousands") as caught:
        parse(text, "--flag")

    assert str(caught.value.hint).startswith(hint)


def test_a_negative_count_is_told_what_holds():
    with pytest.raises(UsageError, match="--params: `-7B` must be greater than 0"):
        units.parse_count("-7B", "--params")


@pytest.mark.parametrize("text", ["8x7B", "8 x 22b", "128X17B"])
def test_a_mixture_is_a_name_and_no_count(text):
    with pytest.raises(UsageError, match="mixture of experts") as caught:
        units.parse_count(text, "--params")

    assert caught.value.hint == Message.of("hint.name_mixture")


@pytest.mark.parametrize(
    ("text", "value"), [("80GiB", 80 * 2**30), ("2.5TB", 2.5e12), ("512 MiB", 512 * 2**20), ("1kb", 1e3), ("64B", 64)]
)
def test_bytes_are_read_with_their_unit(text, value):
    assert units.parse_bytes(text, "size") == value


@pytest.mark.parametrize("text", ["80", "80G", "-1GiB", "0GB", "GiB", "9e305TB", "1e22B", "²GB"])
def test_bytes_without_a_unit_are_refused(text):
    with pytest.raises(UsageError, match="is not a size in bytes"):
        units.parse_bytes(text, "size")


@pytest.mark.parametrize("text", ["5", "0W", "-1kW", "1e300GW", "1001GW", "²MW"])
def test_powers_without_a_unit_or_an_end_are_refused(text):
    with pytest.raises(UsageError, match="--power-cap"):
        units.parse_power_w(text, "--power-cap")


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45), ("90min", 5400), ("12h", 43200), ("30d", 2_592_000), ("2w", 1_209_600)]
)  # fmt: skip
def test_durations_are_read(text, seconds):
    assert units.parse_duration_s(text, "--deadline") == seconds


@pytest.mark.parametrize("text", ["30", "0d", "-3d", "soon", "3 months", "1e-300s", "1e300d", "²d"])
def test_durations_without_a_unit_are_refused(text):
    with pytest.raises(UsageError, match="--deadline") as caught:
        units.parse_duration_s(text, "--deadline")

    assert "30d" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(8986, "2.5h"), (3600, "1h"), (3599, "60min"), (20, "0.4min"), (86_400, "1d"), (1.05 * 86_400, "1.1d"),
     (14.04 * 86_400, "15d"), (100.2 * 86_400, "101d"), (0.1 * 24 * 3600, "2.4h")],
)  # fmt: skip
def test_durations_are_written_as_they_are_typed_and_never_too_short(seconds, text):
    assert units.write_duration(seconds) == text
    assert units.parse_duration_s(text, "--deadline") >= seconds * (1 - 1e-9)


@given(st.floats(0, 1e15))
def test_conversions_go_there_and_back(value):
    assert units.gib_from_bytes(value * 2**30) == pytest.approx(value)
    assert units.g_from_kg(units.kg_from_g(value)) == pytest.approx(value)
    assert units.kw_from_w(units.w_from_kw(value)) == pytest.approx(value)
    assert units.mw_from_w(units.w_from_mw(value)) == pytest.approx(value)


def test_the_constants_are_si():
    assert (units.HOUR_S, units.DAY_S, units.KWH_J, units.MWH_J) == (3600, 86400, 3.6e6, 3.6e9)
    assert units.GIB == 2**30


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(32, "32 bytes"), (65536, "64 KiB"), (1.5 * 2**20, "1.5 MiB"), (8 * 2**30, "8 GiB")]
)
def test_a_size_is_written_in_the_largest_unit_that_it_has_one_of(size_bytes, text):
    assert units.write_bytes(size_bytes) == text

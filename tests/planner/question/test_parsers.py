"""Parsers of inputs: what is read, and the sentence that refuses the rest."""

from __future__ import annotations

from datetime import date

import pytest

from planner.errors import UsageError
from planner.question.parsers import (
    LARGEST_WHOLE,
    number,
    one_of,
    parse_amount,
    parse_date,
    parse_power_limit,
    parse_switch,
    parse_text,
    parse_usd,
    probability,
    whole_number,
)

COLOURS = one_of(lambda: ("red", "green"), {"rot": "red"})


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_text, "Any thing", "Any thing"),
        (parse_amount, "1", 1.0),
        (parse_amount, "1.5T", 1.5e12),
        (parse_usd, "$2M", 2e6),
        (parse_usd, "500k", 5e5),
        (parse_date, "2026-11-20", date(2026, 11, 20)),
        (probability(10), "5%", 0.05),
        (probability(10), "0.2", 0.2),
        (parse_switch, "yes", True),
        (parse_switch, "True", True),
        (parse_switch, "no", False),
        (whole_number(), "4k", 4000),
        (whole_number(), "1e8", LARGEST_WHOLE),
        (whole_number(low=0), "0", 0),
        (whole_number(low=0), "00", 0),
        (whole_number(), "4,096", 4096),
        (number(0), "0", 0.0),
        (number(0, above=True), "$1,234.5", 1234.5),
        (number(1), "1", 1.0),
        (COLOURS, "GREEN", "green"),
        (COLOURS, "Rot", "red"),
    ],
)
def test_a_text_is_read_as_people_write_it(parse, text, value):
    parsed = parse(text, "--flag")

    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("parse", "text", "message", "hint"),
    [
        (parse_amount, "0.5", "--flag: `0.5` must be at least 1", "like `1.5T`"),
        (parse_amount, "0", "--flag: `0` must be greater than 0", "`1.5T`"),
        (parse_usd, "lots", "--flag: `lots` is not a number", "like `2M`"),
        (parse_usd, "$0", "--flag: `0` must be greater than 0", "like `2M`"),
        (whole_number(), "lots", "--flag: `lots` is not a number", "like `8`"),
        (parse_date, "2026-02-30", "--flag: `2026-02-30` is not a date", "2026-11-20"),
        (probability(10), "5", "--flag: `5` must be above 0 and below 1 (100%)", "--flag 5%, or --flag 0.05"),
        (probability(90), "99.9", "--flag: `99.9` must be above 0 and below 1 (100%)", "--flag 99.9%, or --flag 0.999"),
        (probability(90), "-5", "--flag: `-5` must be above 0 and below 1 (100%)", "--flag 90%, or --flag 0.9"),
        (probability(10), "0%", "--flag: `0%` must be above 0 and below 1 (100%)", "--flag 0.1"),
        (probability(10), "nan", "--flag: `nan` must be above 0 and below 1 (100%)", "--flag 10%"),
        (probability(10), "low", "--flag: `low` is not a probability", "--flag 10%"),
        (parse_switch, "maybe", "--flag: unknown `maybe`", "yes, no"),
        (whole_number(), "0", "--flag: `0` must be a whole number of at least 1", "--flag 8"),
        (whole_number(), "1.5", "--flag: `1.5` must be a whole number of at least 1", "--flag 8"),
        (whole_number(), "1e9", "--flag: `1e9` must be at most 100,000,000", "--flag 8"),
        (whole_number(low=16), "8", "--flag: `8` must be a whole number of at least 16", "--flag 16"),
        (whole_number(low=16, example=224), "8", "--flag: `8` must be a whole number of at least 16", "--flag 224"),
        (whole_number(low=0, high=3), "4", "--flag: `4` must be at most 3", "--flag 3"),
        (number(0, above=True), "0", "--flag: `0` must be greater than 0", "--flag 2.5"),
        (number(0, example="7"), "-1", "--flag: `-1` must be at least 0", "--flag 7"),
        (number(0), "inf", "--flag: `inf` is not a finite number", "--flag 2.5"),
        (number(0, above=True), "-inf", "--flag: `-inf` is not a finite number", "--flag 2.5"),
        (number(0, above=True), "1e400", "--flag: `1e400` is not a finite number", "--flag 2.5"),
        (number(0), "nan", "--flag: `nan` is not a finite number", "--flag 2.5"),
        (number(0), "free", "--flag: `free` is not a number", "--flag 2.5"),
        (parse_power_limit, "lots", "--flag: `lots` is not a power above 0", "`500W`, or `auto`"),
        (parse_power_limit, "0", "--flag: `0` is not a power above 0", "`500W`, or `auto`"),
        (number(0), "2,10", "--flag: `2,10` has a comma that does not separate thousands", "write 2.10"),
        (parse_usd, "$1,5M", "--flag: `1,5M` has a comma that does not separate thousands", "write 1.5M"),
        (whole_number(), "8,16", "--flag: `8,16` has a comma that does not separate thousands", "give one number, for"),
        (whole_number(), "-8", "--flag: `-8` must be a whole number of at least 1", "--flag 8"),
        (whole_number(low=0), "-1", "--flag: `-1` must be a whole number of at least 0", "--flag 8"),
        (whole_number(), "1e999", "--flag: `1e999` must be at most 100,000,000", "--flag 8"),
        (parse_power_limit, "1,5kW", "--flag: `1,5kW` has a comma that does not separate thousands", "write 1.5kW"),
        (COLOURS, "gren", "--flag: unknown `gren`", "did you mean `green`? choose one of red, green"),
        (COLOURS, "xyz", "--flag: unknown `xyz`", "choose one of red, green"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_hint(parse, text, message, hint):
    with pytest.raises(UsageError) as caught:
        parse(text, "--flag")

    assert caught.value.message == message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "limit_w"), [("500", 500.0), ("500W", 500.0), ("350 W", 350.0), ("0.5kW", 500.0), ("AUTO", None)]
)
def test_a_power_limit_is_in_watts_or_left_to_a_search(text, limit_w):
    assert parse_power_limit(text, "--power-limit") == limit_w


def test_the_hint_of_a_probability_that_was_not_typed_after_a_flag_names_the_value_alone():
    with pytest.raises(UsageError) as caught:
        probability(90)("90", "confidence in the configuration file")

    assert caught.value.hint == "write 90%, or 0.9"

"""The user's TOML files: every mistake with file, line and key."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from planner.errors import InputFileError, UsageError
from planner.units import parse_bytes
from pricing.files.toml_file import read_toml


@pytest.fixture
def toml(tmp_path):
    def make(text):
        path = tmp_path / "own.toml"
        path.write_text(text, encoding="utf-8")
        return read_toml(path)

    return make


def test_amounts_are_exact(toml):
    assert toml("[capital]\nprice = 0.1\n").amount("capital.price") == Decimal("0.1")


def test_a_missing_key_takes_its_default_or_is_an_error(toml):
    file = toml("[use]\nx = 1\n")

    assert file.number("use.y", 0, 1, 0.5) == 0.5
    assert file.word("use.kind", ("a", "b"), "a") == "a"
    assert file.day("use.until") is None
    with pytest.raises(InputFileError, match=r"own.toml:1: use.y: expected a number from 0 to 1, found nothing"):
        file.number("use.y", 0, 1)


@pytest.mark.parametrize("value", ["2", "-0.1", '"many"', "true"])
def test_a_number_out_of_bounds_is_named_with_its_line(toml, value):
    file = toml(f"# mine\n[use]\nratio = {value}\n")

    with pytest.raises(InputFileError, match=r"own.toml:3: use.ratio: expected a number from 0 to 1"):
        file.number("use.ratio", 0, 1)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ('"2.1"', "a number stands without quotes: fee = 2.1"),
        ('"2,10"', "a number stands without quotes: fee = 2.10"),
        ('"5,000"', "docs/pricing.md lists the keys"),  # five, or five thousand
    ],
)
def test_a_number_in_quotes_is_to_be_written_without(toml, value, hint):
    file = toml(f"[use]\nfee = {value}\n")

    for read in (lambda: file.amount("use.fee"), lambda: file.number("use.fee", 0, 9)):
        with pytest.raises(InputFileError) as caught:
            read()
        assert caught.value.hint == hint


def test_words_texts_amounts_and_days_are_checked(toml):
    file = toml('kind = "c"\nname = 3\nfee = -1\nuntil = "soon"\nfrom = 2026-01-02\n')

    with pytest.raises(InputFileError, match=r":1: kind: expected one of a, b, found `c`"):
        file.word("kind", ("a", "b"))
    with pytest.raises(InputFileError, match=r":2: name: expected text, found `3`"):
        file.text_of("name")
    with pytest.raises(InputFileError, match=r":3: fee: expected an amount of at least 0"):
        file.amount("fee")
    with pytest.raises(InputFileError, match=r":4: until: expected a date"):
        file.day("until")
    assert file.day("from") == date(2026, 1, 2)


def test_an_unknown_key_offers_near_ones(toml):
    with pytest.raises(InputFileError) as caught:
        toml("[use]\nutilization_ratio = 0.5\n").only(["use.utilisation_ratio", "power.mean"])

    assert caught.value.message.endswith("own.toml:2: use.utilization_ratio: unknown key")
    assert "use.utilisation_ratio" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        ("[x]\n", "x", "docs/pricing.md"),
        ("[houising]\n", "houising", "did you mean housing?"),
        ("[housing.x]\n", "housing.x", ""),
        ("housing = 3\n", "housing", ""),
    ],
)
def test_an_unknown_table_is_named_though_it_is_empty(toml, text, key, hint):
    with pytest.raises(InputFileError, match=rf"own.toml:1: {key}: unknown key") as caught:
        toml(text).only(("housing.kind", "vendor"))

    assert hint in caught.value.hint


def test_an_empty_table_that_could_hold_keys_is_no_mistake(toml):
    toml("[housing]\n").only(("housing.kind",))


def test_an_unknown_word_offers_near_ones_in_order(toml):
    file = toml('currency = "euro"\n')

    with pytest.raises(InputFileError, match="currency: expected a code such as EUR, found `euro`") as caught:
        file.word("currency", frozenset({"AED", "EUR", "USD"}), like="a code such as EUR")
    assert caught.value.hint == "did you mean EUR?"


def test_what_is_no_toml_is_named_with_its_line(toml):
    with pytest.raises(InputFileError, match=r"own.toml:2: not TOML"):
        toml("[use]\nratio 0.5\n")


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5000 + "]" * 5000,
        "x = " + "{a=" * 300 + "1" + "}" * 300,
        ".".join("a" * 900) + " = 1",
        "x = [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]",
    ],
)
def test_what_lies_too_deep_is_said_to_be_that(toml, text):
    with pytest.raises(InputFileError, match=r"own.toml:1: tables or lists are nested too deeply"):
        toml(text)


@pytest.mark.parametrize("text", ["x = " + "9" * 5000, "x = 1e" + "9" * 30])
def test_a_number_that_python_does_not_read_is_said_to_have_too_many_digits(toml, text):
    with pytest.raises(InputFileError, match=r"own.toml:1: a number has too many digits"):
        toml(text)


def test_an_error_repeats_no_more_than_a_line_of_what_it_found(toml):
    with pytest.raises(InputFileError) as caught:
        toml(f'kind = "{"k" * 1000}"').word("kind", ("a",))

    assert len(caught.value.message) < 300


def test_a_missing_file_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        read_toml(tmp_path / "nothing.toml")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "1e400", "1e16", "0x" + "f" * 5000, "true", '"1"'])
def test_an_amount_that_no_amount_can_be_is_named(toml, value):
    file = toml(f"fee = {value}\n")

    with pytest.raises(InputFileError, match=r"own.toml:1: fee: expected an amount of at least 0 and at most 1e\+15"):
        file.amount("fee")
    with pytest.raises(InputFileError, match=r"own.toml:1: fee: expected a number from 0 to 0.5"):
        file.number("fee", 0, 0.5)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("fee = " + "9" * 5000, "a number has too many digits"),
        ("fee = 1e99999999999999999999", "a number has too many digits"),
        ("a = " + "[" * 5000, "tables or lists are nested too deeply"),
        ("a = " + "{a=" * 5000, "tables or lists are nested too deeply"),
        ("a = 1\0", "not TOML: "),
    ],
    ids=["5000 digits", "exponent", "lists", "tables", "null"],
)
def test_what_python_cannot_read_is_named(toml, text, why):
    with pytest.raises(InputFileError, match=f"own.toml:1: {why}"):
        toml(text)


def test_a_text_is_one_line_of_bounded_length(toml):
    assert toml('name = "a\\u001b[31m\\nb"').text_of("name") == "a [31m b"
    with pytest.raises(InputFileError, match="expected at most 1000 characters, found 1001"):
        toml(f'name = "{"x" * 1001}"').text_of("name")


@pytest.mark.parametrize("value", ['"90"', '"9e305TB"', "{x = 1}", "nan", '"1e400GB"', "0x" + "f" * 5000])
def test_a_size_that_none_can_be_is_named(toml, value):
    with pytest.raises(InputFileError, match=r"own.toml:1: data: expected"):
        toml(f"data = {value}").parsed("data", parse_bytes)


def test_a_size_and_its_default(toml):
    assert toml('data = "2TB"').parsed("data", parse_bytes) == 2e12
    assert toml("").parsed("data", parse_bytes) == 0


def test_what_is_no_file_is_refused_at_once(tmp_path):
    with pytest.raises(InputFileError, match="expected a file, found a directory"):
        read_toml(tmp_path)

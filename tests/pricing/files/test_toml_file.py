"""The user's TOML files: every mistake with file, line and key."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from planner.errors import InputFileError, UsageError
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


def test_words_texts_amounts_and_days_are_checked(toml):
    file = toml('kind = "c"\nname = 3\nfee = -1\nuntil = "soon"\nfrom = 2026-01-02\n')

    with pytest.raises(InputFileError, match=r":1: kind: expected one of a, b, found `c`"):
        file.word("kind", ("a", "b"))
    with pytest.raises(InputFileError, match=r":2: name: expected a text, found `3`"):
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

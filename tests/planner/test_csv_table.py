"""The one writer of tables for spreadsheets: formulas are texts, numbers are numbers."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest

from planner.csv_table import COMMA, EITHER, POINT, csv_table, decimal_mark, guarded, separator_of, with_point


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1"])
def test_a_text_that_a_spreadsheet_would_compute_gets_a_quote_mark(text):
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "H100 = fast", "a-b", "1+1", "'=1"])
def test_other_texts_stay(text):
    assert guarded(text) == text


def test_numbers_stay_numbers_nothing_is_empty_and_booleans_are_lower_case():
    assert csv_table(["a", "b", "c", "d"], [[-1.5, Decimal("-2.50"), None, True]]) == "a,b,c,d\r\n-1.5,-2.50,,true\r\n"


def test_a_number_is_written_as_asked_and_a_text_is_not():
    assert csv_table(["a"], [[0.5], ["x"]], line_end="\n", number=lambda value: f"{value:%}") == "a\n50.000000%\nx\n"


def test_heads_are_guarded_and_cells_are_quoted():
    text = csv_table(["=a"], [['=HYPERLINK("http://x","y"),\nz']])

    assert list(csv.reader(io.StringIO(text))) == [["'=a"], ['\'=HYPERLINK("http://x","y"),\nz']]


def test_the_separator_is_what_the_header_has_most_of():
    assert [separator_of(header) for header in ("id,model", "id;model", "id\tmodel, size\tgpu", "id")] == [
        ",",
        ";",
        "\t",
        ",",
    ]


@pytest.mark.parametrize(
    ("text", "mark", "plain"),
    [
        ("1,5", COMMA, "1.5"), ("0,425", COMMA, "0.425"), ("12345,678", COMMA, "12345.678"), (",5", COMMA, "0.5"),
        ("1.234,5", COMMA, "1234.5"), ("1 234,5", COMMA, "1234.5"), ("1\u202f234,5", COMMA, "1234.5"),
        ("1'234,5", COMMA, "1234.5"), ("1.234.567", COMMA, "1234567"), ("1,5T", COMMA, "1.5T"),
        ("1,234", EITHER, "1.234"), ("8.192", EITHER, "8192"), ("12.000", EITHER, "12000"),
        ("1.5", POINT, "1.5"), ("0.425", POINT, "0.425"), ("1,234.5", POINT, "1,234.5"),
        ("1,234,567", POINT, "1,234,567"), ("1,23,4", None, "1,23,4"), ("1.23.4", None, "1.23.4"), ("5,", COMMA, "5,"),
        ("8", None, "8"), ("OOM", None, "OOM"), ("8x7B", None, "8x7B"), ("", None, ""),
    ],
)  # fmt: skip
def test_a_number_shows_its_decimal_mark_unless_it_can_be_read_in_two_ways(text, mark, plain):
    assert (decimal_mark(text), with_point(text)) == (mark, plain)

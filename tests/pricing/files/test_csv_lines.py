"""A bad line of a CSV is told from the others and keeps its text."""

from __future__ import annotations

from io import StringIO

import pytest

from planner.errors import InputFileError
from pricing.files.csv_lines import csv_lines


def lines_of(text, **more):
    return [
        (
            line.number,
            line.text,
            line.content.message if isinstance(line.content, InputFileError) else line.content.cells,
        )
        for line in csv_lines(StringIO(text, newline=""), "f.csv", ("a", "b"), **more)
    ]


def test_good_and_bad_lines_come_in_order_and_blank_ones_do_not():
    assert lines_of("a,b\n1,2\n\n3\n4,5\n") == [
        (2, "1,2\n", {"a": "1", "b": "2"}),
        (4, "3\n", "f.csv:4: expected 2 cells, found 1"),
        (5, "4,5\n", {"a": "4", "b": "5"}),
    ]


def test_a_quoted_line_end_belongs_to_its_row():
    assert lines_of('a,b\n1,"x\ny"\n3,4\n') == [
        (3, '1,"x\ny"\n', {"a": "1", "b": "x\ny"}),
        (4, "3,4\n", {"a": "3", "b": "4"}),
    ]


def test_the_rows_that_an_unclosed_quote_swallows_are_found_again():
    lines = lines_of('a,b\n1,2\n"oops\n' + "3,4\n" * 3)

    assert [number for number, *_ in lines] == [2, 3, 4, 5, 6]
    assert lines[1] == (3, '"oops\n', "f.csv:3: not CSV: unexpected end of data")
    assert [content for *_, content in lines[2:]] == [{"a": "3", "b": "4"}] * 3


def test_a_cell_that_no_csv_reader_takes_is_one_bad_line():
    lines = lines_of("a,b\n1," + "x" * 140_000 + "\n3,4\n")

    assert [(number, content) for number, _, content in lines] == [
        (2, "f.csv:2: not CSV: field larger than field limit (131072)"),
        (3, {"a": "3", "b": "4"}),
    ]


def test_bytes_that_are_not_utf_8_make_one_bad_line():
    text = b"a,b\n1,caf\xe9\n3,4\n".decode(errors="surrogateescape")

    assert [content for *_, content in lines_of(text)] == [
        "f.csv:2: expected text in UTF-8",
        {"a": "3", "b": "4"},
    ]


def test_good_rows_of_another_kind_are_skipped_where_one_is_wanted():
    assert [number for number, *_ in lines_of("a,b\nx,2\ny,3\nz\n", only=("a", "x"))] == [2, 4]


def test_a_header_that_lacks_a_column_is_refused():
    with pytest.raises(InputFileError, match=r"f.csv:1: b: expected a column of this name"):
        list(csv_lines(["a,c\n"], "f.csv", ("a", "b")))

from pathlib import Path

import pytest

from planner.errors import InputFileError, UsageError
from planner.rows import compact, keyed, near_names, read_rows, unknown_name


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "rows.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def one_row(folder: Path, text: str):
    return read_rows(write(folder, text))[0]


def test_cells_become_typed_values_and_empty_cells_become_none(tmp_path):
    row = one_row(tmp_path, "id,size,count,gated,names\nx, 1.5 ,3,yes,a; b ;\n")

    assert (row.text("id"), row.number("size"), row.integer("count"), row.flag("gated")) == ("x", 1.5, 3, True)
    assert row.words("names") == ("a", "b")
    row = one_row(tmp_path, "id,size,count,gated,names\nx,,,no,\n")
    assert (row.opt_number("size"), row.opt_integer("count"), row.flag("gated"), row.words("names")) == (
        None,
        None,
        False,
        (),
    )


@pytest.mark.parametrize(
    ("cell", "read", "expected"),
    [
        ("fast", lambda row: row.number("value"), "a number of at least 0"),
        ("nan", lambda row: row.number("value"), "a number of at least 0"),
        ("inf", lambda row: row.number("value"), "a number of at least 0"),
        ("-1", lambda row: row.number("value"), "a number of at least 0"),
        ("", lambda row: row.number("value"), "a number of at least 0"),
        ("7", lambda row: row.number("value", low=1, high=5), "a number between 1 and 5"),
        ("1.5", lambda row: row.integer("value"), "a whole number of at least 0"),
        ("", lambda row: row.text("value"), "a text"),
        ("true", lambda row: row.flag("value"), "`yes` or `no`"),
        ("D", lambda row: row.choice("value", ("A", "B")), "one of `A`, `B`"),
    ],
)
def test_a_wrong_cell_is_named_by_file_line_and_column(tmp_path, cell, read, expected):
    row = one_row(tmp_path, f"id,value\n\nx,{cell}\n")

    with pytest.raises(InputFileError) as caught:
        read(row)

    assert caught.value.message == f"rows.csv:3: value: expected {expected}, found `{cell}`"
    assert caught.value.hint == "correct column `value` in line 3 of rows.csv"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "rows.csv:1: expected a header line, found nothing"),
        ("id,name\nx\n", "rows.csv:2: expected 2 cells, found 1"),
        ("id,name\nx,y,z\n", "rows.csv:2: expected 2 cells, found 3"),
        ("name\nx\n", "rows.csv:1: id: expected a column of this name"),
        (b"id\n\xff\n", "rows.csv:1: expected text in UTF-8"),
    ],
)
def test_a_broken_file_is_refused_with_the_place(tmp_path, text, message):
    with pytest.raises(InputFileError) as caught:
        read_rows(write(tmp_path, text), ("id",))

    assert caught.value.message == message


def test_a_byte_order_mark_and_blank_lines_do_no_harm(tmp_path):
    rows = read_rows(write(tmp_path, b"\xef\xbb\xbfid\r\n\r\nx\r\n"), ("id",))

    assert [row.cells for row in rows] == [{"id": "x"}]


def test_a_column_that_nobody_wrote_is_named_when_it_is_asked_for(tmp_path):
    with pytest.raises(InputFileError, match=r"rows\.csv:1: value: expected a column of this name"):
        one_row(tmp_path, "id\nx\n").opt_number("value")


def test_a_missing_file_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        read_rows(tmp_path / "none.csv")


def test_an_id_that_stands_twice_is_refused(tmp_path):
    rows = read_rows(write(tmp_path, "id\nx\nx\n"))

    with pytest.raises(InputFileError, match=r"rows\.csv:3: id: expected an id that no other line has"):
        keyed(rows, lambda row: row.line)


def test_names_are_compared_without_case_and_punctuation():
    names = ("Llama 3.1 70B", "llama-3.1-70b", "llama3.1-70b", "LLAMA_3_1_70b")

    assert {compact(name) for name in names} == {"llama3.1.70b"}
    assert compact("v.1. x.") == "v1x"


def test_what_parts_two_digits_is_kept():
    assert len({compact(name) for name in ("gpt-3-1.3b", "gpt-3-13b", "gpt-31-3b", "gpt-313b")}) == 4


def test_a_misspelt_name_gets_near_names_and_a_foreign_one_gets_none():
    names = ("h100-sxm5-80gb", "h100-pcie-80gb", "b200-sxm-180gb")

    assert near_names("h100-sxm-80gb", names)[0] == "h100-sxm5-80gb"
    assert near_names("b200", names) == ["b200-sxm-180gb"]
    assert near_names("toaster", names) == []
    assert unknown_name("GPU", "toaster", names, "mpplan gpus").hint == "`mpplan gpus` lists them all"

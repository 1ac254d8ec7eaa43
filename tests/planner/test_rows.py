from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from planner.errors import InputFileError, UsageError
from planner.rows import Catalogue, Row, compact, keyed, near_names, parse_decimal, parse_rows, read_rows, unknown_name


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
        ("", lambda row: row.text("value"), "text"),
        ("true", lambda row: row.flag("value"), "`yes` or `no`"),
        ("D", lambda row: row.choice("value", ("A", "B")), "one of `A`, `B`"),
        ("1e", lambda row: row.decimal("value"), "a decimal number of at least 0"),
        ("-0.1", lambda row: row.decimal("value"), "a decimal number of at least 0"),
        ("0", lambda row: row.decimal("value", above_zero=True), "a decimal number above 0"),
        ("2.01", lambda row: row.decimal("value", high=2), "a decimal number of at least 0 and at most 2"),
        ("2026-02-30", lambda row: row.day("value"), "an ISO date such as 2026-08-28"),
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


def test_decimals_are_exact_and_days_are_dates(tmp_path):
    row = one_row(tmp_path, "price,highest,since\n0.10,2,2026-08-28\n")

    assert row.decimal("price") + row.decimal("price") + row.decimal("price") == Decimal("0.3")
    assert row.decimal("highest", high=2) == 2
    assert row.day("since") == date(2026, 8, 28)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.10", "2.10"),
        (" 2,10 ", "2.10"),
        ("0.0892", "0.0892"),
        ("1e-2", "0.01"),
        ("1,234.50", None),
        ("1,2,3", None),
        ("1,100", None),  # 1.1 or 1100
        (" 12,345 ", None),
        ("0,123", "0.123"),
        ("1,2345", "1.2345"),
        ("free", None),
        ("nan", None),
        ("inf", None),
        ("", None),
    ],
)
def test_a_comma_may_be_the_decimal_mark_but_never_separates_thousands(text, value):
    assert parse_decimal(text) == (None if value is None else Decimal(value))


def test_values_that_are_not_from_a_file_are_refused_without_a_line():
    row = Row(file="prices add", line=None, cells={"price": "free"})

    with pytest.raises(
        InputFileError, match=r"^prices add: price: expected a decimal number of at least 0, found `free`"
    ):
        row.decimal("price")


def test_a_line_that_is_not_csv_is_named():
    with pytest.raises(InputFileError, match=r"^f\.csv:2: not CSV: field larger"):
        list(parse_rows("id\n" + "x" * 200_000 + "\n", "f.csv"))


def test_lines_that_were_left_out_count_in_the_numbers_of_those_after_them():
    (row,) = parse_rows("id\nx\n", "f.csv", left_out=7)

    assert row.line == 9
    with pytest.raises(InputFileError, match=r"^f\.csv:9: expected 1 cells, found 2"):
        list(parse_rows("id\nx,y\n", "f.csv", left_out=7))


def test_an_id_is_found_before_the_other_names_are_read(tmp_path):
    def others() -> dict[str, str]:
        raise AssertionError("read")

    catalogue = Catalogue(write(tmp_path, "id\nx-1\n"), lambda row: row.text("id"), aliases=others)

    assert catalogue.get("x-1") == "x-1"
    with pytest.raises(AssertionError, match="read"):
        catalogue.get("X 1")


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


FRUIT = "id,aliases,grams\napple-red,malus; Red Apple,150\napple-green,,140\npear,,170\n"


def catalogue(folder: Path, text: str = FRUIT) -> Catalogue[float]:
    more = {"Boskoop": "apple-red"}
    return Catalogue(
        write(folder, text), lambda row: row.number("grams"), what="fruit", listing="mpplan fruit", aliases=lambda: more
    )


@pytest.mark.parametrize("name", ["apple-red", "Apple Red", "MALUS", "red-apple", "boskoop"])
def test_a_catalogue_finds_a_row_by_id_alias_and_other_names(tmp_path, name):
    assert catalogue(tmp_path).find(name) == 150


def test_a_catalogue_keeps_the_order_of_its_file(tmp_path):
    assert list(catalogue(tmp_path).by_id.items()) == [("apple-red", 150), ("apple-green", 140), ("pear", 170)]


def test_an_unknown_name_is_answered_with_the_ids_of_similar_ones(tmp_path):
    assert catalogue(tmp_path).get("plum") is None
    with pytest.raises(UsageError) as caught:
        catalogue(tmp_path).find("bosskoop")

    assert caught.value.message == "unknown fruit `bosskoop`"
    assert caught.value.hint == "did you mean `apple-red`? `mpplan fruit` lists them all"


def test_a_damaged_row_is_refused_when_it_is_asked_for_and_not_before(tmp_path):
    damaged = catalogue(tmp_path, FRUIT.replace("170", "heavy"))

    assert damaged.get("apple-red") == 150
    for ask in (lambda: damaged.get("pear"), lambda: damaged.by_id):
        with pytest.raises(InputFileError, match=r"rows\.csv:4: grams: expected a number of at least 0, found `heavy`"):
            ask()


def test_a_catalogue_builds_each_value_once(tmp_path):
    built = Catalogue(write(tmp_path, FRUIT), lambda row: [row.text("id")])

    assert built.find("pear") is built.find("pear") is built.by_id["pear"]

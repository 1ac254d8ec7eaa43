"""The price book: shipped rows are sound, and what is wrong in a file is said with its line."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from planner.errors import InputFileError, UsageError
from planner.hardware.catalogue import load_gpus
from pricing.book.reading import load_book, load_user_book, read_book, refuse_bad_rows, shipped_book, user_book_path
from pricing.book.rows import COLUMNS, COMMITMENTS, PriceBook
from pricing.book.user_book import book_text

GOOD = "x1,h100-sxm5-80gb,acme,,,8,on-demand,2.50,USD,provider,2026-10-01,2026-10-01,test,test,"


def book_with(**changes):
    cells = dict(zip(COLUMNS, GOOD.split(","), strict=True)) | changes
    return ",".join(COLUMNS) + "\n" + ",".join(cells.values()) + "\n"


@pytest.fixture
def book(tmp_path):
    """Writes a price book and reads it."""

    def read(text):
        path = tmp_path / "mine.csv"
        path.write_text(text, encoding="utf-8")
        whole = read_book(path)
        refuse_bad_rows(whole)
        return whole

    return read


def test_shipped_rows_are_of_catalogue_gpus_with_source_and_date():
    for row in shipped_book().rows:
        assert row.gpu in load_gpus(), row.id
        assert row.source
        assert row.date_basis
        assert date(2023, 1, 1) <= row.date_earliest <= row.date_latest


def test_no_shipped_row_is_dated_after_the_day_it_was_written():
    assert max(row.date_latest for row in shipped_book().rows) == date(2026, 11, 20)  # it would outlast newer prices


@pytest.mark.parametrize(("day", "unsure"), [("2026-03-31", False), ("2026-04-01", True), ("2026-09-28", True),
                                             ("2026-09-29", False)])  # fmt: skip
def test_the_age_of_an_interval_is_unsure_until_all_of_it_is_stale(row, day, unsure):
    vague = row(date_earliest=date(2025, 12, 31), date_latest=date(2026, 6, 30))

    assert vague.may_be_stale(date.fromisoformat(day)) is unsure
    assert not row(day="2026-06-30").may_be_stale(date.fromisoformat(day))


def test_shipped_prices_are_plausible_per_gpu_hour():
    assert len(shipped_book().rows) == 318
    for row in shipped_book().rows:
        assert Decimal("0.03") < row.price_per_gpu_h < 20, row.id


def test_shipped_spot_prices_are_below_on_demand_of_the_same_row():
    by_id = {row.id: row for row in shipped_book().rows}
    pairs = [(row, by_id[row.id.removesuffix("-spot")]) for row in by_id.values()
             if row.commitment == "spot" and row.id.removesuffix("-spot") in by_id]  # fmt: skip

    assert len(pairs) > 50
    assert all(spot.price_per_gpu_h < full.price_per_gpu_h for spot, full in pairs)


def test_shipped_rows_hold_every_commitment_but_none_twice():
    ids = [row.id for row in shipped_book().rows]

    assert len(ids) == len(set(ids))
    assert {row.commitment for row in shipped_book().rows} == set(COMMITMENTS)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"price_per_gpu_h": "0"}, "price_per_gpu_h: expected a decimal number above 0, found `0`"),
        ({"price_per_gpu_h": "-2.5"}, "price_per_gpu_h: expected a decimal number above 0"),
        ({"price_per_gpu_h": "free"}, "price_per_gpu_h: expected a decimal number above 0, found `free`"),
        ({"price_per_gpu_h": "349"}, "at most 200 USD per GPU-hour (is it per instance, or in cents?), found `349`"),
        ({"currency": "$"}, "currency: expected an ISO 4217 code such as USD, found `$`"),
        ({"currency": "XYZ"}, "currency: expected an ISO 4217 code such as USD, found `XYZ`"),
        ({"commitment": "forever"}, "commitment: expected one of `on-demand`, `spot`, `1y`, `3y`"),
        ({"seller": "friend"}, "seller: expected one of"),
        ({"date_latest": "2026-13-01"}, "date_latest: expected an ISO date"),
        ({"date_latest": "2025-01-01"}, "date_latest: expected a day not before date_earliest"),
        ({"gpus_per_instance": "0"}, "gpus_per_instance: expected a whole number of at least 1"),
        ({"source": ""}, "source: expected text"),
    ],
)
def test_a_wrong_cell_is_named_with_file_line_and_what_was_expected(book, tmp_path, changes, problem):
    with pytest.raises(InputFileError) as caught:
        book(book_with(**changes))

    assert caught.value.message.startswith(f"{tmp_path / 'mine.csv'}:2: ")
    assert problem in caught.value.message


def test_a_missing_column_is_named(book):
    with pytest.raises(InputFileError, match=r"mine.csv:1: provider: expected a column of this name"):
        book(book_with().replace(",provider,", ",whose,", 1))


def test_a_line_cut_off_in_the_middle_is_named(book):
    with pytest.raises(InputFileError, match=r"mine.csv:3: expected 15 cells, found 3"):
        book(book_with() + "x2,h100-sxm5-80gb,ac\n")


def test_an_id_that_occurs_twice_is_named(book):
    with pytest.raises(InputFileError, match=r"mine.csv:3: id: expected an id that no other line has, found `x1`"):
        book(book_with() + GOOD + "\n")


def test_a_byte_order_mark_is_read_over(book):
    assert book("\ufeff" + book_with()).rows[0].id == "x1"


def test_a_price_may_have_a_decimal_comma(book):
    assert book(book_with(price_per_gpu_h='"2,45"')).rows[0].price_per_gpu_h == Decimal("2.45")


def test_a_price_whose_comma_may_separate_thousands_is_refused(book):
    with pytest.raises(
        InputFileError, match=r"mine.csv:2: price_per_gpu_h: expected a number with a point as decimal "
    ):
        book(book_with(price_per_gpu_h='"1,100"', currency="JPY"))


def test_a_book_that_is_written_reads_back_the_same_but_for_line_ends_in_cells(book, row):
    rows = (row(id="a", notes='with "quotes", commas\nand lines'), row("3.1", id="b", commitment="spot", region="us"))

    assert book(book_text(rows)).rows == (replace(rows[0], notes='with "quotes", commas and lines'), rows[1])


def test_only_rows_of_one_gpu_are_read_where_asked(data_home, row):
    data_home.mkdir(parents=True)
    user_book_path().write_text(book_text([row(id="a"), row(id="b", gpu="l4")]), encoding="utf-8")

    assert [own.id for own in load_user_book("l4").rows] == ["b"]
    assert [own.id for own in load_user_book().rows] == ["a", "b"]


def test_the_users_rows_stand_beside_the_shipped_ones(data_home, row):
    data_home.mkdir(parents=True)
    user_book_path().write_text(book_text([row(id="mine")]), encoding="utf-8")

    assert shipped_book("h100-sxm5-80gb").rows == tuple(
        row for row in shipped_book().rows if row.gpu == "h100-sxm5-80gb"
    )
    assert {"mine", "p032"} <= {row.id for row in load_book("h100-sxm5-80gb").rows}


def test_one_id_for_two_different_rows_is_refused(row):
    with pytest.raises(UsageError, match="two different price rows have the id `a`"):
        PriceBook(rows=(row(id="a"),)).plus([row("9.99", id="a")])


def test_a_date_is_shown_as_a_day_or_as_an_interval(row):
    assert row().date_text == "2026-10-01"
    assert row(date_earliest=date(2026, 1, 1)).date_text == "2026-01-01/2026-10-01"


@pytest.mark.parametrize(
    ("as_of", "stale"), [(date(2026, 11, 25), False), (date(2026, 11, 26), False), (date(2026, 11, 27), True)]
)
def test_a_row_is_stale_from_the_91st_day_after_its_newest_day(row, as_of, stale):
    assert row(day="2026-08-28").is_stale(as_of) is stale
    assert row(date_earliest=date(2026, 1, 1), date_latest=date(2026, 8, 28)).is_stale(as_of) is stale


def test_a_row_whose_interval_has_not_ended_is_not_stale(row):
    assert not row(date_earliest=date(2026, 1, 1), date_latest=date(2026, 12, 31)).is_stale(date(2026, 11, 27))

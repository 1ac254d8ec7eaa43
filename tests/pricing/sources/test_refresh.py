"""Refreshing the book: history is kept, nothing is replaced, and a failure leaves everything as it was."""

from __future__ import annotations

import json
from datetime import date

import pytest

from planner.errors import InputFileError, UsageError
from pricing import quote_gpu
from pricing.book.reading import load_user_book, user_book_path
from pricing.sources.base import Fetched, Read, Source
from pricing.sources.refresh import newest_stored, refresh, stored_dir
from pricing.sources.web import FetchError


def a_source(answers, row):
    """A source that reads `[price]` as one H100 row of `acme`; each fetch takes the next answer."""

    def fetch(address):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Fetched(source="acme", text=answer)

    def read(fetched, day):
        try:
            prices = json.loads(fetched.text)
        except ValueError as error:
            raise FetchError("acme: garbage") from error
        rows = [row(str(price), id="new", date_earliest=day, date_latest=day) for price in prices]
        return Read(rows=tuple(rows), skipped={})

    return Source(name="acme", what="test", address="nowhere", fetch=fetch, read=read)


def test_a_refresh_adds_dated_rows_and_keeps_the_old_ones(row, today):
    source = a_source(["[2.5]", "[2.2]"], row)

    refresh(source, date(2026, 11, 1))
    done = refresh(source, today)

    assert [str(row.price_per_gpu_h) for row in load_user_book().rows] == ["2.5", "2.2"]
    assert len(done.added.added) == 1
    assert quote_gpu("h100-sxm5-80gb", provider="acme", as_of=today).usd_per_gpu_h.mid == 2.2
    assert quote_gpu("h100-sxm5-80gb", provider="acme", as_of=date(2026, 11, 2)).usd_per_gpu_h.mid == 2.5


def test_the_same_answer_on_the_same_day_adds_nothing(row, today):
    source = a_source(["[2.5]", "[2.5]"], row)
    refresh(source, today)

    done = refresh(source, today)

    assert (len(done.added.added), done.added.known) == (0, 1)


def test_another_price_on_the_same_day_does_not_replace_the_first(row, today):
    source = a_source(["[2.5]", "[9.9]"], row)
    refresh(source, today)

    done = refresh(source, today)

    assert len(done.added.conflicts) == 1
    assert [str(row.price_per_gpu_h) for row in load_user_book().rows] == ["2.5"]


@pytest.mark.parametrize("answer", [FetchError("acme: HTTP 503"), "<html>", "[]"])
def test_a_source_that_fails_leaves_book_and_store_as_they_were(row, today, answer):
    source = a_source(["[2.5]", answer], row)
    refresh(source, date(2026, 11, 1))
    before = user_book_path().read_bytes(), sorted(path.name for path in stored_dir().iterdir())

    done = refresh(source, today)

    assert done.added is None
    assert "acme" in done.failure
    assert (user_book_path().read_bytes(), sorted(path.name for path in stored_dir().iterdir())) == before


def test_what_was_fetched_can_be_read_again_without_a_network(row, today):
    source = a_source(["[2.5]"], row)
    refresh(source, date(2026, 11, 1))
    user_book_path().unlink()

    done = refresh(source, today, offline=True)

    assert done.day == date(2026, 11, 1)
    assert [row.date_latest for row in load_user_book().rows] == [date(2026, 11, 1)]


def test_the_newest_stored_answer_not_after_the_day_is_read(row, today):
    source = a_source(["[1]", "[2]", "[3]"], row)
    for day in (date(2026, 10, 1), date(2026, 11, 1), date(2026, 12, 1)):
        refresh(source, day)

    fetched, day = newest_stored(source, today)

    assert (fetched.text, day) == ("[2]", date(2026, 11, 1))


def test_with_nothing_stored_offline_is_an_error(row, today):
    with pytest.raises(UsageError, match="no answer from acme is stored"):
        refresh(a_source([], row), today, offline=True)


def test_a_book_without_its_header_is_named_and_left_alone(row, today):
    refresh(a_source(["[2.5]"], row), date(2026, 11, 1))
    damaged = user_book_path().read_text(encoding="utf-8").replace(",gpu,", ",what,")
    user_book_path().write_text(damaged, encoding="utf-8")

    with pytest.raises(InputFileError, match=r"prices.csv:1: gpu: expected a column of this name"):
        refresh(a_source(["[2.2]"], row), today)
    assert user_book_path().read_text(encoding="utf-8") == damaged


def test_a_bad_row_of_the_book_stays_where_it_is_and_new_rows_follow(row, today):
    refresh(a_source(["[2.5]"], row), date(2026, 11, 1))
    damaged = user_book_path().read_text(encoding="utf-8").replace("2.5", "free")
    user_book_path().write_text(damaged, encoding="utf-8")

    refresh(a_source(["[2.2]"], row), today)

    assert user_book_path().read_text(encoding="utf-8").startswith(damaged)
    assert [str(row.price_per_gpu_h) for row in load_user_book().rows] == ["2.2"]
    assert load_user_book().set_aside.lines() == "2"


def test_rows_that_no_book_can_hold_are_left_out_and_counted(row, today):
    def read(fetched, day):
        good, bad = row("2.5", id="new", day="2026-11-20"), row("2.5", id="new", currency="usd", day="2026-11-20")
        return Read(rows=(good, bad, bad) if fetched.text == "some" else (bad,), skipped={})

    def fetch(address):
        return Fetched(source="acme", text=address)

    source = Source(name="acme", what="test", address="some", fetch=fetch, read=read)

    assert refresh(source, today).skipped == {"currency: expected an ISO 4217 code such as USD": 2}
    assert len(load_user_book().rows) == 1
    assert "not one price that can be kept" in refresh(source, today, address="none").failure


def test_files_that_are_no_stored_answer_are_passed_over(row, today):
    refresh(a_source(["[2.5]"], row), date(2026, 11, 1))
    for name in ("acme-2026-13-45.json", "acme-.json", "acme-2026-11-02-copy.json"):
        (stored_dir() / name).write_text("?", encoding="utf-8")

    assert newest_stored(a_source([], row), today)[1] == date(2026, 11, 1)

"""Refreshing the book: history is kept, nothing is replaced, and a failure leaves everything as it was."""

from __future__ import annotations

import json
from datetime import date

import pytest

from planner.errors import InputFileError, UsageError
from pricing import quote_gpu
from pricing.book.rows import load_user_book, user_book_path
from pricing.sources.base import Fetched, FetchError, Read, Source
from pricing.sources.refresh import newest_stored, refresh, stored_dir


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
    with pytest.raises(UsageError, match="no answer of acme is stored"):
        refresh(a_source([], row), today, offline=True)


def test_a_damaged_book_is_named_and_left_alone(row, today):
    refresh(a_source(["[2.5]"], row), date(2026, 11, 1))
    damaged = user_book_path().read_text(encoding="utf-8").replace("2.5", "free")
    user_book_path().write_text(damaged, encoding="utf-8")

    with pytest.raises(InputFileError, match=r"prices.csv:2: price_per_gpu_h"):
        refresh(a_source(["[2.2]"], row), today)
    assert user_book_path().read_text(encoding="utf-8") == damaged

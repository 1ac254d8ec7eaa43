"""The user's book: added to, never overwritten, written whole or not at all."""

from __future__ import annotations

import os
import threading

import pytest

from planner.errors import UsageError
from pricing.book.rows import load_user_book, user_book_path
from pricing.book.user_book import add_rows, row_id, write_book, write_whole


def test_added_rows_get_ids_of_what_they_say(row):
    done = add_rows([row("2.5", id="new"), row("2.6", id="new", region="us")])

    assert [row.id for row in done.added] == [row.id for row in load_user_book().rows]
    assert all(row.id.startswith("r") and len(row.id) == 13 for row in done.added)
    assert row_id(row("2.5", id="x")) == done.added[0].id


def test_a_row_that_is_there_is_not_added_again(row):
    add_rows([row("2.5", id="new")])

    done = add_rows([row("2.50", id="new"), row("2.5", id="new")])

    assert (done.added, done.known, done.conflicts) == ((), 2, ())


def test_another_price_for_the_same_thing_is_a_conflict_and_the_old_one_stays(row):
    add_rows([row("2.5", id="new")])

    done = add_rows([row("9.9", id="new")])

    assert [str(row.price_per_gpu_h) for row in done.conflicts] == ["9.9"]
    assert [str(row.price_per_gpu_h) for row in load_user_book().rows] == ["2.5"]


def test_two_that_add_at_once_lose_no_row(row):
    threads = [threading.Thread(target=add_rows, args=([row("2.5", id="new", provider=f"p{at}")],)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {row.provider for row in load_user_book().rows} == {f"p{at}" for at in range(8)}


def test_a_place_that_cannot_be_written_is_said_and_nothing_is_left_there(tmp_path, row):
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")

    with pytest.raises(UsageError, match="cannot write"):
        write_book(blocked / "prices.csv", [row()])
    assert blocked.read_text(encoding="utf-8") == "in the way"


def test_a_data_folder_that_cannot_be_made_is_said(tmp_path, monkeypatch, row):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))

    with pytest.raises(UsageError, match="cannot"):
        add_rows([row()])


def test_a_write_that_breaks_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "prices.csv"
    path.write_text("old", encoding="utf-8")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UsageError, match="No space left on device"):
        write_whole(path, "new")

    assert path.read_text(encoding="utf-8") == "old"
    assert [row.name for row in tmp_path.iterdir()] == ["prices.csv"]


def test_there_is_no_book_before_the_first_row():
    assert load_user_book().rows == ()
    assert not user_book_path().exists()

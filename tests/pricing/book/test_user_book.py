"""The user's book: added to, never overwritten, written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import threading

import pytest

from planner.errors import InputFileError, UsageError
from pricing.book.reading import load_book, load_user_book, user_book_path
from pricing.book.user_book import add_rows, book_text, row_id, write_whole


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


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_is_a_book_without_rows_that_takes_some(row, content):
    user_book_path().parent.mkdir(parents=True)
    user_book_path().write_bytes(content)

    assert load_user_book().rows == ()
    add_rows([row("2.5", id="new")])
    assert [str(row.price_per_gpu_h) for row in load_user_book().rows] == ["2.5"]


def test_a_place_that_cannot_be_written_is_said_and_nothing_is_left_there(tmp_path, row):
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")

    with pytest.raises(UsageError, match="cannot write"):
        write_whole(blocked / "prices.csv", book_text([row()]))
    assert blocked.read_text(encoding="utf-8") == "in the way"


def test_a_data_folder_that_cannot_be_made_is_said(tmp_path, monkeypatch, row):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))

    with pytest.raises(UsageError, match="cannot"):
        add_rows([row()])


def test_a_disk_without_file_locks_is_said_and_no_row_is_written(data_home, monkeypatch, row):
    def no_locks(file: object, kind: int) -> None:  # as flock(2) does on some network drives
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(fcntl, "flock", no_locks)

    with pytest.raises(UsageError, match=r"cannot lock `.*\.lock`: No locks available") as caught:
        add_rows([row()], skip_invalid=False)

    assert "XDG_DATA_HOME" in str(caught.value.hint)
    assert not user_book_path().exists()


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


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({"notes": "x\ry"}, "x y"),
        ({"notes": "x\n\ny\x1b[31m"}, "x y [31m"),
        ({"notes": '"quoted", and more'}, '"quoted", and more'),
        ({"notes": "half \ud800 a pair"}, "half a pair"),
    ],
)
def test_whatever_is_written_is_read_back(row, changes, kept):
    done = add_rows([row(id="new", **changes)])

    assert load_user_book().rows == done.added
    assert load_user_book().rows[0].notes == kept
    assert load_user_book().set_aside.count == 0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"notes": "x" * 140_000}, "notes: expected at most 10000 characters"),
        ({"currency": "usd"}, "currency: expected an ISO 4217 code such as USD"),
        ({"source": "\x07"}, "source: expected text"),
        ({"price": "1e400", "currency": "EUR"}, "price_per_gpu_h: expected a decimal number above 0"),
        ({"price": "NaN"}, "price_per_gpu_h: expected a decimal number above 0"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(row, changes, reason):
    assert add_rows([row(id="new", **changes)]).refused == {reason: 1}
    assert not user_book_path().exists()
    with pytest.raises(InputFileError, match=f"1 of the new rows cannot be kept: {reason}"):
        add_rows([row(id="new", **changes)], skip_invalid=False)


def test_bad_lines_further_columns_and_a_missing_line_end_survive_an_addition(data_home, row):
    old = "more," + book_text([row(id="a")]).replace("\n", "\nmine,", 1) + "not a row"
    data_home.mkdir(parents=True)
    user_book_path().write_bytes(old.encode() + b" caf\xe9")

    add_rows([row("2.6", id="new", region="us")])

    text = user_book_path().read_bytes()
    assert text.startswith(old.encode() + b" caf\xe9\n,r")
    assert [str(kept.price_per_gpu_h) for kept in load_user_book().rows] == ["2.50", "2.6"]
    assert load_user_book().set_aside.lines() == "3"


def test_an_unclosed_quote_costs_only_its_own_line(data_home, row):
    data_home.mkdir(parents=True)
    user_book_path().write_text(book_text([row(id="a")]) + '"oops\n' + book_text([row(id="b")]), encoding="utf-8")

    add_rows([row("2.6", id="new", region="us")])

    assert [kept.id for kept in load_user_book().rows[:2]] == ["a", "b"]
    assert load_user_book().set_aside.lines() == "3, 4"


def test_no_two_rows_share_an_id_by_a_bar_in_a_cell(row):
    done = add_rows([row(id="new", region="a|b", instance="c"), row(id="new", region="a", instance="b|c")])

    assert len({kept.id for kept in done.added}) == 2


def test_a_row_may_not_take_the_id_of_another_shipped_row(data_home, row):
    data_home.mkdir(parents=True)
    user_book_path().write_text(book_text([row(id="p032"), row(id="mine")]), encoding="utf-8")

    book = load_book()

    assert book.set_aside.lines() == "2"
    assert "mine" in {kept.id for kept in book.rows}


def test_there_is_no_book_before_the_first_row():
    assert load_user_book().rows == ()
    assert not user_book_path().exists()


def test_a_price_that_is_not_plausible_in_dollars_is_not_kept(data_home, row):
    data_home.mkdir(parents=True)
    rates = "currency,usd_per_unit,date,source\nJPY,0.0065,2026-10-01,bank\n"
    (data_home / "exchange_rates.csv").write_text(rates, encoding="utf-8")
    rows = [row("60000", id="new", currency="JPY"), row("400", id="new", currency="JPY", provider="tokyo")]

    done = add_rows(rows)

    assert [row.provider for row in done.added] == ["tokyo"]
    assert done.refused == {
        "price_per_gpu_h: expected at most 200 USD per GPU-hour, at 0.0065 USD per JPY of 2026-10-01": 1
    }
    with pytest.raises(InputFileError, match="expected at most 200 USD per GPU-hour"):
        add_rows(rows, skip_invalid=False)


def test_a_book_that_a_team_shares_by_a_link_gets_the_row_and_keeps_its_permissions(data_home, tmp_path, row):
    shared = tmp_path / "team.csv"
    shared.write_text(book_text([]), encoding="utf-8")
    shared.chmod(0o664)
    book = user_book_path()
    book.parent.mkdir(parents=True, exist_ok=True)
    book.symlink_to(shared)
    add_rows([row("2.5", id="new")])

    assert book.is_symlink()
    assert len(shared.read_text(encoding="utf-8").splitlines()) == 2
    assert stat.S_IMODE(shared.stat().st_mode) == 0o664
    assert (tmp_path / "team.lock").exists()  # all who share the book wait for each other


def test_a_new_book_can_be_read_by_whom_the_umask_allows(data_home, row):
    mask = os.umask(0o022)
    try:
        add_rows([row("2.5", id="new")])
    finally:
        os.umask(mask)

    assert stat.S_IMODE(user_book_path().stat().st_mode) == 0o644

"""Mending the user's book: nothing without being told to, no good row lost, no bad line thrown away."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError
from pricing.book.reading import load_user_book, user_book_path
from pricing.book.repair import aside_path, repair_book
from pricing.book.user_book import book_text


@pytest.fixture
def book(data_home, row):
    """Writes a book with two good rows and further lines between them."""

    def write(between, end=""):
        data_home.mkdir(parents=True)
        header, first, second = book_text([row(id="a"), row(id="b")]).splitlines(keepends=True)
        user_book_path().write_bytes((header + first + between + second + end).encode(errors="surrogateescape"))

    return write


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(book, data_home):
    book("junk\n")

    done = repair_book(write=False)

    assert (done.kept, done.bad.count, done.bad.lines()) == (2, 1, "3")
    assert [path.name for path in data_home.iterdir()] == ["prices.csv"]


@pytest.mark.parametrize("bad", ["junk\n", "a,b,c\r\n", '"open\n', "caf\udce9\n", "x" * 140_000 + "\n", "a\rb\n"])
def test_good_rows_stay_and_bad_lines_move_beside_the_book_byte_for_byte(book, bad):
    book(bad)

    repair_book(write=True)

    assert [row.id for row in load_user_book().rows] == ["a", "b"]
    assert load_user_book().set_aside.count == 0
    moved = aside_path().read_bytes().partition(b"\n")[2]
    assert moved == bad.encode(errors="surrogateescape")
    assert repair_book(write=True).bad.count == 0


def test_a_second_repair_adds_to_what_was_set_aside(book):
    book("first\n", end="second")
    repair_book(write=True)
    with user_book_path().open("a", encoding="utf-8") as file:
        file.write("third\n")

    repair_book(write=True)

    assert aside_path().read_text(encoding="utf-8").splitlines()[1:] == ["first", "second", "third"]


def test_a_book_without_a_header_moves_whole_and_an_empty_one_takes_its_place(data_home, row):
    data_home.mkdir(parents=True)
    text = book_text([row(id="a")]).replace(",gpu,", ",what,")
    user_book_path().write_text(text, encoding="utf-8")
    with pytest.raises(InputFileError) as caught:
        load_user_book()
    assert caught.value.hint == "`mpplan prices repair` repairs the book"

    assert repair_book(write=True).kept == 0

    assert load_user_book().rows == ()
    assert text in aside_path().read_text(encoding="utf-8")


def test_without_a_book_there_is_nothing_to_mend(data_home):
    assert repair_book(write=False).kept == 0
    assert not data_home.exists()

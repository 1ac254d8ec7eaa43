"""Files of other tools before anything is known of them: archives, encodings, numbers."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from planner.errors import InputFileError
from planner.imported import source as module
from planner.imported.source import SourceFile, clean_name, file_name
from planner.runlog.amounts import as_number
from tests.planner.imported.readings import text_file


def test_an_archive_is_read_as_what_it_holds_and_known_by_its_own_hash() -> None:
    packed = gzip.compress(b"hello", mtime=0)
    file = SourceFile(name="a.gz", content=packed)

    assert file.text == "hello"
    assert file.sha256 == SourceFile(name="b", content=packed).sha256 != text_file("hello").sha256


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (gzip.compress(b"hello" * 100, mtime=0)[:-12], "ends early"),
        (gzip.compress(b"a", mtime=0) + gzip.compress(b"b", mtime=0), "more data after it"),
        (b"\x1f\x8bnot an archive", "gzip"),
        (b"text\0text", "binary"),
        (b"\xff\xfe", "UTF-8"),
    ],
    ids=["cut off", "two archives", "no archive", "a zero byte", "another encoding"],
)
def test_what_is_no_text_is_refused_with_its_place(content: bytes, what: str) -> None:
    file = SourceFile(name="log.gz", content=content)

    with pytest.raises(InputFileError, match=what) as caught:
        _ = file.text
    assert str(caught.value).startswith("log.gz:1: ")
    assert file.head == ""


def test_an_archive_that_unpacks_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_BYTES", 2**20)
    bomb = SourceFile(name="trace.json.gz", content=gzip.compress(b" " * 2**22))

    with pytest.raises(InputFileError, match="at most 1 MiB when unpacked"):
        _ = bomb.text


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e999", "", "1_0", "²", "0x10", "9" * 5000, True, None, -0.5,
                                   float("nan"), float("inf"), 10**400, [1], "1 W", "1e-300"])  # fmt: skip
def test_what_is_no_amount_is_none(value: object) -> None:
    assert as_number(value) is None


@pytest.mark.parametrize(("value", "amount"), [("645.12", 645.12), (" 3 ", 3.0), ("1e3", 1000.0), (7, 7.0), ("0", 0.0)])
def test_amounts_are_read_as_tools_print_them(value: object, amount: float) -> None:
    assert as_number(value) == amount


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": NaN}', '{"a": Infinity}', "{", '{"a": ' + "9" * 5000 + "}"])
def test_json_that_is_none_or_not_finite_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(InputFileError, match=r"^trace\.json:1: expected"):
        text_file(text, "trace.json").document()


def test_names_of_files_and_windows_lose_what_would_break_a_line() -> None:
    assert file_name(Path("folder/po\x1b[31mwer\n.csv")) == "po [31mwer .csv"
    assert clean_name("step\x00\u202e" + "x" * 300) == "step " + "x" * 54 + "…"

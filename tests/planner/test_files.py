"""Files and pipes of a bounded size are read; whatever else a path names is refused at once."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from planner.errors import InputFileError, UsageError
from planner.files import open_file, read_bytes, read_text, replace_file


def test_a_file_is_read_whole_and_its_mark_is_dropped(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfcaf\xc3\xa9\r\n")

    assert read_text(tmp_path / "a.txt") == "café\r\n"


def test_a_directory_and_a_device_are_refused(tmp_path):
    for path, kind in ((tmp_path, "a directory"), (Path("/dev/zero"), "a device")):
        with pytest.raises(InputFileError, match=f"expected a file, found {kind}"):
            open_file(path)


def test_a_pipe_is_read_to_its_end_and_one_that_nobody_writes_is_empty(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert read_bytes(pipe) == b""

    handle = os.open(pipe, os.O_RDWR)  # a writer, as `<(zcat plan.json.gz)` has one
    writer = threading.Timer(0.2, lambda: (os.write(handle, b"text"), os.close(handle)))
    writer.start()
    assert read_text(pipe) == "text"
    writer.join()


def test_a_pipe_is_not_read_beyond_the_limit(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    handle = os.open(pipe, os.O_RDWR)
    os.write(handle, b"12345")

    with pytest.raises(InputFileError, match="larger than 4 bytes"):
        read_bytes(pipe, most_bytes=4)
    os.close(handle)


def test_a_file_larger_than_the_limit_is_refused_and_one_of_just_that_size_is_read(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")

    assert read_bytes(tmp_path / "a", most_bytes=5) == b"12345"
    with pytest.raises(InputFileError, match="larger than 4 bytes"):
        read_bytes(tmp_path / "a", most_bytes=4)


def test_a_missing_file_or_a_name_that_no_file_can_have_is_a_usage_error(tmp_path):
    for name in ("nothing", "a\0b", "x" * 300):
        with pytest.raises(UsageError, match="cannot read"):
            read_bytes(tmp_path / name)


def test_text_that_is_not_utf_8_is_invalid_under_the_name_given(tmp_path):
    (tmp_path / "a").write_bytes(b"\xff")

    with pytest.raises(InputFileError, match=r"mine:1: expected text in UTF-8"):
        read_text(tmp_path / "a", "mine")


def test_a_file_that_replaces_another_is_never_more_open_than_it(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o600)
    replace_file(path, b"new")

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_replaced_stays_and_nothing_is_left_beside_it(tmp_path):
    folder = tmp_path / "folder"
    (folder / "inside").mkdir(parents=True)

    with pytest.raises(IsADirectoryError):
        replace_file(folder, b"new")
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "missing" / "file", b"new")
    assert list(tmp_path.iterdir()) == [folder]
    assert [path.name for path in folder.iterdir()] == ["inside"]

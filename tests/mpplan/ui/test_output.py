"""Outputs: checked before the work, written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from mpplan.ui.output import new_output, new_record, open_output
from planner.errors import UsageError


def test_a_dash_is_stdout(capsys):
    output = open_output("-")
    output.write("text\n")

    assert output.is_stdout
    assert capsys.readouterr().out == "text\n"


def test_checking_creates_nothing(tmp_path):
    open_output(str(tmp_path / "plan.html"))

    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_with_the_usual_permissions(tmp_path):
    path = tmp_path / "plan.html"
    open_output(str(path)).write("größer ≥\n")
    mask = os.umask(0)
    os.umask(mask)

    assert path.read_text(encoding="utf-8") == "größer ≥\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    assert list(tmp_path.iterdir()) == [path]


def test_an_existing_file_is_replaced_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "plan.html"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    open_output(str(path)).write("new")

    assert path.read_text(encoding="utf-8") == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_is_followed_not_replaced(tmp_path):
    target = tmp_path / "real.html"
    target.write_text("old", encoding="utf-8")
    link = tmp_path / "link.html"
    link.symlink_to(target)
    open_output(str(link)).write("new")

    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"


def test_a_device_is_written_in_place():
    open_output(os.devnull).write("text")

    assert not Path(os.devnull).is_file()


def test_bytes_go_to_a_file_and_to_stdout_as_they_are(tmp_path, capfdbinary):
    open_output(str(tmp_path / "plan.pdf")).write(b"%PDF\xff")
    open_output("-").write(b"%PDF\xff")

    assert (tmp_path / "plan.pdf").read_bytes() == b"%PDF\xff"
    assert capfdbinary.readouterr().out == b"%PDF\xff"


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "plan.html"
    path.write_text("old", encoding="utf-8")

    def full(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UsageError, match="No space left on device"):
        open_output(str(path)).write("new")

    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the path is empty"),
        ("missing/plan.html", "there is no directory"),
        (".", "it is a directory"),
        ("file/plan.html", "Not a directory"),
        ("a\0b", "null"),
        ("x" * 300, "File name too long"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch, name, reason):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("", encoding="utf-8")

    with pytest.raises(UsageError, match=reason):
        open_output(name, flag="--report")


def test_a_directory_that_vanishes_during_the_work_is_an_error_in_words(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    output = open_output(str(folder / "plan.html"))
    folder.rmdir()

    with pytest.raises(UsageError, match="cannot write"):
        output.write("text")


def test_what_must_be_new_takes_the_place_of_nothing(tmp_path):
    path = tmp_path / "record.jsonl"
    path.touch()

    assert new_output(None) is None
    assert new_output(str(path)) is not None  # nothing is in it
    path.write_text("a measurement", encoding="utf-8")
    with pytest.raises(UsageError, match="exists already"):
        new_output(str(path))


def test_a_new_record_has_the_name_of_one(tmp_path):
    assert new_record(str(tmp_path / "record.jsonl.gz")) is not None
    with pytest.raises(UsageError, match=r"a record ends in `\.jsonl`"):
        new_record(str(tmp_path / "record.csv"))

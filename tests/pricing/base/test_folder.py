"""Where the user's files lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import UsageError
from pricing.base.folder import data_dir, read_if_there


def test_the_data_folder_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    assert data_dir() == tmp_path / "mpplan"


def test_a_relative_xdg_folder_is_ignored_as_the_specification_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")

    assert data_dir() == tmp_path / ".local" / "share" / "mpplan"


@pytest.mark.parametrize(("platform", "part"), [("darwin", "Application Support"), ("win32", "mpplan")])
def test_other_systems_have_their_own_place(monkeypatch, tmp_path, platform, part):
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setattr("sys.platform", platform)

    assert part in str(data_dir())


def test_a_missing_file_is_none_and_an_unreadable_one_an_error(tmp_path: Path):
    assert read_if_there(tmp_path / "nothing.csv") is None
    broken = tmp_path / "latin.csv"
    broken.write_bytes(b"caf\xe9")
    with pytest.raises(UsageError, match="cannot read"):
        read_if_there(broken)
    with pytest.raises(UsageError, match="cannot read"):
        read_if_there(tmp_path)

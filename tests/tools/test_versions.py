"""Which Pythons and dependencies are tried before a release."""

from __future__ import annotations

import sys

from tools.versions import main, pythons


def test_every_python_from_the_lowest_that_the_package_allows_is_tried():
    assert pythons() == ["3.11", "3.12", "3.13", "3.14"]


def test_without_uv_it_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    assert main() == 2
    assert capsys.readouterr().err == "error: uv is not installed\nhint: pip install uv\n"

"""The addresses in a package's metadata."""

from __future__ import annotations

import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from tools.addresses import described, public_address, urls

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://code.example.org/team/mpplan.git", "https://code.example.org/team/mpplan"),
        ("https://somebody:secret-token@code.example.org/team/mpplan", "https://code.example.org/team/mpplan"),
        ("git@code.example.org:team/mpplan.git\n", "https://code.example.org/team/mpplan"),
        ("ssh://git@code.example.org:2222/team/mpplan.git", "https://code.example.org/team/mpplan"),
        ("/srv/git/mpplan", None),
        ("file:///srv/git/mpplan", None),
        ("../mpplan", None),
        ("https://localhost/mpplan", None),
        ("http://127.0.0.1/mpplan", None),
        ("", None),
    ],
)
def test_a_remote_gives_its_public_page_without_secrets(remote: str, address: str | None) -> None:
    assert public_address(remote) == address


def _clone(folder: Path, remote: str) -> Path:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", remote], check=True)
    return folder


def test_the_addresses_are_those_of_the_clone(tmp_path: Path) -> None:
    addresses = urls(_clone(tmp_path / "clone", "git@code.example.org:team/mpplan.git"))
    assert addresses["Homepage"] == "https://code.example.org/team/mpplan"
    assert addresses["Changelog"] == "https://code.example.org/team/mpplan/blob/HEAD/CHANGELOG.md"
    assert set(addresses) == {"Homepage", "Documentation", "Changelog", "Issues"}
    assert urls(_clone(tmp_path / "local", str(ROOT))) == {}


def test_what_stands_around_the_sources_is_not_taken_for_their_address(tmp_path: Path) -> None:
    outer = _clone(tmp_path / "outer", "git@code.example.org:others/dotfiles.git")
    (outer / "mpplan").mkdir()
    assert urls(outer / "mpplan") == {}


def test_an_archive_and_what_is_built_from_it_keep_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hatchling.build import build_sdist

    monkeypatch.setenv("MPPLAN_ADDRESS", "https://code.example.org/team/mpplan")
    monkeypatch.chdir(ROOT)
    archive = tmp_path / build_sdist(str(tmp_path))
    monkeypatch.delenv("MPPLAN_ADDRESS")
    with tarfile.open(archive) as members:
        members.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    facts = (unpacked / "PKG-INFO").read_text(encoding="utf-8")
    assert "Project-URL: Homepage, https://code.example.org/team/mpplan\n" in facts
    assert "](https://code.example.org/team/mpplan/blob/HEAD/docs/index.md)" in facts
    assert urls(unpacked)["Issues"] == "https://code.example.org/team/mpplan/issues"


def test_the_links_of_the_description_lead_to_files_of_the_project() -> None:
    home = "https://code.example.org/team/mpplan"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = described(readme, home)
    targets = re.findall(r"\]\(([^)#]+)", text)

    assert len(targets) > 10
    assert [target for target in targets if not target.startswith(home)] == []
    paths = [target.removeprefix(f"{home}/").split("/HEAD/") for target in targets]
    assert [path for _, path in paths if not (ROOT / path).is_file()] == []
    assert {path for kind, path in paths if kind == "raw"} == {"docs/images/report.png"}
    assert described(readme, None) == readme
    assert described("[a](https://b.example/c) [d](#e) [f\ng](h.md#i)", home) == (
        f"[a](https://b.example/c) [d](#e) [f\ng]({home}/blob/HEAD/h.md#i)"
    )

"""What a release states in several places is stated alike."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from mpplan.version import __version__

ROOT = Path(__file__).parents[2]


def test_the_citation_names_the_version_and_licence_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))

    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == __version__
    assert citation["license"] == "Apache-2.0"
    assert {"title", "message", "authors"} <= set(citation)


def test_the_changelog_has_what_is_unreleased_first_and_names_the_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", changelog, flags=re.MULTILINE)

    assert headings[0] == "[Unreleased]"
    assert __version__ in changelog


def test_the_hooks_of_a_commit_are_the_environment_s_own_tools():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]

    assert {repo["repo"] for repo in config["repos"]} == {"local"}
    assert {hook["entry"].split()[0] for hook in hooks} == {
        ".venv/bin/ruff",
        ".venv/bin/mypy",
        ".venv/bin/lint-imports",
    }


def test_the_source_archive_has_all_that_its_own_tests_read():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone")
    tops = {name.split("/")[0] for name in listed.stdout.split("\0") if name}
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]

    packed = {*targets["sdist"]["only-include"], "pyproject.toml", ".gitignore"}  # Hatchling adds these two itself
    assert tops - packed == {".ci"}
    assert packed - tops == set()

"""What a release states in several places is stated alike."""

from __future__ import annotations

import re
from pathlib import Path

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

"""The documentation as a site: every page is in it, its links lead somewhere, and it loads nothing from the net."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import site

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(https?:)?//")


@pytest.fixture(scope="module")
def built() -> Path:
    assert site.main() == 0, "the builder found a link that leads nowhere, or a docstring that it cannot read"
    return ROOT / "build" / "site"


def test_every_page_of_the_documentation_is_in_the_site(built):
    pages = {place.removesuffix(".md") for place in site.pages().values() if place.endswith(".md")}

    assert {page for page in pages if not (built / f"{page}.html").exists()} == set()
    assert {"readme", "model", "decisions/0002-one-arithmetic-on-arrays"} <= pages


def test_every_page_can_be_reached_from_the_navigation_or_a_list():
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": (\S+\.md)", config))
    pages = {place for place in site.pages().values() if place.endswith(".md") and not place.startswith("decisions/")}

    assert pages - listed == set()


def test_the_reference_has_the_public_api(built):
    page = (built / "api.html").read_text(encoding="utf-8")

    assert "mpplan estimate" in page
    for name in ("Answer", "MpplanError", "estimate", "to_document"):
        assert f"{name}</code>" in page or f">{name}<" in page


def test_the_site_loads_nothing_from_the_net(built):
    pages = list(built.rglob("*.html"))

    assert len(pages) > 20
    assert [page.name for page in pages if LOADED.search(page.read_text(encoding="utf-8"))] == []


def test_a_link_to_a_file_of_the_source_becomes_its_text():
    page = ROOT / "docs" / "model.md"

    text = site.with_links(
        "[a](../planner/units.py) [b](../README.md#x) [c](pricing.md) [d](https://x.org)", page, site.pages()
    )

    assert text == "a [b](readme.md#x) [c](pricing.md) [d](https://x.org)"

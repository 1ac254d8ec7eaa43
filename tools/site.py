"""Build the documentation as an offline site: `make site` writes `build/site` from this repository's Markdown.

The pages under `docs/` and in the root are gathered in `build/site-source`, with their links changed to the site's own
pages; a link to a file that is not a page becomes its text. The API reference is generated from the docstrings.
Zensical (https://zensical.org/docs) builds the site as configured in `mkdocs.yml`, and fails on a broken link.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import mpplan

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "build" / "site-source"
ROOT_PAGES = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "reporting.md",
}
"""Pages in the root, with their paths in the site."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)]*)?\)")


def pages() -> dict[Path, str]:
    """Return the site path of each documentation file, by its path in the repository."""
    docs = ROOT / "docs"
    files = {path: path.relative_to(docs).as_posix() for path in sorted(docs.rglob("*")) if path.is_file()}
    files |= {ROOT / name: place for name, place in ROOT_PAGES.items()}
    files[docs / "decisions"] = "decisions/index.md"
    return files


def with_links(text: str, page: Path, files: dict[Path, str]) -> str:
    """Return a page with its relative links changed to the site paths of their targets.

    Args:
        text: Markdown of the page.
        page: path of the page in the repository.
        files: result of `pages`.
    """
    folder = Path(files[page]).parent.as_posix()

    def turned(link: re.Match[str]) -> str:
        image, label, target, anchor = link.groups()
        if not target or "://" in target or target.startswith("mailto:"):
            return link.group(0)
        place = files.get((page.parent / target).resolve())
        if place is None:
            return label
        return f"{image}[{label}]({os.path.relpath(place, folder)}{anchor or ''})"

    return LINK.sub(turned, text)


def api_page() -> str:
    """Return the page of the public Python API, whose text comes from the docstrings."""
    names = [f"::: {getattr(mpplan, name).__module__}.{name}" for name in mpplan.__all__ if not name.startswith("__")]
    return "# Python API\n\nWhat `import mpplan` offers.\n\n" + "\n\n".join(names) + "\n"


def decisions_page(folder: Path) -> str:
    """Return the page that lists the decisions by title."""
    titles = {path.name: path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ") for path in folder.glob("*.md")}
    rows = "\n".join(f"- [{title}]({name})" for name, title in sorted(titles.items()))
    return f"# Decisions\n\nOne short page for each that was hard.\n\n{rows}\n"


def gather(into: Path) -> None:
    """Write the site's pages to a folder, which is emptied first."""
    shutil.rmtree(into, ignore_errors=True)
    files = pages()
    for path, place in files.items():
        target = into / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(with_links(path.read_text(encoding="utf-8"), path, files), encoding="utf-8")
        elif path.is_file():
            shutil.copyfile(path, target)
    (into / "api.md").write_text(api_page(), encoding="utf-8")
    (into / "decisions" / "index.md").write_text(decisions_page(ROOT / "docs" / "decisions"), encoding="utf-8")


def main() -> int:
    """Gather the pages and build the site; return the builder's exit code."""
    gather(SOURCE)
    builder = Path(sys.executable).parent / "zensical"
    return subprocess.run([builder, "build", "--clean", "--strict"], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

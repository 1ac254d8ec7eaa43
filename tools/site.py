"""The documentation as a site that needs no net: `make site` writes `build/site` from the Markdown of this repository.

The pages under `docs/` and those at the root are gathered in `build/site-source` with their links turned to the site's
own pages; a link to a file that is no page becomes its text. The API reference is taken from the docstrings. Zensical
(https://zensical.org/docs) builds it, as `mkdocs.yml` says, and fails on a link that leads nowhere.
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
"""Pages at the root, and where they stand in the site."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)]*)?\)")


def pages() -> dict[Path, str]:
    """Where each file of the documentation stands in the site, by its path in the repository."""
    docs = ROOT / "docs"
    files = {path: path.relative_to(docs).as_posix() for path in sorted(docs.rglob("*")) if path.is_file()}
    files |= {ROOT / name: place for name, place in ROOT_PAGES.items()}
    files[docs / "decisions"] = "decisions/index.md"
    return files


def with_links(text: str, page: Path, files: dict[Path, str]) -> str:
    """A page with its relative links turned to where their targets stand in the site.

    Args:
        text: the page's Markdown.
        page: its path in the repository.
        files: as `pages` has them.
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
    """The page of the public Python API, whose text is in the docstrings."""
    names = [f"::: {getattr(mpplan, name).__module__}.{name}" for name in mpplan.__all__ if not name.startswith("__")]
    return "# Python API\n\nWhat `import mpplan` offers.\n\n" + "\n\n".join(names) + "\n"


def decisions_page(folder: Path) -> str:
    """The list of decisions by their titles."""
    titles = {path.name: path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ") for path in folder.glob("*.md")}
    rows = "\n".join(f"- [{title}]({name})" for name, title in sorted(titles.items()))
    return f"# Decisions\n\nOne short page for each that was hard.\n\n{rows}\n"


def gather(into: Path) -> None:
    """Write the site's pages to a folder, which is emptied before."""
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
    """Gather the pages and build the site; the exit code is that of the builder."""
    gather(SOURCE)
    builder = Path(sys.executable).parent / "zensical"
    return subprocess.run([builder, "build", "--clean", "--strict"], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

"""Pictures of the report for a human look: `python -m tests.reports.screenshots FOLDER [PLAN.json]`.

Both languages and colour schemes at 1440, 768 and 360 pixels, each whole, and the first screen at 1440 by 900.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import reports
from tests.reports.browser import Browser
from tests.reports.record import RECORDED

TALLEST = 16_000
"""Pixels that Chromium draws in one piece."""


def main(folder: Path, document: dict[str, object]) -> None:
    """Write the pages and their pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with Browser() as browser:
        for lang in reports.LANGUAGES:
            path = folder / f"report-{lang}.html"
            path.write_text(str(reports.render(document, "html", lang=lang)), encoding="utf-8")
            for scheme in ("light", "dark"):
                page = browser.page(path.resolve(), scheme=scheme)
                page.picture(folder / f"first-{lang}-{scheme}.png")
                for width in (1440, 768, 360):
                    page.look(width=width, scheme=scheme)
                    height = min(TALLEST, page.run("document.documentElement.scrollHeight"))
                    page.look(width=width, height=height, scheme=scheme)
                    page.picture(folder / f"whole-{lang}-{scheme}-{width}.png")
                page.close()


if __name__ == "__main__":
    given = (
        Path(sys.argv[2]).read_text(encoding="utf-8") if len(sys.argv) > 2 else gzip.decompress(RECORDED.read_bytes())
    )
    main(Path(sys.argv[1]), json.loads(given))

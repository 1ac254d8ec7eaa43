"""The page as a PDF, printed by a headless browser that must be installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from planner.errors import UsageError
from reports.formats import html
from reports.view import View

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
)
"""Commands of browsers that can print a page with `--print-to-pdf`."""
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
"""Paths of browsers outside the search path."""
LIMIT_S = 60.0


def browser() -> str | None:
    """Return the browser to print with: `MPPLAN_BROWSER`, else the first one installed; None if there is none."""
    named = os.environ.get("MPPLAN_BROWSER")
    if named:
        return shutil.which(named)
    located = (shutil.which(name) for name in BROWSERS)
    return next((path for path in located if path), next((path for path in PLACES if Path(path).exists()), None))


def render(view: View) -> bytes:
    """Print the page on A4 with its own style sheet.

    Raises:
        UsageError: there is no browser, or it could not print.
    """
    program = browser()
    if program is None:
        raise UsageError(
            "no browser was found to print the PDF with",
            hint="install Chromium or Chrome, name one in MPPLAN_BROWSER, or open the HTML report and print it",
        )
    with tempfile.TemporaryDirectory(prefix="mpplan-", ignore_cleanup_errors=True) as folder:
        page, result = Path(folder, "page.html"), Path(folder, "page.pdf")
        page.write_text(html.render(view), encoding="utf-8")
        command = [program, "--headless", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer",
                   f"--user-data-dir={folder}/profile", f"--print-to-pdf={result}", page.as_uri()]  # fmt: skip
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # Chromium's sandbox does not work for root
        try:
            done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UsageError(f"`{program}` could not print the page: {error}", hint="print the HTML report") from error
        if done.returncode or not result.exists() or not result.stat().st_size:
            raise UsageError(f"`{program}` could not print the page", hint="open the HTML report and print it")
        return result.read_bytes()

"""Reports: turn an answer's document into a view (strings, rounded once), and a view into a page, a text or a table.

from reports import render

page = render(document, "html", title="Project Aurora", lang="zh")
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from planner.decimals import own_decimals
from planner.errors import UsageError
from reports.formats import FORMATS

LANGUAGES = ("en", "zh")
"""Languages that `lang` accepts."""

__all__ = ["FORMATS", "LANGUAGES", "render", "render_comparison"]


@own_decimals()
def render(
    document: dict[str, Any],
    fmt: str,
    *,
    name: str = "document",
    title: str | None = None,
    logo: Path | None = None,
    redact: Iterable[str] = (),
    lang: str = "en",
    width: int | None = None,
    color: bool | None = None,
    brief: bool = False,
) -> str | bytes:
    """Render the document of `mpplan estimate --json` (schema `mpplan.estimate/2`).

    Args:
        document: the parsed document.
        fmt: one of `FORMATS`; `pdf` returns bytes, the others text.
        name: name of the document in errors, for example its file.
        title: replaces the model's name.
        logo: a PNG, JPEG, GIF, WebP or SVG file, embedded in the page (HTML and PDF).
        redact: parts to leave out: `prices`, `names` or both.
        lang: one of `LANGUAGES`.
        width: columns of the terminal format; default: `COLUMNS`, else the terminal's width, else 80.
        color: whether the terminal format has colour; default: only on a terminal without `NO_COLOR`.
        brief: whether the terminal format is the short answer instead of the whole one.

    Raises:
        InputFileError: the document is not an estimate or lacks a key, or the logo is not a picture or too large.
        UsageError: the format, language or part is unknown, the logo cannot be read, or there is no browser for `pdf`.
    """
    from reports.page.build import build

    _known(fmt)
    view = build(
        document, name=name, title=title, logo=_picture(logo, fmt), redact=redact, lang=lang,
        short=brief and fmt == "terminal",
    )  # fmt: skip
    return _written(view, fmt, width, color, brief)


@own_decimals()
def render_comparison(
    first: dict[str, Any],
    second: dict[str, Any],
    fmt: str,
    *,
    names: tuple[str, str] = ("A", "B"),
    title: str | None = None,
    logo: Path | None = None,
    redact: Iterable[str] = (),
    lang: str = "en",
    width: int | None = None,
    color: bool | None = None,
) -> str | bytes:
    """Render the changes from `first` to `second`, labelled with `names`; other arguments as for `render`."""
    from reports.page.comparison import build_comparison

    _known(fmt)
    view = build_comparison(first, second, names=names, title=title, logo=_picture(logo, fmt), redact=redact, lang=lang)
    return _written(view, fmt, width, color)


def _known(fmt: str) -> None:
    if fmt not in FORMATS:
        raise UsageError(f"--format: unknown `{fmt}`", hint=f"use one of {', '.join(FORMATS)}")


def _picture(logo: Path | None, fmt: str) -> str | None:
    if logo is None or fmt not in ("html", "pdf"):
        return None
    from reports.page.logo import data_address

    return data_address(logo)


def _written(view: Any, fmt: str, width: int | None, color: bool | None, brief: bool = False) -> str | bytes:
    form = import_module(f"reports.formats.{fmt}")
    options = {"width": width, "color": color, "brief": brief} if fmt == "terminal" else {}
    result: str | bytes = form.render(view, **options)
    return result

r"""The worked examples: `make examples` writes `docs/examples/` from the templates beside this file.

A template is Markdown with Jinja expressions. Every command on a page is run when the page is written, and the figures
in its text are read from the output of the commands, so that a page always agrees with the program:

- `{{ run("mpplan …") }}` runs a command and shows it with its output; `to="words"` stops before the line that begins
  with these words, `first="words"` starts at such a line, `code=8` is the expected exit code;
- `{% call file("own.toml") %}…{% endcall %}` writes a file and shows it;
- `{{ said("(\d+) × H100") }}` is the text matched by the group, in the output of the last command; with `of=1` in that
  of the first command, and so on;
- `{{ holds(…) }}` is empty: it stops the writing if a sentence is no longer true.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.pages.shell import ROOT, Result, Shell

TEMPLATES = Path(__file__).parent
PAGES = ROOT / "docs" / "examples"
LANGUAGES = {".toml": "toml", ".json": "json", ".csv": "csv"}
"""Highlighting language of a file, by suffix."""


class PageError(Exception):
    """The behaviour of a page's command contradicts the page."""


def templates() -> dict[str, Path]:
    """Return the templates by the name of their page."""
    return {path.name.removesuffix(".template.md"): path for path in sorted(TEMPLATES.glob("*.template.md"))}


def excerpt(text: str, first: str = "", to: str = "") -> str:
    """Return part of an output, from the line that begins with `first` up to the one that begins with `to`.

    The line of `to` is not included. Lines that are left out are replaced by `…`. An empty text leaves nothing out on
    its side.

    Raises:
        PageError: no line begins with the text.
    """
    lines = text.rstrip("\n").split("\n")
    start = _line(lines, first) if first else 0
    end = _line(lines, to, start) if to else len(lines)
    kept = "\n".join(lines[start:end]).strip("\n")
    return ("…\n" if start else "") + kept + ("\n…" if end < len(lines) else "")


def _line(lines: list[str], words: str, start: int = 0) -> int:
    for number, line in enumerate(lines[start:], start):
        if line.startswith(words):
            return number
    raise PageError(f"no line of the output begins with `{words}`")


def said_by(result: Result, pattern: str) -> str:
    """Return the text that a pattern's group matches in an output, with line breaks treated as spaces.

    Raises:
        PageError: the output does not match.
    """
    match = re.search(pattern, " ".join(result.shown.split()))
    if match is None:
        raise PageError(f"`{pattern}` is not in the output of: {result.command}")
    return match.group(1)


def _functions(shell: Shell) -> dict[str, Callable[..., Any]]:
    """Return the functions that a template can call."""

    def run(command: str, first: str = "", to: str = "", code: int = 0) -> str:
        result = shell.run(command)
        if result.code != code:
            raise PageError(f"exit code {result.code} in place of {code} of: {command}\n{result.err}")
        shown = excerpt(result.shown, first, to) if result.shown.strip() else ""
        return "\n".join(["```console", f"$ {command}", *([shown] if shown else []), "```"])

    def file(name: str, caller: Callable[[], str]) -> str:
        text = caller().strip("\n") + "\n"
        (shell.folder / name).write_text(text, encoding="utf-8")
        return f"```{LANGUAGES.get(Path(name).suffix, '')}\n{text}```"

    def said(pattern: str, of: int = 0) -> str:
        return said_by(shell.results[of - 1], pattern)

    def holds(condition: bool) -> str:
        if not condition:
            raise PageError("the figures no longer bear out the sentence beside this condition")
        return ""

    return {"run": run, "file": file, "said": said, "holds": holds}


def page(template: Path) -> str:
    """Return the Markdown of one page; its commands run in a folder that is removed afterwards.

    Raises:
        PageError: a command had an unexpected exit code, or its output lacks text that the page quotes.
    """
    from jinja2 import Environment, StrictUndefined

    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
        environment.globals |= _functions(Shell(Path(folder)))
        return environment.from_string(template.read_text(encoding="utf-8")).render()


def main() -> None:
    """Write every page."""
    PAGES.mkdir(exist_ok=True)
    for name, template in templates().items():
        (PAGES / f"{name}.md").write_text(page(template), encoding="utf-8")


if __name__ == "__main__":
    main()

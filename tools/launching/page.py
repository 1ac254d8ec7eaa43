"""Write the tables of docs/launching.md from the definitions of the frameworks (`make launching`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from reports.launch import FRAMEWORKS, Framework

PAGE = Path(__file__).resolve().parents[2] / "docs" / "launching.md"
START = "<!-- what follows is written by `make launching` -->\n"


def with_tables(page: str) -> str:
    """Return the page with its tables generated from the code."""
    written, _, _ = page.partition(START)
    return written + START + "\n" + "\n".join("\n".join(_section(framework)) for framework in FRAMEWORKS)


def _section(framework: Framework) -> Iterator[str]:
    yield f"## {framework.title}: `{framework.name}`"
    yield ""
    start = framework.start.format(file=f"FILE{framework.suffix}")
    yield f"Writes {framework.form}. Start it with `{start}`."
    yield f"The names of the settings come from <{framework.source}>."
    yield ""
    yield "| part of the plan | settings in the file |"
    yield "|---|---|"
    for mapped in framework.takes:
        yield f"| {mapped.what} | {', '.join(f'`{name}`' for name in mapped.where)} |"
    for title, rules in (
        ("Refused with exit code 2:", framework.refuses),
        ("Left out with a note:", framework.leaves_out),
    ):
        yield ""
        yield title
        yield ""
        yield from (f"- {rule.what}" + (f" ({rule.hint})" if rule.hint else "") for rule in rules)
    yield ""


def main() -> int:
    """Write the page."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

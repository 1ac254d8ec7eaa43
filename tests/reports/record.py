"""Write the recorded document and the golden files anew: `python -m tests.reports.record`, then look at the diff."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from reports import render

HERE = Path(__file__).parent
RECORDED = HERE / "recorded" / "plan.json.gz"
GOLDEN = {
    "terminal-80-en.txt": ("terminal", "en", 80),
    "terminal-120-en.txt": ("terminal", "en", 120),
    "terminal-80-zh.txt": ("terminal", "zh", 80),
    "report-en.md": ("markdown", "en", None),
    "report-zh.md": ("markdown", "zh", None),
}
"""Golden file: format, language, width."""


def golden(document: dict[str, object], name: str) -> str:
    """What a golden file must hold."""
    fmt, lang, width = GOLDEN[name]
    text = render(document, fmt, lang=lang, width=width, color=False)
    assert isinstance(text, str)
    return text


def main() -> None:
    """`--plan` asks the planner again; without it only the golden files are written."""
    if "--plan" in sys.argv or not RECORDED.exists():
        from mpplan.api.answer import estimate
        from mpplan.api.document import to_document

        answer = to_document(estimate(params="70B", precision="fp8", as_of="2026-11-20"))
        answer |= {"created_at": "2026-11-20T12:00:00+00:00", "command": ["mpplan", "estimate", "--params", "70B"]}
        RECORDED.write_bytes(gzip.compress(json.dumps(answer).encode(), mtime=0))
    document = json.loads(gzip.decompress(RECORDED.read_bytes()))
    for name in GOLDEN:
        (HERE / "golden" / name).write_text(golden(document, name), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()

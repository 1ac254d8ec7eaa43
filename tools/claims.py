"""Write the ledger of claims: `make claims` judges every claim, and writes `docs/claims.md` and the shipped verdicts.

The page is Markdown, rendered from `claims.template.md` and the verdicts; every figure in it is computed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpplan.api.claims.ledger import claims
from planner.claims.case import Case
from planner.claims.claim import Claim
from planner.claims.evidence.arithmetic import PUE, Change, deepseek_figures, most_w_per_gpu
from planner.claims.shipped import FILE, table_of
from planner.claims.verdict import Judged
from planner.hardware.catalogue import find_gpu
from reports.text.claims import counts, ends, source_of, stands_words, verdict_words
from reports.text.messages import word
from reports.text.numbers import with_minus

TEMPLATE = Path(__file__).with_name("claims.template.md")
PAGE = Path(__file__).parents[1] / "docs" / "claims.md"


def _whole(value: float) -> str:
    """Format a whole number, with blanks between thousands from five digits on."""
    return f"{value:,.0f}".replace(",", " " if value >= 10_000 else "")


def _change(ratio: float) -> str:
    """Format a share with its sign, for example `−80%`."""
    return with_minus(f"{ratio:+.0%}")


def _row(change: Change) -> str:
    return f"{_whole(change.before)} | {_whole(change.after)} | {_change(change.ratio)}"


def _span(claim: Claim, case: Case) -> str:
    low, _, high = ends(claim, case)
    return f"{low} to {high}" if low else ""


def _cell(text: str) -> str:
    """Replace characters that would end a table cell."""
    return text.replace("|", "/")


def _peak(frm: str) -> float:
    peaks = find_gpu("h800-sxm5-80gb").peak_flop_per_s
    return peaks["fp8"] / peaks[frm]


def page(judged: Sequence[Judged]) -> str:
    """Return the Markdown of the page for these verdicts."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    environment.filters |= {"whole": _whole, "change": _change, "capital": lambda text: text[:1].upper() + text[1:]}
    values: dict[str, Any] = {
        "judged": judged, "own": deepseek_figures(), "most_w": most_w_per_gpu(), "pue": PUE, "row": _row, "peak": _peak,
        "word": word, "middle": lambda claim, case: ends(claim, case)[1], "span": _span, "says": stands_words,
        "source": lambda case: _cell(source_of(case)), "verdict": lambda entry: verdict_words(entry.verdict),
        "counts": "; ".join(f"{words.capitalize()}: {count}" for words, count in counts(list(judged))),
    }  # fmt: skip
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(values)


def main() -> None:
    """Judge every claim by the shipped evidence only, without a user's records, and write both files."""
    with tempfile.TemporaryDirectory() as empty:
        os.environ |= {"XDG_DATA_HOME": empty, "XDG_CONFIG_HOME": empty}
        judged = claims()
    FILE.write_text(table_of(judged), encoding="utf-8")
    PAGE.write_text(page(judged), encoding="utf-8")


if __name__ == "__main__":
    main()

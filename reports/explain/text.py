"""An explanation as an indented text tree, or as plain JSON values."""

from __future__ import annotations

from dataclasses import asdict
from textwrap import wrap
from typing import Any

from planner.costs.rounding import PRICE_DECIMALS, QUANTITY_DECIMALS
from reports.explain.derivation import Node
from reports.explain.walk import EXPLAIN_SCHEMA, Explanation
from reports.text.language import words_for
from reports.text.names import pretty_gpu

DIGITS = 6
"""Significant digits in the tree: enough for a check with a calculator."""
WIDTH = 96
"""Greatest width in columns of remarks and sources."""
LEAST = 20
"""Least width in columns of a text, however far it is indented."""
NAMED = 4
"""Maximum number of sources named on a line; the list below the tree has all of them."""


BILLED = {"USD": PRICE_DECIMALS} | dict.fromkeys(
    ("GPU-hours", "GPU-hour", "host-hour", "GB-month", "GB", "kWh"), QUANTITY_DECIMALS
)
"""Units of a bill with the decimals of their numbers; all decimals are shown, so that products match to the cent."""


DEAREST = 1000.0
"""Amount in USD from which a number is not a unit price; amounts have cents."""


def figure(value: float | None, unit: str = "") -> str:
    """Format a number with six significant digits and thousands separators; on a bill, with all its digits."""
    if value is None:
        return "unknown"
    if abs(value) >= 1.0 and unit in BILLED:
        whole, _, part = f"{value:,.{2 if unit == 'USD' and abs(value) >= DEAREST else BILLED[unit]}f}".partition(".")
        part = part.rstrip("0")
        part = part.ljust(2, "0") if unit == "USD" else part
        return f"{whole}.{part}" if part else whole
    if value and not 1e-4 <= abs(value) < 1e13:
        return f"{value:.{DIGITS - 1}e}"
    if value != 1 and abs(value - 1) < 1e-4:
        return f"{value:.9f}".rstrip("0")  # a rounding remainder, whose first digits would show as 1
    if abs(value) < 1.0:
        return f"{value:.{DIGITS}g}"
    text = f"{value:,.{max(0, DIGITS - len(f'{abs(value):.0f}'))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def to_text(explanation: Explanation, columns: int | None = None) -> str:
    """Return the tree and its sources as text that ends in a line break.

    Args:
        explanation: of one figure.
        columns: width of the terminal, at which lines wrap, those of remarks and sources at `WIDTH` if that is less;
            None: unknown, so that lines with arithmetic are whole, and the others wrap at `WIDTH`.
    """
    words, width = words_for("en"), WIDTH if columns is None else min(columns, WIDTH)
    root = explanation.root
    lines = [f"{words.name('precision', explanation.precision)} on {pretty_gpu(explanation.gpu)}", ""]
    _branch(root, "", "", lines, columns)
    if root.at_least:
        bound = "≥: a lower bound, since something is missing; the gaps of the answer say what"
        lines += ["", *_wrapped(bound, width)]
    if explanation.sources:
        lines += ["", "Sources"]
        for row in explanation.sources:
            dated = f", {row['date']}" if row["date"] else ""
            lines += _wrapped(f"  {row['id']} ({words.name('evidence', row['kind'])}{dated})", width, "    ")
            for text in (row["what"], row["source"]):
                lines += [f"    {part}" for part in _wrapped(text, width - 4)]
    return "\n".join(lines) + "\n"


def _line(node: Node) -> str:
    """Return one line with label, value, range and formula."""
    unit = f" {node.unit}" if node.unit else ""
    text = f"{node.label} {'≥' if node.at_least else '='} {figure(node.value, node.unit)}{unit}"
    if node.low is not None and node.high is not None and node.low != node.high:
        text += f" ({figure(node.low, node.unit)} to {figure(node.high, node.unit)})"
    if node.formula:
        text += f" = {node.formula}"
        text += f" = {_arithmetic(node)}" if node.how == "product" else ""
    return text


def _remarks(node: Node) -> list[str]:
    """Return the remarks under a line: the origin of an input, and the sources."""
    remarks = [f"({node.note})"] if node.note else []
    if node.evidence:
        more = len(node.evidence) - NAMED
        remarks.append(f"[{', '.join(node.evidence[:NAMED])}{f' and {more} more' if more > 0 else ''}]")
    return remarks


def _arithmetic(node: Node) -> str:
    parts = ""
    for child in node.children:
        sign = " ÷ " if child.power < 0 else " × "
        parts += (sign if parts else "1 ÷ " if child.power < 0 else "") + figure(child.value, child.unit)
    return parts


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Wrap text between words, with later lines indented; `LEAST` columns are used even where there is less room."""
    return wrap(text, max(LEAST, width), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _branch(node: Node, first: str, indent: str, lines: list[str], columns: int | None) -> None:
    """Append a node's line, remarks and children; `first` prefixes its line, `indent` all lines under it."""
    stem = indent + ("│  " if node.children else "   ")
    line, room = _line(node), (columns or WIDTH) - len(stem) - 2
    head, *rest = [line] if columns is None else _wrapped(line, room + 2, "  ")
    lines.append(f"{first}{head}")
    lines += [f"{stem}{part}" for part in rest]
    for remark in _remarks(node):
        lines += [f"{stem}  {part}" for part in _wrapped(remark, min(room, WIDTH - len(stem) - 2))]
    for number, child in enumerate(node.children):
        last = number == len(node.children) - 1
        _branch(child, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  "), lines, columns)


def to_json(explanation: Explanation) -> dict[str, Any]:
    """Return the document of `mpplan explain --json`."""
    return {
        "schema": EXPLAIN_SCHEMA,
        "figure": explanation.figure,
        "precision": explanation.precision,
        "gpu": explanation.gpu,
        "tree": asdict(explanation.root),
        "evidence": list(explanation.sources),
    }

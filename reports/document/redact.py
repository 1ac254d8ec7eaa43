"""Removes `prices` or `names` from a copy of the answer, in the document, before anything is made from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from planner.errors import UsageError
from reports.document.facts import Doc
from reports.document.names import without_names

PARTS = ("prices", "names")
"""The parts that can be left out."""

KNOWN = (
    "schema", "mpplan", "created_at", "question", "model", "plans", "same_deadline", "deadline_days", "savings",
    "unsupported", "assumptions", "gaps", "warnings", "warnings_message", "evidence", "power_caps", "pareto",
    "sensitivity", "accuracy", "verify", "traces", "claims", "confidence", "curve", "run_totals",
)  # fmt: skip
"""Parts whose prices are known; others (`money`, and what is yet to come) are left out with the prices."""

_PRICE_INPUTS = ("price", "provider", "commitment", "electricity", "budget", "budget_usd", "own", "quote", "as_of",
                 "tariff", "beside", "setup_fee")  # fmt: skip
_PRICE_FIGURES = ("cost_usd",)
_MONEY = re.compile(r"\$|\busd\b|\bprices?\b|\bcosts?\b|\bproviders?\b|\bbudgets?\b|per gpu-hour", re.IGNORECASE)


def _figure(name: str) -> str:
    """The figure that a name in `used_in` refers to, without its item."""
    return name.partition(".")[0]


def redacted(document: Doc, parts: Iterable[str]) -> Doc:
    """A copy of the document without the given parts.

    Raises:
        UsageError: a part is not one of `PARTS`.
    """
    chosen = tuple(dict.fromkeys(parts))
    for part in chosen:
        if part not in PARTS:
            raise UsageError(f"--redact: unknown `{part}`", hint=f"one of {', '.join(PARTS)}")
    result = dict(document)
    if "prices" in chosen:
        result = _without_prices(result)
    if "names" in chosen:
        result = without_names(result)
    if chosen:
        result["command"] = []
        result["redacted"] = list(dict.fromkeys([*left_out(document), *chosen]))
    return result


_PRICE_IDS = ("price", "discount", "electricity", "quote", "own", "rate_of_exchange")


def _price_texts(doc: Doc) -> list[str]:
    """The secret prices and the provider's name as they would appear in a sentence."""
    values = [
        doc["question"][name]["value"] for name in ("price", "provider", "electricity") if name in doc["question"]
    ]
    lines = [line for view in ("plans", "same_deadline") for plan in doc.get(view) or () for line in plan["cost_lines"]]
    values += [line["unit_price_usd"]["mid"] for line in lines if line.get("unit_price_usd")]
    return sorted({str(value) for value in values if value is not None and len(str(value)) > 2})


def left_out(document: Doc) -> list[str]:
    """What an answer says was left out of it."""
    return [part for part in document.get("redacted") or () if part in PARTS]


def _without_prices(doc: Doc) -> Doc:
    secret = _price_texts(doc)

    def tells(*texts: Any) -> bool:
        return any(_MONEY.search(str(text)) or any(phrase in str(text) for phrase in secret) for text in texts if text)

    doc["question"] = {name: entry for name, entry in doc["question"].items() if name not in _PRICE_INPUTS}
    for view in ("plans", "same_deadline"):
        doc[view] = [
            plan
            | {"cost_usd": None, "cost_lines": [], "probability": _without_budget(plan.get("probability"))}
            | {"uncertainty": [u for u in plan["uncertainty"] if not tells(u["term"], u["label"])]}
            for plan in doc.get(view) or ()
        ]
    doc["savings"] = [saving for saving in doc["savings"] if saving["metric"] not in _PRICE_FIGURES]
    doc["curve"] = [point | {"cost_usd": None, "in_budget": None} for point in doc.get("curve") or ()]
    doc["assumptions"] = [a for a in doc["assumptions"] if not tells(a["id"], a["text"], a["change_with"])]
    doc["gaps"] = [gap for gap in doc["gaps"] if not tells(gap["what"], gap["why"], gap["effect"])]
    doc |= _without_warnings(doc, tells)
    doc["evidence"] = [
        source | {"used_in": [name for name in source["used_in"] if _figure(name) not in _PRICE_FIGURES]}
        for source in doc["evidence"]
        if not source["id"].startswith(_PRICE_IDS)
        and not tells(source["what"])
        and {_figure(name) for name in source["used_in"]} != set(_PRICE_FIGURES)
    ]
    for name in ("pareto", "claims"):
        doc.pop(name, None)
    doc["sensitivity"] = [row for row in doc.get("sensitivity") or () if row["metric"] not in _PRICE_FIGURES]
    return {key: value for key, value in doc.items() if key in KNOWN}


def _without_budget(probability: Doc | None) -> Doc | None:
    return None if probability is None else probability | {"budget": None}


def _without_warnings(doc: Doc, tells: Callable[..., bool]) -> Doc:
    """The warnings that mention no price, each with its message if the document has messages."""
    texts = doc.get("warnings") or []
    kept = [number for number, text in enumerate(texts) if not tells(text)]
    lists = {name: doc[name] for name in ("warnings", "warnings_message") if doc.get(name)}
    return {name: [rows[number] for number in kept] for name, rows in lists.items()}

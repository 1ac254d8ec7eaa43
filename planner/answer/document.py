"""The JSON document of an answer, `mpplan.estimate/2`: written and read back. Its keys carry their units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from planner.answer.plan import Answer, Plan
from planner.errors import InputFileError, Message
from planner.evidence import Assumption, Estimate, Gap
from planner.files import read_bytes

ESTIMATE_SCHEMA = "mpplan.estimate/2"

Document = dict[str, Any]
"""A parsed JSON document: the only bare mapping that crosses folders, because it is what a file holds."""


def plain(value: Any) -> Any:
    """Return a value as plain JSON: objects by their fields, a message as `{"key", "values"}`, tuples as lists."""
    kind = type(value)
    if kind in UNCHANGED:  # most values are of these types or floats, so these are checked first
        return value
    if kind is float:
        return _shortened(value)
    if isinstance(value, Message):
        return {"key": value.key, "values": {name: plain(inner) for name, inner in value.values}}
    if isinstance(value, Gap):
        return {"key": value.key, "what": plain(value.what), "why": plain(value.why), "effect": plain(value.effect)}
    if isinstance(value, Assumption):
        return {"id": value.id, "text": plain(value.message), "input": value.input}
    if is_dataclass(kind):
        return {key: plain(getattr(value, name)) for name, key in _keys(kind)}
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return _shortened(value) if isinstance(value, float) else value


UNCHANGED = frozenset({str, int, bool, type(None)})
"""Types whose values are valid JSON unchanged."""


def _shortened(value: float) -> float:
    return round(value, DECIMALS) if LONG <= abs(value) < LONGEST else float(f"{value:.{DIGITS}g}")


@cache
def _keys(kind: type[Any]) -> tuple[tuple[str, str], ...]:
    """Return the names of a dataclass's fields, each with its key in the document."""
    return tuple((field.name, RENAMED.get(field.name, field.name)) for field in fields(kind))


DIGITS = 10
"""Significant digits of a number in the document: far more than anything here is known to, and items still add up."""
DECIMALS, LONG, LONGEST = 3, 1e7, 1e13
"""Decimals of a number from `LONG` to `LONGEST`, where ten digits may not reach the cent that bills add up and multiply
out to."""

RENAMED = {"from_": "from"}
"""Fields whose name in the document is a Python keyword."""


def to_document(answer: Answer) -> Document:
    """Return the document `mpplan.estimate/2` (docs/report-schema.md) as plain JSON values, with unworded messages."""
    model = plain(answer.model)
    model.pop("evidence")
    model.pop("network")
    model.pop("mtp_unrolled")
    network = answer.model.network
    model["image_size"] = None if network is None else network.image_size
    model["flop_per_image"] = None if network is None else network.flop_per_image
    model["params_total"] = answer.model.params_total
    model["params_active"] = answer.model.params_active
    model["matrix_params_active"] = answer.model.unrolled().matrix_params_active
    return {
        "schema": ESTIMATE_SCHEMA,
        "mpplan": answer.version,
        "created_at": answer.created_at,
        "command": list(answer.command),
        "question": plain(answer.question),
        "model": model,
        **{name: _plans(answer, name) if name in OF_PLANS else plain(getattr(answer, name)) for name in PARTS},
    }


def _plans(answer: Answer, name: str) -> list[Document]:
    return [_plan(plan) for plan in getattr(answer, name)]


def _plan(plan: Plan) -> Document:
    """Return the document of a plan, in which the total of the memory is its range."""
    document: Document = plain(plan)
    del document["memory_range_gib"]
    if plan.memory_gib is not None:
        total = plan.memory_range_gib or Estimate.exactly(plan.memory_gib["total"])
        document["memory_gib"]["total"] = plain(total)
    return document


PARTS = (
    "plans", "same_deadline", "deadline_days", "savings", "unsupported", "assumptions", "gaps", "warnings", "evidence",
    "money", "power_caps", "power_limit_search", "calibration", "run_totals", "confidence", "curve",
    "tokens_per_sequence", "parity", "numerics",
)  # fmt: skip
"""Parts of an answer that the document holds unchanged, in its order."""
OF_PLANS = frozenset({"plans", "same_deadline"})
"""The parts that are lists of plans."""


LARGEST_BYTES = 64_000_000
"""A larger file is refused before it is parsed; an answer of a thousand plans takes half of this."""
DEEPEST = 60
"""Most levels of lists and objects in a document; an answer has about fifteen."""
LONGEST_INTEGER = 300
"""Most digits of an integer that a float can hold."""


def parse_document(text: str, name: str, schema: str = ESTIMATE_SCHEMA) -> Document:
    """Parse a document and check its schema line, that it is not nested too deeply, and that its numbers are finite.

    Raises:
        InputFileError: not JSON, not an object, another schema or version, or a number that no float can hold.
    """
    import json

    write_again = Message.of("hint.write_document_again")
    try:
        document = json.loads(text, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise InputFileError(f"{name}:{error.lineno}: not JSON: {error.msg}", hint=write_again) from error
    except RecursionError:
        raise InputFileError(f"{name}: nested too deeply", hint=write_again) from None
    given = document.get("schema") if isinstance(document, dict) else None
    if given != schema:
        found_schema = str(given) if isinstance(given, str | int | float | None) else "no text"
        raise InputFileError(
            f"{name}: schema: expected `{schema}`, found `{found_schema[:LONGEST_NAME]}`",
            hint=Message.of(_other_version(given, schema)),
        )
    for place, what in _unusable(document):
        raise InputFileError(f"{name}: {place}: {what}", hint=write_again)
    result: Document = document
    return result


LONGEST_NAME = 60
"""Most characters of an unknown schema's name that an error repeats."""


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else float("inf")


def _unusable(document: Document) -> Iterator[tuple[str, str]]:
    """Yield the places, such as `plans[0].gpus`, of numbers that are not finite and of values nested too deeply."""
    level: list[tuple[tuple[Any, ...], Any]] = [((), document)]
    for depth in range(DEEPEST + 1):
        below: list[tuple[tuple[Any, ...], Any]] = []
        for place, parent in level:
            entries = parent.items() if isinstance(parent, dict) else enumerate(parent)
            for key, value in entries:
                kind = type(value)
                if kind is dict or kind is list:
                    below.append(((*place, key), value))
                elif kind is float and not math.isfinite(value):
                    yield place_of((*place, key)), f"expected a finite number, found {value}"
        level = below
        if not level:
            return
        if depth == DEEPEST:
            yield place_of(level[0][0][:4]), "nested too deeply"


def place_of(path: Iterable[str | int]) -> str:
    """Return the place of a value in the notation of a document, for example `plans[0].gpus`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part[:LONGEST_NAME]}" for part in path)
    return "".join(parts).removeprefix(".") or "document"


def _other_version(given: object, schema: str) -> str:
    """Return the key of the hint: for another version of this document, or for another document altogether."""
    same_kind = isinstance(given, str) and given.split("/")[0] == schema.split("/")[0]
    return "hint.document_again" if same_kind else "hint.pass_document"


def read_document(path: Path, schema: str = ESTIMATE_SCHEMA) -> Document:
    """Read a document from a file.

    Raises:
        UsageError: the file is missing or unreadable.
        InputFileError: see `decode_document` and `parse_document`.
    """
    content = read_bytes(path, most_bytes=LARGEST_BYTES)
    return parse_document(decode_document(content, str(path)), str(path), schema)


def decode_document(content: bytes, name: str) -> str:
    """Return the text of a document, with or without a byte order mark.

    Raises:
        InputFileError: the content is larger than `LARGEST_BYTES`, or not UTF-8.
    """
    if len(content) > LARGEST_BYTES:
        raise InputFileError(f"{name}: larger than {LARGEST_BYTES:,} bytes", hint=Message.of("hint.document_too_large"))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputFileError(f"{name}: expected UTF-8 text", hint=Message.of("hint.document_utf8")) from error

"""Write the JSON Schemas of mpplan's documents, `mpplan/schemas/*.json` (`make schema`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mpplan.api.fitting import SCHEMA as FIT_SCHEMA
from mpplan.api.fleets import SCHEMA as FLEET_SCHEMA
from mpplan.api.imports import SCHEMA as IMPORT_SCHEMA
from mpplan.ui.schema import FOLDER, file_of
from planner.answer.document import ESTIMATE_SCHEMA, PARTS
from planner.answer.plan import MEMORY_ITEMS, STEP_ITEMS, Answer, Plan
from planner.calibration.document import SCHEMA as CALIBRATION_SCHEMA
from planner.claims.case import BASES
from planner.claims.claim import READINGS, UNITS
from planner.claims.document import CLAIMS_SCHEMA
from planner.claims.standing import STANDINGS
from planner.claims.verdict import VERDICTS
from planner.comparison.conventions import Reading, Utilisation
from planner.comparison.document import COMPARE_SCHEMA
from planner.comparison.forecast import Forecast
from planner.comparison.gap import Gap as LogGap
from planner.comparison.pace import Pace
from planner.comparison.printed_rate import PrintedRate
from planner.comparison.time_use import TimeUse
from planner.evidence import Estimate
from planner.fleet.outliers import KeepingCost, Member, Why
from planner.models.shape import ModelShape
from planner.question.asked import InputValue
from planner.records.flat import columns
from planner.records.measurement import KINDS
from planner.records.measurement import SCHEMA as PROBE_SCHEMA
from planner.training.method import METHOD_ROWS
from planner.validation.validate import SCHEMA as VALIDATE_SCHEMA
from probes.numerics.session.document import NUMERICS_SCHEMA
from probes.verify.document import SCHEMA as VERIFY_SCHEMA
from reports.explain.derivation import Node
from reports.explain.walk import EXPLAIN_SCHEMA
from reports.page.comparison import COMPARISON_SCHEMA
from tools.schemas.numerics import numerics
from tools.schemas.types import (
    AMOUNT,
    COUNT,
    MESSAGE,
    NUMBER,
    SHARE,
    TEXT,
    YES,
    Definitions,
    Schema,
    array,
    or_null,
    record,
    record_of,
    table,
)

NUMBER_INPUTS = ("tokens", "pue", "params", "global_batch", "seq_len", "gpus_per_node", "samples", "examples",
                 "epochs", "image_size")  # fmt: skip
"""Inputs of the question whose value is a number or null in every answer, because reports calculate with them."""
ERRORS = {name: or_null(NUMBER) for name in ("median_abs_error", "p90_abs_error", "bias", "coverage")}


def estimate(definitions: Definitions) -> Schema:
    """Return the schema of what `mpplan estimate --json` prints and `report`, `explain` and `export` read."""
    answer = record_of(Answer, definitions)["properties"]
    parts = {name: answer[name] for name in PARTS}
    for name in ("assumptions", "gaps"):
        parts[name] = array({"$ref": f"#/$defs/{'Assumption' if name == 'assumptions' else 'Gap'}"})
    _worded(definitions)
    head = {
        "schema": {"const": ESTIMATE_SCHEMA}, "mpplan": TEXT, "created_at": TEXT, "command": array(TEXT),
        "question": _question(definitions), "model": _model(definitions),
    }  # fmt: skip
    beside = {
        "warnings_message": array(MESSAGE),
        "redacted": array({"enum": ["prices", "names"]}),
    }
    needed = ("schema", "question", "model", "plans", "savings", "assumptions", "gaps", "evidence")
    properties = head | parts | beside
    optional = tuple(name for name in properties if name not in needed)
    properties["plans"] = properties["plans"] | {"minItems": 1}
    return record(properties, optional=optional, about="The answer of `mpplan estimate --json`.")


def _worded(definitions: Definitions) -> None:
    """Adapt a plan, an assumption and a gap to their form in a document: memory totals as ranges, texts worded."""
    estimated = definitions.reference(Estimate)
    plan = definitions.schemas[Plan.__name__]
    del plan["properties"]["memory_range_gib"]
    items = record(
        {**dict.fromkeys(MEMORY_ITEMS, AMOUNT), "total": estimated}, optional=MEMORY_ITEMS,
        about="Peak per GPU by item at mid; `total` is a range.",
    )  # fmt: skip
    plan["properties"]["memory_gib"] = or_null(items)
    step = record({**dict.fromkeys(STEP_ITEMS, AMOUNT), "total": AMOUNT}, optional=STEP_ITEMS)
    plan["properties"]["step_s"] = or_null(step) | {"description": "Step by item at mid, in seconds, and its total."}
    flag = or_null(TEXT) | {"description": "The flag that replaces it."}
    definitions.schemas["Assumption"] = record(
        {"id": TEXT, "text": TEXT, "text_message": MESSAGE, "change_with": flag}, optional=("text_message",)
    )
    texts = dict.fromkeys(("key", "what", "why", "effect"), TEXT)
    messages = {f"{name}_message": MESSAGE for name in ("what", "why", "effect")}
    definitions.schemas["Gap"] = record(texts | messages, optional=("key", *messages))


def _question(definitions: Definitions) -> Schema:
    """Return the schema of the inputs with value and source; inputs that reports use have a stricter type."""
    entry = record_of(InputValue, definitions)
    kinds = ["string", "number", "boolean", "array", "object", "null"]  # object: one count per GPU
    value: Schema = {"type": kinds, "items": {"type": ["string", "number"]}}
    entry["properties"] |= {"value": value, "value_message": MESSAGE}
    definitions.schemas["InputValue"] = entry
    number = dict(entry, properties=entry["properties"] | {"value": or_null(AMOUNT)})
    definitions.schemas["NumberInput"] = number
    named: Schema = {name: {"$ref": "#/$defs/NumberInput"} for name in NUMBER_INPUTS}
    for name, text in (("method", {"enum": list(METHOD_ROWS.by_id)}), ("optimizer", TEXT)):
        label = f"{name.capitalize()}Input"
        definitions.schemas[label] = dict(entry, properties=entry["properties"] | {"value": or_null(text)})
        named[name] = {"$ref": f"#/$defs/{label}"}
    return {"type": "object", "properties": named, "additionalProperties": {"$ref": "#/$defs/InputValue"}}


def _model(definitions: Definitions) -> Schema:
    """Return the schema of the model's shape, and of the parameters derived from it."""
    model = record_of(ModelShape, definitions)
    for hidden in ("evidence", "network", "mtp_unrolled"):
        del model["properties"][hidden]
    images = {"image_size": or_null(COUNT) | {"default": None}, "flop_per_image": or_null(AMOUNT) | {"default": None}}
    counted = dict.fromkeys(("params_total", "params_active", "matrix_params_active"), AMOUNT)
    shape = model["properties"] | counted | images
    return record(shape, optional=tuple(name for name in shape if name not in (*counted, *model["required"])))


def _case() -> Schema:
    """Return the schema of one quantity that was predicted and then measured."""
    texts = {name: or_null(TEXT) for name in ("recipe", "unit", "quality")}
    return record(
        {"name": TEXT, "precision": or_null(TEXT), "metric": {"enum": ["time", "memory", "energy"]},
         "predicted": AMOUNT, "measured": AMOUNT,
         "measured_interval_ratio": or_null(AMOUNT), "error_ratio": NUMBER, **texts},
        optional=tuple(texts),
    )  # fmt: skip


def verify(definitions: Definitions) -> Schema:
    """Return the schema of what `mpplan probe --verify --json` prints."""
    group = record({"n": COUNT, "median_abs_error": or_null(AMOUNT), "max_abs_error": or_null(AMOUNT)})
    metrics = record(dict.fromkeys(("time", "memory", "energy"), group))
    not_run = record({"name": TEXT, "status": TEXT, "reason": or_null(TEXT)})
    return record({"schema": {"const": VERIFY_SCHEMA}, "cases": array(_case()), "summary": metrics,
                   "summary_quiet": metrics, "targets": table(AMOUNT), "contended": array(TEXT),
                   "not_run": array(not_run)})  # fmt: skip


def explain(definitions: Definitions) -> Schema:
    """Return the schema of what `mpplan explain --json` prints."""
    node = definitions.reference(Node)
    made = definitions.schemas[Node.__name__]
    made["required"] = list(made["properties"])
    for name in ("value", "low", "high"):
        made["properties"][name] = or_null(NUMBER)
    made["properties"]["power"] = {"enum": [1, -1]}
    sources = array({"type": "object"})
    return record({"schema": {"const": EXPLAIN_SCHEMA}, "figure": TEXT, "precision": TEXT, "gpu": TEXT,
                   "tree": node, "evidence": sources})  # fmt: skip


def comparison(definitions: Definitions) -> Schema:
    """Return the schema of what `mpplan report A B --format json` prints."""
    ends = {f"{side}_{end}": or_null(NUMBER) for side in ("first", "second") for end in ("low", "mid", "high")}
    bounds = {f"{side}_at_least": or_null({"type": "boolean"}) for side in ("first", "second")}
    change = record({"precision": TEXT, "metric": TEXT, **ends, **bounds, "change_ratio": or_null(NUMBER)})
    answer: Schema = {"type": "object", "properties": {"schema": {"const": ESTIMATE_SCHEMA}}, "required": ["schema"]}
    return record({"schema": {"const": COMPARISON_SCHEMA}, "names": array(TEXT), "first": answer, "second": answer,
                   "changes": array(change)})  # fmt: skip


def compare(definitions: Definitions) -> Schema:
    """Return the schema of what `mpplan compare --json` prints."""
    ends = or_null(definitions.reference(Estimate))
    log = record(
        {**dict.fromkeys(("name", "framework", "durations_from"), TEXT),
         **dict.fromkeys(("lines", "understood", "damaged", "starts", "reached_step"), COUNT),
         **dict.fromkeys(("cut", "ended", "zoned", "batch_changed"), YES), "damaged_lines": array(COUNT),
         **dict.fromkeys(("first_s", "final_s", "peak_mem_gib"), or_null(AMOUNT))}
    )  # fmt: skip
    basis = record(
        {**dict.fromkeys(("model", "gpu", "precision", "act_ckpt"), or_null(TEXT)), "method": TEXT,
         **dict.fromkeys(("gpus", "seq_len", "global_batch"), or_null(COUNT)),
         **dict.fromkeys(("params_total", "tokens_per_sequence"), or_null(AMOUNT)),
         "sources": table(TEXT), "differs": array(TEXT), "missing": array(TEXT)}
    )  # fmt: skip
    plan = record({"precision": TEXT, "gpu": TEXT, "gpus": COUNT, "steps": COUNT, "global_batch": COUNT,
                   "tokens_per_sequence": AMOUNT, "method": TEXT})  # fmt: skip
    reading = record_of(Reading, definitions)
    reading["properties"] |= {"error_ratio": NUMBER, "words": TEXT, "words_message": MESSAGE}
    printed = record(
        {"figure": TEXT, "printed": AMOUNT, "verdict": {"enum": ["named", "several", "none", "unknown"]},
         "conventions": array(reading), "words": TEXT, "words_message": MESSAGE}
    )  # fmt: skip
    row = record({"part": TEXT, "outside": YES, "log_s": AMOUNT, "plan_s": or_null(AMOUNT), "excess_s": NUMBER})
    gap = record_of(LogGap, definitions)
    gap["properties"] |= {"ratio": NUMBER, "rows": array(row)}
    once = record({"id": TEXT, "usd": AMOUNT, "words": TEXT, "words_message": MESSAGE})
    texts = {name: array(TEXT) for name in ("findings", "cannot_tell", "notes")}
    messages = {f"{name}_message": array(MESSAGE) for name in texts}
    return record(
        {"schema": {"const": COMPARE_SCHEMA}, "mpplan": TEXT, "log": log, "plan": or_null(plan), "basis": basis,
         "pace": or_null(definitions.reference(Pace)), "tokens_per_s_per_gpu": or_null(AMOUNT),
         "printed_rate": or_null(definitions.reference(PrintedRate)),
         "utilisation": array(definitions.reference(Utilisation)), "printed": array(printed),
         "time": definitions.reference(TimeUse), "parts_s": table(AMOUNT), "gap": or_null(gap),
         "last_step": or_null(COUNT), "last_step_from": TEXT, "usd_per_gpu_h": ends,
         "costs_once": array(once), "forecast": or_null(definitions.reference(Forecast)), **texts, **messages,
         "rows": array(table(TEXT)), "row_missing": array(TEXT)},
        optional=tuple(messages),
    )  # fmt: skip


def calibration(definitions: Definitions) -> Schema:
    """Return the schema of what `mpplan calibrate` writes and `--calibration` reads."""
    ends = record(dict.fromkeys(("low", "mid", "high"), NUMBER))
    row = record(
        {"id": TEXT, "metric": TEXT, **dict.fromkeys(("error_before", "error_after", "error_left_out"), NUMBER),
         "conflict": or_null(TEXT), "conflict_message": MESSAGE},
        optional=("conflict_message",),
    )  # fmt: skip
    term = record({"term": TEXT, "label": TEXT, "unit": TEXT, "before": ends, "after": ends, "bounded": YES,
                   "words": TEXT, "words_message": MESSAGE})  # fmt: skip
    total = record({"figure": TEXT, "measured_ratio": AMOUNT, "learned_ratio": AMOUNT, "words": TEXT,
                    "words_message": MESSAGE})  # fmt: skip
    used = record({"gpu": TEXT, "record": TEXT, "digest": TEXT})
    posterior = record({"ids": array(TEXT), "values": array(NUMBER), "changed": array(TEXT), "own_sd": table(AMOUNT),
                        "factor": array(array(NUMBER))})  # fmt: skip
    return record({"schema": {"const": CALIBRATION_SCHEMA}, "mpplan": TEXT, "made": TEXT, "source": TEXT,
                   "shipped_parameters": TEXT, "runs": COUNT, "gpus": array(TEXT), "figures": array(TEXT),
                   "rows": array(row), "learned": array(term), "width_ratio": table(AMOUNT),
                   "posterior": posterior, "records": array(used), "total": array(total), "stacks": array(TEXT),
                   "mixtures": array(YES), "images": array(YES), "adapters": array(YES), "precisions": array(TEXT),
                   "most_nodes": COUNT},
                  optional=("records", "total", "stacks", "mixtures", "images", "adapters", "precisions",
                            "most_nodes"))  # fmt: skip


def validate(definitions: Definitions) -> Schema:
    """Return the schema of what `mpplan validate --json` prints."""
    ends = dict.fromkeys(("low", "mid", "high", "error_ratio"), or_null(NUMBER))
    run = record(
        {"id": TEXT, "metric": TEXT, "published": or_null(NUMBER), "out_of_memory": YES, **ends,
         "inside": or_null(YES), "filled": array(TEXT), "fits_predicted": or_null(YES),
         "fits_probability": or_null(SHARE), "reason_skipped": or_null(TEXT), "reason_skipped_message": MESSAGE,
         "flag": or_null(TEXT), "learned_from": YES},
        optional=("reason_skipped_message",),
    )  # fmt: skip
    pair = record({"pair": TEXT, "metric": TEXT, "from": TEXT, "to": TEXT, "ids": array(TEXT),
                   "published_ratio": or_null(NUMBER), **ends})  # fmt: skip
    group = record({"n": COUNT, **ERRORS, "median_width": or_null(NUMBER)})
    counted = dict.fromkeys(("rows", "skipped", "flagged", "misjudged_fits"), COUNT)
    overall = record(group["properties"] | counted)
    vote = record({"lineages": COUNT, "mean_error": or_null(NUMBER), "median_error": or_null(NUMBER),
                   "coverage": or_null(SHARE)})  # fmt: skip
    known = {"overall": overall, "pairs": record({"n": COUNT, "median_abs_error": or_null(NUMBER)}),
             "one_vote_a_lineage": table(vote)}  # fmt: skip
    summary = {"type": "object", "properties": known, "required": list(known), "additionalProperties": table(group)}
    return record({"schema": {"const": VALIDATE_SCHEMA}, "runs": array(run), "pairs": array(pair), "summary": summary,
                   "learning": {"type": "object"}}, optional=("learning",))  # fmt: skip


def probe(definitions: Definitions) -> Schema:
    """Return the schema of one line of a measurement record; values that were not measured are left out."""
    signed: dict[object, Schema] = {float: NUMBER, int: {"type": "integer"}}
    keys = {column.key: signed.get(column.type) or definitions.of(column.type) for column in columns()}
    keys["schema"] = {"const": PROBE_SCHEMA}
    needed = {column.key for column in columns() if column.required} | {"schema"}
    return record(keys, optional=tuple(key for key in keys if key not in needed))


def imports(definitions: Definitions) -> Schema:
    """Return the schema of what `mpplan records import --json` prints."""
    file = record(
        {"file": TEXT, "tool": TEXT, "version": or_null(TEXT), "sha256": TEXT, "date": or_null(TEXT), "gives": TEXT,
         "doubts": array(TEXT)}
    )  # fmt: skip
    figures = ("time_s", "time_relative_sd", "power_w", "power_relative_sd", "energy_j")
    point = record(
        {"probe_id": TEXT, "kind": {"enum": list(KINDS)}, "precision": or_null(TEXT),
         **dict.fromkeys(figures, or_null(AMOUNT)), "samples": or_null(COUNT), "doubts": array(TEXT)}
    )  # fmt: skip
    return record({"schema": {"const": IMPORT_SCHEMA}, "record": or_null(TEXT), "device_name": TEXT,
                   "gpu": or_null(TEXT), "files": array(file), "points": array(point),
                   "rows": array(table(TEXT))})  # fmt: skip


def fleet(definitions: Definitions) -> Schema:
    """Return the schema of what `mpplan records merge --json` prints."""
    why = definitions.reference(Why)
    cost = record_of(KeepingCost, definitions)
    outlier = record({"name": TEXT, "why": array(why), "left_out": YES, **cost["properties"]})
    lacking = record({"record": TEXT, "why": TEXT})
    missing = record({"probe_id": TEXT, "kept": YES, "lacking": array(lacking)})
    merged = record({"run_id": or_null(TEXT), "points": COUNT, "members": COUNT})
    return record({"schema": {"const": FLEET_SCHEMA}, "record": or_null(TEXT), "device_name": TEXT,
                   "gpu": or_null(TEXT), "members": array(definitions.reference(Member)), "outliers": array(outlier),
                   "together": or_null(cost), "merged": merged, "missing": array(missing),
                   "warnings": array(TEXT)})  # fmt: skip


def fit(definitions: Definitions) -> Schema:
    """Return the schema of what `mpplan fit --json` prints."""
    ends = record(dict.fromkeys(("low", "mid", "high"), AMOUNT))
    row = record({
        "method": TEXT, "policy": TEXT, "optimizer": TEXT, "offload": TEXT, "in_backward": YES, "flags": array(TEXT),
        "act_ckpt": TEXT, "seq_len": COUNT, "micro_batch": COUNT, "zero": COUNT, "fits": YES, "safe": YES,
        "memory_gib": ends, "host_gib": AMOUNT, "memory_risk": SHARE, "tokens_per_s": or_null(ends),
        "usd_per_million_tokens": or_null(AMOUNT),
    })  # fmt: skip
    gpu = record({
        "gpu": TEXT, "gpus": COUNT, "memory_capacity_gib": AMOUNT, "instead": or_null(TEXT), "rows": array(row),
    })  # fmt: skip
    return record({"schema": {"const": FIT_SCHEMA}, "model": TEXT, "params_total": AMOUNT, "precision": TEXT,
                   "stack": TEXT, "memory_risk_allowed": SHARE, "gpus": array(gpu),
                   "warnings": array(TEXT)})  # fmt: skip


def claims(definitions: Definitions) -> Schema:
    """Return the schema of what `mpplan claims --json` prints."""
    bound = or_null(NUMBER)
    figures = {"low": bound, "high": bound, "unit": {"enum": sorted(UNITS)}, "reading": {"enum": list(READINGS)},
               "tolerance_ratio": SHARE}  # fmt: skip
    case = record({
        "what": TEXT, "basis": {"enum": list(BASES)}, "low": bound, "mid": bound, "high": bound,
        "unit": {"enum": sorted(UNITS)}, "count": COUNT, "claimed": record({"low": bound, "high": bound}),
        "stands": {"enum": list(STANDINGS)}, "agrees": or_null(YES), "own": YES, "stands_in": YES,
        "looked_at": or_null(TEXT), "looked_at_message": MESSAGE, "source": TEXT,
    }, optional=("looked_at_message",))  # fmt: skip
    claim = record({
        "id": TEXT, "topic": TEXT, "claim": TEXT, "claimed": record(figures), "verdict": {"enum": list(VERDICTS)},
        "decided_by": TEXT, "words": TEXT, "words_message": MESSAGE, "would_decide": TEXT, "notes": array(TEXT),
        "notes_message": array(MESSAGE), "evidence": array(case), "source": TEXT, "date": TEXT,
    }, optional=("notes_message",))  # fmt: skip
    return record({"schema": {"const": CLAIMS_SCHEMA}, "claims": array(claim)})


DOCUMENTS: dict[str, Callable[[Definitions], Schema]] = {
    ESTIMATE_SCHEMA: estimate,
    COMPARISON_SCHEMA: comparison,
    COMPARE_SCHEMA: compare,
    EXPLAIN_SCHEMA: explain,
    VALIDATE_SCHEMA: validate,
    CALIBRATION_SCHEMA: calibration,
    VERIFY_SCHEMA: verify,
    PROBE_SCHEMA: probe,
    IMPORT_SCHEMA: imports,
    FLEET_SCHEMA: fleet,
    FIT_SCHEMA: fit,
    CLAIMS_SCHEMA: claims,
    NUMERICS_SCHEMA: numerics,
}
"""The documents that have a schema, by their `schema` line."""


def schema_of(name: str) -> Schema:
    """Return the JSON Schema (draft 2020-12) of a kind of document."""
    definitions = Definitions()
    body = DOCUMENTS[name](definitions)
    text = json.dumps(body) + json.dumps(definitions.schemas)
    used = {label: schema for label, schema in definitions.schemas.items() if f'"#/$defs/{label}"' in text}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{name.replace('.', ':').replace('/', ':')}",
        "title": name,
        **body,
        "$defs": dict(sorted(used.items())),
    }


def written(schema: dict[str, Any]) -> str:
    """Return a schema as the text of its file."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every schema."""
    FOLDER.mkdir(exist_ok=True)
    for name in DOCUMENTS:
        file_of(name).write_text(written(schema_of(name)), encoding="utf-8")


if __name__ == "__main__":
    main()

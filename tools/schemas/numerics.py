"""The JSON Schema of the answer of `mpplan numerics`."""

from __future__ import annotations

from probes.numerics.formats.elements import FORMATS
from probes.numerics.instruments.exponents import SWALLOWING, TENSORS
from probes.numerics.instruments.scaling import DynamicScale, StaticScale
from probes.numerics.instruments.schedule import SCHEDULES
from probes.numerics.instruments.sensitivity import Turned
from probes.numerics.lowering.recipes import EMULATED, LOWER, REAL
from probes.numerics.session.document import NUMERICS_SCHEMA
from probes.numerics.session.options import METRICS
from probes.numerics.statistics.equivalence import VERDICTS
from probes.numerics.tasks.interface import SIZES
from tools.schemas.types import (
    AMOUNT,
    COUNT,
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

INTEGER: Schema = {"type": "integer"}
MODE: Schema = {"enum": [REAL, EMULATED]}
LOWERED: Schema = {"enum": [recipe.id for recipe in LOWER]}
CUT = array(TEXT) | {"description": "What there was no time for."}


def numerics(definitions: Definitions) -> Schema:
    """What `mpplan numerics --json` prints."""
    task = record({"id": TEXT, "what": TEXT, "parameters": COUNT, "data": {"type": "object"}, "steps_most": COUNT})
    software = record({"torch": or_null(TEXT), "python": or_null(TEXT), "threads": or_null(COUNT)})
    return record(
        {
            "schema": {"const": NUMERICS_SCHEMA}, "mpplan": or_null(TEXT), "device": {"enum": ["cuda", "cpu"]},
            "device_name": TEXT, "size": {"enum": list(SIZES)}, "metric": {"enum": list(METRICS)}, "margin": AMOUNT,
            "software": software, "record": or_null(TEXT), "precisions": array(LOWERED), "tasks": array(task),
            "loss_scaling": array(_scaling(definitions)), "histograms": array(_histograms()),
            "parity": array(_parity()), "sensitivity": array(_sensitivity(definitions)),
            "policy": array(_policy(definitions)), "schedule": array(_schedule()), "cut_short": CUT, "complete": YES,
            "wall_s": or_null(AMOUNT),
        },
        about="The answer of `mpplan numerics --json`.",
    )  # fmt: skip


def _ran(precision: Schema = LOWERED) -> dict[str, Schema]:
    return {"precision": precision, "mode": MODE, "why_emulated": or_null(TEXT)}


def _scaling(definitions: Definitions) -> Schema:
    static, dynamic = record_of(StaticScale, definitions), record_of(DynamicScale, definitions)
    for name in ("init_scale_log2",):
        dynamic["properties"][name] = NUMBER
    dynamic["properties"]["path"] = array(array(NUMBER) | {"minItems": 2, "maxItems": 2})
    static["properties"]["loss"] = or_null(NUMBER)
    limits = dict.fromkeys(("largest_without_overflow_log2", "smallest_with_overflow_log2"), or_null(COUNT))
    return record({"task": TEXT, **_ran(), "static": array(static), "dynamic": array(dynamic), **limits,
                   "cut_short": CUT})  # fmt: skip


def _histograms() -> Schema:
    best = {"best_scale_log2": or_null(INTEGER), "flushed_at_best_ratio": or_null(SHARE)}
    element = record({"flushed_ratio": SHARE, "saturated_ratio": SHARE, **best})
    seen = record(
        {"values": COUNT, "zeros_ratio": SHARE, "not_finite": COUNT, "least_exponent": or_null(INTEGER),
         "counts": array(COUNT) | {"description": "Values by exponent, from `least_exponent` upwards."},
         "formats": record({kind.id: element for kind in FORMATS})}
    )  # fmt: skip
    both = {
        "tensors": record(dict.fromkeys(TENSORS, seen)),
        "swallowed_ratio": record(dict.fromkeys(SWALLOWING, or_null(SHARE))),
    }
    layer = record({"layer": TEXT, "kind": TEXT, **both})
    scaled = record({"scale_log2": INTEGER, "flushed_ratio": SHARE, "saturated_ratio": SHARE})
    by_scale = record({kind.id: array(scaled) for kind in FORMATS})
    whole = both | {"gradients_by_scale": by_scale}
    overall = record(whole, optional=tuple(whole))
    return record({"task": TEXT, "precision": {"const": "fp32"}, "mode": MODE, "steps": COUNT, "layers": array(layer),
                   "overall": overall, "cut_short": CUT})  # fmt: skip


def _parity() -> Schema:
    ends = dict.fromkeys(("difference_low", "difference_mid", "difference_high"), or_null(NUMBER))
    pair = record(
        {**_ran(TEXT), "baseline": TEXT, "metric": {"enum": list(METRICS)}, "verdict": {"enum": list(VERDICTS)},
         "reason": TEXT, "pairs": COUNT, "diverged": COUNT, **ends, "difference_sd": or_null(AMOUNT), "margin": AMOUNT,
         "p_value": or_null(SHARE), "seeds_needed": or_null(COUNT), "differences": array(or_null(NUMBER)),
         "skipped_step_ratio": or_null(SHARE), "mean": or_null(NUMBER)}
    )  # fmt: skip
    null = pair | {"description": "FP32 against itself with weights moved by a millionth: what chaos alone makes."}
    return record({"task": TEXT, "metric": {"enum": list(METRICS)}, "margin": AMOUNT, "steps": COUNT, "seeds": COUNT,
                   "baseline": TEXT, "baseline_mean": or_null(NUMBER), "pairs": array(pair), "null": null,
                   "cut_short": CUT})  # fmt: skip


def _turned(definitions: Definitions) -> Schema:
    turned = record_of(Turned, definitions)
    turned["properties"] |= {"loss": or_null(NUMBER), "loss_change": or_null(NUMBER)}
    return turned


def _sensitivity(definitions: Definitions) -> Schema:
    turned = _turned(definitions)
    layer = record(turned["properties"] | {"kinds": array(TEXT)})
    return record({"task": TEXT, **_ran(), "steps": COUNT, "method": TEXT, "base_loss": or_null(NUMBER),
                   "all_lowered": or_null(turned), "kinds": table(TEXT), "layers": array(layer),
                   "cut_short": CUT})  # fmt: skip


def _policy(definitions: Definitions) -> Schema:
    changes = dict.fromkeys(("loss_change", "all_lowered_loss_change"), or_null(NUMBER))
    return record(
        {"task": TEXT, "precision": LOWERED, "mode": or_null(MODE), "margin": AMOUNT, "steps": COUNT,
         "keep_high": array(TEXT), "keep_high_kinds": table(COUNT), "lower": array(TEXT),
         "lowered_parameters_ratio": or_null(SHARE), **changes, "usual": or_null(_turned(definitions)), "words": TEXT,
         "cut_short": CUT}
    )  # fmt: skip


def _schedule() -> Schema:
    row = record({"name": {"enum": list(SCHEDULES)}, "loss": or_null(NUMBER), "loss_change": or_null(NUMBER)})
    return record({"task": TEXT, **_ran(), "high_ratio": SHARE, "margin": AMOUNT, "steps": COUNT, "seeds": COUNT,
                   "schedules": array(row), "recommended": or_null({"enum": list(SCHEDULES)}),
                   "cut_short": CUT})  # fmt: skip

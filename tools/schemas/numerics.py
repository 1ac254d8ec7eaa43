"""The JSON Schema of the document that `mpplan numerics` prints."""

from __future__ import annotations

from probes.numerics.formats.elements import FORMATS
from probes.numerics.instruments.exponents import SWALLOWING, TENSORS
from probes.numerics.instruments.parity import PARITY_VERDICTS
from probes.numerics.instruments.policy import FOUND, Tried
from probes.numerics.instruments.scaling import ARITHMETIC, MEASURED, DynamicScale, StaticScale
from probes.numerics.instruments.schedule import SCHEDULES
from probes.numerics.instruments.warm_starts import Turned
from probes.numerics.lowering.recipes import LOWER, MODES
from probes.numerics.session.document import NUMERICS_SCHEMA
from probes.numerics.session.options import METRICS
from probes.numerics.statistics.equivalence import VERDICTS
from probes.numerics.tasks.interface import LOSS_UNITS, SIZES
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
MODE: Schema = {"enum": list(MODES), "description": "`mixed`: some layers ran on the device's own units, not all."}
LOWERED: Schema = {"enum": [recipe.id for recipe in LOWER]}
NOT_APPLIED: Schema = or_null(TEXT) | {"description": "Why the precision reaches nothing of the model; null: it does."}
CUT = array(TEXT) | {"description": "What there was no time for."}


def numerics(definitions: Definitions) -> Schema:
    """Return the schema of what `mpplan numerics --json` prints."""
    unit = {"enum": list(LOSS_UNITS), "description": "`nats` of a cross-entropy; `loss` where nobody knows."}
    seeded = YES | {"description": "False: every pair has the same batches, and seeds vary the start only."}
    task = record({"id": TEXT, "what": TEXT, "parameters": COUNT, "data": {"type": "object"}, "most_steps": COUNT,
                   "loss_unit": unit, "seeded_batches": seeded})  # fmt: skip
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
    layers = {
        "real_layers": COUNT | {"description": "Layers that ran in the precision on the device's own units."},
        "lowered_layers": COUNT | {"description": "Layers that ran in it, those that were emulated included."},
    }
    return {"precision": precision, "mode": MODE, "why_emulated": or_null(TEXT), **layers}


def _compared() -> dict[str, Schema]:
    """Return the settings of a loss change; figures that differ in any of these are not comparable."""
    start = {"enum": ["scratch", "warm"], "description": "From new weights, or after `warm_steps` in the baseline."}
    return {"baseline": TEXT, "start": start, "warm_steps": COUNT, "steps": COUNT, "seeds": COUNT}


def _scaling(definitions: Definitions) -> Schema:
    static, dynamic = record_of(StaticScale, definitions), record_of(DynamicScale, definitions)
    dynamic["properties"]["init_scale_log2"] = NUMBER
    dynamic["properties"]["steady_basis"] = or_null({"enum": [ARITHMETIC, MEASURED]})
    dynamic["properties"]["path"] = array(array(NUMBER) | {"minItems": 2, "maxItems": 2})
    static["properties"]["loss"] = or_null(NUMBER)
    at_first = {"description": "Of the first `static_steps` steps from new weights."}
    limits = dict.fromkeys(("largest_without_overflow_log2", "smallest_with_overflow_log2"), or_null(COUNT) | at_first)
    later = {"description": "The same after `warm_steps` steps of training; null: not looked for, or not found."}
    return record({"task": TEXT, "precision": LOWERED, "mode": MODE, "why_emulated": or_null(TEXT),
                   "why_not_applied": NOT_APPLIED, "static": array(static), "dynamic": array(dynamic),
                   "static_steps": COUNT, **limits,
                   "warm_steps": COUNT, "largest_without_overflow_warm_log2": or_null(INTEGER) | later,
                   "trains": or_null(YES) | {"description": "False: no step was taken at any scale."},
                   "cut_short": CUT})  # fmt: skip


def _histograms() -> Schema:
    best = {"best_scale_log2": or_null(INTEGER), "flushed_at_best_ratio": or_null(SHARE)}
    element = record({"flushed_ratio": SHARE | {"description": "Of the values that are not zero by themselves."},
                      "saturated_ratio": SHARE, **best})  # fmt: skip
    seen = record(
        {"values": COUNT, "zeros_ratio": SHARE, "not_finite": COUNT, "least_exponent": or_null(INTEGER),
         "counts": array(COUNT) | {"description": "Values by exponent, from `least_exponent` upwards."},
         "formats": record({kind.id: element for kind in FORMATS})}
    )  # fmt: skip
    shared = {
        "tensors": record(dict.fromkeys(TENSORS, seen)),
        "swallowed_ratio": record(dict.fromkeys(SWALLOWING, or_null(SHARE))),
    }
    layer = record({"layer": TEXT, "kind": TEXT, **shared})
    scaled = record({"scale_log2": INTEGER, "flushed_ratio": SHARE, "saturated_ratio": SHARE})
    by_scale = record({kind.id: array(scaled) for kind in FORMATS})
    scale = record(
        {"format": TEXT, "scale_log2": or_null(INTEGER), "limit_log2": or_null(INTEGER), "headroom_octaves": COUNT,
         "flushed_ratio": or_null(SHARE)}
    )  # fmt: skip
    whole = shared | {"gradients_by_scale": by_scale, "loss_scale": scale}
    overall = record(whole, optional=tuple(whole))
    return record({"task": TEXT, "precision": {"const": "fp32"}, "mode": MODE, "steps": COUNT, "layers": array(layer),
                   "overall": overall, "cut_short": CUT})  # fmt: skip


def _parity() -> Schema:
    ends = dict.fromkeys(("difference_low", "difference_mid", "difference_high"), or_null(NUMBER))
    reached = {
        "lowered_matrices": COUNT | {"description": "Trained parameters of two dimensions or more that it lowers."},
        "matrices": or_null(COUNT) | {"description": "All of them; null for FP32 itself."},
    }
    pair = record(
        {**_ran(TEXT), "baseline": TEXT, "metric": {"enum": list(METRICS)}, "verdict": {"enum": list(PARITY_VERDICTS)},
         **reached, "baseline_mean": or_null(NUMBER) | {"description": "Of the runs in FP32 of these pairs alone."},
         "reason": TEXT, "pairs": COUNT, "diverged": COUNT, **ends, "difference_sd": or_null(AMOUNT), "margin": AMOUNT,
         "p_value": or_null(SHARE), "seeds_needed": or_null(COUNT), "differences": array(or_null(NUMBER)),
         "seeds_would_show": or_null({"enum": list(VERDICTS)}),
         "skipped_step_ratio": or_null(SHARE), "mean": or_null(NUMBER)}
    )  # fmt: skip
    null = pair | {"description": "FP32 against itself with weights moved by a millionth: what chaos alone makes."}
    return record({"task": TEXT, "metric": {"enum": list(METRICS)}, "margin": AMOUNT, "steps": COUNT, "seeds": COUNT,
                   "baseline": TEXT, "baseline_mean": or_null(NUMBER), "pairs": array(pair), "null": null,
                   "tests": COUNT | {"description": "Tests of equivalence; each errs with the risk `alpha`."},
                   "alpha": SHARE, "cut_short": CUT})  # fmt: skip


def _changes(prefix: str = "") -> dict[str, Schema]:
    """Return the schema of a change of the loss, and of the ends of its 90% interval."""
    return dict.fromkeys((f"{prefix}loss_change{end}" for end in ("", "_low", "_high")), or_null(NUMBER))


def _turned(definitions: Definitions) -> Schema:
    turned = record_of(Turned, definitions)
    turned["properties"] |= _changes()
    return turned


def _sensitivity(definitions: Definitions) -> Schema:
    turned = _turned(definitions)
    layer = record(turned["properties"] | {"kinds": array(TEXT)})
    ranked = array(layer) | {"description": "From the one that suffers most to the one that suffers least."}
    return record({"task": TEXT, **_ran(), **_compared(), "method": TEXT, "ranked_by": TEXT,
                   "base_loss": or_null(NUMBER), "all_lowered": or_null(turned), "kinds": table(TEXT),
                   "repeat_error_ratio": or_null(NUMBER), "layers": ranked,
                   "why_not_applied": NOT_APPLIED, "words": TEXT, "notes": array(TEXT),
                   "cut_short": CUT})  # fmt: skip


def _policy(definitions: Definitions) -> Schema:
    tried = record_of(Tried, definitions)
    tried["properties"] |= _changes()
    return record(
        {"task": TEXT, "precision": LOWERED, "mode": or_null(MODE), "margin": AMOUNT, **_compared(),
         "verdict": {"enum": list(FOUND)}, "recommended": YES, "tried": array(tried), "keep_high": array(TEXT),
         "keep_high_kinds": table(COUNT), "lower": array(TEXT), "lowered_parameters_ratio": or_null(SHARE),
         **_changes(), **_changes("all_lowered_"), "usual": or_null(_turned(definitions)), "words": TEXT,
         "cut_short": CUT}
    )  # fmt: skip


def _schedule() -> Schema:
    row = record({"name": {"enum": list(SCHEDULES)}, "loss": or_null(NUMBER), **_changes(), "seeds": COUNT,
                  "diverged": COUNT, "verdict": {"enum": list(VERDICTS)}})  # fmt: skip
    return record({"task": TEXT, **_ran(), "high_ratio": SHARE, "margin": AMOUNT, **_compared(),
                   "schedules": array(row), "recommended": or_null({"enum": list(SCHEDULES)}), "words": TEXT,
                   "cut_short": CUT})  # fmt: skip

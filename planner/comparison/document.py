"""The JSON document of a comparison, `mpplan.compare/1`, whose keys carry their units."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from planner.answer.document import Document, plain
from planner.comparison.basis import Basis
from planner.comparison.compare import Comparison
from planner.comparison.findings import cannot_tell, findings, notes, once_words, reading_words, reveal_words
from planner.runlog.log import RunLog

COMPARE_SCHEMA = "mpplan.compare/1"


def to_compare_document(comparison: Comparison, version: str) -> Document:
    """Return the document as plain JSON values, its messages not yet worded."""
    gap, planned = comparison.gap, comparison.planned
    return {
        "schema": COMPARE_SCHEMA,
        "mpplan": version,
        "log": _log(comparison.log),
        "plan": None if planned is None else {
            "precision": planned.plan["precision"], "gpu": planned.plan["gpu"], "gpus": planned.plan["gpus"],
            "steps": planned.steps, "global_batch": planned.recipe.global_batch,
            "tokens_per_sequence": plain(planned.recipe.mean_len), "method": planned.recipe.method,
        },
        "basis": _basis(comparison.basis),
        "pace": plain(comparison.pace),
        "tokens_per_s_per_gpu": plain(comparison.tokens_per_s_per_gpu),
        "printed_rate": plain(comparison.printed_rate),
        "utilisation": [
            {**plain(row), "count": plain(row.count)} for row in comparison.utilisations
        ],
        "printed": [
            {
                "figure": revealed.figure, "printed": plain(revealed.printed), "verdict": revealed.verdict,
                "conventions": [
                    {**plain(reading), "words": plain(reading_words(reading))} for reading in revealed.readings
                ],
                "words": plain(reveal_words(revealed)),
            }
            for revealed in comparison.revealed
        ],
        "time": plain(comparison.use),
        "parts_s": plain(dict(comparison.parts)),
        "gap": None if gap is None else {
            **plain(replace(gap, rows=())),
            "ratio": plain(gap.ratio),
            "rows": [{**plain(row), "excess_s": plain(row.excess_s)} for row in gap.rows],
        },
        "last_step": comparison.last_step,
        "last_step_from": comparison.last_step_from,
        "usd_per_gpu_h": plain(comparison.usd_per_gpu_h),
        "costs_once": [
            {"id": cost.id, "usd": plain(cost.usd), "words": plain(once_words(cost))} for cost in comparison.costs_once
        ],
        "forecast": plain(comparison.forecast),
        "findings": [plain(message) for message in findings(comparison)],
        "cannot_tell": [plain(message) for message in cannot_tell(comparison)],
        "notes": [plain(message) for message in notes(comparison)],
        "rows": [dict(line) for line in comparison.row.lines],
        "row_missing": list(comparison.row.missing),
    }  # fmt: skip


def _log(log: RunLog) -> dict[str, Any]:
    return {
        "name": log.name, "framework": log.framework, "lines": log.lines, "understood": log.understood,
        "damaged": log.damaged_count, "damaged_lines": list(log.damaged), "cut": log.cut, "ended": log.ended,
        "starts": log.attempts, "reached_step": log.reached, "durations_from": log.durations_from,
        "zoned": log.zoned, "first_s": plain(log.first_s), "final_s": plain(log.final_s),
        "peak_mem_gib": _number(log.facts.get("peak_mem_gib")), "batch_changed": _batch_changed(log),
    }  # fmt: skip


def _batch_changed(log: RunLog) -> bool:
    known = log.steps.sequences[~np.isnan(log.steps.sequences)]
    return bool(len(known)) and float(known.min()) != float(known.max())


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _basis(basis: Basis) -> dict[str, Any]:
    return {
        "model": None if basis.model is None else basis.model.name,
        "params_total": None if basis.model is None else plain(float(basis.model.params_total)),
        "gpu": None if basis.gpu is None else basis.gpu.id,
        "gpus": basis.gpus, "seq_len": basis.seq_len, "global_batch": basis.global_batch,
        "tokens_per_sequence": plain(basis.tokens_per_sequence), "method": basis.method,
        "precision": basis.precision, "act_ckpt": basis.act_ckpt, "sources": dict(basis.sources),
        "differs": list(basis.differs), "missing": list(basis.missing),
    }  # fmt: skip

# ruff: noqa: E501 - a script, a row or a sentence stays on one line
"""Optional parts of a document as `docs/report-schema.md` describes them; made-up numbers."""

from __future__ import annotations

from typing import Any


def _range(mid: float) -> dict[str, Any]:
    return {"low": mid * 0.9, "mid": mid, "high": mid * 1.2, "at_least": False}


def _point(precision: str, gpus: int, days: float, cost: float, front: bool) -> dict[str, Any]:
    return {"precision": precision, "gpu": "h100-sxm5-80gb", "gpus": gpus, "on_front": front,
            "duration_days": _range(days), "cost_usd": _range(cost), "energy_mwh": _range(cost / 2000)}  # fmt: skip


EXTRAS: dict[str, Any] = {
    "money": {
        "prices": [],
        "quotes": [],
        "here": "USA",
        "owned": [
            {"gpu": "h100-sxm5-80gb", "usd_per_gpu_h": _range(1.9), "items_usd_per_gpu_h": {"servers": 1.4, "power": 0.5},
             "utilisation_ratio": 0.8, "rental_usd_per_gpu_h": 2.5, "rental_basis": "", "rental_evidence_ids": [],
             "break_even_utilisation_ratio": 0.6},
        ],
        "elsewhere": [
            {"gpu": "h100-sxm5-80gb", "precision": "fp8", "provider": "example", "region": "north-1", "place": "SWE",
             "usd": 700_000, "usd_here": 860_000, "saved_usd": 160_000, "carbon_tco2e": 12, "saved_tco2e": 140,
             "scope": "lifecycle", "evidence_id": "price:test-1", "source": "example", "date": "2026", "stale": False},
            {"gpu": "h100-sxm5-80gb", "precision": "fp8", "provider": "example", "region": "south-1", "place": "ZAF",
             "usd": 900_000, "usd_here": 860_000, "saved_usd": -40_000, "carbon_tco2e": None, "saved_tco2e": None,
             "scope": "direct", "evidence_id": "price:test-1", "source": "example", "date": "2026", "stale": False},
        ],
        "start_hours": [
            {"gpu": "h100-sxm5-80gb", "precision": "fp8", "tariff": "night rate", "best_start": "Fri 22:00",
             "best_usd_per_kwh": 0.08, "dearest_start": "Mon 08:00", "dearest_usd_per_kwh": 0.14,
             "mean_usd_per_kwh": 0.1, "saved_usd": 900},
        ],
        "power_limits": [
            {"gpu": "h100-sxm5-80gb", "precision": "bf16", "point": "block:8b", "limit_w": 500, "time_ratio": 1.08,
             "energy_ratio": 0.88, "usd_per_million_tokens": None, "gpus_under_cap": None,
             "capped_tokens_per_s": None},
        ],
    },
    "power_caps": [
        {"gpu": "h100-sxm5-80gb", "cap_mw": 0.5, "gpus_allowed": 368, "binding": True, "gpus_wanted": 512,
         "days_wanted": 28.0},
    ],
    "pareto": {
        "points": [
            _point("fp8", 1024, 15, 950_000, front=True),
            _point("fp8", 512, 28, 860_000, front=True),
            _point("bf16", 512, 41, 1_250_000, front=False),
        ]
    },
    "sensitivity": [
        {"gpu": "h100-sxm5-80gb", "metric": "cost_usd", "term": "price", "label": "price per GPU-hour",
         "low_value": "$2.00", "high_value": "$3.00", "at_low": 690_000, "at_high": 1_030_000},
    ],
    "accuracy": {
        "points": [
            {"id": "run-1", "gpu": "h100-sxm5-80gb", "precision": "bf16", "metric": "tokens_per_s_per_gpu",
             "published": 1007, "low": 900, "mid": 1050, "high": 1200},
            {"id": "run-2", "gpu": "a100-sxm4-80gb", "precision": "bf16", "metric": "tokens_per_s_per_gpu",
             "published": 500, "low": 400, "mid": 470, "high": 560},
        ],
        "summary": {"overall": {"n": 2, "median_abs_error": 0.05, "p90_abs_error": 0.06, "bias": -0.01, "coverage": 1.0},
                    "by_precision": {"bf16": {"n": 2, "median_abs_error": 0.05, "p90_abs_error": 0.06, "bias": -0.01,
                                              "coverage": 1.0}}},
    },
    "verify": {
        "cases": [
            {"name": "llama-1b", "precision": "bf16", "metric": "time", "predicted": 0.41, "measured": 0.40,
             "error_ratio": 0.025},
            {"name": "llama-1b", "precision": "bf16", "metric": "memory", "predicted": 21.0, "measured": 20.6,
             "error_ratio": 0.019},
        ],
        "summary": {"time": {"n": 1, "median_abs_error": 0.025, "max_abs_error": 0.025}},
    },
    "traces": [
        {"name": "bf16 block", "kind": "power", "unit": "W", "t_s": [0, 1, 2, 3], "value": [120, 640, 655, 650]},
        {"name": "fp8 block", "kind": "power", "unit": "W", "t_s": [0, 1, 2, 3], "value": [118, 600, 610, 606]},
        {"name": "fp16", "kind": "loss", "unit": "", "t_s": [0, 10, 20], "value": [10.5, 6.1, 4.2]},
    ],
}  # fmt: skip

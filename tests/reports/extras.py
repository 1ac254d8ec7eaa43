# ruff: noqa: E501 - a script, a row or a sentence stays on one line
"""Optional parts of a document as `docs/report-schema.md` describes them; made-up numbers."""

from __future__ import annotations

from typing import Any


def _range(mid: float) -> dict[str, Any]:
    return {"low": mid * 0.9, "mid": mid, "high": mid * 1.2, "at_least": False}


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
}  # fmt: skip

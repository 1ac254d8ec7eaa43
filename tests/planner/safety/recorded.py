"""What a run of `mpplan numerics --device cpu --budget 120s --json` printed, with most layers and scales left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("numerics.json")


def document() -> dict[str, Any]:
    """A fresh copy."""
    parsed: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return parsed

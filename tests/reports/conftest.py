"""Documents for the tests of the report: made by the real planner, recorded from it once, made up where it must be."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pytest

from mpplan.api.answer import estimate
from mpplan.api.document import to_document
from tests.reports.browser import AXE, Browser, chromium
from tests.shared import shared

HERE = Path(__file__).parent
QUESTIONS: dict[str, dict[str, Any]] = {
    "fp8": {"params": "70B", "precision": "fp8"},
    "bf16 on A100, which has no FP8": {"params": "7B", "precision": "bf16", "gpu": "a100-sxm4-80gb", "gpus": "64"},
    "three GPUs": {
        "params": "13B",
        "precision": "fp8",
        "gpu": "h100-sxm5-80gb,h200-sxm-141gb,b200-sxm-180gb",
        "gpus": "64",
    },
    "mixture of experts": {"model": "mixtral-8x7b", "precision": "bf16", "gpus": "64"},
    "LoRA": {"params": "8B", "method": "lora", "precision": "bf16", "gpus": "8", "tokens": "1B"},
    "tight memory": {"params": "5.7B", "precision": "bf16", "gpu": "rtx-4090", "gpus": "8", "tokens": "10B"},
}
"""Questions as people have them, each with another corner of the document."""


@lru_cache
def _answered(name: str) -> str:
    made = partial(estimate, **QUESTIONS[name], as_of="2026-11-20")
    return shared(f"question {name}", lambda: json.dumps(to_document(made())))


@pytest.fixture
def ask() -> Callable[[str], dict[str, Any]]:
    """The document of a question of `QUESTIONS`, as the planner answers it today."""
    return lambda name: json.loads(_answered(name))


@pytest.fixture
def recorded() -> dict[str, Any]:
    """A document that the planner wrote once (`python -m tests.reports.record` writes it anew)."""
    return read_recorded()


def read_recorded() -> dict[str, Any]:
    """The same, for a fixture that lives longer than a test."""
    document: dict[str, Any] = json.loads(gzip.decompress((HERE / "recorded" / "plan.json.gz").read_bytes()))
    return document


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real Chromium; without one the test is skipped here and fails where `CI` is set."""
    if chromium() is None or not AXE.exists():
        message = "no Chromium or axe-core: run tests/browser_setup.sh"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with Browser() as running:
        yield running

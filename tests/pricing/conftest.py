"""Nothing of the developer's own price book reaches a test, and every test knows what day it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pricing.book.rows import PriceRow

TODAY = date(2026, 11, 20)


@pytest.fixture(autouse=True)
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty user data folder; `mpplan/` inside it is the program's."""
    home = tmp_path / "data"
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    return home / "mpplan"


@pytest.fixture(scope="session")
def today() -> date:
    """The day of the tests."""
    return TODAY


@pytest.fixture(scope="session")
def row() -> Callable[..., PriceRow]:
    """Makes rows."""
    return make_row


def make_row(price: str = "2.50", **changes: Any) -> PriceRow:
    """A row of `acme` for an H100, dated 2026-10-01, with changes."""
    fields: dict[str, Any] = {
        "id": "t1",
        "gpu": "h100-sxm5-80gb",
        "provider": "acme",
        "region": "",
        "instance": "",
        "gpus_per_instance": 8,
        "commitment": "on-demand",
        "price_per_gpu_h": Decimal(price),
        "currency": "USD",
        "seller": "provider",
        "date_earliest": date(2026, 10, 1),
        "date_latest": date(2026, 10, 1),
        "date_basis": "test",
        "source": "test",
    }
    day = changes.pop("day", None)
    if day is not None:
        fields |= {"date_earliest": date.fromisoformat(day), "date_latest": date.fromisoformat(day)}
    return PriceRow(**(fields | changes))


@pytest.fixture
def server() -> Iterator[Callable[[Callable[[str], tuple[int, bytes]]], str]]:
    """Starts a local HTTP server that answers with what a function of the path (with its query) returns."""
    running: list[ThreadingHTTPServer] = []

    def start(answer: Callable[[str], tuple[int, bytes]]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = answer(self.path)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        running.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        Thread(target=running[-1].serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{running[-1].server_port}/prices"

    yield start
    for started in running:
        started.shutdown()
        started.server_close()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries do not wait in tests."""
    monkeypatch.setattr("pricing.sources.web.time.sleep", lambda _: None)


def _range(mid: float, width: float = 0.2) -> dict[str, Any]:
    return {"low": mid * (1 - width), "mid": mid, "high": mid * (1 + width), "at_least": False}


def _line(name: str, mid: float, width: float, children: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    unit = "GPU-hour" if name == "gpu_rental" else None
    quantity = 46_080.0 if unit else None
    usd = _range(mid, width)
    line = {"id": name, "label": name.capitalize(), "usd": usd, "quantity": quantity, "unit": unit}
    return line | {"unit_price_usd": None, "evidence_ids": ["price:p032"], "children": list(children)}


def _plan(precision: str, gpus: int, days: float) -> dict[str, Any]:
    gpu_h = gpus * days * 24.0
    beside = (_line("storage", 1_000.0 / 3, 0.0), _line("egress", 2_000.0 / 3, 0.0))
    lines = [_line("gpu_rental", gpu_h * 3.49, 0.2), _line("beside", 1_000.0, 0.0, beside)]
    total = {end: sum(line["usd"][end] for line in lines) for end in ("low", "mid", "high")} | {"at_least": False}
    energy_mwh = gpu_h * 40.0 / 46_080.0
    return {
        "precision": precision,
        "policy": precision,
        "gpu": "h100-sxm5-80gb",
        "gpus": gpus,
        "fits": True,
        "duration_days": _range(days),
        "gpu_hours": _range(gpu_h),
        "energy_mwh": _range(energy_mwh),
        "peak_power_mw": gpus * 1275 * 1.25 / 1e6,
        "mean_power_mw": _range(energy_mwh / (days * 24.0)),
        "embodied_tco2e": _range(gpu_h * 0.0084 / 1e3, 0.5),
        "sci_kg_per_run": _range(energy_mwh * 383.5 + gpu_h * 0.0084),
        "cost_usd": total,
        "cost_lines": lines,
        "carbon_tco2e": _range(energy_mwh * 0.3835),
    }


@pytest.fixture
def document() -> dict[str, Any]:
    """An `mpplan.estimate/2` document: 64 H100 for 30 days in FP8, longer in BF16, FP32 does not fit."""
    question = {"precision": "fp8", "provider": None, "region": None, "commitment": "on-demand"}
    unfit = {
        "precision": "fp32",
        "policy": "fp32",
        "gpu": "h100-sxm5-80gb",
        "gpus": 64,
        "fits": False,
        "cost_usd": None,
    }
    return {
        "schema": "mpplan.estimate/2",
        "created_at": "2026-11-20T12:34:56Z",
        "question": {name: {"value": value, "source": "flag"} for name, value in question.items()},
        "plans": [_plan("fp8", 64, 30.0), _plan("bf16", 64, 45.0), unfit],
        "same_deadline": [_plan("fp8", 64, 30.0), _plan("bf16", 64, 44.0)],
    }

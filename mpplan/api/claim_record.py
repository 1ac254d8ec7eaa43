"""Measures what this machine can tell of the literature's claims, into a record beside those that plans rest on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import CannotMeasureError

if TYPE_CHECKING:
    from planner.records.store import StoredRecord
    from probes.session.listener import Listener

BUDGET_S = 240.0
"""Default time: about what the whole suite takes on two cores."""


def claims_dir() -> Path:
    """Where such records are kept: plans must not rest on them, since they hold few kernels.

    Raises:
        UsageError: there is no place for data.
    """
    from planner.records.home import data_dir

    return data_dir() / "claims"


def measure_claims(device: str, budget_s: float, listener: Listener) -> tuple[str, tuple[str, ...]]:
    """Measure in a process of its own; returns the path of the record and the groups for which no time was left.

    Args:
        device: `gpu` or `cpu`.
        budget_s: time that it may take.
        listener: told of what happens.

    Raises:
        CannotMeasureError: PyTorch is missing, the device is not there, or nothing was measured.
    """
    from importlib.util import find_spec

    from probes.process.client import run_in_process
    from probes.record.options import CLAIMS_SUITE, CLAIMS_WORKLOADS, Options

    if find_spec("torch") is None:
        raise CannotMeasureError("PyTorch is not installed, and the probes need it", hint="pip install 'mpplan[probe]'")
    options = Options(
        suite=CLAIMS_SUITE, device="cpu" if device == "cpu" else "cuda", workloads=CLAIMS_WORKLOADS, budget_s=budget_s,
        store=str(claims_dir()),
    )  # fmt: skip
    ended = run_in_process(options, listener)
    if ended.path is None:
        raise CannotMeasureError("nothing was measured", hint="run it again, with more time by `--budget`")
    return ended.path, ended.left_out


def newest_claims_record() -> StoredRecord | None:
    """The newest record that `mpplan claims --measure` left here; None where there is none."""
    from planner.records.home import has_data_dir
    from planner.records.store import list_records, open_record

    if not has_data_dir() or not claims_dir().is_dir():
        return None
    usable = [
        summary for summary in list_records(claims_dir()) if summary.facts.problem is None and not summary.shipped
    ]
    return open_record(max(usable, key=lambda summary: summary.facts.date or "").path) if usable else None

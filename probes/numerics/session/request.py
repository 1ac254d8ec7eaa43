"""The request of a run, which a run that resumes it keeps: on the same device, with flags that do not contradict it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.errors import UsageError
from probes.record.ledger import identity, must_fit
from probes.record.provenance import Provenance

Plain = dict[str, Any]


def begun_on(where: Provenance) -> Plain:
    """Return what a run that resumes this one must agree with, for the part that holds the request."""
    return {**identity(where.device, where.software)}


def must_agree(head: Plain, asked: Mapping[str, object], where: Provenance) -> None:
    """Check that a run may go on from another one, of which no line may be in the record yet.

    Args:
        head: the part that holds the request of that run.
        asked: flags of this run; None for one that was not given.
        where: device and software of this run.

    Raises:
        UsageError: it is on another device or software, on a CPU with another number of threads, or a flag differs.
    """
    software = head["software"]
    begun = {"device_name": head["device_name"], "torch_version": software["torch"]} | head.get("begun_on", {})
    must_fit(begun, software["threads"], where)
    for flag, value in asked.items():
        if value is not None and value != head["asked"][flag]:
            raise UsageError(
                f"{flag}: the record was started with `{_shown(head['asked'][flag])}`, not `{_shown(value)}`",
                hint="leave the flag out to continue it, or start a new record without `--resume`",
            )


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)

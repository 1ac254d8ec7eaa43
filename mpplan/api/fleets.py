"""`mpplan records merge` without terminal output: join the records of a fleet, and report on its members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from planner.answer.invariants import require_ordered
from planner.fleet.fleet import Fleet, join
from planner.fleet.outliers import Member, Outlier
from planner.fleet.records import open_records
from planner.records.home import user_path

SCHEMA = "mpplan.fleet/1"


def join_records(names: Sequence[str], left_out: Sequence[str] = ()) -> Fleet:
    """Join one record per node or GPU into the record of the fleet, without writing a file.

    Args:
        names: paths of the records.
        left_out: names of members to leave out, or of records whose members are all left out.

    Raises:
        UsageError: a file is missing or given twice, a name is unknown, or fewer than two members are left.
        InputFileError: no line of a file can be used, or it cannot be joined with the others.
    """
    return join(open_records([user_path(name) for name in names]), left_out)


def document(fleet: Fleet, record: str | None) -> dict[str, Any]:
    """Return the document that `mpplan records merge --json` prints.

    Args:
        fleet: the joined records.
        record: path of the merged record; None if it was not written.

    Raises:
        InternalError: a range in the document is out of order.
    """
    merged = {
        "schema": SCHEMA,
        "record": record,
        "device_name": fleet.device_name,
        "gpu": fleet.gpu,
        "members": [_member(member) for member in fleet.members],
        "outliers": [_outlier(outlier) for outlier in fleet.outliers],
        "together": None if fleet.together is None else asdict(fleet.together),
        "merged": {
            "run_id": fleet.measurements[0].run_id if fleet.measurements else None,
            "points": sum(point.status == "ok" for point in fleet.measurements),
            "members": fleet.kept,
        },
        "missing": [
            {
                "probe_id": missing.probe_id,
                "kept": missing.kept,
                "lacking": [{"record": name, "why": why} for name, why in missing.lacking],
            }
            for missing in fleet.missing
        ],
        "warnings": list(fleet.warnings),
    }
    require_ordered(merged)
    return merged


def _member(member: Member) -> dict[str, Any]:
    return asdict(member) | {"why": [asdict(reason) for reason in member.why]}


def _outlier(outlier: Outlier) -> dict[str, Any]:
    return {
        "name": outlier.name,
        "why": [asdict(reason) for reason in outlier.why],
        "cost_ratio": outlier.cost.cost_ratio,
        "gpus_worth": outlier.cost.gpus_worth,
        "gpus": outlier.cost.gpus,
        "left_out": outlier.left_out,
    }

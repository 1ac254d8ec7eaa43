"""`mpplan records merge` without a screen: the records of a fleet as one, and what is to be said of its members."""

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
    """Join one record per node or GPU into the record of the fleet; writes nothing.

    Args:
        names: paths of the records.
        left_out: names of members, or of records for all of their members.

    Raises:
        UsageError: a file is missing or given twice, a name is unknown, or fewer than two members are left.
        InputFileError: no line of a file can be used, or it cannot be joined with the others.
    """
    return join(open_records([user_path(name) for name in names]), left_out)


def document(fleet: Fleet, record: str | None) -> dict[str, Any]:
    """What `mpplan records merge --json` prints.

    Args:
        fleet: the records, joined.
        record: where the merged record was written; None: nowhere.

    Raises:
        InternalError: a range is out of order.
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

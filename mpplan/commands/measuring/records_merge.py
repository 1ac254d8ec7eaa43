"""`mpplan records merge`: join one record per node into that of the fleet, and name the GPUs that slow it down."""

from __future__ import annotations

from collections.abc import Iterator
from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

from mpplan.ui import options
from mpplan.ui.console import note, warn
from mpplan.ui.listing import counted, figure, table, wrapped
from mpplan.ui.output import new_record
from mpplan.ui.progress import working
from planner.errors import UsageError
from planner.units import MEGA

if TYPE_CHECKING:
    from planner.fleet.fleet import Fleet
    from planner.fleet.outliers import KeepingCost, Member, Outlier

SHOWN_MEMBERS = 64
"""Maximum number of rows in the table; a larger fleet shows its outliers and its slowest members."""
SHOWN_MISSING = 3

Files = Annotated[
    list[str], typer.Argument(metavar="RECORD", help="One record for each node or GPU (.jsonl or .jsonl.gz).")
]
Record = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="Write the merged record to this file (.jsonl or .jsonl.gz); without it, none is written.",
    ),
]
LeaveOut = Annotated[
    list[str] | None,
    typer.Option(
        "--leave-out",
        metavar="NAME",
        help="Leave out this member, or a record with all of its members; may be repeated.",
    ),
]


def merge_records(
    files: Files,
    output: Record = None,
    leave_out: LeaveOut = None,
    json: options.JsonFlag = False,
    quiet: options.QuietFlag = False,
) -> None:
    """Merge one record per node or GPU into a fleet record, and name the GPUs that are slow, hot or power-capped.

    Exit codes: 0 merged; 2 a file is missing, given twice, or would be overwritten; 3 a record is invalid, or is
    of a different GPU model from the first.
    """
    from mpplan.api.fleets import document, join_records
    from planner.records.jsonl import record_bytes

    place = new_record(output)
    if place is not None and place.is_stdout and json:
        raise UsageError("only one answer can go to stdout", hint="name a file with `-o`")
    with working("reading", quiet=quiet):
        fleet = join_records(files, leave_out or ())
    for text in fleet.warnings:
        warn(text, quiet=quiet)
    if place is not None:
        place.write(record_bytes(fleet.measurements, str(place.path or "")))
    written = str(place.path) if place is not None and place.path else None
    if json:
        typer.echo(dumps(document(fleet, written), indent=2, ensure_ascii=False))
    elif place is None or not place.is_stdout:
        typer.echo(_members(fleet) + "".join(f"\n{wrapped(text)}" for text in _sentences(fleet)))
    if written is not None:
        note(f"wrote {written}", quiet=quiet)
    elif place is None and not json:
        warn("nothing was written: name a file for the record with `-o`", quiet=quiet)


def _members(fleet: Fleet) -> str:
    """Return the table of members; if there are too many for the table, outliers first and then the slowest."""
    shown = list(fleet.members)
    if len(shown) > SHOWN_MEMBERS:
        shown = sorted(shown, key=lambda member: (not member.why, -(member.pace_ratio or 0.0)))[:SHOWN_MEMBERS]
    headers = ("member", "points", "time", "W", "°C", "MHz", "limit W", "verdict")
    more = len(fleet.members) - len(shown)
    return table(headers, [_row(member) for member in shown]) + (
        f"… and {counted(more, 'member')} more\n" if more else ""
    )


def _row(member: Member) -> tuple[str, ...]:
    verdicts = dict.fromkeys(reason.id for reason in member.why)
    words = [*verdicts, *(["left out"] if member.left_out else [])]
    return (
        member.name,
        str(member.points),
        "-" if member.pace_ratio is None else f"{member.pace_ratio:.3f}",
        figure(member.power_w),
        figure(member.temperature_c, digits=3),
        figure(member.sm_clock_hz, MEGA),
        figure(member.power_limit_w),
        ", ".join(words) or "usual",
    )


def _sentences(fleet: Fleet) -> Iterator[str]:
    """Yield what was merged, which members stand out and what keeping them costs, and which points are missing."""
    from planner.fleet.pace import LEAST_MEMBERS

    points = sum(point.status == "ok" for point in fleet.measurements)
    yield f"Merged {fleet.kept} of {len(fleet.members)} members: {counted(points, 'point')} of {fleet.device_name}."
    for outlier in fleet.outliers:
        own = sum(outlier.name in (member.name, member.record) for member in fleet.members)
        yield _sentence(outlier, own, several=fleet.together is not None)
    if fleet.together is not None:
        yield f"Together: {_cost(fleet.together)}."
    known = sorted((m for m in fleet.members if m.pace_ratio), key=lambda member: member.pace_ratio or 0.0)
    if len(fleet.members) < LEAST_MEMBERS and len(known) > 1:
        ratio = (known[-1].pace_ratio or 1.0) / (known[0].pace_ratio or 1.0)
        yield (
            f"{len(fleet.members)} members are too few to call one slow or hot: {known[-1].name} takes "
            f"{ratio:.3f} times as long as {known[0].name}."
        )
    elif not fleet.outliers:
        yield "No member is slow, hot or capped."
    yield from _missing(fleet)


def _sentence(outlier: Outlier, own: int, *, several: bool) -> str:
    """Say how a member (or a record of `own` members) stands out, and what keeping it costs."""
    why = "; ".join(reason.what for reason in outlier.why)
    if outlier.left_out:
        return f"{outlier.name} is left out: {why}. Keeping it would cost: {_cost(outlier.cost)}."
    if outlier.cost.cost_ratio > 1.0:
        more = f", more than it does: `--leave-out '{outlier.name}'`" if outlier.cost.gpus_worth > own else ""
        return f"{outlier.name}: {why}. Keeping it costs: {_cost(outlier.cost)}{more}."
    alone = " as long as the others stay" if several else ""
    return f"{outlier.name}: {why}. Keeping it makes no step longer{alone}."


def _cost(cost: KeepingCost) -> str:
    share = cost.cost_ratio - 1.0
    return f"every synchronous step takes {share:.1%} longer, as much as {cost.gpus_worth:.1f} of {cost.gpus} GPUs"


def _missing(fleet: Fleet) -> Iterator[str]:
    """Yield the points that some members lack, first those left out of the record."""
    for kept, words in ((False, "left out of the record"), (True, "merged without the members that lack them")):
        listed = [missing for missing in fleet.missing if missing.kept is kept]
        if listed:
            shown = "; ".join(
                f"{missing.probe_id} ({', '.join(f'{name}: {why}' for name, why in missing.lacking[:2])}"
                f"{f' and {len(missing.lacking) - 2} more' if len(missing.lacking) > 2 else ''})"
                for missing in listed[:SHOWN_MISSING]
            )
            more = f"; and {len(listed) - SHOWN_MISSING} more" if len(listed) > SHOWN_MISSING else ""
            count = "1 point is" if len(listed) == 1 else f"{len(listed)} points are"
            yield f"{count} {words}: {shown}{more}."

"""`mpplan check`: whether a record can be trusted, and which command to run again."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from mpplan.ui import options
from mpplan.ui.listing import counted
from mpplan.ui.sink import folded
from planner.errors import InputFileError, UnstableError
from planner.records.check import Finding, Verdict, doubtful
from planner.records.home import user_path
from planner.records.jsonl import MeasurementFile
from planner.records.problem import RecordProblem
from planner.records.store import RECORD_SUFFIXES, StoredRecord, find_record, fleet_size, open_record
from planner.records.summary import WORKLOAD_OF_KIND, ranks_of

SCHEMA = "mpplan.check/1"

SHOWN_FAULTS = 20
"""Maximum number of distinct faults that are shown; lines with other faults are counted."""
SHOWN_LINES = 5
"""Maximum number of line numbers shown for one fault."""

NameOrFile = Annotated[
    str, typer.Argument(metavar="RECORD", help="A record file (.jsonl or .jsonl.gz), or the name of a record.")
]
Strict = Annotated[bool, options.strict_flag("Exit 6 if the record cannot be trusted.")]


def check(record: NameOrFile, json: options.JsonFlag = False, strict: Strict = False) -> None:
    """Check whether a measurement record can be trusted, and suggest what to run again.

    Exit codes: 0 the record was read and checked; 3 some lines of the file are invalid (the others are still checked);
    with --strict, 6 if the record cannot be trusted.
    """
    path = _path(record)
    stored = open_record(path)
    damaged = list(stored.file.damage)
    if json:
        typer.echo(dumps(_document(path, stored, damaged), indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(_text(path, stored, damaged)))
    if damaged:
        what = f"{damaged[0].describe(str(path))}{_and_more(len(damaged) + stored.file.problems_left_out)}"
        raise InputFileError(what, hint=_what_helps(stored))
    if strict and not stored.verdict.trustworthy:
        raise UnstableError(f"`{path}` cannot be trusted", hint=repair_hint(path, stored.verdict, stored.file))


def _path(name: str) -> Path:
    """Return the file with this name, else the file of the record with this name."""
    path = user_path(name)
    return path if path.exists() or name.endswith(RECORD_SUFFIXES) else find_record(name).path


def _what_helps(stored: StoredRecord) -> str:
    if any(point.imported.tool is not None for point in stored.file.measurements):
        return "the other lines are judged above; import the files again for those that are missing"
    if stored.file.measurements:
        command = shlex.join([*_probe(stored.file), "--resume"])
        return f"the other lines are judged above; `{command}` measures what is missing"
    if stored.file.is_newer:
        return "update mpplan to read it"
    return "records are what `mpplan probe` and `mpplan records import` write, one point a line"


def repair_hint(path: Path, verdict: Verdict, file: MeasurementFile) -> str | None:
    """Return the command that measures the doubtful points of a record again, or the whole record if need be.

    Returns None without a record, or if the record can be trusted as it is and `--resume` would measure nothing.
    """
    if not file.measurements:
        return None
    if any(point.imported.tool is not None for point in file.measurements):
        return "another tool measured this: `mpplan probe` on such a machine has none of these doubts"
    if fleet_size(file.measurements):
        return "measure the doubtful points again in the records that this one was merged from, then merge them again"
    spoilt = [point for point in file.latest() if doubtful(point)]
    whole = path.with_suffix("") if path.suffix == ".gz" else path
    if not spoilt and not file.damage:  # `--resume` would keep every point
        if verdict.trustworthy:
            return None
        command = [*_probe(file), "-o", str(whole.with_name(f"{whole.stem}-again.jsonl"))]
        return f"close everything else that runs on the machine, then measure again: `{shlex.join(command)}`"
    kinds = (point.kind for point in spoilt if point.kind not in ("canary", "verify", "support"))
    workloads = ",".join(dict.fromkeys(WORKLOAD_OF_KIND.get(kind, kind) for kind in kinds))
    workload_flags = ["--workload", workloads] if workloads and not file.damage else []
    command = [*_probe(file), "--resume", *workload_flags, "-o", str(whole)]
    first_of_all = ["close everything else that runs on the machine"] if spoilt else []
    first_of_all += [_unpacked(path, whole, cut=bool(file.damage))] if whole != path else []
    return ", then ".join([*first_of_all, f"`{shlex.join(command)}`"])


def _unpacked(path: Path, whole: Path, *, cut: bool) -> str:
    """Return the command that unpacks a record; `gunzip` would keep nothing of a truncated file."""
    if not cut:
        return f"`{shlex.join(['gunzip', str(path)])}`"
    return f"`gzip -dc {shlex.quote(str(path))} > {shlex.quote(str(whole))}`"


def _probe(file: MeasurementFile) -> list[str]:
    """Return the command that measures on the same kind of device, with as many threads or ranks."""
    first = file.measurements[0].device
    device = ["--device", "cpu"] if first.kind == "cpu" else []
    if device and (first.threads or 1) > 1:
        device += ["--threads", str(first.threads)]
    ranks, nodes = ranks_of(file.measurements)
    several = ["--ranks", str(ranks // nodes)] if ranks > 1 else []
    several += ["--nnodes", str(nodes), "--rdzv-endpoint", "HOST:PORT"] if nodes > 1 else []
    return ["mpplan", "probe", *several, *device]


def _text(path: Path, stored: StoredRecord, damaged: list[RecordProblem]) -> list[str]:
    verdict = stored.verdict
    word = "can be trusted" if verdict.trustworthy else "cannot be trusted"
    device = f"{stored.device_name}, {counted(verdict.points, 'point')}" if stored.device_name else "no usable line"
    lines = [f"{path} {word}: {device}, {stored.date or 'undated'}"]
    lines += [f"  {'✗' if finding.serious else '!'} {finding.what}{_examples(finding)}" for finding in verdict.findings]
    lines += [f"  ✗ {line}" for line in _faults(path, damaged, stored.file.problems_left_out)]
    if verdict.findings and (hint := repair_hint(path, verdict, stored.file)):
        lines.append(f"  → {hint}")
    return [folded(line) for line in lines]


def _faults(path: Path, damaged: list[RecordProblem], left_out: int) -> list[str]:
    """Describe what is wrong with lines, each fault once with its lines."""
    same: dict[tuple[str | None, str], list[RecordProblem]] = {}
    for problem in damaged:
        same.setdefault((problem.key, problem.what), []).append(problem)
    groups = list(same.values())
    shown = [f"{group[0].describe(str(path))}{_also(group[1:])}" for group in groups[:SHOWN_FAULTS]]
    more = sum(map(len, groups[SHOWN_FAULTS:])) + left_out
    return shown + ([f"and {more:,} more"] if more else [])


def _also(others: list[RecordProblem]) -> str:
    """List the other lines with the same fault."""
    if not others:
        return ""
    lines = ", ".join(f"{problem.line}" for problem in others[:SHOWN_LINES])
    return f"; also in {counted(len(others), 'line')}: {lines}{', …' if len(others) > SHOWN_LINES else ''}"


def _examples(finding: Finding) -> str:
    if not finding.probe_ids:
        return ""
    more = f", and {len(finding.probe_ids) - 3} more" if len(finding.probe_ids) > 3 else ""
    return f": {', '.join(finding.probe_ids[:3])}{more}"


def _and_more(count: int) -> str:
    return f" (and {count - 1:,} more)" if count > 1 else ""


def _document(path: Path, stored: StoredRecord, damaged: list[RecordProblem]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "record": str(path),
        "device_name": stored.device_name,
        "gpu": stored.gpu,
        "date": stored.date,
        "points": stored.verdict.points,
        "trustworthy": stored.verdict.trustworthy,
        "findings": [asdict(finding) for finding in stored.verdict.findings],
        "problems": [asdict(problem) for problem in damaged],
        "problems_left_out": stored.file.problems_left_out,
        "again": repair_hint(path, stored.verdict, stored.file) if stored.verdict.findings else None,
    }

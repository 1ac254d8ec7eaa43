"""`mpplan check`: whether a record can be trusted, and which command to run again."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from mpplan.ui import options
from planner.errors import InputFileError, UnstableError
from planner.records.check import Finding, Verdict
from planner.records.jsonl import MeasurementFile, RecordProblem
from planner.records.store import StoredRecord, open_record

SCHEMA = "mpplan.check/1"

_KIND_TO_WORKLOAD = {"memory_op": "memory-ops", "end_to_end": "end-to-end"}

File = Annotated[Path, typer.Argument(metavar="RECORD", help="A record file (.jsonl or .jsonl.gz).")]


def check(record: File, json: options.JsonFlag = False, strict: options.StrictFlag = False) -> None:
    """Say whether a measurement record can be trusted, and what to run again.

    Exit codes: 0 read and judged; 3 lines of the file are invalid (the others are judged); with --strict 6 when the
    record is not to be trusted.
    """
    found = open_record(record)
    damaged = [problem for problem in found.file.problems if not problem.used]
    if json:
        typer.echo(dumps(_document(record, found, damaged), indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(_text(record, found, damaged)))
    if damaged:
        raise InputFileError(
            f"{damaged[0].said_of(str(record))}{_and_more(len(damaged))}",
            hint="the other lines are judged above; `mpplan probe --resume` measures what is missing",
        )
    if strict and not found.verdict.trustworthy:
        raise UnstableError(f"`{record}` is not to be trusted", hint=again(record, found.verdict, found.file))


def again(path: Path, verdict: Verdict, file: MeasurementFile) -> str:
    """The command that measures the doubtful points of a record again."""
    kinds = [kind for one in verdict.findings for kind in one.kinds if kind not in ("canary", "verify", "support")]
    workloads = ",".join(dict.fromkeys(_KIND_TO_WORKLOAD.get(kind, kind) for kind in kinds))
    first = file.measurements[0] if file.measurements else None
    device = ["--device", "cpu"] if first is not None and first.device.kind == "cpu" else []
    which = ["--workload", workloads] if workloads else []
    command = ["mpplan", "probe", *device, "--resume", *which, "-o", str(path)]
    return f"close what else runs on the machine, then `{shlex.join(command)}`"


def _text(path: Path, found: StoredRecord, damaged: list[RecordProblem]) -> list[str]:
    verdict = found.verdict
    word = "can be trusted" if verdict.trustworthy else "is not to be trusted"
    device = f"{found.device_name}, {verdict.points} points" if found.device_name else "no usable line"
    lines = [f"{path} {word}: {device}, {found.date or 'undated'}"]
    lines += [f"  {'✗' if one.serious else '!'} {one.what}{_examples(one)}" for one in verdict.findings]
    lines += [f"  ✗ {problem.said_of(str(path))}" for problem in damaged]
    if verdict.findings:
        lines.append(f"  → {again(path, verdict, found.file)}")
    return lines


def _examples(finding: Finding) -> str:
    if not finding.probe_ids:
        return ""
    more = f", and {len(finding.probe_ids) - 3} more" if len(finding.probe_ids) > 3 else ""
    return f": {', '.join(finding.probe_ids[:3])}{more}"


def _and_more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""


def _document(path: Path, found: StoredRecord, damaged: list[RecordProblem]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "record": str(path),
        "device_name": found.device_name,
        "gpu": found.gpu,
        "date": found.date,
        "points": found.verdict.points,
        "trustworthy": found.verdict.trustworthy,
        "findings": [asdict(one) for one in found.verdict.findings],
        "problems": [asdict(one) for one in damaged],
        "again": again(path, found.verdict, found.file) if found.verdict.findings else None,
    }

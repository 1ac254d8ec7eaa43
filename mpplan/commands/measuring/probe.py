"""`mpplan probe`: measure this machine, keep the record, print a summary."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from importlib.util import find_spec
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpplan.commands.measuring.probe_recipe import with_recipe
from mpplan.commands.measuring.several import Several, ranks_asked_for, record_of_fewer
from mpplan.ui import options
from mpplan.ui.console import fail, note, warn
from mpplan.ui.output import growing_record
from planner.errors import CannotMeasureError, UnstableError, UsageError
from planner.records.home import has_data_dir, records_dir, user_path
from planner.records.store import list_records, newer_part, newest_record, open_record, summarise
from planner.records.summary import RecordFacts, resuming
from planner.units import parse_duration_s

if TYPE_CHECKING:
    from planner.records.measurement import Measurement
    from probes.process.client import Ended
    from probes.record.options import Options

SCHEMA = "mpplan.probe-summary/1"
MOST_OFFERED = 100
"""Most records among which `--resume` looks for that of the GPU; their names are passed as an argument."""

_Suite = Annotated[
    str, typer.Option("--suite", help="quick, default or thorough: 2, 8 or 60 minutes on a GPU.", metavar="SUITE")
]
_Device = Annotated[str, typer.Option("--device", help="gpu or cpu.", metavar="DEVICE")]
_Precision = Annotated[
    str | None,
    typer.Option("--precision", help="Only these precisions, for example bf16,fp8.", metavar="LIST"),
]
_Workload = Annotated[
    str | None, typer.Option("--workload", help="Only these workloads, for example gemm,block.", metavar="LIST")
]
_Index = Annotated[
    int,
    typer.Option(
        "--gpu-index", min=0, help="Index of the GPU, as in nvidia-smi; in CUDA_VISIBLE_DEVICES, if set.", metavar="N"
    ),
]
_Budget = Annotated[
    str | None, typer.Option("--budget", help="Time limit, for example 5m. Default: that of the suite.", metavar="TIME")
]
_Resume = Annotated[
    bool, typer.Option("--resume", help="Continue the record given by -o, or your newest record of this device.")
]
_Verify = Annotated[
    bool,
    typer.Option(
        "--verify", help="After measuring, predict training steps that were not measured, run them and compare."
    ),
]
_VerifyFrom = Annotated[
    str | None,
    typer.Option(
        "--verify-from", help="With --ranks: verify predictions made from this record of fewer ranks.", metavar="RECORD"
    ),
]
_Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, help="CPU threads. Default: 1 with --device cpu, PyTorch's choice on a GPU.", metavar="N"
    ),
]
_Ranks = Annotated[
    int | None,
    typer.Option("--ranks", min=1, help="Processes on this node, one per GPU, started by torchrun.", metavar="N"),
]
_Nodes = Annotated[
    int,
    typer.Option(
        "--nnodes", min=1, help="Number of nodes; run this command on each, with --rdzv-endpoint.", metavar="N"
    ),
]
_Endpoint = Annotated[
    str | None,
    typer.Option(
        "--rdzv-endpoint", help="Rendezvous of the nodes: one node's name and a free port.", metavar="HOST:PORT"
    ),
]
_Join = Annotated[
    str, typer.Option("--join-timeout", help="How long to wait for ranks to join, for example 60s.", metavar="TIME")
]
_Strict = Annotated[
    bool, options.strict_flag("Exit 6 if the record cannot be trusted, for example because measurements are unstable.")
]
_Seed = Annotated[
    int, typer.Option("--seed", min=0, help="Seed of the data and of the order of measurements.", metavar="N")
]


@with_recipe
def probe(
    suite: _Suite = "default",
    device: _Device = "gpu",
    precision: _Precision = None,
    workload: _Workload = None,
    gpu_index: _Index = 0,
    budget: _Budget = None,
    resume: _Resume = False,
    verify: _Verify = False,
    verify_from: _VerifyFrom = None,
    threads: _Threads = None,
    ranks: _Ranks = None,
    nnodes: _Nodes = 1,
    rdzv_endpoint: _Endpoint = None,
    join_timeout: _Join = "120s",
    seed: _Seed = 0,
    output: options.OutputOption = None,
    json: options.JsonFlag = False,
    strict: _Strict = False,
    quiet: options.QuietFlag = False,
) -> None:
    """Measure this machine: time, memory and power of training in each precision.

    Keeps the record in your data directory (and in the file of -o); `mpplan estimate` uses it from then on.
    With --ranks, or under `torchrun -m mpplan probe`, it measures the network between GPUs and training steps on
    several GPUs.
    """
    if json and output == "-":
        raise UsageError(
            "--json and `-o -` would both print on stdout", hint="name a file for the record, or leave it out"
        )
    several = ranks_asked_for(ranks, nnodes, rdzv_endpoint, join_timeout, gpu_index)
    settings = _options(
        suite=suite, device=device, precision=precision, workload=workload, gpu_index=gpu_index, budget=budget,
        resume=resume, verify=verify or verify_from is not None, verify_from=verify_from, threads=threads, seed=seed,
        output=output, several=several,
    )  # fmt: skip
    if find_spec("torch") is None:
        raise CannotMeasureError("PyTorch is not installed, and the probes need it", hint="pip install 'mpplan[probe]'")
    if resume and several.rank == 0 and not _has_begun(Path(str(settings.path))):
        note(f"nothing to resume in `{settings.path}`; starting a new record", quiet=quiet)
    ended = _run(settings, quiet=quiet or json)
    if ended.follows:
        note("rank 0 has the record", quiet=quiet or several.rank > 0)
        return
    if ended.path is None:
        raise typer.Abort
    _report(ended, settings, json=json, quiet=quiet, to_stdout=output == "-")
    if ended.interrupted:
        command = _resume_command(settings, output)
        fail("interrupted", f"what was measured is in `{ended.path}`; continue with `{command}`")
        raise typer.Exit(130)
    if strict and not open_record(Path(ended.path)).verdict.trustworthy:
        raise UnstableError(f"`{ended.path}` cannot be trusted", hint=f"`mpplan check {ended.path}` says why")


def _resume_command(settings: Options, output: str | None) -> str:
    """Return the command that resumes an interrupted probe on the same device and with the same options."""
    several = ["--ranks", str(settings.ranks)] if settings.ranks * settings.nnodes > 1 else []
    if settings.nnodes > 1:
        several += ["--nnodes", str(settings.nnodes), "--rdzv-endpoint", settings.rdzv_endpoint or "HOST:PORT"]
    flags = {
        "--device": settings.device if settings.device == "cpu" else None,
        "--gpu-index": settings.gpu_index or None,
        "--suite": settings.suite if settings.suite != "default" else None,
        "--precision": ",".join(settings.precisions),
        "--workload": ",".join(settings.workloads),
        "--budget": f"{settings.budget_s:g}s" if settings.budget_s else None,
        "--threads": settings.threads,
        "--seed": settings.seed or None,
        "--verify-from": settings.verify_from,
    }
    asked = [word for flag, value in flags.items() if value for word in (flag, str(value))]
    verify = ["--verify"] if settings.verify and not settings.verify_from else []
    output_flags = ["-o", output] if output not in (None, "-") else []
    return shlex.join(["mpplan", "probe", *several, *asked, *verify, "--resume", *map(str, output_flags)])


def _options(
    *, suite: str, device: str, precision: str | None, workload: str | None, gpu_index: int, budget: str | None,
    resume: bool, verify: bool, verify_from: str | None, threads: int | None, seed: int, output: str | None,
    several: Several,
) -> Options:  # fmt: skip
    """Parse the flags, checking them before anything is started.

    Raises:
        UsageError: a value is not allowed.
    """
    from probes import precisions, workloads
    from probes.record.options import SUITES, Options

    if suite not in SUITES:
        raise UsageError(f"--suite: unknown suite `{suite}`", hint=f"use one of {', '.join(SUITES)}")
    kind = options.device_kind(device, gpu_index)
    recipes, wanted = options.names(precision, "--precision"), options.names(workload, "--workload")
    precisions.choose(recipes)
    workloads.choose(wanted, several.ranks * several.nnodes)
    path = None if output in (None, "-") else str(user_path(str(output)))
    if several.rank == 0 and path is not None:
        path = str(growing_record(str(output), resume=resume))
    own = _newest_first(kind, several) if resume and path is None else ()
    return Options(
        suite=suite,
        device=kind,
        gpu_index=gpu_index,
        precisions=recipes,
        workloads=wanted,
        budget_s=parse_duration_s(budget, "--budget", "`120s` or `3m`") if budget else None,
        path=own[0] if own else path,
        others=own[1:],
        store=None if path is not None and not has_data_dir() else str(records_dir()),
        resume=resume,
        verify=verify,
        verify_from=verify_from and record_of_fewer(verify_from, several, kind),
        seed=seed,
        threads=threads,
        ranks=several.ranks,
        nnodes=several.nnodes,
        rdzv_endpoint=several.rdzv_endpoint,
        join_s=several.join_s,
    )


def _has_begun(record: Path) -> bool:
    return record.exists() and record.stat().st_size > 0


def _newest_first(kind: str, several: Several) -> tuple[str, ...]:
    """Return the user's records of this kind of device, by one process or by several, newest first.

    For a CPU, only the newest one, or the newest of this CPU model if there is one. For a GPU, the process that opens
    it chooses among the first `MOST_OFFERED`.

    Raises:
        UsageError: there is no such record, or no data directory.
    """
    from probes.device.device import cpu_name

    records_dir()
    own = [
        record
        for record in list_records()
        if not record.shipped and record.facts.device_kind == kind and record.facts.imported is None
        and not record.facts.numerics_only and record.facts.several_ranks == (several.ranks * several.nnodes > 1)
    ]  # fmt: skip
    if not own:
        raise UsageError("there is no record to continue", hint="start one without `--resume`")
    if kind == "cpu":
        own = ([record for record in own if record.facts.device_name == cpu_name()] or own)[:1]
    return tuple(str(record.path) for record in own[:MOST_OFFERED])


def _run(settings: Options, *, quiet: bool) -> Ended:
    from mpplan.ui.probe_display import display
    from probes.process.client import run_in_process

    with display(quiet=quiet) as screen:
        return run_in_process(settings, screen)


def _report(ended: Ended, settings: Options, *, json: bool, quiet: bool, to_stdout: bool) -> None:
    """Print the results on stdout and warnings about them on stderr."""
    from mpplan.ui.probe_display import summary_text, verify_text
    from mpplan.ui.ranks_display import ranks_text
    from probes.record.summary import summarise_run
    from probes.verify.document import verify_document

    path = Path(str(ended.path))
    record = open_record(path)
    points = record.file.latest()
    if to_stdout:
        sys.stdout.write(path.read_text(encoding="utf-8"))
    elif json:
        document = verify_document(points) if settings.verify else _document(ended, points, settings)
        typer.echo(dumps(document, indent=2, ensure_ascii=False))
    else:
        table = ranks_text(points) if settings.ranks * settings.nnodes > 1 else summary_text(summarise_run(points))
        typer.echo(
            _unsupported_text(points)
            + table
            + (f"\n{verify_text(verify_document(points))}" if settings.verify else ""),
            nl=False,
        )
    for finding in record.verdict.findings:
        warn(finding.what, quiet=quiet)
    if record.verdict.findings:
        note(f"`mpplan check {path}` explains this and says what to run again", quiet=quiet)
    if ended.left_out:
        more = " …" if len(ended.left_out) > 4 else ""
        warn(f"no time was left for {', '.join(ended.left_out[:4])}{more}", quiet=quiet)
        note("`--resume` measures what is missing, `--budget` gives more time", quiet=quiet)
    note(f"wrote {path}", quiet=quiet)
    facts = summarise(record).facts
    if (used := _used_instead(facts)) is not None:
        completes = f"`{resuming(facts)}` completes this one"
        note(f"plans still rest on your record `{used}`, which measured more: {completes}", quiet=quiet)


def _used_instead(facts: RecordFacts) -> str | None:
    """Return the record that plans still use because the new one lacks some of its measurements; else None."""
    try:
        listed = list_records()
    except UsageError:  # plans cannot use an unreadable store either
        return None
    gpu = facts.gpu or ""
    part, used = newer_part(gpu, listed), newest_record(gpu, listed)
    return used.name if part is not None and used is not None and part.facts == facts else None


def _unsupported_text(points: tuple[Measurement, ...]) -> str:
    unsupported = (point for point in points if point.kind == "support" and point.status != "ok")
    lines = [f"{point.setup.recipe}: {point.reason}" for point in unsupported]
    return "".join(f"not measured: {line}\n" for line in lines)


def _document(ended: Ended, points: tuple[Measurement, ...], settings: Options) -> dict[str, Any]:
    from planner.measured.network.lines import collective_lines
    from probes.record.ranks_summary import overlap_rows, step_rows, waiting_power_w
    from probes.record.summary import summarise_run

    record = open_record(Path(str(ended.path)))
    return {
        "schema": SCHEMA,
        "record": ended.path,
        "gpu": record.gpu,
        "device_name": record.device_name,
        "suite": settings.suite,
        "points": len(points),
        "interrupted": ended.interrupted,
        "left_out": list(ended.left_out),
        "trustworthy": record.verdict.trustworthy,
        "findings": [asdict(finding) for finding in record.verdict.findings],
        "precisions": [asdict(row) for row in summarise_run(points)],
        "collectives": [asdict(line) for line in collective_lines(points)],
        "overlap": [asdict(row) for row in overlap_rows(points)],
        "parallel_steps": [asdict(row) for row in step_rows(points)],
        "waiting_power_w": waiting_power_w(points),
        "unsupported": [
            {"precision": point.setup.precision, "recipe": point.setup.recipe, "reason": point.reason}
            for point in points
            if point.kind == "support" and point.status != "ok"
        ],
    }

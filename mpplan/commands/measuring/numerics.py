"""`mpplan numerics`: train real models in lower precisions, and report the effect on the numbers."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from json import dumps
from math import isfinite
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpplan.ui import options
from mpplan.ui.console import fail, note, warn
from mpplan.ui.output import growing_record
from planner.errors import CannotMeasureError, IncompleteError, UsageError
from planner.records.home import has_data_dir, records_dir
from planner.units import parse_duration_s

if TYPE_CHECKING:
    from probes.numerics.session.options import NumericsOptions
    from probes.process.client import Ended

_Device = Annotated[str, typer.Option("--device", help="gpu (or cuda) or cpu.", metavar="DEVICE")]
_Task = Annotated[
    str | None,
    typer.Option(
        "--task",
        help="Tasks to train: char-lm, digits-cnn, digits-vit, masked-lm, char-moe, or your own module:factory. "
        "Default: char-lm, digits-cnn and masked-lm, as far as the time allows.",
        metavar="LIST",
    ),
]
_Precision = Annotated[
    str | None,
    typer.Option(
        "--precision", help="Lower precisions to compare with FP32. Default: bf16,fp16,fp8,nvfp4.", metavar="LIST"
    ),
]
_Metric = Annotated[
    str | None,
    typer.Option(
        "--metric", help="Metric used to test parity with FP32: loss or accuracy. Default: loss.", metavar="NAME"
    ),
]
_Margin = Annotated[
    float | None,
    typer.Option(
        "--margin",
        help="Largest difference from FP32 that counts as parity. Default: 0.02 for loss "
        "(in nats for the built-in tasks), 0.01 for accuracy (1 percentage point).",
        metavar="X",
    ),
]
_Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        min=3,
        help="Maximum number of paired runs (one in FP32, one in the lower precision) per precision. Default: 8.",
        metavar="N",
    ),
]
_Size = Annotated[
    str | None,
    typer.Option(
        "--size",
        help="Size of the built-in models: small or large. Default: large on a GPU, small on a CPU.",
        metavar="SIZE",
    ),
]
_Index = Annotated[
    int,
    typer.Option(
        "--gpu-index", min=0, help="Index of the GPU, as in nvidia-smi; in CUDA_VISIBLE_DEVICES, if set.", metavar="N"
    ),
]
_Budget = Annotated[
    str | None, typer.Option("--budget", help="Time limit. Default: 10m on a GPU, 3m on a CPU.", metavar="TIME")
]
_Resume = Annotated[
    bool,
    typer.Option("--resume", help="Continue the record given by -o, or your newest `mpplan numerics` record."),
]
_Strict = Annotated[bool, options.strict_flag("Exit 5 if a part was cut short.")]
_Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, help="CPU threads. Default: 1 with --device cpu, PyTorch's choice on a GPU.", metavar="N"
    ),
]


def numerics(
    device: _Device = "gpu",
    task: _Task = None,
    precision: _Precision = None,
    metric: _Metric = None,
    margin: _Margin = None,
    seeds: _Seeds = None,
    size: _Size = None,
    gpu_index: _Index = 0,
    budget: _Budget = None,
    resume: _Resume = False,
    threads: _Threads = None,
    output: options.FileOption = None,
    json: options.JsonFlag = False,
    strict: _Strict = False,
    quiet: options.QuietFlag = False,
) -> None:
    """Train small models in lower precisions: overflows, gradients flushed to zero, parity with FP32, sensitive layers.

    Writes the record to your data directory or, with -o, to that file, and all details to a second file beside it.
    Built-in tasks download nothing. Arithmetic that the device does not support is emulated bit for bit and labelled
    `emulated`.
    """
    settings = _options(
        device=device, task=task, precision=precision, metric=metric, margin=margin, seeds=seeds, size=size,
        gpu_index=gpu_index, budget=budget, resume=resume, threads=threads, output=output, quiet=quiet,
    )  # fmt: skip
    if find_spec("torch") is None:
        raise CannotMeasureError("PyTorch is not installed, and training needs it", hint="pip install 'mpplan[probe]'")
    from mpplan.commands.measuring.numerics_tables import is_empty

    ended = _run(settings, quiet=quiet or json)
    if ended.path is None:
        raise typer.Abort
    document = _report(ended, json=json, quiet=quiet)
    if ended.interrupted:
        flags = {"--device": None if device == "gpu" else device, "--gpu-index": gpu_index or None,
                 "--budget": budget, "--threads": threads, "-o": output}  # fmt: skip
        resume_flags = [word for flag, value in flags.items() if value for word in (flag, str(value))]
        words = shlex.join(["mpplan", "numerics", "--resume", *resume_flags])
        fail("interrupted", f"what was measured is in `{ended.path}`; continue with `{words}`")
        raise typer.Exit(130)
    if strict and (short := len(document["cut_short"])):
        raise IncompleteError(
            f"{short} {'part was' if short == 1 else 'parts were'} cut short",
            hint="`--resume` continues, `--budget` gives more time",
        )
    if is_empty(document):
        raise IncompleteError(
            "nothing was measured in the time given",
            hint="give more time, such as `--budget 120s`; `--resume` continues",
        )


def _options(
    *, device: str, task: str | None, precision: str | None, metric: str | None, margin: float | None,
    seeds: int | None, size: str | None, gpu_index: int, budget: str | None, resume: bool, threads: int | None,
    output: str | None, quiet: bool,
) -> NumericsOptions:  # fmt: skip
    """Parse the flags, checking them before anything is started.

    Raises:
        UsageError: a value is not allowed.
        CannotMeasureError: a package that a task needs is missing.
    """
    from probes.numerics.lowering.recipes import choose_lower
    from probes.numerics.session.options import METRICS, NumericsOptions
    from probes.numerics.tasks import choose_tasks
    from probes.numerics.tasks.interface import SIZES

    kind = options.device_kind(device, gpu_index)
    for flag, value, known in (("--metric", metric, METRICS), ("--size", size, SIZES)):
        if value is not None and value not in known:
            raise UsageError(f"{flag}: unknown {flag[2:]} `{value}`", hint=f"use one of {', '.join(known)}")
    if margin is not None and not (isfinite(margin) and margin > 0):
        raise UsageError(f"--margin: expected a number above 0, found `{margin:g}`", hint="for example `--margin 0.02`")
    tasks = None if task is None else choose_tasks(options.names(task, "--task"))
    lower = None if precision is None else choose_lower(options.names(precision, "--precision"))
    budget_s = parse_duration_s(budget, "--budget", "`120s` or `3m`") if budget else None
    path = None if output is None else _writable(output, resume=resume)
    if resume and path is not None and not _has_begun(Path(path)):
        note(f"nothing to resume in `{path}`; starting a new run", quiet=quiet)
    return NumericsOptions(
        device=kind,
        gpu_index=gpu_index,
        tasks=tasks,
        precisions=None if lower is None else tuple(recipe.id for recipe in lower),
        metric=metric,
        margin=margin,
        seeds=seeds,
        size=size,
        budget_s=budget_s,
        asked_unix_s=time(),
        path=path if path is not None else (_newest(kind) if resume else None),
        store=None if path is not None and not has_data_dir() else str(records_dir()),
        resume=resume,
        threads=threads,
    )


def _writable(output: str, *, resume: bool) -> str:
    if output == "-":
        raise UsageError("--output: the record cannot go to stdout", hint="`--json` prints the answer there")
    return str(growing_record(output, resume=resume, takes_stdout=False))


def _has_begun(record: Path) -> bool:
    """Return whether there is a record, or parts that an interrupted run left beside it."""
    from probes.numerics.session.parts import parts_path

    return any(path.exists() and path.stat().st_size for path in (record, parts_path(record)))


def _newest(kind: str) -> str:
    """Return the user's newest record of such a run, including runs that were interrupted before they had a line.

    Only the user's data directory is searched: a run that was started with `-o` keeps its parts beside that file.

    Raises:
        UsageError: there is no such record.
    """
    from planner.records.store import PARTS_SUFFIX

    parts = sorted(records_dir().glob(f"*{PARTS_SUFFIX}"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in parts:
        if _device_of(path) == kind:
            return str(path.with_name(path.name.removesuffix(PARTS_SUFFIX) + ".jsonl"))
    raise UsageError(
        "there is no run to continue in your data directory",
        hint="start one without `--resume`; one that was started with `-o` continues with the same `-o`",
    )


def _device_of(parts: Path) -> str | None:
    from probes.numerics.session.document import HEAD
    from probes.numerics.session.parts import read_parts

    return read_parts(parts).get(HEAD, {}).get("device")


def _run(settings: NumericsOptions, *, quiet: bool) -> Ended:
    from mpplan.ui.probe_display import display
    from probes.process.client import run_in_process

    with display(quiet=quiet) as screen:
        return run_in_process(settings, screen)


def _report(ended: Ended, *, json: bool, quiet: bool) -> dict[str, Any]:
    """Print the answer on stdout, and a notice of anything that was cut short on stderr."""
    from mpplan.commands.measuring.numerics_tables import is_empty, numerics_text
    from planner.answer.invariants import require_ordered
    from probes.numerics.session.document import HEAD, numerics_document
    from probes.numerics.session.parts import parts_path, read_parts

    beside = parts_path(Path(str(ended.path)))
    parts = read_parts(beside) if beside.exists() else {}
    if HEAD not in parts:
        return {"loss_scaling": [], "parity": [], "histograms": [], "cut_short": ["everything"]}
    document = numerics_document(parts, ended.path)
    require_ordered(document)
    if json:
        typer.echo(dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    elif not is_empty(document):
        typer.echo(numerics_text(document), nl=False)
    for what in document["cut_short"]:
        warn(f"cut short: {what}", quiet=quiet)
    if document["cut_short"]:
        note("`--resume` continues with what is missing, `--budget` gives more time", quiet=quiet)
    note(f"wrote {ended.path} and {beside}", quiet=quiet)
    return document

"""CodeCarbon's `emissions.csv`: one row per tracked run (`EmissionsData`, codecarbon/output_methods of 3.3).

These columns are read: `duration` (s), `gpu_energy` (kWh of all tracked GPUs), `pue`, `gpu_count`, `gpu_model`
(`8 x NVIDIA H100 80GB HBM3`), `timestamp` and `codecarbon_version`. The location of the run is not kept. A tracker that
was given a PUE multiplies each component's energy by it (`energy *= self._pue`, codecarbon/emissions_tracker.py), so
`gpu_energy` is divided by the column `pue`, which 1 stands in for where the file has none.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import replace

from planner.imported.formats.base import ImportFormat
from planner.imported.formats.windows import Window, window_point
from planner.imported.reading import ImportContext, ImportedPoint, Reading, statistics_of
from planner.imported.source import SourceFile, clean_name
from planner.runlog.moments import parse_moment
from planner.units import KWH_J

HINT = "pass the `emissions.csv` that CodeCarbon wrote, of a run on GPUs"
COLUMNS = ("duration", "gpu_energy", "gpu_count")
MOST_RUNS = 1000
_MODEL = re.compile(r"(\d{1,4}) x (.+)")

DOUBTS = (
    "energy from the GPUs' own counters: the host's energy is only CodeCarbon's estimate and is left out",
    "the whole tracked run: start-up, evaluation and pauses count",
    "all GPUs of the machine are counted: where CodeCarbon tracked some of them, each drew more",
)
BY_MEAN = "the energy of a step is the run's mean power times the step's time"


def _recognises(head: str) -> bool:
    names = head.partition("\n")[0].split(",")
    return all(name in names for name in (*COLUMNS, "codecarbon_version"))


def _read(source: SourceFile, context: ImportContext) -> Reading:
    rows = _rows(source)
    models = {_model(row) for _, row in rows} - {None}
    if len(models) > 1:
        raise source.fail(1, "gpu_model: expected runs on one kind of GPU, found several", "split the file by GPU")
    windows = [_window(source, line, row) for line, row in rows]
    points = [
        _with_steps(window_point("run", f"run{number}/gpus{window.gpus}", [window], context.training), context)
        for number, window in enumerate(windows, 1)
    ]
    first = rows[0][1]
    start = parse_moment(first.get("timestamp", ""))
    return Reading(
        points=tuple(points),
        doubts=(*DOUBTS, *([BY_MEAN, *context.steps.doubts] if context.steps else [])),
        tool_version=clean_name(first.get("codecarbon_version", "")) or None,
        device_name=next((str(model) for model in models), None),
        date=None if start is None else start.iso(),
    )


def _rows(source: SourceFile) -> list[tuple[int, dict[str, str]]]:
    """Rows of the runs that used GPUs, with their line numbers."""
    reader = csv.reader(source.text.splitlines())
    names = next(reader, [])
    missing = next((name for name in COLUMNS if name not in names), None)
    if missing is not None:
        raise source.fail(1, f"{missing}: expected a column of this name", HINT)
    rows = []
    try:
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(names):
                raise source.fail(reader.line_num, f"expected {len(names)} cells, found {len(cells)}", HINT)
            row = dict(zip(names, (cell.strip() for cell in cells), strict=True))
            if row["gpu_energy"] and source.number(reader.line_num, "gpu_energy", row["gpu_energy"]) > 0:
                rows.append((reader.line_num, row))
    except csv.Error as error:
        raise source.fail(reader.line_num, f"expected CSV: {error}", HINT) from None
    if not 0 < len(rows) <= MOST_RUNS:
        raise source.fail(1, f"expected 1 to {MOST_RUNS} runs with GPU energy, found {len(rows)}", HINT)
    return rows


def _model(row: Mapping[str, str]) -> str | None:
    model = _MODEL.fullmatch(row.get("gpu_model", ""))
    return clean_name(model[2]) if model else None


def _window(source: SourceFile, line: int, row: Mapping[str, str]) -> Window:
    gpus = source.number(line, "gpu_count", row["gpu_count"], above_zero=True)
    if gpus != int(gpus):
        raise source.fail(line, f"gpu_count: expected a whole number, found `{gpus:g}`", HINT)
    pue = source.number(line, "pue", row["pue"], above_zero=True) if row.get("pue") else 1.0
    return Window(
        name="run",
        seconds=source.number(line, "duration", row["duration"], above_zero=True),
        gpu_j=source.number(line, "gpu_energy", row["gpu_energy"]) * KWH_J / pue,
        gpus=int(gpus),
    )


def _with_steps(point: ImportedPoint, context: ImportContext) -> ImportedPoint:
    """Turn the point of a run into the point of a step, if the times of its steps are known."""
    if context.steps is None:
        return point
    time = statistics_of(context.steps.steady_s)
    step_j = (point.power.mean_w or 0.0) * (time.median_s or 0.0)
    return replace(
        point,
        setup=replace(point.setup, role="step"),
        time=time,
        sampling=replace(point.sampling, samples=len(context.steps.steady_s)),
        energy=replace(point.energy, j_per_iteration=step_j),
    )


CODECARBON = ImportFormat(
    name="codecarbon",
    what="CodeCarbon's `emissions.csv`",
    gives="mean power of a run, and with `--steps` the energy of a step, which `mpplan calibrate` learns from",
    takes_steps=True,
    recognises=_recognises,
    read=_read,
)

"""Measurements of Zeus (`ZeusMonitor`, zeus/monitor/energy.py of 0.16): its CSV log, or its measurements as JSON.

The log has the columns `start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy,…` (seconds since 1970, s, J). A
measurement (`dataclasses.asdict`) is `{"time": s, "gpu_energy": {"0": J, …}, …}`. A file holds a single measurement, a
list, or one per line.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.imported.formats.base import ImportFormat
from planner.imported.formats.windows import Window, window_point
from planner.imported.reading import ImportContext, Reading
from planner.imported.source import SourceFile, clean_name
from planner.runlog.moments import parse_moment

HINT = "pass the `log_file` of a ZeusMonitor, or its measurements as JSON"
MOST_NAMES = 50
"""Most names of windows in one file."""
_ENERGY = re.compile(r"gpu(\d{1,4})_energy")
_STEP = re.compile(r"step|iter|batch", re.IGNORECASE)

DOUBTS = (
    "energy from the GPUs' own counters: the host is not included",
    "a counter advances about every 20 to 100 ms: short windows are uncertain",
    "only the name of a window says what it spans",
)
NO_ENERGY = "windows without energy, shorter than a period of the counter, are left out"


def _recognises(head: str) -> bool:
    first = head.lstrip().partition("\n")[0]
    if first.startswith("start_time,window_name,elapsed_time"):
        return True
    return head.lstrip()[:1] in ("{", "[") and '"gpu_energy"' in head and '"time"' in head


def _read(source: SourceFile, context: ImportContext) -> Reading:
    is_json = source.head.lstrip()[:1] in ("{", "[")
    start, windows = (None, list(_from_json(source))) if is_json else _from_csv(source)
    kept = [window for window in windows if window.gpu_j > 0]
    if not kept:
        raise source.fail(1, "expected windows with GPU energy, found none", HINT)
    by_name: dict[tuple[str, int], list[Window]] = {}
    for window in kept:
        by_name.setdefault((window.name, window.gpus), []).append(window)
    if len(by_name) > MOST_NAMES:
        raise source.fail(1, f"window_name: expected at most {MOST_NAMES} names, found {len(by_name)}", HINT)
    points = [
        window_point(
            "step" if _STEP.search(name) else name, f"{name}/gpus{gpus}" if name else f"gpus{gpus}", same,
            context.training,
        )
        for (name, gpus), same in by_name.items()
    ]  # fmt: skip
    return Reading(
        points=tuple(points), doubts=DOUBTS if len(kept) == len(windows) else (*DOUBTS, NO_ENERGY), date=start
    )


def _from_csv(source: SourceFile) -> tuple[str | None, list[Window]]:
    """Start time of the first window, and all windows."""
    rows = csv.reader(source.text.splitlines())
    names = [name.strip() for name in next(rows, [])]
    energies = [name for name in names if _ENERGY.fullmatch(name)]
    needed = ("start_time", "window_name", "elapsed_time", energies[0] if energies else "gpu0_energy")
    missing = next((name for name in needed if name not in names), None)
    if missing is not None:
        raise source.fail(1, f"{missing}: expected a column of this name", HINT)
    windows, start = [], None
    try:
        for cells in rows:
            if not cells:
                continue
            if len(cells) != len(names):
                raise source.fail(rows.line_num, f"expected {len(names)} cells, found {len(cells)}", HINT)
            row = dict(zip(names, cells, strict=True))
            start = start or parse_moment(row["start_time"])
            by_gpu = {name: row[name] for name in energies}
            windows.append(_window(source, rows.line_num, row["window_name"], row["elapsed_time"], by_gpu))
    except csv.Error as error:
        raise source.fail(rows.line_num, f"expected CSV: {error}", HINT) from None
    return None if start is None else start.iso(), windows


def _from_json(source: SourceFile) -> Iterator[Window]:
    lines = list(source.lines())
    if len(lines) > 1 and all(text.startswith("{") and text.endswith("}") for _, text in lines):
        entries = [(line, source.parse_json(text, line)) for line, text in lines]
    else:
        document = source.document()
        entries = [(1, entry) for entry in (document if isinstance(document, list) else [document])]
    for line, entry in entries:
        yield _measurement(source, line, entry)


def _measurement(source: SourceFile, line: int, entry: Any) -> Window:
    energies = entry.get("gpu_energy") if isinstance(entry, dict) else None
    if not isinstance(energies, dict) or not energies:
        raise source.fail(line, "gpu_energy: expected the energy of each GPU", HINT)
    return _window(source, line, str(entry.get("window_name") or entry.get("name") or ""), entry.get("time"), energies)


def _window(source: SourceFile, line: int, name: str, seconds: object, energies: Mapping[str, object]) -> Window:
    return Window(
        name=clean_name(name),
        seconds=source.number(line, "elapsed_time", seconds, above_zero=True),
        gpu_j=sum(source.number(line, gpu, energy) for gpu, energy in energies.items()),
        gpus=len(energies),
    )


ZEUS = ImportFormat(
    name="zeus",
    what="the CSV log of a ZeusMonitor, or its measurements as JSON",
    gives="mean power, and the energy of a step where a window is one, which `mpplan calibrate` learns from",
    takes_steps=False,
    recognises=_recognises,
    read=_read,
)

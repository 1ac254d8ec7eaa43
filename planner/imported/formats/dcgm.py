"""Power from DCGM: the output of `dcgmi dmon -e 155`, of its exporter, or of Prometheus that scraped the exporter.

`dcgmi dmon` prints `#Entity POWER` (field 155, W) and a row `GPU 0 645.123` for each GPU and second, without times. The
exporter serves `DCGM_FI_DEV_POWER_USAGE{gpu="0",...} 645.123` (Prometheus text format 0.0.4; a time in milliseconds may
follow). Prometheus answers `/api/v1/query_range` with `{"data": {"result": [{"metric": {...}, "values": [[t, "645.1"],
...]}]}}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from planner.imported.formats.base import ImportFormat
from planner.imported.formats.power import PowerLog, numbered, training_point
from planner.imported.reading import ImportContext, Reading
from planner.imported.source import SourceFile, clean_name
from planner.lazy import dataclass
from planner.records.machine import SoftwareVersions
from planner.runlog.moments import Clock, Moment, parse_moment

FIELD = "DCGM_FI_DEV_POWER_USAGE"
COLUMNS = ("POWER", "POWR")
"""Short names of field 155 in the header of `dcgmi dmon`."""
HINT = "keep what `dcgmi dmon -e 155` prints, or what Prometheus answers to `query_range` of DCGM_FI_DEV_POWER_USAGE"
_HEADER = re.compile(r"#\s*Entity\b.*")
_ROW = re.compile(r"GPU\s+(\d{1,4})\s+(.*)")
_SERVED = re.compile(rf"{FIELD}\{{([^}}]{{0,4000}})\}}\s+(\S+)(?:\s+(\d{{1,16}}))?")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_UNREAD = ("N/A", "nan", "NaN")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    line: int
    gpu: str
    watts: float
    moment: Moment | None = None
    labels: dict[str, str] | None = None


def _recognises(head: str) -> bool:
    if FIELD in head:
        return True
    header = next((line for line in head.splitlines() if _HEADER.fullmatch(line.strip())), "")
    return any(name in header.split() for name in COLUMNS)


def _read(source: SourceFile, context: ImportContext) -> Reading:
    reader = _stored if source.head.lstrip().startswith("{") else _served if FIELD in source.head else _printed
    samples = list(reader(source))
    if not samples:
        raise source.fail(1, "expected power samples, found none", HINT)
    moments = [sample.moment for sample in samples if sample.moment is not None]
    _check_times(source, samples)
    log = PowerLog(
        watts=np.array([sample.watts for sample in samples]),
        gpu=numbered([sample.gpu for sample in samples]),
        clock=Clock.of(moments) if len(moments) == len(samples) else None,
        field="",
    )
    labels = samples[0].labels or {}
    doubts = ("read by DCGM: the driver's power field",)
    return Reading(
        points=(training_point(source, log, context, HINT),),
        doubts=doubts if log.clock else (*doubts, "the log has no times"),
        device_name=clean_name(labels.get("modelName", "")) or None,
        software=SoftwareVersions(driver_version=clean_name(labels.get("DCGM_FI_DRIVER_VERSION", "")) or None),
        date=moments[0].iso() if moments else None,
    )


def _check_times(source: SourceFile, samples: list[_Sample]) -> None:
    for before, after in pairwise(samples):
        if before.gpu == after.gpu and before.moment and after.moment and after.moment.seconds < before.moment.seconds:
            raise source.fail(after.line, "expected a time later than that of the previous sample", HINT)


def _printed(source: SourceFile) -> Iterator[_Sample]:
    """Samples from the output of `dcgmi dmon`, whose header may be repeated."""
    column: int | None = None
    for line, text in source.lines():
        if _HEADER.fullmatch(text):
            names = text.replace("#", " ").split()[1:]
            column = next((names.index(name) for name in COLUMNS if name in names), None)
            if column is None:
                raise source.fail(line, "POWER: expected a column of this name", HINT)
        elif row := _ROW.fullmatch(text):
            cells = row[2].split()
            if column is None or column >= len(cells):
                raise source.fail(line, "expected a row below a header that names its columns", HINT)
            if cells[column] not in _UNREAD:
                yield _Sample(line=line, gpu=row[1], watts=source.number(line, "POWER", cells[column]))


def _served(source: SourceFile) -> Iterator[_Sample]:
    """Samples from the output of the exporter, scrape after scrape."""
    for line, text in source.lines():
        served = _SERVED.fullmatch(text)
        if served is None:
            if text.startswith(FIELD):
                raise source.fail(line, f"expected `{FIELD}{{…}} watts`", HINT)
            continue
        labels = dict(_LABEL.findall(served[1]))
        if served[2] in _UNREAD:
            continue
        yield _Sample(
            line=line, gpu=_identity(labels), watts=source.number(line, FIELD, served[2]),
            moment=None if served[3] is None else parse_moment(served[3]), labels=labels,
        )  # fmt: skip


def _stored(source: SourceFile) -> Iterator[_Sample]:
    """Samples from Prometheus' answer to `query_range`."""
    document = source.document()
    data = document.get("data") if isinstance(document, dict) else None
    results = data.get("result") if isinstance(data, dict) else None
    if not isinstance(results, list):
        raise source.fail(1, "data.result: expected a list", HINT)
    for number, series in enumerate(results):
        yield from _series(source, f"data.result[{number}]", series)


def _series(source: SourceFile, place: str, series: Any) -> Iterator[_Sample]:
    metric = series.get("metric") if isinstance(series, dict) else None
    values = series.get("values") if isinstance(series, dict) else None
    if not isinstance(metric, dict) or not isinstance(values, list):
        raise source.fail(1, f"{place}: expected `metric` and `values`", HINT)
    labels = {str(name): str(text) for name, text in metric.items()}
    if labels.get("__name__", FIELD) != FIELD:
        return
    for number, value in enumerate(values):
        if not isinstance(value, list) or len(value) != 2 or (moment := parse_moment(value[0])) is None:
            raise source.fail(1, f"{place}.values[{number}]: expected a time and a power", HINT)
        watts = source.number(1, f"{place}.values[{number}]", value[1])
        yield _Sample(line=1, gpu=_identity(labels), watts=watts, moment=moment, labels=labels)


def _identity(labels: dict[str, str]) -> str:
    """Key that distinguishes GPUs; it is used for nothing else."""
    return labels.get("UUID") or f"{labels.get('Hostname', '')}:{labels.get('gpu', '')}"


DCGM = ImportFormat(
    name="dcgm",
    what="output of `dcgmi dmon -e 155`, of the DCGM exporter, or of Prometheus' `query_range`",
    gives="mean power and energy of a step, which `mpplan calibrate` learns from",
    takes_steps=True,
    recognises=_recognises,
    read=_read,
)

"""Output of nccl-tests: the times of collectives by size, read as `--network-file` reads them."""

from __future__ import annotations

import re

from planner.imported.formats.base import ImportFormat
from planner.imported.reading import ImportContext, ImportedPoint, Reading
from planner.imported.source import SourceFile, clean_name
from planner.measured.network.runs import CollectiveRun, parse_nccl_tests
from planner.records.communication import OPS_OF_NCCL_TESTS, Communication, rates_of
from planner.records.figures import Sampling, TimeStatistics
from planner.records.machine import SoftwareVersions

_VERSION = re.compile(r"# nccl-tests version (\S{1,40})")
_NCCL = re.compile(r"nccl-(?:library|headers)=(\d{3,6})|NCCL version (\S{1,40})")
_TABLE = re.compile(r"^#.*\bsize\b.*\bbusbw\b", re.MULTILINE)
_RANKS = re.compile(r"#\s+Rank\s+\d+")

DOUBTS = (
    "collectives ran alone: alongside computation they are slower",
    "whether other jobs used the network is not known",
)


def _recognises(head: str) -> bool:
    return _TABLE.search(head) is not None or ("nThread" in head and _RANKS.search(head) is not None)


def _read(source: SourceFile, context: ImportContext) -> Reading:
    runs = parse_nccl_tests(source.plain, source.name)
    names = {run.device_name for run in runs}
    if len(names) > 1:
        raise source.fail(1, "expected runs on one kind of GPU, found several", "split the file by GPU")
    version, nccl = _VERSION.search(source.head), _NCCL.search(source.head)
    return Reading(
        points=tuple(point for run in runs for point in _points(run)),
        doubts=DOUBTS,
        tool_version=None if version is None else clean_name(version[1]),
        device_name=clean_name(next(iter(names))) or None,
        software=SoftwareVersions(nccl_version=None if nccl is None else clean_name(nccl[2] or nccl[1])),
    )


def _points(run: CollectiveRun) -> list[ImportedPoint]:
    return [
        ImportedPoint(
            name=f"{run.collective}/{run.nodes}x{run.ranks_per_node}/{size_bytes:.0f}",
            kind="collective",
            communication=_communication(run, float(size_bytes), float(time_s)),
            time=TimeStatistics(median_s=float(time_s)),
            sampling=Sampling(),
            sd_ratio=run.spread_ratio,
        )
        for size_bytes, time_s in zip(run.sizes_bytes, run.times_s, strict=True)
    ]


def _communication(run: CollectiveRun, size_bytes: float, time_s: float) -> Communication:
    op = OPS_OF_NCCL_TESTS.get(run.collective, run.collective)
    algorithm, bus = rates_of(op, run.ranks, size_bytes, time_s)
    return Communication(
        op=op, world=run.ranks, nodes=run.nodes, bytes=size_bytes,
        algorithm_bytes_per_s=algorithm, bus_bytes_per_s=bus,
    )  # fmt: skip


NCCL_TESTS = ImportFormat(
    name="nccl-tests",
    what="what all_reduce_perf and the other nccl-tests print",
    gives="the network, as `--network-file` takes it: the record can be given there",
    takes_steps=False,
    recognises=_recognises,
    read=_read,
)

"""Output of nccl-tests as points, and back: the network is fitted to the same times."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import InputFileError
from planner.imported.formats import format_of
from planner.imported.record import ImportedFile, device_of, to_measurements
from planner.measured.network.recorded import collective_runs
from planner.measured.network.runs import parse_nccl_tests
from planner.records.jsonl import parse_line, to_line
from planner.records.measurement import Measurement
from tests.planner.imported.readings import reading, text_file
from tests.planner.nccl_output import output

TEXT = output("all_reduce", 1, 8, lambda size: 2e-5 + size / 3e11) + output(
    "all_gather", 2, 8, lambda s: 3e-5 + s / 5e10
)


def points(text: str) -> list[Measurement]:
    source = text_file(text, "nccl.txt")
    form = format_of(source)
    files = [ImportedFile(source=source, form=form, reading=reading(source))]
    lines = [to_line(point) for point in to_measurements(files, device_of(files, None), "0.0")]
    read = [parse_line(line + "\n") for line in lines]
    assert all(isinstance(point, Measurement) for point in read)
    return [point for point in read if isinstance(point, Measurement)]


def test_the_runs_come_back_from_the_lines_of_a_record_as_they_were_read() -> None:
    before, after = parse_nccl_tests(TEXT.encode(), "nccl.txt"), collective_runs(points(TEXT), "record.jsonl")

    for run, recorded in zip(before, after, strict=True):
        assert (run.collective, run.ranks, run.nodes, run.device_name, run.spread_ratio) == (
            recorded.collective, recorded.ranks, recorded.nodes, recorded.device_name, recorded.spread_ratio,
        )  # fmt: skip
        assert np.array_equal(run.sizes_bytes, recorded.sizes_bytes)
        assert np.array_equal(run.times_s, recorded.times_s)


def test_the_version_is_that_of_the_output() -> None:
    assert reading(text_file(TEXT)).tool_version == "2.17.6"


def test_a_run_that_was_cut_off_is_refused_as_by_the_network_file() -> None:
    with pytest.raises(InputFileError, match="cut off"):
        reading(text_file(TEXT[: len(TEXT) // 3], "nccl.txt"))

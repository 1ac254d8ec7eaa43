"""Own runs of nccl-tests inside a node: what was run takes its own times, and the rest the form that is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from planner.kernels.collectives import collective_s
from planner.measured.network.runs import read_nccl_tests
from planner.measured.network.terms import NetworkSource, network_terms
from planner.rates.ladder import resolve_rates
from planner.rates.terms import RateSet
from planner.units import MIB
from planner.used.collectives import collectives_used
from tests.planner.build import cluster, layouts, recipe
from tests.planner.nccl_output import output

H100 = "h100-sxm5-80gb"
TORN = [(2**13, 60e-6), (2**20, 70e-6), (2**26, 700e-6), (2**30, 9e-3)]
"""Bytes and seconds that no straight line meets."""


def known() -> RateSet:
    return resolve_rates(cluster(H100), recipe())


def own(folder: Path, *collectives: str, per_node: int = 8) -> RateSet:
    """The terms with a file in which these collectives take the times of `TORN`."""
    sizes, times = zip(*TORN, strict=True)
    text = "".join(
        output(name, 1, per_node, dict(zip(map(float, sizes), times, strict=True)).__getitem__, sizes=sizes)
        for name in collectives
    )
    file = folder / "nccl.txt"
    file.write_text(text, encoding="utf-8")
    measured = network_terms(read_nccl_tests(file), NetworkSource.file("nccl.txt"), cluster(H100), known())
    return resolve_rates(cluster(H100), recipe(), measured.terms)


def surface(rates: RateSet, operation: str):
    return rates.terms["nvlink_bytes_per_s"].by_operation[operation]


@pytest.mark.parametrize(
    ("run", "operation"), [("all_reduce", "all_reduce"), ("all_gather", "all_gather"), ("alltoall", "all_to_all")]
)
def test_what_was_run_takes_the_times_that_it_took(tmp_path, run, operation):
    measured = surface(own(tmp_path, run), operation)

    for size, time_s in TORN:
        assert float(collective_s(measured, operation, float(size), 8.0)) == pytest.approx(time_s, rel=1e-3)


def test_sizes_that_were_not_run_lie_between_those_that_were(tmp_path):
    measured = surface(own(tmp_path, "all_reduce"), "all_reduce")
    times = [float(collective_s(measured, "all_reduce", float(2**power), 8.0)) for power in range(13, 31)]

    assert min(np.diff(times)) > 0


def test_an_operation_that_was_not_run_keeps_its_form_at_the_rate_of_the_others(tmp_path):
    rates, sizes = own(tmp_path, "all_reduce"), np.array([2.0**16, 2.0**22, 2.0**28])
    measured, shipped = (collective_s(surface(r, "all_to_all"), "all_to_all", sizes, 8.0) for r in (rates, known()))

    assert np.ptp(measured / shipped) == pytest.approx(0, abs=1e-9)
    assert float(measured[0] / shipped[0]) > 1.5  # 1 GiB in 9 ms is half of what an H100's links reach


def test_groups_that_were_not_run_take_the_ratio_of_the_nearest(tmp_path):
    measured, shipped = surface(own(tmp_path, "all_gather", per_node=4), "all_gather"), surface(known(), "all_gather")

    def ratio(gpus: float) -> float:
        return float(collective_s(measured, "all_gather", 64.0 * MIB, gpus)) / float(
            collective_s(shipped, "all_gather", 64.0 * MIB, gpus)
        )

    assert ratio(8.0) == pytest.approx(ratio(4.0), rel=1e-3)


def test_the_rate_of_the_link_is_that_of_its_large_gathers(tmp_path):
    # 1 GiB in 9 ms, 7/8 of it on the bus: 104.4 GB/s; larger messages keep the ratio to the shipped surface
    value = own(tmp_path, "all_gather").terms["nvlink_bytes_per_s"].value

    assert value == pytest.approx(2**30 * 7 / 8 / 9e-3, rel=0.05)


def test_explain_names_the_file_as_the_source_of_each_collective_inside_a_node(tmp_path):
    at = layouts(tp=8, dp=1)
    before, after = (
        {row.evidence for row in collectives_used(recipe(), cluster(H100), at, rates)}
        for rates in (known(), own(tmp_path, "all_reduce"))
    )

    assert before == {f"kernels:collectives:{H100}"}
    assert after == {f"network_file:inside:{H100}"}


def test_links_whose_form_nobody_knows_stay_a_straight_line(tmp_path):
    file = tmp_path / "nccl.txt"
    file.write_text(output("all_reduce", 1, 8, lambda size: 1e-4 + size / 1e11, device="AMD Instinct MI300X"))
    machine = cluster("mi300x-192gb")
    terms = network_terms(
        read_nccl_tests(file), NetworkSource.file("nccl.txt"), machine, resolve_rates(machine, recipe())
    ).terms

    assert terms["nvlink_bytes_per_s"].by_operation == {}

from __future__ import annotations

import numpy as np
import pytest

from planner.hardware.catalogue import load_gpus
from planner.kernels.catalogue import kernel_rows
from planner.kernels.collectives import COLLECTIVES, bus_bytes, collective_s, collective_surfaces


def surfaces(gpu: str):
    collectives = collective_surfaces(load_gpus()[gpu])
    assert collectives is not None
    return collectives


def test_the_bus_carries_a_message_twice_for_an_all_reduce_and_once_otherwise_less_one_rank_s_part():
    # nccl-tests, doc/PERFORMANCE.md
    assert bus_bytes("all_reduce", 800.0, 8.0) == 1400.0
    assert bus_bytes("all_gather", 800.0, 8.0) == 700.0


def test_every_measured_gpu_has_all_four_collectives():
    measured = {(row.gpu, row.operation) for row in kernel_rows().values() if row.operation in COLLECTIVES}

    assert measured == {(gpu, operation) for gpu, _ in measured for operation in COLLECTIVES}


@pytest.mark.parametrize("gpu", ["a100-sxm4-80gb", "h100-sxm5-80gb", "b200-sxm-180gb", "gb200-186gb", "h800-sxm5-80gb"])
def test_a_larger_message_never_takes_less_time(gpu):
    sizes = np.geomspace(1.0, 1e11, 400)

    for operation, surface in surfaces(gpu).by_operation.items():
        for group in (2.0, 3.0, 4.0, 8.0):
            assert (np.diff(collective_s(surface, operation, sizes, group)) >= 0).all()


@pytest.mark.parametrize(
    ("gpu", "evidence"),
    [
        ("h100-sxm5-80gb", "kernels:collectives:h100-sxm5-80gb"),
        ("gb200-186gb", "kernels:collectives:b200-sxm-180gb:gb200-186gb"),  # 900 GB/s each
        ("gb300-288gb", "kernels:collectives:b300-sxm-288gb:gb300-288gb"),
        ("v100-sxm2-32gb", "kernels:collectives:a100-sxm4-80gb:v100-sxm2-32gb"),  # 150 by 300 GB/s
    ],
)
def test_a_gpu_without_a_measurement_takes_the_one_with_the_nearest_link(gpu, evidence):
    assert surfaces(gpu).evidence.id == evidence


def test_a_transferred_collective_keeps_its_latency_and_takes_its_bytes_by_the_ratio_of_links():
    a100, v100 = (surfaces(gpu).by_operation["all_gather"] for gpu in ("a100-sxm4-80gb", "v100-sxm2-32gb"))
    small, large = (
        [float(collective_s(each, "all_gather", size, 8.0)) for each in (a100, v100)] for size in (1024.0, 2.0**29)
    )

    assert small[1] == pytest.approx(small[0])
    assert large[1] - small[1] == pytest.approx(2 * (large[0] - small[0]))
    assert v100.spread > a100.spread + 0.2


def test_gpus_without_nvlink_and_other_vendors_links_have_none():
    assert collective_surfaces(load_gpus()["l40s"]) is None
    assert all(collective_surfaces(gpu) is None for gpu in load_gpus().values() if gpu.arch.startswith("CDNA"))


def test_two_gpus_of_a_gb200_take_what_two_of_a_b200_take():
    # nccl_one_node: gb200 all_gather of 64 MiB over 2 GPUs 95 us
    surface = surfaces("gb200-186gb").by_operation["all_gather"]

    assert float(collective_s(surface, "all_gather", 2.0**26, 2.0)) == pytest.approx(95e-6, rel=0.04)

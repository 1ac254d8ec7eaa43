import pytest

from planner.hardware.catalogue import load_gpus
from planner.hardware.interconnect import load_interconnect

ROWS = tuple(load_interconnect().values())
BUS_FACTOR = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
}
"""Bus rate over algorithm rate (nccl-tests, doc/PERFORMANCE.md)."""


def measured():
    return [row for row in ROWS if row.kind == "measured"]


def test_size_over_time_is_the_algorithm_rate():
    rows = [row for row in measured() if row.message_bytes and row.time_s and row.algorithm_bytes_per_s]
    large = [row for row in rows if row.algorithm_bytes_per_s > 1e9]  # below, the source rounds to 0.01 GB/s

    assert len(large) > 80
    for row in large:
        assert row.message_bytes / row.time_s == pytest.approx(row.algorithm_bytes_per_s, rel=0.02), row.id


def test_bus_rate_over_algorithm_rate_confirms_the_rank_count():
    rows = [
        row for row in measured() if row.algorithm_bytes_per_s and row.bus_bytes_per_s and row.collective in BUS_FACTOR
    ]
    large = [row for row in rows if row.algorithm_bytes_per_s > 1e9]

    assert len(large) > 80
    for row in large:
        factor = BUS_FACTOR[row.collective](row.gpus)
        assert row.bus_bytes_per_s / row.algorithm_bytes_per_s == pytest.approx(factor, rel=0.02), row.id


def test_measurements_and_thresholds_name_a_gpu_of_the_catalogue():
    for row in ROWS:
        assert row.gpu_id is None or row.gpu_id in load_gpus(), row.id
        if row.kind in ("measured", "threshold"):
            assert row.gpu_id, row.id
            assert row.collective in (*BUS_FACTOR, "p2p_write", "ib_write"), row.id
        assert row.source
        assert row.date.startswith("20")


def test_no_bus_rate_lies_far_above_the_links():
    for row in measured():
        gpu = load_gpus()[row.gpu_id or ""]
        if row.nodes == 1 and row.bus_bytes_per_s:
            assert row.bus_bytes_per_s <= 1.1 * (gpu.nvlink_bytes_per_s or 0), row.id  # in-switch sums: up to 7 % above


def test_known_figures():
    by_id = load_interconnect()

    # 8 x A100, 16 GiB all-reduce: 127 997 us, 134.22 and 234.89 GB/s
    a100 = by_id["ic020"]
    assert (a100.message_bytes, a100.time_s) == (2**34, pytest.approx(0.127997))
    assert (a100.algorithm_bytes_per_s, a100.bus_bytes_per_s) == (134.22e9, 234.89e9)
    assert by_id["ic208"].time_s == pytest.approx(3.4e-6)  # NCCL, NVLink hop, Ring/Simple
    assert (by_id["ic235"].efficiency_ratio, by_id["ic235b"].efficiency_ratio) == (0.85, 0.74)
    assert by_id["ic041"].bus_bytes_per_s == 367.2e9  # H200 ring, without the switch's sums

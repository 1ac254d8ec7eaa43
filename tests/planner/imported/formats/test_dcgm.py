"""DCGM in its three forms: printed, served, stored."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError
from tests.planner.imported.readings import context_of, reading, sample, text_file

UTC_PLUS_1 = 3600.0


@pytest.mark.parametrize("file", ["dcgm-exporter.prom", "prometheus.json"])
def test_power_with_times_is_that_of_the_steps(file: str) -> None:
    read = reading(sample(file), context_of("megatron.log", utc_offset_s=UTC_PLUS_1))

    assert read.points[0].power.mean_w == pytest.approx(610.0, abs=0.5)
    assert (read.device_name, read.date) == ("NVIDIA H100 80GB HBM3", "2026-11-20T09:00:00+00:00")


def test_what_dcgmi_prints_has_no_times_and_no_name_and_says_so() -> None:
    read = reading(sample("dcgmi-dmon.txt"), context_of("megatron.log"))

    assert read.points[0].power.mean_w == pytest.approx(610.0)
    assert (read.points[0].communication.world, read.device_name) == (2, None)
    assert "the log has no times" in read.doubts


def test_the_labels_of_hosts_and_boards_stay_in_the_file() -> None:
    read = reading(sample("dcgm-exporter.prom"), context_of("megatron.log", utc_offset_s=UTC_PLUS_1))

    assert "node-1" not in repr(read)
    assert "GPU-0000000" not in repr(read)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("#Entity   GPUTL\nID\nGPU 0   99\n", "POWER: expected a column"),
        ("#Entity   POWER\nID\nGPU 0   -3\n", "found `-3`"),
        ("#Entity   POWER\nGPU 0   \n", "found none"),
        ("GPU 0   600\n#Entity POWER\n", "below a header"),
        ('DCGM_FI_DEV_POWER_USAGE{gpu="0"} 1e999\n', "found `1e999`"),
        ("DCGM_FI_DEV_POWER_USAGE 600\n", "expected `DCGM_FI_DEV_POWER_USAGE{"),
        ('{"data": {"result": [{"metric": {"__name__": "DCGM_FI_DEV_POWER_USAGE"}, "values": [[1]]}]}}', "values[0]"),
        ('{"data": {"result": 3}, "DCGM_FI_DEV_POWER_USAGE": 1}', "data.result"),
        ('DCGM_FI_DEV_POWER_USAGE{gpu="0"} 600 1795168800000\nDCGM_FI_DEV_POWER_USAGE{gpu="0"} 600 1795168700000\n',
         "later than that of the previous sample"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused(text: str, what: str) -> None:
    with pytest.raises(InputFileError) as caught:
        reading(text_file(text, "dcgm.txt"), context_of("megatron.log"), "dcgm")
    assert what in str(caught.value)

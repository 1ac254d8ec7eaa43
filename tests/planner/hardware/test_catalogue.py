import re

import pytest

from planner.errors import UsageError
from planner.hardware.catalogue import PCIE_X16_BYTES_PER_S, find_gpu, gpu_aliases, load_gpus, match_device
from planner.rows import CATALOG, compact, read_rows

GPUS = tuple(load_gpus().values())
MIB = 1024**2

DEVICES = (
    # name as the driver gives it, memory in MiB, power limit in W, row
    ("Tesla P100-PCIE-16GB", 16280, 250, "p100-pcie-16gb"),
    ("NVIDIA GeForce GTX 1080 Ti", 11178, 250, "gtx-1080ti-11gb"),
    ("Tesla V100-SXM2-16GB", 16160, 300, "v100-sxm2-16gb"),
    ("Tesla V100-SXM2-32GB", 32510, 300, "v100-sxm2-32gb"),
    ("Tesla V100-PCIE-16GB", 16160, 250, "v100-pcie-16gb"),
    ("Tesla V100-PCIE-32GB", 32510, 250, "v100-pcie-32gb"),
    ("Tesla V100-SXM3-32GB", 32510, 350, "v100-sxm3-32gb"),
    ("Tesla V100-SXM3-32GB-H", 32510, 450, "v100-sxm3-32gb-dgx2h"),
    ("Tesla T4", 15360, 70, "t4"),
    ("Quadro RTX 6000", 24220, 260, "quadro-rtx6000-24gb"),
    ("Quadro RTX 8000", 48601, 260, "quadro-rtx8000-48gb"),
    ("NVIDIA TITAN RTX", 24220, 280, "titan-rtx-24gb"),
    ("NVIDIA GeForce RTX 2080 Ti", 11264, 250, "rtx-2080ti-11gb"),
    ("NVIDIA A10", 23028, 150, "a10"),
    ("NVIDIA A10G", 23028, 300, "a10g"),
    ("NVIDIA A40", 46068, 300, "a40"),
    ("NVIDIA A30", 24576, 165, "a30"),
    ("NVIDIA A100-PCIE-40GB", 40960, 250, "a100-pcie-40gb"),
    ("NVIDIA A100 80GB PCIe", 81920, 300, "a100-pcie-80gb"),
    ("A100-SXM4-40GB", 40536, 400, "a100-sxm4-40gb"),
    ("NVIDIA A100-SXM4-80GB", 81920, 400, "a100-sxm4-80gb"),
    ("NVIDIA A800-SXM4-80GB", 81920, 400, "a800-sxm4-80gb"),
    ("NVIDIA GeForce RTX 3070", 8192, 220, "rtx-3070-8gb"),
    ("NVIDIA GeForce RTX 3090", 24576, 350, "rtx-3090"),
    ("NVIDIA RTX A6000", 49140, 300, "rtx-a6000-48gb"),
    ("NVIDIA RTX A5500", 24564, 230, "rtx-a5500-24gb"),
    ("NVIDIA RTX A5000", 24564, 230, "rtx-a5000-24gb"),
    ("NVIDIA RTX A4500", 20470, 200, "rtx-a4500-20gb"),
    ("NVIDIA RTX A4000", 16376, 140, "rtx-a4000-16gb"),
    ("NVIDIA GeForce RTX 4070 Ti SUPER", 16376, 285, "rtx-4070ti-super-16gb"),
    ("NVIDIA GeForce RTX 4090", 24564, 450, "rtx-4090"),
    ("NVIDIA RTX 6000 Ada Generation", 49140, 300, "rtx-6000-ada"),
    ("NVIDIA L4", 23034, 72, "l4"),
    ("NVIDIA L40", 46068, 300, "l40"),
    ("NVIDIA L40S", 46068, 350, "l40s"),
    ("NVIDIA H100 PCIe", 81559, 350, "h100-pcie-80gb"),
    ("NVIDIA H100 80GB HBM3", 81559, 700, "h100-sxm5-80gb"),
    ("NVIDIA H100 NVL", 95830, 400, "h100-nvl-94gb"),
    ("NVIDIA H100", 97320, 500, "h100-sxm-96gb-hbm2e-500w"),
    ("NVIDIA H800", 81559, 700, "h800-sxm5-80gb"),
    ("NVIDIA H20", 97871, 500, "h20-sxm-96gb"),
    ("NVIDIA H200", 143771, 700, "h200-sxm-141gb"),
    ("NVIDIA H200 NVL", 143771, 600, "h200-nvl-141gb"),
    ("NVIDIA GH200 480GB", 97871, 900, "gh200-96gb"),
    ("NVIDIA GH200 144G HBM3e", 146831, 900, "gh200-144gb"),
    ("NVIDIA GeForce RTX 5090", 32607, 575, "rtx-5090"),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, 600, "rtx-pro-6000-blackwell"),
    ("NVIDIA B200", 183359, 1000, "b200-sxm-180gb"),
    ("NVIDIA GB200", 189471, 1200, "gb200-186gb"),
    ("NVIDIA B300 SXM6 AC", 275040, 1100, "b300-sxm-288gb"),
    ("NVIDIA GB300", 284208, 1400, "gb300-288gb"),
    ("AMD Instinct MI100", 32752, 290, "mi100-32gb"),
    ("AMD Instinct MI210", 65520, 300, "mi210-64gb"),
    ("AMD Instinct MI250X", 65520, 560, "mi250x-gcd-64gb"),
    ("AMD Instinct MI300X", 196592, 750, "mi300x-192gb"),
    ("AMD Instinct MI325X", 262128, 1000, "mi325x-256gb"),
    ("AMD Instinct MI350X", 294896, 1000, "mi350x-288gb"),
    ("AMD Instinct MI355X", 294896, 1400, "mi355x-288gb"),
    ("AMD Radeon RX 7900 XTX", 24560, 355, "rx-7900xtx-24gb"),
)


def test_every_row_lies_within_what_hardware_can_be():
    for gpu in GPUS:
        assert 7.5e9 <= gpu.memory_bytes <= 320e9, gpu.id
        assert 0.1e12 <= gpu.memory_bytes_per_s <= 30e12, gpu.id
        assert 50 <= gpu.tdp_w <= 2000, gpu.id
        assert 1e12 <= gpu.peak_flop_per_s["fp32"] <= 2e14, gpu.id
        assert all(1e13 <= rate <= 2e16 for id_, rate in gpu.peak_flop_per_s.items() if id_ != "fp32"), gpu.id
        assert gpu.nvlink_bytes_per_s is None or 20e9 <= gpu.nvlink_bytes_per_s <= 1.8e12, gpu.id
        assert gpu.nic_bytes_per_s is None or 1e9 <= gpu.nic_bytes_per_s <= 100e9, gpu.id
        assert 15e9 <= gpu.pcie_bytes_per_s <= 130e9, gpu.id
        assert gpu.host_power_w is None or 1000 <= gpu.host_power_w <= 20_000, gpu.id
        assert gpu.l2_bytes is None or 2e6 <= gpu.l2_bytes <= 300e6, gpu.id
        assert gpu.boost_hz is None or 1e9 <= gpu.boost_hz <= 3e9, gpu.id
        assert (gpu.nvlink_bytes_per_s is None) == (gpu.nvlink_domain_gpus == 1) or gpu.id.startswith("gh200"), gpu.id


def test_cycles_of_all_multiprocessors_or_as_many_as_go_with_the_bandwidth():
    h100, gb200 = find_gpu("h100-sxm5-80gb"), find_gpu("gb200-186gb")

    assert h100.multiprocessor_cycles_per_s == pytest.approx(132 * 1.83e9)
    assert gb200.sm_count is None
    assert gb200.multiprocessor_cycles_per_s == pytest.approx(gb200.memory_bytes_per_s / 8)
    per_cycle = [
        gpu.memory_bytes_per_s / gpu.multiprocessor_cycles_per_s for gpu in GPUS if gpu.sm_count and gpu.boost_hz
    ]
    assert sorted(per_cycle)[len(per_cycle) // 2] == pytest.approx(8, abs=1)


def test_a_board_that_clocks_higher_under_load_than_its_datasheet_says_reaches_more_than_its_peaks():
    faster, server = find_gpu("rtx-5090"), find_gpu("h100-sxm5-80gb")

    # gpus.csv: peaks at 2407 MHz, 2870 MHz observed
    assert faster.reachable_flop_per_s["bf16"] == pytest.approx(209.5e12 * 2870 / 2407)
    assert faster.multiprocessor_cycles_per_s == pytest.approx(170 * 2.87e9)
    assert server.load_hz is None
    assert server.reachable_flop_per_s == server.peak_flop_per_s
    assert all(gpu.boost_hz and 1.0 < gpu.load_hz / gpu.boost_hz < 1.25 for gpu in GPUS if gpu.load_hz)


def test_rates_of_a_row_hang_together():
    for gpu in GPUS:
        peak = gpu.peak_flop_per_s
        if "bf16" in peak and gpu.arch != "CDNA":  # MI100's BF16 units are half as wide
            assert peak["bf16"] == peak["fp16"], gpu.id
        if "fp8" in peak:
            assert peak["fp8"] / peak["bf16"] == pytest.approx(2, rel=0.03), gpu.id
        if "tf32" in peak and gpu.arch != "CDNA3":
            assert peak["tf32"] / peak["bf16"] == pytest.approx(0.5, rel=0.02), gpu.id
        assert all(0.4 <= rate / peak[id_] <= 1.1 for id_, rate in gpu.measured_matmul_flop_per_s.items()), gpu.id
        if gpu.measured_memory_bytes_per_s:
            assert 0.6 <= gpu.measured_memory_bytes_per_s / gpu.memory_bytes_per_s <= 1.0, gpu.id


def test_every_row_says_where_it_is_from_and_when():
    for gpu in GPUS:
        assert len(gpu.evidence.source) > 10, gpu.id
        assert re.fullmatch(r"20\d\d(-\d\d){0,2}", gpu.evidence.date or ""), gpu.id
        assert gpu.evidence.gpu == gpu.id, gpu.id
        assert gpu.measured_matmul_gpu is None or gpu.measured_matmul_gpu in load_gpus(), gpu.id


def test_architectures_lack_the_types_that_they_lack():
    for gpu in GPUS:
        if gpu.arch in ("Pascal", "Volta", "Turing"):
            assert not {"bf16", "tf32", "fp8", "fp4"} & set(gpu.peak_flop_per_s), gpu.id
        if gpu.arch in ("Ampere", "CDNA", "CDNA2"):
            assert not {"fp8", "fp4"} & set(gpu.peak_flop_per_s), gpu.id
        if gpu.arch in ("Ada", "Hopper"):
            assert ("fp8" in gpu.peak_flop_per_s, "fp4" in gpu.peak_flop_per_s) == (True, False), gpu.id


@pytest.mark.parametrize(
    ("gpu", "compute", "tflops"),
    [
        ("h100-sxm5-80gb", "bf16", 989),  # NVIDIA H100 datasheet, dense
        ("h100-pcie-80gb", "bf16", 756),
        ("h200-sxm-141gb", "fp8", 1979),
        ("a100-sxm4-80gb", "tf32", 156),
        ("v100-sxm2-16gb", "fp16", 125),
        ("b200-sxm-180gb", "bf16", 2250),
        ("rtx-4090", "bf16", 165.2),  # FP32 accumulation: half of the 330 with FP16 accumulation
        ("rtx-3090", "fp16", 71),
        ("rtx-2080ti-11gb", "fp16", 53.8),
        ("rtx-a6000-48gb", "fp16", 154.8),  # professional part: full rate with FP32 accumulation
        ("quadro-rtx6000-24gb", "fp16", 130.5),
        ("l40", "bf16", 181),  # half of an L40S
        ("mi250x-gcd-64gb", "bf16", 191.5),  # half of the package's 383
        ("p100-pcie-16gb", "fp16", 18.7),
    ],
)
def test_peaks_are_the_dense_rates_with_fp32_accumulation(gpu, compute, tflops):
    assert find_gpu(gpu).peak_flop_per_s[compute] == pytest.approx(tflops * 1e12)


def test_the_default_part_is_read_in_si_units():
    gpu = find_gpu("h100-sxm5-80gb")

    assert gpu.memory_bytes == 81559 * MIB  # as nvidia-smi reports it
    assert gpu.memory_bytes_per_s == 3.35e12
    assert gpu.nvlink_bytes_per_s == 450e9
    assert gpu.nic_bytes_per_s == 50e9  # 400 Gbit/s
    assert gpu.pcie_bytes_per_s == PCIE_X16_BYTES_PER_S[5] == 63e9
    assert (gpu.tdp_w, gpu.gpus_per_node, gpu.nvlink_domain_gpus, gpu.host_power_w) == (700, 8, 8, 4600)
    assert gpu.measured_matmul_flop_per_s == {"bf16": 794.5e12, "fp8": 1402.6e12}


def test_racks_and_the_dgx_2_join_more_than_eight():
    domains = {gpu.id: gpu.nvlink_domain_gpus for gpu in GPUS if gpu.nvlink_domain_gpus > 8}

    assert domains == {"v100-sxm3-32gb": 16, "v100-sxm3-32gb-dgx2h": 16, "gb200-186gb": 72, "gb300-288gb": 72}


@pytest.mark.parametrize(("name", "memory_mib", "power_w", "row"), DEVICES, ids=[device[0] for device in DEVICES])
def test_a_real_device_finds_its_one_row(name, memory_mib, power_w, row):
    gpu = match_device(name, memory_mib * MIB, power_w)

    assert gpu is not None
    assert gpu.id == row


def test_no_two_patterns_take_the_same_device():
    for name, memory_mib, _, row in DEVICES:
        taking = [
            gpu.id
            for gpu in GPUS
            if gpu.device_name_pattern and re.fullmatch(gpu.device_name_pattern, name, re.IGNORECASE)
        ]
        near = [id_ for id_ in taking if abs(memory_mib * MIB / load_gpus()[id_].memory_bytes - 1) < 0.3]
        assert near == [row], name


def test_every_row_but_the_double_die_package_can_be_found_from_a_device():
    matched = {row for *_, row in DEVICES}
    unnamed = [gpu.id for gpu in GPUS if gpu.device_name_pattern is None]

    assert unnamed == ["mi250x-128gb"]
    assert all(re.compile(gpu.device_name_pattern) for gpu in GPUS if gpu.device_name_pattern)
    assert len(matched) > 0.9 * (len(GPUS) - 1)


@pytest.mark.parametrize(
    ("name", "memory_mib", "power_w"),
    [
        ("NVIDIA H100", 97320, 700),  # 700 W: not the 500 W part, and no other row bears the bare name
        ("NVIDIA H100", 81559, 700),
        ("NVIDIA H200", 81559, 700),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9728, 700),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 16376, 175),
        ("NVIDIA A100-SXM4-80GB", 20_000, 400),
        ("Some GPU", 81559, 700),
        ("", 81559, None),
    ],
)
def test_a_device_that_no_row_describes_is_none_rather_than_a_guess(name, memory_mib, power_w):
    assert match_device(name, memory_mib * MIB, power_w) is None


def test_a_lowered_power_limit_does_not_hide_a_part():
    assert match_device("NVIDIA H200", 143771 * MIB, 350) is find_gpu("h200-sxm-141gb")
    assert match_device("NVIDIA H200", 143771 * MIB) is find_gpu("h200-sxm-141gb")


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("H100-SXM5-80GB", "h100-sxm5-80gb"),
        ("NVIDIA H200 SXM 141GB", "h200-sxm-141gb"),
        ("rtx 4090", "rtx-4090"),
        ("gb200-nvl72-186gb", "gb200-186gb"),
        ("v100-unstated", "v100-sxm2-32gb"),
        ("v100-sxm3-32gb-450w", "v100-sxm3-32gb-dgx2h"),
        ("mi350x-288gb", "mi350x-288gb"),
    ],
)
def test_names_and_aliases_find_their_row(name, row):
    assert find_gpu(name).id == row


def test_a_family_name_is_refused_with_its_parts():
    with pytest.raises(UsageError) as caught:
        find_gpu("H100")

    assert caught.value.message == "GPU `H100` matches several models"
    assert "`h100-pcie-80gb`, `h100-sxm5-80gb`" in (caught.value.hint or "")


def test_an_unknown_gpu_gets_near_names():
    with pytest.raises(UsageError) as caught:
        find_gpu("h100-sxm6-80gb")

    assert caught.value.message == "unknown GPU `h100-sxm6-80gb`"
    assert "`h100-sxm5-80gb`" in (caught.value.hint or "")


def test_aliases_lead_to_rows_and_hide_none():
    ids = {compact(id_) for id_ in load_gpus()}
    rows = read_rows(CATALOG / "gpu_aliases.csv")

    assert len(gpu_aliases()) == len(rows) == len({compact(row.text("alias")) for row in rows})
    assert set(gpu_aliases().values()) <= set(load_gpus())
    assert not ids & {compact(alias) for alias in gpu_aliases()}
    assert all(row.text("note") for row in rows)

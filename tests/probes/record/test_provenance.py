"""Provenance: listed variables only, and never a path."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from probes.record.provenance import git_state, provenance
from tests.probes.build import CPU, H200


def environment(monkeypatch: pytest.MonkeyPatch, **variables: str) -> dict[str, str]:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_DEVICE_ORDER", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    known = provenance(CPU).software.environment
    return {name: value for name, value in known.items() if name in variables}


def test_variables_that_change_speed_are_recorded_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = environment(monkeypatch, OMP_NUM_THREADS="2", HOSTNAME="secret", NVIDIA_TF32_OVERRIDE="1")

    assert recorded == {"OMP_NUM_THREADS": "2", "NVIDIA_TF32_OVERRIDE": "1"}


@pytest.mark.parametrize("value", ["/srv/someone/lib", "C:\\Users\\someone"])
def test_a_value_that_holds_a_path_is_left_out(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    assert environment(monkeypatch, KMP_AFFINITY=value) == {}


def test_an_allocator_setting_is_recorded_only_in_the_form_that_torch_documents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = "expandable_segments:True,max_split_size_mb:512"

    assert environment(monkeypatch, PYTORCH_CUDA_ALLOC_CONF=good) == {"PYTORCH_CUDA_ALLOC_CONF": good}
    assert environment(monkeypatch, PYTORCH_CUDA_ALLOC_CONF="backend:$(whoami)") == {}


def test_a_long_value_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment(monkeypatch, KMP_AFFINITY="x" * 100) == {"KMP_AFFINITY": "x" * 80}


def test_a_cpu_has_no_cuda_and_no_board() -> None:
    where = provenance(CPU)

    assert (where.device.kind, where.device.compute_capability, where.device.mig) == ("cpu", None, None)
    assert (where.software.cuda_version, where.software.driver_version) == (None, None)
    assert where.software.torch_version is not None


def test_a_gpu_has_its_board_as_far_as_nvml_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.probes.fake_cuda.installed import fake_cuda
    from tests.probes.fake_cuda.nvml import FakeNvml

    def refused(*_: object) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    pynvml = pytest.importorskip("pynvml")
    monkeypatch.setattr(FakeNvml, "nvmlDeviceGetEccMode", refused)
    with fake_cuda(whole_models=False):
        where = provenance(H200)

    assert (where.device.compute_capability, where.device.ecc, where.device.pcie_generation) == ("9.0", None, 5)
    assert (where.software.driver_version, where.software.nccl_version) == ("580.00", "2.29.3")


@pytest.mark.parametrize(("states", "links"), [([1] * 17 + [0], 17), ([0] * 18, 0), ([], None)])
def test_nvlinks_that_are_up_are_counted(monkeypatch: pytest.MonkeyPatch, states: list[int], links: int | None) -> None:
    from tests.probes.fake_cuda.installed import fake_cuda
    from tests.probes.fake_cuda.nvml import FakeNvml

    pynvml = pytest.importorskip("pynvml")

    def state(_nvml: FakeNvml, _handle: str, link: int) -> int:
        if link >= len(states):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT if states else pynvml.NVML_ERROR_NOT_SUPPORTED)
        return states[link]

    monkeypatch.setattr(FakeNvml, "nvmlDeviceGetNvLinkState", state)
    with fake_cuda(whole_models=False):
        assert provenance(H200).device.nvlink_links == links


def test_what_limits_a_gpu_or_the_network_is_recorded_and_names_of_interfaces_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50", "NCCL_P2P_DISABLE": "1"}

    assert environment(monkeypatch, **limits, NCCL_SOCKET_IFNAME="eth-lab7", NCCL_IB_HCA="mlx5_0") == limits


def test_a_gpu_that_nvml_does_not_see_has_no_board(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.probes.fake_cuda.installed import fake_cuda

    with fake_cuda(whole_models=False):
        where = provenance(replace(H200, uuid="66666666-2222-3333-4444-555555555555"))

    assert (where.device.kind, where.device.pcie_generation, where.software.driver_version) == ("cuda", None, None)


def test_a_slice_is_recorded_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.probes.fake_cuda.installed import fake_cuda
    from tests.probes.fake_cuda.nvml import FakeNvml

    def handle_by_uuid(nvml: FakeNvml, uuid: str) -> str:
        assert nvml.uuid == f"GPU-{H200.uuid}"
        nvml.uuid = f"MIG-{H200.uuid}"
        return uuid

    pytest.importorskip("pynvml")
    monkeypatch.setattr(FakeNvml, "nvmlDeviceGetHandleByUUID", handle_by_uuid)
    with fake_cuda(whole_models=False):
        where = provenance(H200)

    assert (where.device.mig, where.software.driver_version) == (True, "580.00")


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_the_state_of_a_checkout_is_read_without_writing_to_it(tmp_path: Path) -> None:
    """`git status` otherwise refreshes the index under a lock, which a probe that is killed leaves behind."""

    def git(*words: str) -> str:
        told = subprocess.run(["git", "-C", str(tmp_path), *words], capture_output=True, text=True, check=True)
        return told.stdout.strip()

    (tmp_path / "a.py").write_text("1\n", encoding="utf-8")
    git("init", "--quiet")
    git("add", "a.py")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "first")
    os.utime(tmp_path / "a.py", (1e9, 1e9))  # the index no longer has the file's time
    before = (tmp_path / ".git" / "index").read_bytes()

    assert git_state(tmp_path) == (git("rev-parse", "--short=12", "HEAD"), False)
    assert (tmp_path / ".git" / "index").read_bytes() == before
    (tmp_path / "a.py").write_text("2\n", encoding="utf-8")
    assert git_state(tmp_path)[1] is True

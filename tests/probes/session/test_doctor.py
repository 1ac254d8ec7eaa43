"""What `mpplan doctor` finds where there is a GPU: the first thing that a campaign reads."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from planner.errors import CannotMeasureError
from probes.device.device import open_device
from probes.device.faults import DeviceLost
from probes.precisions import support
from probes.session import doctor
from tests.probes.fake_cuda.board import Board
from tests.probes.fake_cuda.installed import fake_cuda


def test_a_gpu_is_found_with_what_it_runs_and_what_its_board_tells() -> None:
    with fake_cuda(whole_models=False):
        findings = [finding for finding in doctor.look() if finding.device == "GPU 0 (NVIDIA H200)"]

    by_name = {finding.what: finding for finding in findings}
    refused = {name for name, finding in by_name.items() if not finding.ok}
    assert by_name["cuda"].detail == "`mpplan probe` measures it"
    assert refused == {"mxfp8"}
    assert "compute capability 10.0 is needed" in by_name["mxfp8"].detail
    assert by_name["energy"].detail == by_name["power"].detail == "nvml, scope board"


def test_each_gpu_is_the_current_one_while_its_precisions_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    current: list[bool] = []
    real = doctor._precisions

    with fake_cuda(board=Board(number=1, index=1, count=2), whole_models=False) as gpu:

        def tried(device: Any, label: str) -> Any:
            current.append(gpu.is_current)
            return real(device, label)

        monkeypatch.setattr(doctor, "_precisions", tried)
        second = open_device("cuda", 1)
        monkeypatch.setattr("probes.device.device.open_device", lambda kind, index=0: second)
        doctor.look()

    assert current[0]


def test_a_gpu_that_cannot_be_used_is_a_finding_and_its_board_is_still_examined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with fake_cuda(whole_models=False):

        def full(_index: int) -> None:
            raise RuntimeError("CUDA error: out of memory")

        monkeypatch.setattr("torch.cuda.set_device", full)
        findings = [finding for finding in doctor.look() if finding.device == "GPU 0 (NVIDIA H200)"]

    device, *others = findings
    assert (device.ok, device.detail) == (False, "GPU 0 cannot be used: CUDA error: out of memory")
    assert {finding.topic for finding in others} == {"energy"}


def test_a_recipe_that_breaks_the_gpu_costs_only_what_that_gpu_would_still_have_been_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = support.check_support

    def breaks(recipe: Any, device: Any) -> Any:
        if (recipe.id, device.kind) == ("fp8", "cuda"):
            raise DeviceLost("AcceleratorError: CUDA error: an illegal instruction was encountered")
        return real(recipe, device)

    monkeypatch.setattr(support, "check_support", breaks)
    with fake_cuda(whole_models=False):
        findings = doctor.look()

    of_gpu = {finding.what: finding for finding in findings if str(finding.device).startswith("GPU")}
    assert "broke the GPU" in of_gpu["fp8"].detail
    assert not of_gpu["fp8"].ok
    assert of_gpu["bf16-pure"].ok
    assert "fp8-rowwise" not in of_gpu
    assert of_gpu["energy"].ok
    assert any(finding.ok for finding in findings if str(finding.device).startswith("CPU"))


def test_a_gpu_for_which_torch_was_not_built_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_cuda(whole_models=False):
        real = torch.ones

        def ones(*sizes: int, **options: Any) -> Any:
            if options.get("device") is not None:
                raise RuntimeError("CUDA error: no kernel image is available for execution on the device\nSearch for …")
            return real(*sizes, **options)

        monkeypatch.setattr(torch, "ones", ones)
        monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["sm_75", "sm_80"])
        device, *others = (finding for finding in doctor.look() if finding.device == "GPU 0 (NVIDIA H200)")

    assert device.detail == "GPU 0 cannot be used: this torch has no kernels for compute capability 9.0"
    assert str(device.fix).endswith("was built for sm_75, sm_80")
    assert {finding.topic for finding in others} == {"energy"}


def test_a_torchao_that_does_not_fit_this_torch_is_named_once_with_what_replaces_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torchao")
    monkeypatch.setattr("probes.precisions.low.float8.why_no_torchao", lambda: "ImportError: cannot import name …")
    (finding,) = doctor._torchao()
    monkeypatch.setattr(doctor, "_ask_child", lambda: [asdict(finding)])

    (named,) = (each for each in doctor.examine() if each.what == "torchao")

    assert (named.ok, named.topic) == (False, "packages")
    assert named.detail == "cannot be imported, so FP8 layers are mpplan's own: ImportError: cannot import name …"


def test_a_gpu_without_torch_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor.find_spec
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "torch" else real(name))

    with fake_cuda(whole_models=False):
        (devices,) = (finding for finding in doctor.examine() if finding.topic == "devices")
    assert (devices.ok, devices.detail) == (False, "1 NVIDIA GPU, not measurable without torch")

    def missing() -> None:
        raise CannotMeasureError("NVML does not start", hint="install the NVIDIA driver")

    monkeypatch.setattr("probes.sensors.nvml.load_nvml", missing)
    (devices,) = (finding for finding in doctor.examine() if finding.topic == "devices")
    assert (devices.detail, devices.fix) == ("NVML does not start", "install the NVIDIA driver")


def test_where_there_is_no_gpu_the_way_to_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probes.device.device.why_no_cuda", lambda: ("no NVIDIA GPU found", None))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    gpu = next(finding for finding in doctor.look() if finding.what == "gpu")

    assert (gpu.ok, gpu.detail) == (False, "no NVIDIA GPU found")
    assert gpu.fix is not None
    assert "`mpplan probe --recipe slurm`" in gpu.fix

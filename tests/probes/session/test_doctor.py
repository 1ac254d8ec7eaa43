"""What `mpplan doctor` finds where there is a GPU: the first thing that a campaign reads."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from planner.errors import CannotMeasureError
from probes.session import doctor
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

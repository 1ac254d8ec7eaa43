"""A device: its hash instead of its UUID, and the CPU as a device."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import SimpleNamespace

import pytest

from planner.errors import CannotMeasureError, UsageError
from probes.device.device import cpu_name, open_device, why_no_cuda
from tests.probes.build import CPU, H200


def test_the_hash_of_a_uuid_is_salted_and_short() -> None:
    salted = hashlib.sha256(b"mpplan.probe:11111111-2222-3333-4444-555555555555").hexdigest()

    assert H200.hashed == salted[:12]
    assert H200.hashed != hashlib.sha256(b"11111111-2222-3333-4444-555555555555").hexdigest()[:12]
    assert replace(H200, uuid="11111111-2222-3333-4444-555555555556").hashed != H200.hashed
    assert CPU.hashed is None


def test_a_cpu_is_opened_with_its_name_and_the_machines_memory() -> None:
    device = open_device("cpu")

    assert (device.kind, device.index, device.uuid, device.capability) == ("cpu", 0, None, (0, 0))
    assert device.name == cpu_name()
    assert device.memory_bytes > 2**28


def test_a_machine_without_a_gpu_says_what_can_be_measured_instead() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        assert open_device(None).kind == "cuda"
        return

    with pytest.raises(CannotMeasureError) as caught:
        open_device(None)

    assert "`mpplan probe --device cpu` measures the CPU" in str(caught.value.hint)


def test_a_gpu_that_is_not_there_is_a_usage_error_that_counts_those_that_are() -> None:
    pytest.importorskip("torch")
    from tests.probes.fake_cuda.installed import fake_cuda

    with fake_cuda(whole_models=False):
        assert open_device("cuda", 0).name == "NVIDIA H200"
        with pytest.raises(UsageError, match="there is no GPU 7") as caught:
            open_device("cuda", 7)

    assert caught.value.hint == "this machine has GPU 0 alone"


def test_gpus_that_a_process_is_shown_are_counted_from_0_and_it_says_who_chose_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torch")
    from tests.probes.fake_cuda.installed import fake_cuda

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with fake_cuda(whole_models=False), pytest.raises(UsageError) as caught:
        open_device("cuda", 7)

    assert caught.value.hint == "CUDA_VISIBLE_DEVICES=`7` gives this process GPU 0 alone"


def why(monkeypatch: pytest.MonkeyPatch, *, shown: int, error: Exception | None = None) -> tuple[str, str | None]:
    """What is said on a machine of 8 GPUs, of which torch with CUDA counts `shown` but cannot use them."""
    torch = pytest.importorskip("torch")

    def init() -> None:
        if error is not None:
            raise error

    eight = SimpleNamespace(nvmlDeviceGetCount=lambda: 8)
    monkeypatch.setattr("probes.sensors.nvml.load_nvml", lambda: eight)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: shown)
    monkeypatch.setattr(torch.cuda, "init", init)
    return why_no_cuda()


def test_gpus_hidden_from_the_process_are_not_blamed_on_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    message, hint = why(monkeypatch, shown=0, error=RuntimeError("No CUDA GPUs are available"))

    assert message == "CUDA_VISIBLE_DEVICES=`` shows this process none of the machine's GPUs"
    assert hint == "unset CUDA_VISIBLE_DEVICES, or name them"


@pytest.mark.parametrize(
    ("number", "text", "helps"),
    [
        (802, "system not yet initialized", "Fabric Manager"),
        (804, "forward compatibility was attempted on non supported HW", "driver that fits"),
        (999, "unknown error", "nvidia_uvm"),
    ],
)
def test_an_error_of_cuda_is_told_with_what_helps(
    monkeypatch: pytest.MonkeyPatch, number: int, text: str, helps: str
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    asked = "Did you run some cuda functions before calling NumCudaDevices() that might have already set an error?"
    error = RuntimeError(f"Unexpected error from cudaGetDeviceCount(). {asked} Error {number}: {text}")

    message, hint = why(monkeypatch, shown=8, error=error)

    assert message == f"there is an NVIDIA GPU, but CUDA does not start: error {number}, {text}"
    assert helps in str(hint)


def test_a_driver_that_was_updated_while_it_ran_is_not_called_a_missing_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pynvml = pytest.importorskip("pynvml")

    def init() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)

    monkeypatch.setattr(pynvml, "nvmlInit", init)

    message, hint = why_no_cuda()

    assert message == "torch sees no GPU, and NVML does not start: RM has detected an NVML/RM version mismatch."
    assert "restart the machine" in str(hint)


def test_a_gpu_that_nvml_can_no_longer_count_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pynvml = pytest.importorskip("pynvml")

    def count() -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)

    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", count)

    assert why_no_cuda() == ("no NVIDIA GPU found", None)


@pytest.mark.parametrize("shown", [None, "0", "MIG-11111111-2222-3333-4444-555555555555"])
def test_a_driver_too_old_for_torch_is_named_whatever_gpus_are_shown(
    monkeypatch: pytest.MonkeyPatch, shown: str | None
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if shown is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)  # torch counts slices through the driver, which fails
    old = RuntimeError("The NVIDIA driver on your system is too old (found version 11040). Please update your driver")

    assert why(monkeypatch, shown=0 if shown else 8, error=old) == (
        "there is an NVIDIA GPU, but torch cannot use it",
        "install a driver that fits torch's CUDA",
    )


@pytest.mark.parametrize("name", ["set_device", "synchronize"])
def test_a_gpu_that_others_hold_entirely_cannot_be_measured_and_says_so(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    torch = pytest.importorskip("torch")

    def busy(*_: object) -> None:
        raise RuntimeError("CUDA error: CUDA-capable device(s) is/are busy or unavailable\nCUDA kernel errors might …")

    for function in ("set_device", "synchronize"):
        monkeypatch.setattr(torch.cuda, function, busy if function == name else lambda *_: None)

    with pytest.raises(CannotMeasureError) as caught:
        replace(H200, index=1).as_current()

    assert caught.value.message == (
        "GPU 1 cannot be used: CUDA error: CUDA-capable device(s) is/are busy or unavailable"
    )
    assert "nvidia-smi" in str(caught.value.hint)
    assert CPU.as_current() is CPU


@pytest.mark.parametrize(
    ("release", "limits"),
    [("6.8.0-generic", []), ("5.15.146.1-microsoft-standard-WSL2", [(14 / 16, 0)])],
)
def test_where_the_driver_of_windows_would_spill_torch_keeps_to_the_memory_of_the_gpu(
    monkeypatch: pytest.MonkeyPatch, release: str, limits: list[tuple[float, int]]
) -> None:
    torch = pytest.importorskip("torch")
    from tests.probes.fake_cuda.installed import fake_cuda

    applied: list[tuple[float, int]] = []
    monkeypatch.setattr("probes.device.device.platform.release", lambda: release)
    with fake_cuda(whole_models=False):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _index: (15 * 2**30, 16 * 2**30))
        monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda *given: applied.append(given))
        open_device("cuda").as_current(runs=False)
        assert applied == []
        open_device("cuda").as_current()

    assert applied == limits

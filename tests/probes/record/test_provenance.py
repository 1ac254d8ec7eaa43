"""Provenance: listed variables only, and never a path."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from probes.record.provenance import provenance
from tests.probes.build import CPU


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

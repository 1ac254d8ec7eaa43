"""Builds of PyTorch."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from planner.hardware.torch_builds import torch_install


def test_a_gpu_of_amd_gets_the_build_for_rocm_and_others_that_of_pypi() -> None:
    assert torch_install("mi300x-192gb") == "torch --index-url https://download.pytorch.org/whl/rocm7.2"
    assert torch_install("h100-sxm5-80gb") == "torch"


def test_an_unknown_gpu_is_refused() -> None:
    with pytest.raises(UsageError):
        torch_install("h1000")

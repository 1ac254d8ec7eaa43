"""Where `pip` finds the build of PyTorch that runs on a GPU."""

from __future__ import annotations

from planner.hardware.architectures import find_architecture
from planner.hardware.catalogue import find_gpu

INDEXES = {"AMD": "https://download.pytorch.org/whl/rocm7.2"}
"""Addresses for `--index-url` by vendor; the build on PyPI is for NVIDIA's GPUs.

PyTorch names an index after each release of ROCm (https://pytorch.org/get-started/locally); public projects install
torch 2.9.1 to 2.14.0 from this one, seen 2026-11-27."""


def torch_install(gpu: str) -> str:
    """Arguments of `pip install` that install PyTorch for a GPU of the catalogue.

    Raises:
        UsageError: the catalogue has no such GPU.
    """
    index = INDEXES.get(find_architecture(find_gpu(gpu).arch).vendor or "")
    return "torch" if index is None else f"torch --index-url {index}"

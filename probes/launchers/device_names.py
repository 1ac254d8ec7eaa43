"""The names that clusters use for a GPU of the catalogue.

Kubernetes: NVIDIA's GPU Feature Discovery labels a node with the driver's name of its GPUs, with spaces replaced by `-`
(https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery). The catalogue has that name as a
pattern. SkyPilot's names are in `planner.hardware.skypilot_names`.
"""

from __future__ import annotations

from planner.errors import UsageError
from planner.hardware.catalogue import find_gpu
from planner.hardware.gpu import Gpu


def find_nvidia(name: str) -> Gpu:
    """Return the GPU with this name.

    Raises:
        UsageError: the name is unknown, ambiguous, or not that of an NVIDIA GPU, the only kind that the probe measures.
    """
    gpu = find_gpu(name)
    if not gpu.name.startswith("NVIDIA"):
        raise UsageError(f"--gpu: the probe does not measure {gpu.name}", hint="name an NVIDIA GPU")
    return gpu


def product_labels(gpu: Gpu) -> tuple[str, ...]:
    """Return the values of the label `nvidia.com/gpu.product` that nodes with this GPU may have.

    Raises:
        UsageError: the catalogue does not have the driver's name.
    """
    if gpu.device_name_pattern is None:
        raise UsageError(
            f"the Kubernetes label of {gpu.id} is not known",
            hint="leave `--gpu` out and add a nodeSelector to the file",
        )
    return tuple(name.replace(" ", "-") for name in spellings(gpu.device_name_pattern))


def spellings(pattern: str) -> tuple[str, ...]:
    """Return all texts that a pattern of the catalogue matches: letters, groups, `|`, and `?` after a letter or group.

    For `(NVIDIA )?A30`: `NVIDIA A30`, `A30`.
    """
    names, end = _choices(pattern, 0)
    if end != len(pattern):
        raise ValueError(f"`{pattern}` closes a group that it does not open")
    return tuple(dict.fromkeys(names))


def _choices(pattern: str, start: int) -> tuple[list[str], int]:
    """Return the texts between `start` and the end of its group, and the position of that end."""
    names: list[str] = []
    parts, at = [""], start
    while at < len(pattern) and pattern[at] != ")":
        if pattern[at] == "|":
            names, parts, at = names + parts, [""], at + 1
            continue
        tails, at = [pattern[at]], at + 1
        if tails == ["("]:
            tails, at = _choices(pattern, at)
            at += 1
        if pattern[at : at + 1] == "?":
            tails, at = [*tails, ""], at + 1
        parts = [part + tail for part in parts for tail in tails]
    return names + parts, at

"""The names by which clusters know a GPU."""

from __future__ import annotations

import pytest

from planner.hardware.catalogue import bears_name, find_gpu, load_gpus
from probes.launchers.device_names import product_labels, spellings

NVIDIA = [gpu for gpu in load_gpus().values() if gpu.name.startswith("NVIDIA") and gpu.device_name_pattern]


@pytest.mark.parametrize("gpu", NVIDIA, ids=lambda gpu: gpu.id)
def test_every_spelling_of_a_gpu_is_one_that_its_pattern_matches(gpu) -> None:
    names = spellings(gpu.device_name_pattern)

    assert names
    assert [name for name in names if not bears_name(gpu, name)] == []


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("(NVIDIA )?A30", ("NVIDIA A30", "A30")),
        ("A 80GB PCIe|A-PCIE", ("A 80GB PCIe", "A-PCIE")),
        ("B300( SXM6( AC)?)?", ("B300 SXM6 AC", "B300 SXM6", "B300")),
        ("RTX (Workstation|Server)", ("RTX Workstation", "RTX Server")),
    ],
)
def test_a_pattern_is_spelt_out(pattern: str, names: tuple[str, ...]) -> None:
    assert spellings(pattern) == names


def test_a_pattern_that_closes_more_groups_than_it_opens_is_a_mistake_in_the_catalogue() -> None:
    with pytest.raises(ValueError, match="closes a group"):
        spellings("A30)")


def test_a_label_is_the_name_of_the_driver_with_dashes() -> None:
    assert product_labels(find_gpu("a100-pcie-80gb")) == (
        "NVIDIA-A100-80GB-PCIe",
        "A100-80GB-PCIe",
        "NVIDIA-A100-PCIE-80GB",
        "A100-PCIE-80GB",
    )
    assert "Tesla-T4" in product_labels(find_gpu("t4"))

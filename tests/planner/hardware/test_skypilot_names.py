"""SkyPilot's names of GPUs."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from planner.hardware.catalogue import load_gpus
from planner.hardware.skypilot_names import skypilot_name, skypilot_names


def test_names_of_skypilot_are_of_gpus_in_the_catalogue_and_tell_memory_sizes_apart() -> None:
    assert set(skypilot_names()) <= set(load_gpus())
    assert skypilot_name("a100-sxm4-80gb") == "A100-80GB"
    assert skypilot_name("a100-sxm4-40gb") == "A100"
    assert skypilot_name("mi300x-192gb") == "MI300X"
    assert (skypilot_name("rtx-4090"), skypilot_name("rtx-6000-ada")) == ("RTX4090", "RTX6000-Ada")
    assert (skypilot_name("h100-nvl-94gb"), skypilot_name("rtx-a6000-48gb")) == ("H100-NVL", "RTXA6000")
    assert len(set(skypilot_names().values())) == len(skypilot_names())


def test_a_gpu_without_a_name_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(UsageError, match="the SkyPilot name of gtx-1080ti-11gb is not known") as refused:
        skypilot_name("gtx-1080ti-11gb")
    assert "h100-sxm5-80gb" in str(refused.value.hint)

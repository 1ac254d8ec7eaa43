"""Energy is measured for one recipe of each precision."""

from __future__ import annotations

from probes.precisions import choose, recipe_by_id
from probes.workloads.metered import metered


def test_one_recipe_of_each_precision_is_metered_and_fp16_is_not() -> None:
    assert metered(choose(()), "default") == {"fp32", "tf32", "bf16-fsdp", "fp8", "mxfp8"}


def test_where_the_preferred_recipe_is_not_in_a_group_the_next_stands_for_it() -> None:
    group = [recipe_by_id(name) for name in ("tf32", "fp16", "bf16-autocast")]

    assert metered(group, "default") == {"tf32", "bf16-autocast"}


def test_the_thorough_suite_meters_every_recipe() -> None:
    group = [recipe_by_id(name) for name in ("fp16", "bf16-autocast", "bf16-fsdp")]

    assert metered(group, "thorough") == {"fp16", "bf16-autocast", "bf16-fsdp"}

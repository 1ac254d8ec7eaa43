"""Which precisions a device runs for real, and which are emulated and why."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from probes.numerics.formats.elements import find_format
from probes.numerics.formats.scales import SCALINGS
from probes.numerics.lowering.recipes import LOWER, USUAL, choose_lower, harshest, lower_by_id

H100, B200, V100 = (9, 0), (10, 0), (7, 0)


@pytest.mark.parametrize("recipe", LOWER, ids=lambda recipe: recipe.id)
def test_every_recipe_has_formats_and_says_why_it_is_emulated(recipe):
    find_format(recipe.forward_format)
    find_format(recipe.gradient_format)
    assert (recipe.autocast is None) == (recipe.scaling in SCALINGS)
    for kind, capability in (("cpu", (0, 0)), ("cuda", V100), ("cuda", H100), ("cuda", B200)):
        mode, why = recipe.mode_on(kind, capability)
        assert (mode == "emulated") == bool(why)


@pytest.mark.parametrize(
    ("name", "capability", "mode"),
    [("fp8", H100, "real"), ("fp8", (8, 0), "emulated"), ("mxfp8", H100, "emulated"), ("nvfp4", B200, "real"),
     ("nvfp4", H100, "emulated"), ("fp8-blockwise", H100, "real"), ("fp8-blockwise", B200, "emulated"),
     ("bf16", V100, "emulated"), ("fp16", V100, "real"), ("fp8-rowwise", (8, 9), "emulated")],
)  # fmt: skip
def test_a_gpu_runs_what_its_generation_has(name, capability, mode):
    assert lower_by_id(name).mode_on("cuda", capability)[0] == mode


def test_layers_are_tried_in_the_harshest_precision_that_a_plan_has_unless_one_is_named():
    assert harshest(choose_lower([]), named=False).id == "fp8"
    assert harshest(choose_lower(["fp8", "nvfp4"]), named=True).id == "nvfp4"
    assert harshest(choose_lower(["bf16"]), named=True).id == "bf16"


def test_recipes_are_chosen_by_name_in_the_order_of_harshness():
    assert [recipe.id for recipe in choose_lower(["nvfp4", " FP8"])] == ["fp8", "nvfp4"]
    assert tuple(recipe.id for recipe in choose_lower([])) == USUAL
    with pytest.raises(UsageError, match="unknown precision `fp7`"):
        choose_lower(["fp7"])


def test_what_a_gpu_has_is_emulated_without_the_package_that_calls_it(monkeypatch):
    monkeypatch.setattr("probes.numerics.lowering.recipes.find_spec", lambda name: None)
    (recipe,) = (recipe for recipe in LOWER if recipe.needs)

    assert recipe.mode_on("cuda", B200) == ("emulated", f"needs {recipe.needs}, which is not installed")

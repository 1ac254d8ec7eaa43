"""Virtual stages that do not split the layers are refused with the nearest that do."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import UsageError
from planner.parallelism.chunks import even_chunks
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.parallelism.stages import check_chunks
from tests.planner.build import parts
from tests.planner.parallelism.test_search import H100, recipe

LLAMA = "llama-3.1-8b"  # of 32 layers


@pytest.mark.parametrize(
    ("pp", "vp", "hint"),
    [
        (4, 3, {"key": "hint.vp_near", "fewer": 2, "more": 4}),
        (5, 2, {"key": "hint.vp_only", "vp": 1}),
        (4, 100, {"key": "hint.vp_only", "vp": 8}),
    ],
)
def test_virtual_stages_that_do_not_split_the_layers_are_refused_with_the_nearest_that_do(pp, vp, hint):
    with pytest.raises(UsageError) as caught:
        check_chunks(recipe(LLAMA).model, FixedLayout(pp=pp, vp=vp))

    assert parts(caught.value.hint) == hint
    assert parts(caught.value.message).items() >= {"key": "error.vp_layers", "vp": vp, "pp": pp, "layers": 32}.items()
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("pp", [2, 3, 4, 5, 8])
def test_what_is_refused_is_what_a_search_has_no_layout_for(pp):
    model = recipe(LLAMA).model
    for vp in range(2, 20):
        number = len(enumerate_layouts(recipe(LLAMA), H100, FixedLayout(pp=pp, vp=vp), gpus=pp * 8))
        refused = not even_chunks(model.layers, np.array(pp * vp))
        assert not (refused and number)
        if not refused:
            check_chunks(model, FixedLayout(pp=pp, vp=vp))


def test_a_pipeline_or_virtual_stages_alone_are_left_to_the_search():
    model = recipe(LLAMA).model
    for fixed in (FixedLayout(), FixedLayout(vp=4), FixedLayout(pp=3), FixedLayout(pp=3, vp=1)):
        check_chunks(model, fixed)


def test_virtual_stages_that_split_the_layers_over_no_pipeline_are_refused():
    for vp in range(2, 12):
        number = len(enumerate_layouts(recipe(LLAMA), H100, FixedLayout(vp=vp), gpus_between=(1, 1024)))
        if number:
            check_chunks(recipe(LLAMA).model, FixedLayout(vp=vp))
            continue
        with pytest.raises(UsageError) as caught:
            check_chunks(recipe(LLAMA).model, FixedLayout(vp=vp))
        assert parts(caught.value.message)["key"] == "error.vp_layers_any"

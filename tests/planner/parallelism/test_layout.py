"""Layouts as one and as columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.parallelism.layout import COLUMNS, FULL_SHARE, Layouts
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.training.recipe import ACT_CKPT
from tests.planner.build import cluster, layout, layouts_of, recipe, shape

ANY = layouts_of(shape(experts=16, top_k=2, expert_ffn=64))


@given(st.lists(ANY, min_size=1, max_size=10))
def test_columns_give_back_every_layout(rows):
    columns = Layouts.of(*rows)

    assert len(columns) == len(rows)
    assert [columns.at(i) for i in range(len(columns))] == rows
    assert list(columns.gpus) == [row.gpus for row in rows]


@given(ANY)
def test_a_layout_uses_the_product_of_its_axes(where):
    assert where.gpus == where.tp * where.cp * where.dp * where.pp


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (layout(tp=4, dp=8, ep=8), 4),  # the data parallel ranks hold the expert groups
        (layout(tp=4, dp=2, ep=8), 1),  # they do not suffice: the tensor ranks are used up
        (layout(tp=2, dp=6, ep=4), 1),  # 4 does not divide 6, though it divides 12
        (layout(tp=2, cp=2, dp=2, ep=4), 2),
    ],
)
def test_experts_are_split_only_where_their_groups_leave_tensor_ranks(where, expected):
    assert where.expert_tp == expected
    assert list(Layouts.of(where, where).expert_tp) == [expected, expected]


@given(ANY)
def test_the_grid_of_experts_divides_the_gpus_of_a_stage(where):
    assert (where.tp * where.cp * where.dp) % (where.expert_tp * where.ep) == 0


def test_all_kinds_of_checkpointing_of_a_row_are_the_layouts_that_follow_one_another():
    training = recipe("llama-3.1-8b")
    enumerated = enumerate_layouts(training, cluster(), FixedLayout(), gpus=64)
    rows = enumerated.by_ckpt_mode

    assert enumerated.ckpt_modes == len(ACT_CKPT)
    for name in COLUMNS:
        values = np.broadcast_to(getattr(rows, name), (enumerated.ckpt_modes, len(rows)))
        assert np.array_equal(values.T.ravel(), getattr(enumerated, name))
    assert len(rows.take(slice(0, 3))) == 3
    assert rows.take(slice(0, 3)).act_ckpt.shape == (enumerated.ckpt_modes, 1)
    single = enumerate_layouts(training, cluster(), FixedLayout(act_ckpt="full"), gpus=64)
    assert single.by_ckpt_mode is single


def test_some_of_many_are_taken_by_mask_index_or_slice():
    many = Layouts.of(*(layout(dp=n) for n in (1, 2, 4, 8)))

    assert list(many.take(many.dp > 2).dp) == [4, 8]
    assert list(many.take(np.array([3, 0])).dp) == [8, 1]
    assert list(many.take(slice(1, 3)).dp) == [2, 4]


def test_every_way_to_checkpoint_has_its_share_of_whole_layers():
    assert dict(zip(ACT_CKPT, FULL_SHARE, strict=True)) == {
        "none": 0, "selective": 0, "full": 1, "every-2": 0.5, "every-4": 0.25,
    }  # fmt: skip

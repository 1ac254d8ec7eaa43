"""Mixtures of experts in a `config.json`: how many there are, which a token may see, and which layers have them."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError
from planner.models.huggingface_json import ConfigJson
from planner.models.huggingface_mixtures import ernie, experts_of, groups_of

GROUPS = {"n_group": 8, "topk_group": 4, "topk_method": "noaux_tc"}
ERNIE = {
    "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 1024, "vocab_size": 5000,
    "moe_num_experts": 8, "moe_k": 2, "moe_intermediate_size": 256, "moe_num_shared_experts": 1,
    "moe_layer_start_index": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_group": 7}, "c.json: n_group: expected a divisor of n_routed_experts (256), found `7`"),
        ({"topk_group": 9}, "c.json: topk_group: expected at most n_group (8), found `9`"),
    ],
)
def test_groups_that_cannot_be_are_refused(change, message):
    with pytest.raises(InputFileError) as caught:
        groups_of(ConfigJson("c.json", GROUPS | change), 256)

    assert caught.value.message == message


@pytest.mark.parametrize("change", [{"n_group": 1}, {"topk_group": 8}, {"topk_method": "greedy"}])
def test_groups_that_limit_nothing_are_none(change):
    assert groups_of(ConfigJson("c.json", GROUPS), 256) == {"expert_groups": 8, "token_groups": 4}
    assert groups_of(ConfigJson("c.json", GROUPS | change), 256) == {}


def test_a_token_has_no_more_experts_than_there_are():
    with pytest.raises(InputFileError, match=r"moe_k: expected at most moe_num_experts \(8\), found `9`"):
        experts_of(
            ConfigJson("c.json", ERNIE | {"moe_k": 9}), ("moe_num_experts",), "moe_intermediate_size", ("moe_k",)
        )


def test_layers_of_experts_begin_where_the_file_says_and_go_on_to_the_last():
    shape = ernie(ConfigJson("c.json", ERNIE | {"moe_layer_end_index": 3}))

    assert (shape.dense_layers, shape.moe_layers, shape.shared_experts) == (1, 3, 1)
    with pytest.raises(InputFileError, match=r"moe_layer_end_index: expected the last layer \(3\), found `2`"):
        ernie(ConfigJson("c.json", ERNIE | {"moe_layer_end_index": 2}))

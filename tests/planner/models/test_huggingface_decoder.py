"""What decoders have in common in a `config.json`: heads, local attention and the length they are trained with."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError
from planner.models.huggingface_decoder import (
    context_of,
    heads_alone,
    heads_of,
    window_after_first_layers,
    window_of,
)
from planner.models.huggingface_json import ConfigJson


def config(**values: object) -> ConfigJson:
    return ConfigJson("c.json", values)


@pytest.mark.parametrize(
    ("kinds", "fields"),
    [
        (["sliding_attention"] * 5 + ["full_attention"] + ["sliding_attention"] * 4, {"global_attention_every": 6}),
        (["full_attention"] * 7 + ["sliding_attention"], {"global_attention_layers": 7}),
        (["full_attention", "sliding_attention"] * 4, {"global_attention_layers": 4}),
        (["sliding_attention"] * 8, {"global_attention_every": 1}),
    ],
)
def test_the_layers_that_see_everything_are_counted_as_they_stand(kinds, fields):
    window_fields = window_of(config(sliding_window=1024, layer_types=kinds), global_every=4)

    assert window_fields == {"sliding_window": 1024, **fields}


def test_a_list_of_full_attention_alone_is_no_window():
    assert window_of(config(sliding_window=1024, layer_types=["full_attention"] * 8), global_every=4) == {}


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ({}, {}),
        ({"use_sliding_window": False, "max_window_layers": 4}, {}),
        ({"use_sliding_window": True}, {}),  # the first 28 layers have none
        # transformers 5.24, `Qwen2Config`: a window in the layers from `max_window_layers` on
        ({"use_sliding_window": True, "max_window_layers": 4}, {"sliding_window": 1024, "global_attention_layers": 4}),
        ({"use_sliding_window": True, "max_window_layers": 8}, {}),
        (
            {"use_sliding_window": True, "layer_types": ["sliding_attention"] * 8},
            {"sliding_window": 1024, "global_attention_every": 1},
        ),
    ],
)
def test_qwens_window_begins_behind_its_first_layers(values, fields):
    assert window_after_first_layers(config(num_hidden_layers=8, sliding_window=1024, **values)) == fields


def test_keys_that_a_class_does_not_have_change_no_heads():
    plain = {"heads": 8, "kv_heads": 8, "head_dim": 64}

    assert heads_alone(config(num_attention_heads=8, num_key_value_heads=2, head_dim=128), 512) == plain
    with pytest.raises(InputFileError, match=r"hidden_size: expected a multiple of num_attention_heads \(96\)"):
        heads_alone(config(num_attention_heads=96, head_dim=128, hidden_size=4096), 4096)


def test_without_a_list_of_layers_the_family_says_which_see_everything():
    assert window_of(config(sliding_window=1024), global_every=4)["global_attention_every"] == 4
    assert (
        window_of(config(sliding_window=1024, sliding_window_pattern=6), global_every=4)["global_attention_every"] == 6
    )
    assert window_of(config(), global_every=4) == {}
    assert window_of(config(sliding_window=1024, use_sliding_window=False)) == {}


def test_heads_divide_the_hidden_size_unless_their_size_is_given():
    assert heads_of(config(num_attention_heads=8, num_key_value_heads=2), 512) == {
        "heads": 8, "kv_heads": 2, "head_dim": 64,
    }  # fmt: skip
    assert heads_of(config(num_attention_heads=96, head_dim=128), 4096)["head_dim"] == 128
    with pytest.raises(InputFileError, match=r"hidden_size: expected a multiple of num_attention_heads \(96\)"):
        heads_of(config(num_attention_heads=96, hidden_size=4096), 4096)


@pytest.mark.parametrize(
    ("values", "length"),
    [
        ({"max_position_embeddings": 2048}, 2048),
        ({"max_position_embeddings": 131072}, 4096),
        ({"max_position_embeddings": 131072, "rope_scaling": {"original_max_position_embeddings": 8192}}, 8192),
    ],
)
def test_the_length_of_pre_training_is_not_the_longest_that_a_model_accepts(values, length):
    assert context_of(config(**values)) == length

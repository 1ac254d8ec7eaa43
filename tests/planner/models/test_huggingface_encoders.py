"""Encoders, and encoders with a decoder, in a `config.json`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from planner.errors import InputFileError
from planner.models.catalogue import find_model
from planner.models.huggingface import shape_from_config
from planner.models.huggingface_encoders import bert, distilbert, modernbert, t5, umt5
from planner.models.huggingface_json import ConfigJson
from planner.models.shape import ModelShape

MODERNBERT = {  # answerdotai/ModernBERT-base; Warner et al. (arXiv 2412.13663), table 4
    "model_type": "modernbert", "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22,
    "num_attention_heads": 12, "vocab_size": 50368, "global_attn_every_n_layers": 3, "local_attention": 128,
    "max_position_embeddings": 8192, "attention_dropout": 0.0, "embedding_dropout": 0.0, "mlp_dropout": 0.0,
}  # fmt: skip
LARGE = MODERNBERT | {
    "hidden_size": 1024, "intermediate_size": 2624, "num_hidden_layers": 28, "num_attention_heads": 16,
}  # fmt: skip
BERT = {  # google-bert/bert-base-uncased
    "model_type": "bert", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2,
}  # fmt: skip
DISTILBERT = {  # distilbert/distilbert-base-uncased
    "model_type": "distilbert", "dim": 768, "hidden_dim": 3072, "n_layers": 6, "n_heads": 12, "vocab_size": 30522,
    "max_position_embeddings": 512,
}  # fmt: skip
T5_3B = {  # google-t5/t5-3b
    "model_type": "t5", "d_model": 1024, "d_kv": 128, "d_ff": 16384, "num_layers": 24, "num_heads": 32,
    "vocab_size": 32128, "n_positions": 512, "relative_attention_num_buckets": 32,
}  # fmt: skip
FLAN_XL = T5_3B | {  # google/flan-t5-xl
    "d_model": 2048, "d_kv": 64, "d_ff": 5120, "num_decoder_layers": 24, "feed_forward_proj": "gated-gelu",
    "tie_word_embeddings": False,
}  # fmt: skip


def config(values: dict[str, object]) -> ConfigJson:
    return ConfigJson("c.json", values)


@pytest.mark.parametrize(
    ("values", "params"),
    [
        # as `AutoModelForMaskedLM` and `AutoModelForSeq2SeqLM` of transformers 5.24 build them
        (BERT, 109_514_298),
        (DISTILBERT, 66_985_530),
        (MODERNBERT, 149_655_232),
        (LARGE, 395_881_664),
        (T5_3B, 2_851_598_336),
        # 2,783,959,040 and the output layer, which transformers 5.24 ties whatever the file says
        (FLAN_XL, 2_783_959_040 + 32128 * 2048),
    ],
)
def test_a_published_file_has_as_many_parameters_as_the_model(values, params):
    assert shape_from_config(json.dumps(values), "m/config.json").params_total == pytest.approx(params, rel=1e-12)


def test_a_third_of_modernberts_layers_attends_to_everything_beginning_with_the_first():
    shape = modernbert(config(MODERNBERT))

    assert (shape.kind, shape.gated_mlp, shape.context, shape.head_ratio) == ("encoder", True, 1024, 0.3)
    # layers 0, 3, ..., 21 of 22; the others see 64 tokens to each side
    assert (shape.global_attention_layers, shape.sliding_window) == (8, 64)
    assert shape.global_share == pytest.approx(8 / 22)


def test_modernberts_list_of_layers_counts_before_its_interval():
    kinds = ["full_attention"] * 2 + ["sliding_attention"] * 20

    assert modernbert(config(MODERNBERT | {"layer_types": kinds})).global_attention_layers == 2


@pytest.mark.parametrize(("rate", "drops"), [(0.0, False), (0.1, True), (None, False)])
def test_an_encoder_whose_file_drops_nothing_is_planned_without_dropout(rate, drops):
    assert modernbert(config(MODERNBERT | {"mlp_dropout": rate})).has_dropout is drops
    assert find_model("bert-base").has_dropout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layer_types": ["full_attention"]}, "layer_types: expected `full_attention` or `sliding_attention` for each"),
        ({"layer_types": ["conv"] * 22}, "layer_types: expected `full_attention` or `sliding_attention` for each"),
        ({"mlp_dropout": 1.5}, "mlp_dropout: expected a number from 0 to less than 1, found `1.5`"),
        ({"mlp_dropout": True}, "mlp_dropout: expected a number from 0 to less than 1, found `true`"),
        ({"local_attention": 0}, "local_attention: expected a whole number of at least 1, found `0`"),
        ({"num_attention_heads": 7}, "hidden_size: expected a multiple of num_attention_heads (7), found `768`"),
    ],
)
def test_a_modernbert_that_cannot_be_is_refused(change, message):
    with pytest.raises(InputFileError) as caught:
        modernbert(config(MODERNBERT | change))

    assert message in caught.value.message


@pytest.mark.parametrize(
    ("values", "name"),
    [(MODERNBERT, "modernbert-base"), (LARGE, "modernbert-large"), (DISTILBERT, "distilbert-base")],
)
def test_an_encoder_is_that_of_the_catalogue_with_its_norms(values, name):
    shape, known = shape_from_config(json.dumps(values), "m/config.json"), find_model(name)

    of_the_row = {"name": known.name, "evidence": known.evidence, "params_published": known.params_published}
    assert replace(shape, **of_the_row) == known


def test_t5_is_the_catalogues_with_its_norms_and_tables_of_positions():
    shape, known = shape_from_config(json.dumps(T5_3B), "t5-3b/config.json"), find_model("t5-3b")

    # norms: two in each of 24 encoder layers, three in each of 24 decoder layers, two behind the stacks
    assert shape.other_params == 1024 * (2 * 24 + 3 * 24 + 2) + 2 * 32 * 32
    named = {"params_published": known.params_published, "evidence": known.evidence, "other_params": None}
    assert replace(shape, **named) == known


def test_the_stacks_of_t5_may_differ_and_umt5_has_a_table_in_each_layer():
    uneven = t5(config(T5_3B | {"num_decoder_layers": 4}))

    assert (uneven.layers, uneven.cross_attention_layers) == (28, 4)
    in_each, in_two = (family(config(T5_3B)).other_params or 0 for family in (umt5, t5))
    assert in_each - in_two == (48 - 2) * 32 * 32


def test_the_decoder_of_another_model_is_refused():
    with pytest.raises(InputFileError, match="add_cross_attention: expected false, as a model by itself, found `true`"):
        bert(config(BERT | {"add_cross_attention": True}))


@pytest.mark.parametrize("family", [bert, distilbert])
def test_berts_ignore_keys_that_their_classes_do_not_have(family):
    values = {
        "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 1024,
        "vocab_size": 5000, "max_position_embeddings": 512, "dim": 512, "n_layers": 4, "n_heads": 8, "hidden_dim": 1024,
    }  # fmt: skip
    plain, with_keys = (
        family(config(values | further)) for further in ({}, {"num_key_value_heads": 2, "head_dim": 128})
    )

    assert plain == with_keys
    assert isinstance(plain, ModelShape)
    assert (plain.kv_heads, plain.head_dim) == (8, 64)

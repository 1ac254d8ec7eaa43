from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import Message, UsageError
from planner.evidence import EvidenceKind
from planner.models.catalogue import find_model
from planner.models.from_params import shape_from_params
from tests.examples import examples


@pytest.mark.parametrize(
    ("params", "layers", "hidden", "ffn"),
    [(8e9, 32, 4096, 14336), (70e9, 80, 8192, 28672), (405e9, 126, 16384, 53248)],
)
def test_the_sizes_of_llama_3_get_its_shapes(params, layers, hidden, ffn):
    shape = shape_from_params(params)

    assert (shape.layers, shape.hidden, shape.ffn_hidden) == (layers, hidden, ffn)
    assert (shape.kv_heads, shape.head_dim, shape.vocab) == (8, 128, 128_256)
    assert shape.heads == hidden // 128


@examples(150)
@given(st.floats(min_value=16.2, max_value=29.9).map(lambda x: 2.718281828**x))
def test_any_size_is_met_within_two_percent_by_a_shape_that_can_be_built(params):
    shape = shape_from_params(params)

    assert shape.params_total == pytest.approx(params, rel=0.02)
    assert shape.hidden % 128 == 0
    assert shape.heads % shape.kv_heads == 0
    assert 1 <= shape.ffn_hidden / shape.hidden <= 6
    assert shape.experts == 0


def test_larger_models_are_deeper_and_wider():
    shapes = [shape_from_params(size) for size in (50e6, 500e6, 3e9, 13e9, 70e9, 200e9, 1e12, 10e12)]

    assert [shape.hidden for shape in shapes] == sorted(shape.hidden for shape in shapes)
    assert all(later.layers >= 0.9 * earlier.layers for earlier, later in pairwise(shapes))


def test_large_models_have_heads_that_eight_gpus_can_share():
    for params in (7e9, 13e9, 34e9, 100e9, 175e9, 530e9, 1e12):
        assert shape_from_params(params).heads % 8 == 0


def test_a_derived_shape_says_so():
    shape = shape_from_params(13e9)

    assert shape.name == "derived-13b"
    assert shape.evidence is not None
    assert shape.evidence.kind is EvidenceKind.ASSUMED
    assert "llama-3-8b and llama-3-70b" in shape.evidence.what
    assert shape.params_published is None
    assert shape.global_batch_tokens is None


def test_the_catalogue_is_not_changed_by_what_is_derived_from_it():
    shape_from_params(70e9)

    assert find_model("llama-3-70b").context == 8192


@pytest.mark.parametrize("params", [9e6, 1.1e13])
def test_sizes_beyond_any_family_are_refused(params):
    with pytest.raises(UsageError) as caught:
        shape_from_params(params)
    assert caught.value.message == Message.of("error.no_shape", params=params)
    assert caught.value.hint == Message.of("hint.describe_model")

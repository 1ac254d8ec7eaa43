"""Switches on the layers of a model: what is turned is rounded, what is not is untouched, and back again."""

from __future__ import annotations

import pytest

from probes.numerics.lowering.recipes import lower_by_id

torch = pytest.importorskip("torch")

from probes.numerics.lowering.switches import Switches, kinds_of  # noqa: E402 - it needs torch
from probes.numerics.tasks.transformers import Shape, TextModel  # noqa: E402


@pytest.fixture
def model():
    torch.manual_seed(1)
    return TextModel(Shape(width=32, layers=1, heads=2, context=16, batch=2, experts=2), 64, causal=True)


TOKENS = torch.arange(32).reshape(2, 16)


def test_a_model_without_a_turned_switch_is_as_it_was(model):
    before = model(TOKENS)
    switches = Switches(model)

    assert torch.equal(model(TOKENS), before)
    switches.turn(dict.fromkeys(switches.layers, lower_by_id("nvfp4")))
    assert not torch.equal(model(TOKENS), before)
    switches.turn({})
    assert torch.equal(model(TOKENS), before)


def test_layers_are_counted_by_the_way_that_they_took(model):
    switches = Switches(model, real=("bf16",))
    switches.turn({"head": lower_by_id("bf16"), "final_norm": lower_by_id("bf16"), "blocks.0.qkv": lower_by_id("fp8")})

    assert switches.counted() == (0, 0)
    model(TOKENS)

    assert switches.counted() == (1, 3)  # the head under autocast; a norm is rounded, and FP8 is not this device's
    switches.reset_counts()
    assert switches.counted() == (0, 0)


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp8", "nvfp4"])
def test_every_single_layer_can_be_turned(model, name):
    switches = Switches(model)
    before = model(TOKENS)

    for layer in switches.layers:
        switches.turn({layer: lower_by_id(name)})
        after = model(TOKENS)
        assert after.dtype == torch.float32
        assert not torch.equal(after, before), layer


def test_layers_are_told_by_their_kind(model):
    kinds = kinds_of(Switches(model).layers)

    assert kinds["embedding"] == kinds["position"] == "embedding"
    assert kinds["blocks.0.attention_norm"] == kinds["final_norm"] == "norm"
    assert kinds["blocks.0.mlp.router"] == "router"
    assert kinds["head"] == "last"
    assert kinds["blocks.0.qkv"] == "linear"


def test_a_network_without_a_table_has_a_first_layer():
    network = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.GroupNorm(2, 4), torch.nn.Linear(4, 2))

    assert kinds_of(Switches(network).layers) == {"0": "first", "1": "norm", "2": "last"}


def test_the_usual_policy_leaves_routers_norms_tables_and_the_last_layer_high(model):
    lowered = Switches(model).policy(lower_by_id("fp8"))

    experts = [f"blocks.0.mlp.experts.{number}.{part}" for number in (0, 1) for part in ("up", "down")]
    assert set(lowered) == {"blocks.0.qkv", "blocks.0.attention_out", *experts}

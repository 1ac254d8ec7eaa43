"""The weights that adapters stand beside, counted against the models' own published lists of weights."""

from __future__ import annotations

import pytest

from planner.models.catalogue import find_model
from planner.models.linear_attention import LinearAttention
from planner.training.adapters import LORA_TARGETS, Adapted, adapted_weights
from tests.planner import build


def elements(model: str, targets: str = "all-linear", *, fused: bool = False) -> float:
    """Weights of all layers that an adapter stands beside."""
    shape = find_model(model)
    weights = adapted_weights(shape, targets, fused=fused)
    return shape.layers * sum(weight.copies * weight.inputs * weight.outputs for weight in weights)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        "llama-3.1-8b",
        "gpt3-175b",
        "mixtral-8x7b",
        "deepseek-v3",
        "qwen2.5-7b",
        "nemotron-h-8b",
        "nemotron-3-super",
        "qwen3-next",
    ],
)
def test_every_linear_layer_has_one_so_the_adapted_weights_are_the_model_without_its_embeddings(model, fused):
    shape = find_model(model)
    embeddings = shape.vocab * shape.hidden * (1 if shape.tied_embeddings else 2)

    # what is left are norms, biases, learned positions and the routers' matrices: below 1 % everywhere
    assert elements(model, fused=fused) == pytest.approx(shape.params_total - embeddings, rel=0.01)


def test_a_token_meets_the_chosen_experts_only():
    shape = find_model("mixtral-8x7b")
    experts = [weight for weight in adapted_weights(shape, "mlp", fused=False) if weight.copies]

    assert {(weight.copies, weight.met) for weight in experts} == {(8.0, 2.0)}
    assert len(experts) == 3  # gate, up and down of Mixtral's experts


def test_latent_attention_has_one_beside_each_weight_of_its_chain():
    # DeepSeek-V3's config.json: q_lora_rank 1536, kv_lora_rank 512, 128 heads of 128 + 64 (rope), values of 128
    weights = adapted_weights(find_model("deepseek-v3"), "attention", fused=False)

    assert set(weights) == {
        Adapted(inputs=7168, outputs=1536),
        Adapted(inputs=1536, outputs=128 * 192),
        Adapted(inputs=7168, outputs=512 + 64),
        Adapted(inputs=512, outputs=128 * (128 + 128)),
        Adapted(inputs=128 * 128, outputs=7168, gives_hidden=True),
    }


def test_the_parts_of_a_layer_make_the_whole():
    assert elements("llama-3.1-8b", "attention") + elements("llama-3.1-8b", "mlp") == elements("llama-3.1-8b")
    assert [elements("llama-3.1-8b", "qv")] == [32 * 4096 * (4096 + 1024)]
    assert set(LORA_TARGETS) == {"all-linear", "attention", "mlp", "qv"}


def test_those_of_attention_are_in_the_layers_that_attend_and_none_beside_a_scan():
    # Qwen3-Next: 12 of 48 layers attend, with 16 gated heads of 256 and 2 of keys and values
    assert elements("qwen3-next", "attention") == 12 * 2048 * (2 * 4096 + 2 * 512 + 4096)
    assert elements("qwen3-next", "qv") == 12 * 2048 * (2 * 4096 + 512)


def test_kimi_delta_attention_has_one_beside_each_of_its_nine_weights():
    # Kimi-Linear-48B-A3B: 32 heads of 128; q, k, v, beta, and two chains through a rank of 128, then the output
    delta = LinearAttention(layers=1, key_heads=32, key_dim=128, value_heads=32, value_dim=128, gates=0, gate_rank=128)
    model = build.shape(layers=1, hidden=2304, linear=delta, attention_layers=0, ffn_layers=0)
    weights = [each for each in adapted_weights(model, "all-linear", fused=False) if each.copies]

    assert sorted((each.inputs, each.outputs) for each in weights) == [
        (128, 4096), (128, 4096), (2304, 32), (2304, 128), (2304, 128), (2304, 4096), (2304, 4096), (2304, 4096),
        (4096, 2304),
    ]  # fmt: skip
    assert sum(each.inputs * each.outputs for each in weights) == delta.matrix_params(2304)

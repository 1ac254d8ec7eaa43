"""The small transformers: shapes, causality and routing."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from probes.numerics.tasks.transformers import Experts, ImageTransformer, Shape, TextModel  # noqa: E402

SHAPE = Shape(width=32, layers=2, heads=2, context=16, batch=2)


def test_a_decoder_does_not_see_what_comes_and_an_encoder_does():
    torch.manual_seed(0)
    tokens = torch.randint(0, 64, (1, 16))
    changed = tokens.clone()
    changed[0, -1] = (changed[0, -1] + 1) % 64
    for causal in (True, False):
        model = TextModel(SHAPE, 64, causal=causal)
        same = torch.allclose(model(tokens)[0, :-1], model(changed)[0, :-1], atol=1e-6)
        assert same == causal


def test_images_become_classes():
    assert ImageTransformer(SHAPE, 2, 10)(torch.randn(3, 1, 8, 8)).shape == (3, 10)


def test_each_token_goes_to_one_expert_with_the_routers_weight():
    torch.manual_seed(0)
    layer = Experts(Shape(width=32, layers=1, heads=2, context=16, batch=1, experts=4))
    x = torch.randn(5, 32)

    weights = layer.router(x).softmax(-1)
    chosen = weights.argmax(-1)
    by_hand = torch.stack(
        [layer.experts[int(e)](row) * weights[i, e] for i, (e, row) in enumerate(zip(chosen, x, strict=True))]
    )

    assert torch.allclose(layer(x), by_hand, atol=1e-6)

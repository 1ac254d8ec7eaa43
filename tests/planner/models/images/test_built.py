from dataclasses import fields

import pytest

from planner.models.image_network import ImageNetwork, Traffic
from planner.models.images.built import ConvNext, ResNet, VisionTransformer
from planner.models.images.catalogue import load_image_models, network_of

BUILT: dict[str, ImageNetwork] = {
    "vit_base_patch16_224": VisionTransformer(
        layers=12, hidden=768, heads=12, ffn_hidden=3072, patch=16, image_size=224
    ).network("built"),
    "vit_large_patch16_224": VisionTransformer(
        layers=24, hidden=1024, heads=16, ffn_hidden=4096, patch=16, image_size=224
    ).network("built"),
    "vit_base_patch32_224": VisionTransformer(
        layers=12, hidden=768, heads=12, ffn_hidden=3072, patch=32, image_size=224
    ).network("built"),
    "resnet101": ResNet(
        depths=(3, 4, 23, 3), widths=(256, 512, 1024, 2048), stem=64, bottleneck=True, image_size=224
    ).network("built"),
    "resnet18": ResNet(
        depths=(2, 2, 2, 2), widths=(64, 128, 256, 512), stem=64, bottleneck=False, image_size=224
    ).network("built"),
    "convnext_large": ConvNext(
        depths=(3, 3, 27, 3), widths=(192, 384, 768, 1536), patch=4, image_size=224
    ).network("built"),
}  # fmt: skip
"""Networks built from the dimensions of their papers, by the model of the catalogue that has them."""


@pytest.mark.parametrize("name", BUILT)
def test_parameters_and_arithmetic_are_exactly_those_that_were_recorded(name):
    built, recorded = BUILT[name], network_of(load_image_models()[name])

    assert built.params == recorded.params
    assert built.tensors == recorded.tensors
    assert built.flop_per_image == pytest.approx(recorded.flop_per_image, rel=1e-5)


@pytest.mark.parametrize("name", BUILT)
def test_what_passes_over_memory_is_close_to_what_was_recorded(name):
    built, recorded = BUILT[name], network_of(load_image_models()[name])
    whole = sum(getattr(recorded.half, kind) for kind in ("batch_norm", "layer_norm", "pointwise", "copy", "reduce"))

    for field in fields(Traffic):
        off = abs(getattr(built.half, field.name) - getattr(recorded.half, field.name))
        assert off <= 0.07 * max(getattr(recorded.half, field.name), 0.2 * whole), field.name


def test_a_wider_feed_forward_moves_more():
    plain = BUILT["vit_base_patch16_224"]
    wide = VisionTransformer(layers=12, hidden=768, heads=12, ffn_hidden=6144, patch=16, image_size=224).network("wide")

    assert 1.3 < wide.half.pointwise / plain.half.pointwise < 1.6
    assert wide.half.layer_norm == pytest.approx(plain.half.layer_norm)

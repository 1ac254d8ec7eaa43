from dataclasses import replace

import pytest

from planner.models.image_network import Attention, ImageNetwork
from planner.models.images.catalogue import image_model_named, network_of


def network(name: str) -> ImageNetwork:
    shape = image_model_named(name)
    assert shape is not None
    return network_of(shape)


def test_the_arithmetic_of_resnet_50_and_vit_b_16_is_that_of_the_papers():
    # 4.09 billion multiply-adds (torchvision's table of ResNet-50), 17.6 (torchvision's of ViT-B/16)
    assert network("resnet50").flop_per_image / 2 == pytest.approx(4.09e9, rel=0.01)
    assert network("vit-b-16").flop_per_image / 2 == pytest.approx(17.56e9, rel=0.01)


@pytest.mark.parametrize(("name", "params"), [("resnet-50", 25_557_032), ("vit-b-16", 86_567_656)])
def test_parameters_are_those_that_are_published(name, params):
    assert network(name).params == params  # torchvision: 25 557 032 and 86 567 656


@pytest.mark.parametrize(
    ("name", "patch"),
    [("vit-b-16", 16), ("vit_large_patch14_224", 14), ("swin-t", 4), ("mixer_b16_224", 16), ("resnet50", None),
     ("convnext-t", None), ("levit_128", None)],
)  # fmt: skip
def test_a_transformer_cuts_images_into_patches(name, patch):
    assert network(name).patch == patch


def test_a_resnet_at_another_size_takes_the_area_times_the_work():
    native, larger = network("resnet50"), network("resnet50").at_size(448)

    assert larger.image_size == 448
    assert larger.convolution_flop == pytest.approx(4 * native.convolution_flop)
    assert larger.half.saved == pytest.approx(4 * native.half.saved)
    assert (larger.params, larger.half.weights) == (native.params, native.half.weights)
    assert larger.products == native.products  # the classifier comes after the pooling


def test_global_attention_takes_the_square_of_the_area_and_windows_only_the_area():
    vit = network("vit-b-16")
    window = Attention(heads=3 * 64.0, queries=49.0, keys=49.0, head_dim=32, count=2)  # 64 windows of 7 x 7 tokens
    windowed = replace(vit, attention=(window,))

    assert vit.at_size(448).attention[0].flop == pytest.approx(16 * vit.attention[0].flop)
    assert windowed.at_size(448).attention[0].flop == pytest.approx(4 * window.flop)


def test_a_model_scaled_to_a_size_comes_near_what_was_recorded_at_it():
    scaled, recorded = network("vit_base_patch16_224").at_size(384), network("vit_base_patch16_384")

    assert scaled.flop_per_image == pytest.approx(recorded.flop_per_image, rel=0.01)
    assert scaled.half.saved == pytest.approx(recorded.half.saved, rel=0.02)
    assert scaled.half.pointwise == pytest.approx(recorded.half.pointwise, rel=0.02)


def test_its_own_size_changes_nothing():
    native = network("resnet50")

    assert native.at_size(224) is native


@pytest.mark.parametrize(("name", "convolutional"), [("resnet50", True), ("efficientnet_b0", True), ("vit-b-16", False),
                                                     ("convnext-b", False)])  # fmt: skip
def test_what_has_most_of_its_arithmetic_in_convolutions_is_convolutional(name, convolutional):
    assert network(name).is_convolutional is convolutional


def test_autocast_moves_about_half_of_what_32_bits_do():
    resnet = network("resnet50")

    assert resnet.traffic(2.0) is resnet.half
    assert resnet.traffic(4.0) is resnet.full
    assert resnet.full.pointwise == pytest.approx(2 * resnet.half.pointwise, rel=0.01)

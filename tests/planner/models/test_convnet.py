"""Convolutional networks: parameters and arithmetic as torchvision counts them."""

import pytest

from planner.models.convnet import find_network, resnet


@pytest.mark.parametrize(("depth", "params"), [(50, 25_557_032), (101, 44_549_160), (152, 60_192_808)])
def test_the_parameters_are_those_of_torchvision(depth, params):
    # torchvision documentation: models resnet50, resnet101, resnet152, num_params
    assert resnet(depth).params == params


def test_resnet_50_v1_5_takes_4_09_billion_multiplications_per_image():
    # torchvision documentation: resnet50, GFLOPS 4.09 (multiply-adds)
    assert resnet(50).flop_per_image / 2 == pytest.approx(4.09e9, rel=0.001)
    assert len(resnet(50).convolutions) == 53


@pytest.mark.parametrize("name", ["ResNet-50 v1.5", "resnet50", "ResNet-50 (ImageNet)"])
def test_a_network_is_found_by_its_name(name):
    assert find_network(name) is resnet(50)


def test_an_unknown_network_is_none():
    assert find_network("VGG-16") is None

from dataclasses import replace

import pytest

from planner.errors import InputFileError
from planner.models.catalogue import find_model
from planner.models.images import catalogue
from planner.models.images.catalogue import image_model_named, load_image_models, network_of, shape_of_images
from planner.rows import Row, read_rows
from tests.planner.measured.layers.synthetic.convolutions import RESNET_50


@pytest.mark.parametrize("name", ["resnet-50", "ResNet50", "timm/resnet50.a1_in1k", "resnet50.tv_in1k", "RESNET 50"])
def test_a_model_is_found_by_the_names_that_people_and_the_hub_use(name):
    shape = image_model_named(name)

    assert shape is not None
    assert shape.name == "resnet50"


def test_a_language_model_is_no_image_model():
    assert image_model_named("llama-3.1-8b") is None
    with pytest.raises(ValueError, match="vision model"):
        network_of(find_model("bert-base"))


def test_every_model_can_be_read_and_has_work_and_memory():
    models = load_image_models()

    assert len(models) > 600
    for shape in models.values():
        network = network_of(shape)
        assert shape.params_total == pytest.approx(network.params)
        assert min(network.flop_per_image, network.half.saved, network.half.kernels, network.tensors) > 0
        assert network.half.saved < 1.5 * network.full.saved  # group norms keep casts as well


def test_a_shape_carries_the_parameters_of_its_network():
    network = replace(network_of(load_image_models()["resnet50"]), params=1_000_000.0)

    assert shape_of_images(network).params_total == 1_000_000.0


@pytest.mark.parametrize("cell", ["3 64 1 49 12544", "3 64 one 49 12544 50176 1", "3 64 1 49 -1 50176 1"])
def test_a_shape_that_is_none_is_named_with_its_line(cell):
    row = next(row for row in read_rows(catalogue.PATH) if row.text("id") == "resnet50")
    wrong = Row(file=row.file, line=row.line, cells=dict(row.cells) | {"convolutions": cell})

    with pytest.raises(InputFileError, match=rf"{row.line}: convolutions: expected shapes of 7 numbers"):
        catalogue._network(wrong)


@pytest.mark.parametrize(
    ("name", "params", "multiply_adds", "convolutions"),
    [
        ("resnet50", 25_557_032, 4.09e9, 53),
        ("resnet101", 44_549_160, 7.80e9, 104),
        ("resnet152", 60_192_808, 11.51e9, 155),
    ],
)
def test_a_resnet_has_the_parameters_and_the_arithmetic_that_torchvision_counts(
    name, params, multiply_adds, convolutions
):
    # torchvision documentation: num_params and GFLOPS (multiply-adds) of resnet50, resnet101 and resnet152
    network = network_of(load_image_models()[name])

    assert network.params == params
    assert network.flop_per_image / 2 == pytest.approx(multiply_adds, rel=0.007)
    assert sum(layer.count for layer in network.convolutions) == convolutions


def test_the_convolutions_of_resnet_50_are_those_of_its_paper():
    network = network_of(load_image_models()["resnet50"])
    listed = [(c.inputs, c.outputs, c.taps, int(c.pixels)) for c in network.convolutions for _ in range(c.count)]

    assert sorted(listed) == sorted((c.inputs, c.outputs, c.kernel**2, c.pixels) for c in RESNET_50)

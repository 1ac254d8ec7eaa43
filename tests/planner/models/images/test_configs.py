import json

import pytest

from planner.errors import InputFileError
from planner.models.huggingface import shape_from_config
from planner.models.images.catalogue import load_image_models, network_of
from planner.models.images.configs import with_classes


def network(**values: object):
    return network_of(shape_from_config(json.dumps(values), "folder/config.json"))


def test_a_timm_file_names_an_architecture_with_its_size_and_classes():
    own = network(architecture="resnet50", num_classes=10, pretrained_cfg={"input_size": [3, 160, 160]})

    assert own.image_size == 160
    assert own.params == 25_557_032 - 990 * 2049
    assert own.products[-1].n == 10


def test_a_hugging_face_vit_is_the_catalogues():
    own = network(model_type="vit", hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
                  intermediate_size=3072, patch_size=16, image_size=224)  # fmt: skip

    assert own.params == network_of(load_image_models()["vit_base_patch16_224"]).params


@pytest.mark.parametrize(("values", "params"), [
    ({"model_type": "resnet"}, 25_557_032),
    ({"model_type": "resnet", "layer_type": "basic", "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]},
     11_689_512),
    ({"model_type": "convnext"}, 28_589_128),
    ({"model_type": "vit"}, 86_567_656),
    ({"model_type": "vit", "id2label": {"0": "cat", "1": "dog"}}, 86_567_656 - 998 * 769),
])  # fmt: skip
def test_missing_keys_are_the_librarys_defaults(values, params):
    assert network(**values).params == params  # torchvision's tables of ResNet-50 and 18, ConvNeXt-T and ViT-B/16


@pytest.mark.parametrize(("values", "where", "hint"), [
    ({"architecture": "resnett50"}, "architecture: expected a model of timm", "resnet50"),
    ({"architecture": "resnet50", "pretrained_cfg": {"input_size": [3, 224, 192]}}, "input_size", "config.json"),
    ({"model_type": "vit", "image_size": [224, 196]}, "image_size", "config.json"),
    ({"model_type": "vit", "hidden_size": 770}, "hidden_size: expected a multiple", "config.json"),
    ({"model_type": "resnet", "layer_type": "wide"}, "layer_type", "config.json"),
    ({"model_type": "resnet", "depths": [3, 4]}, "depths", "config.json"),
    ({"model_type": "vit", "patch_size": 512}, "patch_size", "config.json"),
    ({"model_type": "vitt"}, "model_type", "vit"),
])  # fmt: skip
def test_what_is_wrong_is_named_with_its_key(values, where, hint):
    with pytest.raises(InputFileError, match=where) as caught:
        network(**values)
    assert hint in str(caught.value.hint)


def test_without_classes_there_is_no_output_layer():
    resnet = network_of(load_image_models()["resnet50"])

    assert with_classes(resnet, 0).products == ()
    assert with_classes(resnet, 1000) is resnet

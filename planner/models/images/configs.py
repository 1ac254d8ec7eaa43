"""Vision models from a `config.json`: timm's, which names an architecture, and Hugging Face's families.

timm writes `architecture`, `num_classes` and `pretrained_cfg` (`input_size` as channels, height, width). The
transformers library writes the dimensions of `ViTConfig`, `DeiTConfig`, `Dinov2Config`, `ResNetConfig` and
`ConvNextConfig`, whose defaults are used for missing keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from planner.errors import InputFileError
from planner.models.huggingface_json import ConfigJson
from planner.models.image_network import ImageNetwork, Product
from planner.models.images.built import CLASSES, ConvNext, ResNet, VisionTransformer
from planner.models.images.catalogue import image_model_named, load_image_models, network_of
from planner.rows import near_names

SMALLEST, LARGEST = 16, 4096
"""Smallest and largest side of an image, in pixels."""


def _size(config: ConfigJson, default: int = 224) -> int:
    """Side of the image in pixels, given in the file as one number or as a list of equal numbers."""
    value = config.values.get("image_size")
    if isinstance(value, list):
        sides = config.whole_numbers("image_size")
        size = sides[0] if sides and len(set(sides)) == 1 else 0
    else:
        size = config.opt_count("image_size") or default
    if not SMALLEST <= size <= LARGEST:
        raise config.fail("image_size", f"pixels of a side of a square image, {SMALLEST} to {LARGEST}")
    return size


def _classes(config: ConfigJson) -> int:
    """Number of classes of the output layer: the number of labels if given, else the stated number."""
    labels = config.inner("id2label").values
    return len(labels) or config.opt_count("num_labels", "num_classes") or CLASSES


def _transformer(config: ConfigJson, extra_tokens: int = 1) -> ImageNetwork:
    hidden, heads = config.opt_count("hidden_size") or 768, config.opt_count("num_attention_heads") or 12
    if hidden % heads:
        raise config.fail("hidden_size", f"a multiple of num_attention_heads ({heads})")
    size, patch = _size(config), config.opt_count("patch_size") or 16
    if size < patch:
        raise config.fail("patch_size", f"at most image_size ({size})")
    ratio = config.opt_count("mlp_ratio")
    return VisionTransformer(
        layers=config.opt_count("num_hidden_layers") or 12, hidden=hidden, heads=heads,
        ffn_hidden=ratio * hidden if ratio else config.opt_count("intermediate_size") or 3072, patch=patch,
        image_size=size, classes=_classes(config), extra_tokens=extra_tokens,
    ).network("config")  # fmt: skip


def _distilled(config: ConfigJson) -> ImageNetwork:
    return _transformer(config, extra_tokens=2)


def _stages(config: ConfigJson, widths: tuple[int, ...], depths: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Output channels (`widths`) and number of blocks (`depths`) of each stage."""
    given = {
        "widths": config.whole_numbers("hidden_sizes") or widths,
        "depths": config.whole_numbers("depths") or depths,
    }
    if len(given["widths"]) != len(given["depths"]) or min((*given["depths"], *given["widths"])) < 1:
        raise config.fail("depths", f"{len(given['widths'])} whole numbers from 1 on, one for each of hidden_sizes")
    return given


def _resnet(config: ConfigJson) -> ImageNetwork:
    kind = config.text("layer_type") or "bottleneck"
    if kind not in ("bottleneck", "basic"):
        raise config.fail("layer_type", "`bottleneck` or `basic`")
    stages = _stages(config, (256, 512, 1024, 2048), (3, 4, 6, 3))
    return ResNet(
        **stages, stem=config.opt_count("embedding_size") or 64, bottleneck=kind == "bottleneck",
        image_size=_size(config), classes=_classes(config),
    ).network("config")  # fmt: skip


def _convnext(config: ConfigJson) -> ImageNetwork:
    stages = _stages(config, (96, 192, 384, 768), (3, 3, 9, 3))
    patch = config.opt_count("patch_size") or 4
    return ConvNext(**stages, patch=patch, image_size=_size(config), classes=_classes(config)).network("config")


FAMILIES: dict[str, Callable[[ConfigJson], ImageNetwork]] = {
    "vit": _transformer, "deit": _distilled, "dinov2": _transformer, "resnet": _resnet, "convnext": _convnext,
}  # fmt: skip
"""Functions that build a network, by the `model_type` of the file."""


def _of_timm(config: ConfigJson) -> ImageNetwork:
    """The architecture that a timm file names, at its image size and with its classes."""
    architecture = config.text("architecture") or ""
    shape = image_model_named(architecture)
    if shape is None:
        near = near_names(architecture, load_image_models())
        offer = f"closest are {', '.join(f'`{name}`' for name in near)}; " if near else ""
        raise InputFileError(
            f"{config.file}: architecture: expected a model of timm, found `{architecture}`",
            hint=f"{offer}`mpplan models --images` lists them all",
        )
    network, trained = network_of(shape), config.inner("pretrained_cfg")
    sides = trained.whole_numbers("input_size")
    if sides and (len(sides) != 3 or sides[1] != sides[2] or not SMALLEST <= sides[1] <= LARGEST):
        raise trained.fail("input_size", "channels, height and width of a square image")
    classes = config.opt_count("num_classes", low=0)
    sized = network.at_size(sides[1]) if sides else network
    return sized if classes is None else with_classes(sized, classes)


def with_classes(network: ImageNetwork, classes: int) -> ImageNetwork:
    """The network with an output layer for `classes` classes instead of ImageNet's; 0 removes the layer."""
    head = next((product for product in reversed(network.products) if product.n == CLASSES), None)
    if head is None or classes == CLASSES:
        return network
    others = tuple(product for product in network.products if product is not head)
    new = (Product(m=head.m, n=classes, k=head.k, count=head.count),) if classes else ()
    params = network.params + (classes - CLASSES) * (head.k + 1.0) * head.count
    return replace(network, products=(*others, *new), params=params)


def image_network_of_config(config: ConfigJson) -> tuple[ImageNetwork, str] | None:
    """The network that a file describes, and the name of its family; None if it is not a vision model.

    Raises:
        InputFileError: a key is missing or invalid, or the timm architecture is unknown.
    """
    if config.values.get("model_type") is None and config.values.get("architecture") is not None:
        return _of_timm(config), str(config.text("architecture"))
    family = config.values.get("model_type")
    build = FAMILIES.get(family) if isinstance(family, str) else None
    return None if build is None or family is None else (build(config), family)

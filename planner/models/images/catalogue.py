"""The catalogue of vision models: `catalog/image_models.csv`, whose rows `make imagemodels` writes from timm.

A cell of shapes holds shapes separated by `;`. Each shape is a list of numbers separated by blanks, the last of which
is its count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from planner.evidence import Evidence, EvidenceKind
from planner.models.image_network import (
    Attention,
    BatchedProduct,
    Convolution,
    ImageNetwork,
    Product,
    Traffic,
)
from planner.models.shape import ModelShape
from planner.rows import CATALOG, Catalogue, Row

PATH = CATALOG / "image_models.csv"

TRAFFIC = tuple(field.name for field in fields(Traffic))
"""Names of the traffic columns; each exists twice, with `_16` for autocast and with `_32` for 32-bit activations."""

LARGEST = 1e13
"""Largest plausible count of a model."""


def _shapes(row: Row, key: str, numbers: int) -> Iterator[list[float]]:
    """The shapes in a cell, as lists of numbers."""
    expected = f"shapes of {numbers} numbers from 0 on, separated by `;`"
    for shape in filter(None, (part.strip() for part in row.cell(key).split(";"))):
        try:
            values = [float(word) for word in shape.split()]
        except ValueError:
            raise row.fail(key, expected) from None
        if len(values) != numbers or not all(0 <= value < LARGEST for value in values):
            raise row.fail(key, expected)
        yield values


def _convolutions(row: Row) -> Iterator[Convolution]:
    first = True
    for inputs, outputs, groups, taps, pixels, input_pixels, count in _shapes(row, "convolutions", 7):
        yield Convolution(
            inputs=int(inputs), outputs=int(outputs), groups=int(groups), taps=int(taps), pixels=pixels,
            input_pixels=input_pixels, count=int(count), reads_image=first,
        )  # fmt: skip
        first = False


def _traffic(row: Row, ending: str) -> Traffic:
    return Traffic(**{name: row.number(f"{name}_{ending}", high=LARGEST) for name in TRAFFIC})


def _network(row: Row) -> ImageNetwork:
    return ImageNetwork(
        name=row.text("id"),
        image_size=row.integer("image_size", low=8, high=10_000),
        params=row.number("params", low=1, high=LARGEST),
        tensors=row.integer("tensors", low=1, high=10**6),
        convolutions=tuple(_convolutions(row)),
        products=tuple(
            Product(m=m, n=int(n), k=int(k), count=int(count)) for m, n, k, count in _shapes(row, "products", 4)
        ),
        batched=tuple(
            BatchedProduct(batch=batch, m=m, n=n, k=k, count=int(count))
            for batch, m, n, k, count in _shapes(row, "batched", 5)
        ),
        attention=tuple(
            Attention(heads=heads, queries=queries, keys=keys, head_dim=int(head_dim), count=int(count))
            for heads, queries, keys, head_dim, count in _shapes(row, "attention", 5)
        ),
        half=_traffic(row, "16"),
        full=_traffic(row, "32"),
    )


def _shape(row: Row) -> ModelShape:
    evidence = Evidence(
        id=f"model:{row.text('id')}",
        kind=EvidenceKind.PUBLISHED,
        what=f"operations of {row.text('id')} by shape",
        source=row.text("source"),
        date=row.text("date"),
    )
    return shape_of_images(_network(row), evidence)


def shape_of_images(network: ImageNetwork, evidence: Evidence | None = None) -> ModelShape:
    """A shape that holds a network and its parameter count, but no transformer layers."""
    empty = ModelShape(
        name=network.name, kind="image", layers=1, hidden=1, heads=1, kv_heads=1, head_dim=0, ffn_hidden=0,
        gated_mlp=False, vocab=0, context=1, tied_embeddings=True, network=network, evidence=evidence,
    )  # fmt: skip
    return replace(empty, vocab=round(network.params - empty.params_total))


IMAGE_MODELS = Catalogue(PATH, _shape, what="model", listing="mpplan models --images")


def load_image_models() -> dict[str, ModelShape]:
    """All models of the catalogue by id.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return IMAGE_MODELS.by_id


def image_model_named(name: str) -> ModelShape | None:
    """Find a model by name, ignoring case, punctuation, a leading owner and a trailing tag.

    For example, `timm/resnet50.a1_in1k`, a model's name on the Hub, is `resnet50`.
    """
    plain = name.rsplit("/", 1)[-1]
    return IMAGE_MODELS.get(plain) or IMAGE_MODELS.get(plain.split(".", 1)[0])


def network_of(shape: ModelShape) -> ImageNetwork:
    """The network of a shape of kind `image`.

    Raises:
        ValueError: the shape has no network (a programming error).
    """
    if shape.network is None:
        raise ValueError(f"{shape.name} is not a vision model")
    return shape.network

"""Tasks on images: the handwritten digits of scikit-learn, by a small CNN and a small ViT."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from planner.errors import CannotMeasureError
from probes.numerics.tasks.interface import LARGE, SMALL, Job, Task

CLASSES = 10
HELD_OUT = 297
"""Held-out images of 1,797: the last ones, which were written by other people (sklearn.datasets.load_digits)."""
BATCH = {SMALL: 64, LARGE: 512}
RATE = 2e-3
PACKAGE = "sklearn"


@cache
def _images() -> tuple[Any, Any]:
    if find_spec(PACKAGE) is None:
        raise CannotMeasureError(
            "scikit-learn is not installed, and the tasks on digits need it", hint="pip install 'mpplan[numerics]'"
        )
    import torch

    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise CannotMeasureError(
            f"scikit-learn is installed but does not work: {error}", hint="pip install --force-reinstall scikit-learn"
        ) from error
    digits = load_digits()
    images = torch.from_numpy(digits.images).float().unsqueeze(1) / 16.0
    return images, torch.from_numpy(digits.target).long()


def _job(seed: int, size: str, device: Any, model: Any) -> Job:
    import torch

    images, labels = (tensor.to(device) for tensor in _images())
    train_count = len(images) - HELD_OUT
    network = model.to(device)

    def batch(step: int) -> tuple[Any, Any]:
        generator = torch.Generator().manual_seed(seed * 10**7 + step)
        rows = torch.randint(0, train_count, (BATCH[size],), generator=generator).to(device)
        return images[rows], labels[rows]

    def loss(module: Any, pair: Any) -> Any:
        return torch.nn.functional.cross_entropy(module(pair[0]).float(), pair[1])

    def held_out(module: Any) -> dict[str, float]:
        with torch.no_grad():
            logits = module(images[train_count:]).float()
            mean = torch.nn.functional.cross_entropy(logits, labels[train_count:])
            return {"loss": float(mean), "accuracy": float((logits.argmax(-1) == labels[train_count:]).float().mean())}

    return Job(
        model=network,
        batch=batch,
        loss=loss,
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.01),
        held_out=held_out,
    )


def _convolutional(seed: int, size: str, device: Any) -> Job:
    import torch
    from torch import nn

    torch.manual_seed(seed)
    wide = 32 if size == SMALL else 128
    model = nn.Sequential(
        nn.Conv2d(1, wide, 3, padding=1), nn.GroupNorm(4, wide), nn.ReLU(),
        nn.Conv2d(wide, 2 * wide, 3, stride=2, padding=1), nn.GroupNorm(4, 2 * wide), nn.ReLU(),
        nn.Conv2d(2 * wide, 2 * wide, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(2 * wide, CLASSES),
    )  # fmt: skip
    return _job(seed, size, device, model)


def _transformer(seed: int, size: str, device: Any) -> Job:
    import torch

    from probes.numerics.tasks.transformers import ImageTransformer, Shape

    torch.manual_seed(seed)
    wide, layers = (64, 2) if size == SMALL else (256, 6)
    shape = Shape(width=wide, layers=layers, heads=4, context=16, batch=BATCH[size])
    return _job(seed, size, device, ImageTransformer(shape, 2, CLASSES))


def _described() -> dict[str, object]:
    from importlib.metadata import version

    return {"images": "handwritten digits, 8 x 8", "source": f"scikit-learn {version('scikit-learn')}", "count": 1797}


DIGITS_CNN = Task(
    id="digits-cnn",
    what="a CNN on handwritten digits of 8 x 8 pixels",
    metrics=("loss", "accuracy"),
    make=_convolutional,
    steps={SMALL: 300, LARGE: 1500},
    needs=PACKAGE,
    data=_described,
)
DIGITS_VIT = Task(
    id="digits-vit",
    what="a ViT on handwritten digits of 8 x 8 pixels",
    metrics=("loss", "accuracy"),
    make=_transformer,
    steps={SMALL: 300, LARGE: 1500},
    needs=PACKAGE,
    data=_described,
)

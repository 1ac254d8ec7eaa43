"""Write `planner/catalog/image_models.csv`: the operations of timm's models by shape (`make imagemodels`).

Needs torch and timm (`pip install torch timm`) in a separate environment. The models are those whose training steps
were timed (`benchmarks/images/steps.csv`), and those that are trained most today.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from planner.models.images.catalogue import PATH, TRAFFIC
from planner.rows import read_rows
from tools.house import ROOT

STEPS = ROOT / "benchmarks" / "images" / "steps.csv"

MORE = (
    "vit_huge_patch14_224", "vit_giant_patch14_224", "vit_base_patch14_dinov2", "vit_large_patch14_dinov2",
    "vit_so400m_patch14_siglip_224", "convnextv2_tiny", "convnextv2_base", "convnextv2_large", "convnext_xxlarge",
    "eva02_base_patch14_224", "eva02_large_patch14_224", "mobilenetv4_conv_medium", "fastvit_sa12",
)  # fmt: skip
"""Models that were not timed."""

ALIASES = {
    "vit_tiny_patch16_224": "vit-ti-16", "vit_small_patch16_224": "vit-s-16", "vit_base_patch16_224": "vit-b-16",
    "vit_base_patch32_224": "vit-b-32", "vit_large_patch16_224": "vit-l-16", "vit_large_patch32_224": "vit-l-32",
    "vit_huge_patch14_224": "vit-h-14", "vit_giant_patch14_224": "vit-g-14", "deit_tiny_patch16_224": "deit-ti",
    "deit_small_patch16_224": "deit-s", "deit_base_patch16_224": "deit-b", "convnext_tiny": "convnext-t",
    "convnext_small": "convnext-s", "convnext_base": "convnext-b", "convnext_large": "convnext-l",
    "convnext_xlarge": "convnext-xl", "swin_tiny_patch4_window7_224": "swin-t",
    "swin_small_patch4_window7_224": "swin-s",
    "swin_base_patch4_window7_224": "swin-b", "swin_large_patch4_window7_224": "swin-l",
    "efficientnetv2_rw_s": "efficientnetv2-s", "mobilenetv2_100": "mobilenet-v2; mobilenetv2",
    "mobilenetv3_large_100": "mobilenet-v3; mobilenetv3", "wide_resnet50_2": "wide-resnet-50",
    "resnext50_32x4d": "resnext-50", "resnext101_32x8d": "resnext-101",
}  # fmt: skip
"""Common names from papers and practice, by id of timm; several are separated by semicolons."""

SHAPES = ("convolutions", "products", "batched", "attention")
COLUMNS = (
    "id", "aliases", "image_size", "params", "tensors",
    *(f"{name}_{bits}" for bits in (16, 32) for name in TRAFFIC), *SHAPES, "source", "date",
)  # fmt: skip
DIGITS = 6
"""Significant digits of a number in the file."""


def main(names: Iterable[str]) -> int:
    """Trace all models, or only the named ones, and write the file; report and leave out those that fail."""
    from tools.images.trace import trace

    rows = {row.text("id"): dict(row.cells) for row in read_rows(PATH)} if PATH.exists() else {}
    timed = {row.text("architecture") for row in read_rows(STEPS)}
    wanted = list(names) or sorted(timed | set(MORE))
    source = (
        f"timm {version('timm')} on PyTorch {version('torch').partition('+')[0]}, meta device (tools/images/trace.py)"
    )
    for number, name in enumerate(wanted, start=1):
        try:
            row = trace(name)
        except (RuntimeError, ValueError, TypeError, KeyError, NotImplementedError) as error:
            print(f"{name}: {str(error).splitlines()[0][:100]}", file=sys.stderr)  # noqa: T201
            rows.pop(name, None)
            continue
        rows[name] = written(row) | {
            "aliases": ALIASES.get(name, ""),
            "source": source,
            "date": datetime.now(UTC).date().isoformat(),
        }
        print(f"{number} of {len(wanted)}: {name}", file=sys.stderr)  # noqa: T201
    with PATH.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in sorted(rows))
    return 0


def written(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the cells of a traced model, with short numbers and shapes listed one after the other."""
    return {name: packed(value) if isinstance(value, Counter) else _number(value) for name, value in row.items()}


def packed(shapes: Counter[tuple[float, ...]]) -> str:
    """Return shapes with their counts, in the order of the model."""
    return "; ".join(" ".join(_number(value) for value in (*shape, count)) for shape, count in shapes.items())


def _number(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if float(value).is_integer() else f"{float(value):.{DIGITS}g}".replace("e+0", "e")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

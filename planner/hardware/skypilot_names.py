"""SkyPilot's names of GPUs: rows of `catalog/skypilot_gpus.csv`."""

from __future__ import annotations

from functools import cache

from planner.errors import UsageError
from planner.rows import CATALOG, read_rows


@cache
def skypilot_names() -> dict[str, str]:
    """SkyPilot's accelerator names by catalogue id of the GPU.

    Raises:
        InputFileError: a row is wrong.
    """
    return {row.text("gpu"): row.text("accelerator") for row in read_rows(CATALOG / "skypilot_gpus.csv")}


def skypilot_name(gpu: str) -> str:
    """SkyPilot's name for a GPU of the catalogue.

    Raises:
        UsageError: no name is known for the GPU.
    """
    name = skypilot_names().get(gpu)
    if name is None:
        names = ", ".join(skypilot_names())
        raise UsageError(f"the SkyPilot name of {gpu} is not known", hint=f"use one of {names}")
    return name

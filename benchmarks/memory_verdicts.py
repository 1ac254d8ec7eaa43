"""The quality of the probability of fitting: its Brier score on a sweep of 1,641 layouts, many of them out of memory.

The sweep (`planner/catalog/sweep_runs.csv`) is nanotron's, of two models on 8 to 512 H100. Not every crash is due to
memory, so two kinds of points are scored: those that finished, and the crashes whose peak commit 896cacd predicted
above half of the GPU's memory. This set, with the peak predicted then, is `memory_verdicts.csv`, so that every later
version is scored on the same points. A yes-or-no verdict is a probability of 1 or 0.

Run it from the repository's root: `python -m benchmarks.memory_verdicts`.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.hardware.catalogue import find_gpu
from planner.rows import CATALOG
from planner.units import GIB
from planner.validation.predict import Prediction
from planner.validation.runs import OUT_OF_MEMORY
from planner.validation.validate import predict_rows

SWEEP = CATALOG / "sweep_runs.csv"
POINTS = Path(__file__).with_suffix(".csv")
"""The scored points, with the peak predicted by commit 896cacd."""
LIKELY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One point of the sweep: its outcome and its prediction."""

    cells: dict[str, str]
    finished: bool
    probability: float
    """Predicted probability, 0..1, that it fits."""
    fitted_before: bool
    """Whether commit 896cacd predicted that it fits."""


def read_verdicts() -> list[Verdict]:
    """Return every scored point, predicted by the current code."""
    with POINTS.open(encoding="utf-8", newline="") as lines:
        before = {row["id"]: float(row["predicted_gib"]) for row in csv.DictReader(lines)}
    with SWEEP.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["id"] in before]
    verdicts = []
    for row, (_, prediction) in zip(rows, predict_rows(rows), strict=True):
        assert isinstance(prediction, Prediction), prediction
        verdicts.append(
            Verdict(
                cells=row,
                finished=row["value"] != OUT_OF_MEMORY,
                probability=prediction.fits_probability,
                fitted_before=before[row["id"]] * GIB <= find_gpu(row["gpu"]).memory_bytes,
            )
        )
    return verdicts


def brier(verdicts: Iterable[Verdict], *, before: bool = False) -> float:
    """Mean squared difference of probability and outcome (Brier 1950, Monthly Weather Review 78); 0 is perfect."""
    terms = [((v.fitted_before if before else v.probability) - v.finished) ** 2 for v in verdicts]
    return sum(terms) / len(terms)


def called_unlikely(verdicts: Iterable[Verdict]) -> float:
    """Return the share of the finished points that were called unlikely to fit."""
    finished = [v.probability for v in verdicts if v.finished]
    return sum(p < LIKELY for p in finished) / len(finished) if finished else 0.0


GROUPS: dict[str, Callable[[dict[str, str]], str]] = {
    "all": lambda row: "points",
    "model": lambda row: row["model"],
    "nodes": lambda row: str(int(row["n_gpus"]) // int(row["gpus_per_node"])),
    "ZeRO stage": lambda row: row["zero_or_fsdp_stage"],
    "pp": lambda row: row["pp"],
    "tp": lambda row: row["tp"],
}
"""Groupings of the scores."""


def table(verdicts: Sequence[Verdict]) -> list[str]:
    """Return one line for each value of each grouping."""
    lines = [f"{'':24}{'points':>7}{'crashed':>8}{'Brier':>8}{'yes/no before':>15}{'finished, called unlikely':>27}"]
    for name, key in GROUPS.items():
        members: dict[str, list[Verdict]] = defaultdict(list)
        for verdict in verdicts:
            members[key(verdict.cells)].append(verdict)
        for value in sorted(members, key=lambda value: (len(value), value)):
            group = members[value]
            crashed = sum(not v.finished for v in group)
            lines.append(
                f"{name + ' ' + value:24}{len(group):7}{crashed:8}{brier(group):8.4f}{brier(group, before=True):15.4f}"
                f"{called_unlikely(group):27.3f}"
            )
    return lines


if __name__ == "__main__":
    sys.stdout.write("\n".join(table(read_verdicts())) + "\n")

"""Content of a document of `mpplan numerics --json`: findings as in a record, and the data that a report draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from planner.answer.training_shown import (
    FormatShare,
    LayerShown,
    Magnitudes,
    PairShown,
    ScalePath,
    TrainingShown,
)
from planner.measured.training import PrecisionFinding
from planner.records.figures import TrainingNumerics
from planner.safety.points import policy_points, precision_of, schedule_points
from planner.training.number_formats import load_number_formats

NUMERICS_SCHEMA = "mpplan.numerics/1"

Doc = Mapping[str, Any]

REAL = "real"
OWN = "own"
"""Name for a task of the user's own, whose actual name is private."""
TENSORS = ("weights", "activations", "gradients")
"""Tensors whose exponents are shown."""
MOST_LAYERS, MOST_LAYERS_KEPT = 5, 8
"""Most rows of layers shown: of the most sensitive ones, and in total with further rows kept in high precision."""
SCALE = 100
"""Count to which the most frequent exponent is scaled: only the shape of a histogram is drawn, not its total."""
FP64 = 1100
"""Bound of the magnitude of exponents: no number in FP64 has a larger one."""
MOST_STEPS = 60
"""Most changes of the loss scale that are shown."""


def findings_of(document: Doc, source: str) -> tuple[PrecisionFinding, ...]:
    """Findings of a document: the pairs of precisions and the loss scaling of every task.

    Args:
        document: the document, checked against its schema.
        source: its name, for readers.
    """
    return (*_pairs(document, source), *_scalings(document, source))


def _pairs(document: Doc, source: str) -> Iterator[PrecisionFinding]:
    for part in document["parity"]:
        for pair in part["pairs"]:
            if pair["pairs"] + pair["diverged"] == 0:
                continue
            figures = TrainingNumerics(
                task=_task(part["task"]), instrument="parity", baseline=pair["baseline"],
                emulated=pair["mode"] != REAL, steps=part["steps"], seeds=pair["pairs"] + pair["diverged"],
                metric=pair["metric"],
                difference_low=pair["difference_low"], difference_mid=pair["difference_mid"],
                difference_high=pair["difference_high"], margin=pair["margin"], verdict=pair["verdict"],
                seeds_needed=pair["seeds_needed"], skipped_step_ratio=pair["skipped_step_ratio"],
            )  # fmt: skip
            finding = _finding(document, source, f"{_task(part['task'])}/parity", pair["precision"], figures)
            yield replace(finding, diverged=pair["diverged"])


def _scalings(document: Doc, source: str) -> Iterator[PrecisionFinding]:
    for part in document["loss_scaling"]:
        for run in part["dynamic"]:
            if run["name"] != "usual":
                continue
            figures = TrainingNumerics(
                task=_task(part["task"]), instrument="loss-scaling", emulated=part["mode"] != REAL,
                steps=run["steps"], skipped_step_ratio=run["skipped_step_ratio"],
                steady_skipped_step_ratio=run["steady_skipped_step_ratio"],
            )  # fmt: skip
            finding = _finding(document, source, f"{_task(part['task'])}/loss-scaling", part["precision"], figures)
            settled, skips = _settled(run)
            yield replace(finding, settled_steps=settled, settled_skips=skips)


def _settled(run: Doc) -> tuple[int, int]:
    """Number of steps after the first one that was taken, and number of these that an overflow undid."""
    skipped = sorted({step for step in run["overflow_steps"] if 0 <= step < run["steps"]})
    first = next((number for number, step in enumerate(skipped) if step != number), len(skipped))
    return max(run["steps"] - first - 1, 0), len(skipped) - first


def _finding(document: Doc, source: str, point: str, recipe: str, figures: TrainingNumerics) -> PrecisionFinding:
    return PrecisionFinding(
        precision=precision_of(recipe),
        recipe=recipe,
        device_kind=document["device"],
        device_name=document["device_name"],
        probe_id=f"numerics/{point}/{recipe}",
        figures=figures,
        source=source,
    )


def _task(name: str) -> str:
    """Name of a built-in task; a task of the user's own is called `OWN`."""
    return OWN if ":" in name else name


def tasks_shown(document: Doc, source: str) -> tuple[TrainingShown, ...]:
    """Summaries of all tasks of a document, in its order.

    Args:
        document: the document, checked against its schema.
        source: its name, for readers.
    """
    summaries = (shown_of(document, source, place) for place in range(len(document["tasks"])))
    return tuple(shown for shown in summaries if shown is not None)


def shown_of(document: Doc, source: str, place: int = 0) -> TrainingShown | None:
    """Summary of one task of a document; None if it has no task at that index.

    Args:
        document: the document, checked against its schema.
        source: its name, for readers.
        place: index of the task in the document, from 0.
    """
    if place >= len(document["tasks"]):
        return None
    task = document["tasks"][place]

    def part(section: str) -> Doc:
        section_of_task: Doc = next((row for row in document[section] if row["task"] == task["id"]), {})
        return section_of_task

    scaling, lowered, policy = part("loss_scaling"), part("sensitivity"), part("policy")
    kept, high = frozenset(policy.get("keep_high", ())), _high(part("parity"))
    usual, stress = _run_of(scaling, "usual"), _run_of(scaling, "short")
    drawn = usual or stress
    return TrainingShown(
        source=source,
        device=document["device_name"],
        device_kind=document["device"],
        task=_task(task["id"]),
        params=task["parameters"],
        complete=document["complete"],
        magnitudes=tuple(_magnitudes(part("histograms"))),
        scale_path=None if drawn is None else _path(drawn),
        scale_stress=None if usual is None or stress is None else _path(stress),
        scale_precision=None if drawn is None else scaling.get("precision"),
        pairs=tuple(chain.from_iterable(_pairs_shown(row) for row in _own_first(document["parity"], task["id"]))),
        lowered_to=lowered.get("precision"),
        lowered_emulated=lowered["mode"] != REAL if lowered else None,
        layers=_layers(lowered, kept),
        mixtures=(*policy_points(policy, high), *schedule_points(part("schedule"), high)),
    )


def _run_of(scaling: Doc, name: str) -> Doc | None:
    """Run with dynamic loss scaling of this name; None if there is none, or it has no steps."""
    return next((run for run in scaling.get("dynamic", ()) if run["name"] == name and run["steps"]), None)


def _path(run: Doc) -> ScalePath:
    return ScalePath(
        name=run["name"],
        steps=run["steps"],
        skipped=run["skipped"],
        growth_interval=run["growth_interval"],
        path=tuple((float(point[0]), float(point[1])) for point in run["path"][:MOST_STEPS] if len(point) == 2),
    )


def _magnitudes(histograms: Doc) -> Iterator[Magnitudes]:
    """Histogram of exponents for each kind of tensor, over all layers."""
    for tensor in TENSORS:
        rows = [layer["tensors"][tensor] for layer in histograms.get("layers", ()) if tensor in layer["tensors"]]
        rows = [row for row in rows if row["counts"] and _of_a_float(row)]
        if not rows:
            continue
        least = min(row["least_exponent"] for row in rows)
        most = max(row["least_exponent"] + len(row["counts"]) for row in rows)
        counts = [0] * (most - least)
        for row in rows:
            for place, count in enumerate(row["counts"], start=row["least_exponent"] - least):
                counts[place] += count
        share = SCALE / max(counts) if any(counts) else 0.0
        yield Magnitudes(
            tensor=tensor, least_exponent=least, counts=tuple(round(share * count) for count in counts),
            formats=tuple(_formats(rows)),
        )  # fmt: skip


def _of_a_float(row: Doc) -> bool:
    """Whether all exponents are possible in FP64; a document may come from anybody."""
    least = row["least_exponent"]
    return least is not None and least >= -FP64 and least + len(row["counts"]) <= FP64


def _formats(rows: list[Any]) -> Iterator[FormatShare]:
    """Effect of each number format on the values of all layers together, weighted by each layer's non-zero values."""
    for name in rows[0]["formats"]:
        with_format = [row for row in rows if name in row["formats"]]
        number_format = load_number_formats().get(name)
        if number_format is None:
            continue
        flushed, saturated = (_share(with_format, name, key) for key in ("flushed_ratio", "saturated_ratio"))
        scaled = [row for row in with_format if row["formats"][name].get("flushed_at_best_ratio") is not None]
        yield FormatShare(
            format=name, label=number_format.label,
            least_log2=number_format.least_log2, most_log2=round(number_format.most_log2, 2),
            flushed_ratio=flushed, saturated_ratio=saturated,
            flushed_scaled_ratio=_share(scaled, name, "flushed_at_best_ratio") if scaled else None,
        )  # fmt: skip


def _share(rows: Sequence[Doc], name: str, key: str) -> float:
    """A share over the values of several layers together, without zeros."""
    nonzero = [row["values"] * (1.0 - row["zeros_ratio"]) for row in rows]
    share = sum(row["formats"][name][key] * values for row, values in zip(rows, nonzero, strict=True))
    return float(min(share / (sum(nonzero) or 1), 1.0))


def _own_first(parts: Sequence[Doc], task: str) -> list[Doc]:
    return sorted(parts, key=lambda row: row["task"] != task)


def _pairs_shown(parity: Doc) -> Iterator[PairShown]:
    for pair in parity["pairs"]:
        if pair["pairs"] + pair["diverged"] == 0:
            continue
        low, mid, high = (pair[f"difference_{end}"] for end in ("low", "mid", "high"))
        has_interval = low is not None and mid is not None and high is not None and low <= mid <= high
        yield PairShown(
            precision=pair["precision"], baseline=pair["baseline"], metric=pair["metric"], verdict=pair["verdict"],
            low=low if has_interval else None, mid=mid if has_interval else None, high=high if has_interval else None,
            margin=pair["margin"], pairs=pair["pairs"],
            emulated=pair["mode"] != REAL, task=_task(parity["task"]), steps=parity["steps"], diverged=pair["diverged"],
        )  # fmt: skip


def _layers(lowered: Doc, kept: frozenset[str]) -> tuple[LayerShown, ...]:
    """The first rows of layers in the document's order, and further rows that the policy keeps in high precision."""
    rows = [row for row in lowered.get("layers", ()) if row["layers"]]
    shown = [row for place, row in enumerate(rows) if place < MOST_LAYERS or not kept.isdisjoint(row["layers"])]
    return tuple(
        LayerShown(
            name=row["layers"][0], layers=len(row["layers"]), loss_change=row["loss_change"],
            gradient_error_ratio=row["gradient_error_ratio"], kept_high=not kept.isdisjoint(row["layers"]),
        )
        for row in shown[:MOST_LAYERS_KEPT]
    )  # fmt: skip


def _high(parity: Doc) -> str:
    """Higher precision of a plan: BF16 if the same task found it equivalent, otherwise the baseline."""
    pairs = parity.get("pairs", ())
    bf16_equivalent = any(pair["precision"] == "bf16" and pair["verdict"] == "equivalent" for pair in pairs)
    return "bf16" if bf16_equivalent else str(parity.get("baseline", "fp32"))

"""From a document of `mpplan numerics --json`: its findings as a record has them, and what a report draws of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.answer.training_shown import (
    FormatShare,
    LayerShown,
    Magnitudes,
    MixturePoint,
    PairShown,
    ScalePath,
    TrainingShown,
)
from planner.measured.training import PrecisionFinding
from planner.records.figures import TrainingNumerics
from planner.training.number_formats import load_number_formats
from planner.training.policies import load_policies

NUMERICS_SCHEMA = "mpplan.numerics/1"

Doc = Mapping[str, Any]

EMULATED = "emulated"
OWN = "own"
"""What a task of the user's own is called, whose name is theirs."""
TENSORS = ("weights", "activations", "gradients")
"""Tensors whose exponents are shown."""
SCHEDULES = {"all high": "all_high", "all low": "all_low", "high first": "high_first", "high last": "high_last"}
MOST_LAYERS = 5
"""Layers that are shown, the most sensitive ones."""
SCALE = 100
"""What the most frequent exponent counts as: the shape of a histogram is drawn, not how many values there were."""
FP64 = 1100
"""No exponent of a number that a computer holds lies further from 0."""
MOST_STEPS = 60
"""Changes of the scale that are shown."""


def findings_of(document: Doc, source: str) -> tuple[PrecisionFinding, ...]:
    """The pairs and the loss scaling of every task.

    Args:
        document: checked against its schema.
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
                emulated=pair["mode"] == EMULATED, steps=part["steps"], seeds=part["seeds"], metric=pair["metric"],
                difference_low=pair["difference_low"], difference_mid=pair["difference_mid"],
                difference_high=pair["difference_high"], margin=pair["margin"], verdict=pair["verdict"],
                seeds_needed=pair["seeds_needed"], skipped_step_ratio=pair["skipped_step_ratio"],
            )  # fmt: skip
            yield _finding(document, source, f"{_task(part['task'])}/parity", pair["precision"], figures)


def _scalings(document: Doc, source: str) -> Iterator[PrecisionFinding]:
    for part in document["loss_scaling"]:
        for run in part["dynamic"]:
            if run["name"] != "usual":
                continue
            figures = TrainingNumerics(
                task=_task(part["task"]), instrument="loss-scaling", emulated=part["mode"] == EMULATED,
                steps=run["steps"], skipped_step_ratio=run["skipped_step_ratio"],
                steady_skipped_step_ratio=run["steady_skipped_step_ratio"],
            )  # fmt: skip
            yield _finding(document, source, f"{_task(part['task'])}/loss-scaling", part["precision"], figures)


def _finding(document: Doc, source: str, point: str, recipe: str, figures: TrainingNumerics) -> PrecisionFinding:
    policy = load_policies().get(recipe)
    return PrecisionFinding(
        precision=recipe if policy is None else policy.precision,
        recipe=recipe,
        device_kind=document["device"],
        device_name=document["device_name"],
        probe_id=f"numerics/{point}/{recipe}",
        figures=figures,
        source=source,
    )


def _task(name: str) -> str:
    """A built-in task by its name; the user's own without theirs."""
    return OWN if ":" in name else name


def shown_of(document: Doc, source: str) -> TrainingShown | None:
    """The first task of a document, in short; None where it has none.

    Args:
        document: checked against its schema.
        source: its name, for readers.
    """
    if not document["tasks"]:
        return None
    task = document["tasks"][0]

    def part(section: str) -> Doc:
        mine: Doc = next((row for row in document[section] if row["task"] == task["id"]), {})
        return mine

    scaling, lowered, policy = part("loss_scaling"), part("sensitivity"), part("policy")
    kept = frozenset(policy.get("keep_high", ()))
    run = _most_telling(scaling)
    return TrainingShown(
        source=source,
        device=document["device_name"],
        device_kind=document["device"],
        task=_task(task["id"]),
        params=task["parameters"],
        complete=document["complete"],
        magnitudes=tuple(_magnitudes(part("histograms"))),
        scale_path=None if run is None else _path(run),
        scale_precision=scaling.get("precision") if run is not None else None,
        pairs=tuple(_pairs_shown(part("parity"))),
        lowered_to=lowered.get("precision"),
        lowered_emulated=lowered["mode"] == EMULATED if lowered else None,
        layers=tuple(_layers(lowered, kept))[:MOST_LAYERS],
        mixtures=tuple(_mixtures(policy, part("schedule"), _high(part("parity")))),
    )


def _most_telling(scaling: Doc) -> Doc | None:
    """The run of a dynamic scale with the most overflows; None where none was run."""
    runs = [run for run in scaling.get("dynamic", ()) if run["steps"]]
    return max(runs, key=lambda run: (run["skipped"], run["name"] == "usual"), default=None)


def _path(run: Doc) -> ScalePath:
    return ScalePath(
        name=run["name"],
        steps=run["steps"],
        skipped=run["skipped"],
        growth_interval=run["growth_interval"],
        path=tuple((float(point[0]), float(point[1])) for point in run["path"][:MOST_STEPS] if len(point) == 2),
    )


def _magnitudes(histograms: Doc) -> Iterator[Magnitudes]:
    """The counts of each kind of tensor, over all layers."""
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
    """Whether the exponents are some that FP64 has: a document is written by anybody."""
    least = row["least_exponent"]
    return least is not None and least >= -FP64 and least + len(row["counts"]) <= FP64


def _formats(rows: list[Any]) -> Iterator[FormatShare]:
    """What each format does to the values of all layers together, each layer by its number of values."""
    values = sum(row["values"] for row in rows) or 1
    for name in rows[0]["formats"]:
        there, known = [row for row in rows if name in row["formats"]], load_number_formats().get(name)
        if known is None:
            continue
        flushed, saturated = (
            sum(row["formats"][name][key] * row["values"] for row in there) / values
            for key in ("flushed_ratio", "saturated_ratio")
        )
        yield FormatShare(
            format=name, label=known.label, least_log2=known.least_log2, most_log2=round(known.most_log2, 2),
            flushed_ratio=min(flushed, 1.0), saturated_ratio=min(saturated, 1.0),
        )  # fmt: skip


def _pairs_shown(parity: Doc) -> Iterator[PairShown]:
    for pair in parity.get("pairs", ()):
        low, mid, high = (pair[f"difference_{end}"] for end in ("low", "mid", "high"))
        if low is None or mid is None or high is None or not low <= mid <= high:
            continue
        yield PairShown(
            precision=pair["precision"], baseline=pair["baseline"], metric=pair["metric"], verdict=pair["verdict"],
            low=low, mid=mid, high=high, margin=pair["margin"], pairs=pair["pairs"], emulated=pair["mode"] == EMULATED,
        )  # fmt: skip


def _layers(lowered: Doc, kept: frozenset[str]) -> Iterator[LayerShown]:
    rows = sorted(lowered.get("layers", ()), key=_sensitivity, reverse=True)
    for row in rows:
        if not row["layers"]:
            continue
        yield LayerShown(
            name=row["layers"][0], layers=len(row["layers"]), loss_change=row["loss_change"],
            gradient_error_ratio=row["gradient_error_ratio"], kept_high=not kept.isdisjoint(row["layers"]),
        )  # fmt: skip


def _sensitivity(row: Doc) -> tuple[bool, float]:
    """What does not stay finite first, then by the change of the first gradient."""
    error = row["gradient_error_ratio"]
    return error is None, 0.0 if error is None else float(error)


def _high(parity: Doc) -> str:
    """What the higher precision of a plan is: BF16 where the same task found it equivalent, else the baseline."""
    pairs = parity.get("pairs", ())
    alike = any(pair["precision"] == "bf16" and pair["verdict"] == "equivalent" for pair in pairs)
    return "bf16" if alike else str(parity.get("baseline", "fp32"))


def _mixtures(policy: Doc, schedule: Doc, high: str) -> Iterator[MixturePoint]:
    """The recommended policy, and the schedules beside all high and all low."""
    ratio, change = policy.get("lowered_parameters_ratio"), policy.get("loss_change")
    if ratio is not None and change is not None and ratio < 1.0:  # else it is all in the lower precision
        yield MixturePoint(
            name="policy", precision=_precision(policy["precision"]), high=high, low_share_ratio=ratio,
            loss_change=change, steps=policy["steps"], recommended=True,
        )  # fmt: skip
    for row in schedule.get("schedules", ()):
        name = SCHEDULES.get(row["name"])
        if name is None or row["loss_change"] is None:
            continue
        share = {"all_high": 0.0, "all_low": 1.0}.get(name, 1.0 - schedule["high_ratio"])
        yield MixturePoint(
            name=name, precision=_precision(schedule["precision"]), high=high, low_share_ratio=share,
            loss_change=row["loss_change"], steps=schedule["steps"], recommended=row["name"] == schedule["recommended"],
        )  # fmt: skip


def _precision(recipe: str) -> str:
    policy = load_policies().get(recipe)
    return recipe if policy is None else policy.precision

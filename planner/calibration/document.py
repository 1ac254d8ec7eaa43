"""The calibration file `mpplan.calibration/1`, written by `mpplan calibrate` and read when planning with it.

It holds the joint posterior as a difference from the shipped parameters, together with a digest of them. With other
shipped parameters it has no meaning and is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from planner.answer.document import Document, plain
from planner.answer.plan import CalibrationFacts, LearnedFact
from planner.calibration.learn import Calibration
from planner.calibration.messages import LEARNED, total_words, words_of
from planner.calibration.own_runs import LearnedTerm, OwnRow, Total, as_learned_if_moved
from planner.calibration.shifts import with_range
from planner.calibration.spreads import RESIDUALS
from planner.errors import InputFileError, Message
from planner.files import read_text
from planner.lazy import dataclass
from planner.models.shape import ModelShape
from planner.rates.parameters import PARAMETERS, POSTERIOR, Joint, Parameter, Parameters
from planner.training.method import find_method
from planner.training.recipe import Recipe
from planner.units import today

SCHEMA = "mpplan.calibration/1"
LARGEST_BYTES = 64 * 2**20
"""Size above which a file cannot be a calibration: with 10 000 runs that contradict each other it takes 5 MiB."""
LARGEST_VALUE = 1e18
"""Largest value of a row, in its own unit; the smallest is the inverse."""
LARGEST_SD = 5.0
LIKE_PRECISION = {"bf16": "fp16", "fp16": "bf16"}
"""Precisions whose kernels are the same but for the number format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedRecord:
    """A measurement record that was in use when a calibration was learned."""

    gpu: str
    """Catalogue id."""
    name: str
    digest: str
    """Digest of the file's content: a record measured again, or extended, is another record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCalibration:
    """A calibration read back."""

    facts: CalibrationFacts
    parameters: Parameters
    terms: tuple[str, ...]
    """Ids of the rows that the calibration changed."""
    records: tuple[LearnedRecord, ...] = ()
    """Records of its GPUs that were in use when it was learned; the calibration does not contain what they measured."""
    version: str = ""
    """Version of mpplan that wrote it."""
    learned_terms: tuple[str, ...] = ()
    """Id of the row behind each entry of `facts.learned`."""
    stacks: tuple[str, ...] = ()
    """Kernel stacks of the runs; empty where an older mpplan did not write them."""
    mixtures: tuple[bool, ...] = ()
    """Whether the models of the runs are mixtures of experts; empty where an older mpplan did not write it."""
    images: tuple[bool, ...] = ()
    """Whether they are vision models; empty where an older mpplan did not write it."""
    adapters: tuple[bool, ...] = ()
    """Whether they train adapters; empty where an older mpplan did not write it."""
    precisions: tuple[str, ...] = ()
    """Precisions of the runs; empty where an older mpplan did not write them."""
    most_nodes: int | None = None
    """Nodes of the largest run; None where an older mpplan did not write them."""

    def notices(self, recipe: Recipe, gpus: Sequence[str], nodes: int, version: str) -> tuple[Message, ...]:
        """Return what a reader of a plan must know about the calibration behind it.

        Args:
            recipe: what the plan trains, in the requested precision.
            gpus: catalogue ids of the plan's GPUs.
            nodes: nodes of the largest plan in that precision; 1 without a plan.
            version: version of mpplan that makes the plan.
        """
        facts = self.facts
        used = Message.of("warning.calibration", name=facts.name, runs=facts.runs, source=facts.source)
        unlike = (*self.unlike(gpus, recipe.stack, recipe.model), *self.unlike_work(recipe, nodes))
        return (used, *self.of_other_version(version), *unlike)

    def unlike(self, gpus: Sequence[str], stack: str, model: ModelShape) -> tuple[Message, ...]:
        """Return warnings where a plan has other GPUs, software or models than the runs."""
        warnings = []
        others = tuple(gpu for gpu in gpus if gpu not in self.facts.gpus)
        if others:
            warnings.append(Message.of("warning.calibration_gpu", gpus=others, learned_on=self.facts.gpus))
        if self.stacks and stack not in self.stacks:
            *old, new = (Message.of("flag.with_value", input="stack", value=name) for name in (*self.stacks, stack))
            warnings.append(Message.of("warning.calibration_stack", old=tuple(old), new=new))
        is_mixture = model.experts > 0
        if self.images and model.has_network not in self.images:
            warnings.append(
                Message.of("warning.calibration_language" if model.has_network else "warning.calibration_images")
            )
        elif self.mixtures and is_mixture not in self.mixtures:
            warnings.append(Message.of("warning.calibration_dense" if is_mixture else "warning.calibration_mixture"))
        return tuple(warnings)

    def unlike_work(self, recipe: Recipe, nodes: int) -> tuple[Message, ...]:
        """Return warnings where a plan has another kind of method, other number formats or more nodes than the runs.

        Between language and vision models, which `unlike` tells apart, they would say no more.
        """
        if self.images and recipe.model.has_network not in self.images:
            return ()
        warnings = []
        adapts = find_method(recipe.method).adapts
        if self.adapters and adapts not in self.adapters:
            warnings.append(Message.of("warning.calibration_whole" if adapts else "warning.calibration_adapters"))
        precision = recipe.policy.precision
        if self.precisions and not {precision, LIKE_PRECISION.get(precision, precision)} & set(self.precisions):
            warnings.append(
                Message.of("warning.calibration_precision", precision=precision, learned_in=self.precisions)
            )
        if self.most_nodes == 1 and nodes > 1:
            warnings.append(Message.of("warning.calibration_nodes", nodes=nodes))
        return tuple(warnings)

    def of_other_version(self, version: str) -> tuple[Message, ...]:
        """Return a warning where another version of mpplan wrote it; other shipped parameters are refused already."""
        if self.version == version:
            return ()
        return (
            Message.of(
                "warning.calibration_version", name=self.facts.name, source=self.facts.source, first=self.version,
                newest=version,
            ),
        )  # fmt: skip


@cache
def shipped_digest() -> str:
    """Return a digest that distinguishes the shipped parameters from those of another version."""
    content = PARAMETERS.read_bytes() + (POSTERIOR.read_bytes() if POSTERIOR.exists() else b"")
    return hashlib.sha256(content).hexdigest()[:16]


def to_calibration_document(
    calibration: Calibration, *, source: str, version: str, records: Sequence[LearnedRecord] = ()
) -> Document:
    """Return the document as plain JSON values; messages are keys with values.

    Args:
        calibration: what was learned.
        source: name of the file of runs.
        version: version of mpplan.
        records: measurement records that were in use when it was learned.
    """
    joint = calibration.parameters.joint
    assert joint is not None
    rows = [calibration.parameters.rows[name] for name in joint.ids]
    return {
        "schema": SCHEMA,
        "mpplan": version,
        "made": today().isoformat(),
        "source": source,
        "shipped_parameters": shipped_digest(),
        "runs": calibration.runs,
        "gpus": list(calibration.gpus),
        "stacks": list(calibration.stacks),
        "mixtures": list(calibration.mixtures),
        "images": list(calibration.images),
        "adapters": list(calibration.adapters),
        "precisions": list(calibration.precisions),
        "most_nodes": calibration.most_nodes,
        "records": [{"gpu": record.gpu, "record": record.name, "digest": record.digest} for record in records],
        "figures": [figure.value for figure in calibration.figures],
        "rows": [_row(row) for row in calibration.rows],
        "learned": [_term(term) for term in calibration.terms],
        "total": [_total(total) for total in calibration.totals],
        "width_ratio": {name: round(ratio, 4) for name, ratio in calibration.width_ratio.items()},
        "posterior": {
            "ids": list(joint.ids),
            "values": [float(f"{row.value:.6g}") for row in rows],
            "changed": [row.id for row in rows if row.learned],
            "own_sd": {name: round(calibration.parameters.rows[name].log_sd, 6) for name in RESIDUALS},
            "factor": [
                [float(f"{entry:.5g}") for entry in line[: number + 1]] for number, line in enumerate(joint.factor)
            ],
        },
    }


def _row(row: OwnRow) -> Document:
    conflict = None
    left = row.conflicts - len(row.conflicts_with)
    if row.contradicts_all:
        conflict = Message.of("calibrate.contradicts_all", off_ratio=row.error_left_out)
    elif left > 0:
        conflict = Message.of("calibrate.contradicts_many", rows=row.conflicts_with, count=left)
    elif row.conflicts_with:
        conflict = Message.of("calibrate.contradicts", rows=row.conflicts_with)
    return {
        "id": row.id, "metric": row.metric, "error_before": round(row.error_before, 5),
        "error_after": round(row.error_after, 5), "error_left_out": round(row.error_left_out, 5),
        "conflict": plain(conflict),
    }  # fmt: skip


def _term(term: LearnedTerm) -> Document:
    ends = [dict(zip(("low", "mid", "high"), figures, strict=True)) for figures in (term.before, term.after)]
    return {
        "term": term.term, "label": term.label, "unit": term.unit, "before": ends[0], "after": ends[1],
        "bounded": term.bounded, "words": plain(words_of(term)),
    }  # fmt: skip


def _total(total: Total) -> Document:
    return {
        "figure": str(total.figure), "measured_ratio": round(total.measured_ratio, 5),
        "learned_ratio": round(total.learned_ratio, 5), "words": plain(total_words(total)),
    }  # fmt: skip


def read_calibration(path: Path, shipped: Parameters) -> ReadCalibration:
    """Read a calibration back.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is no calibration, is damaged, or was made with other parameters than the shipped ones.
    """
    document = _json(path)
    schema = document.get("schema")
    if schema != SCHEMA:
        raise InputFileError(
            f"{path.name}: schema: expected {SCHEMA}, found {_shown(schema)}",
            hint="make one with `mpplan calibrate RUNS.csv -o our-stack.json`",
        )
    if document.get("shipped_parameters") != shipped_digest():
        raise InputFileError(
            f"{path.name}: made by mpplan {_shown(document.get('mpplan'))} with other parameters than this version's",
            hint=f"run `mpplan calibrate` again on the runs it was made from ({_shown(document.get('source'))})",
        )
    try:
        return _read(path.name, document, shipped)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise InputFileError(
            f"{path.name}: posterior: expected what `mpplan calibrate` wrote, found {_shown(str(error))}",
            hint="the file is damaged; make it again",
        ) from error


def _json(path: Path) -> Mapping[str, Any]:
    try:
        document = json.loads(read_text(path, most_bytes=LARGEST_BYTES))
    except (ValueError, RecursionError) as error:
        raise InputFileError(
            f"{path.name}:1: expected JSON: {error}", hint="pass what `mpplan calibrate` wrote"
        ) from error
    if not isinstance(document, dict):
        raise InputFileError(f"{path.name}: expected a JSON object", hint="pass what `mpplan calibrate` wrote")
    return document


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _read(name: str, document: Mapping[str, Any], shipped: Parameters) -> ReadCalibration:
    posterior = document["posterior"]
    ids, values = [str(entry) for entry in posterior["ids"]], [float(value) for value in posterior["values"]]
    changed = {str(entry) for entry in posterior["changed"]}
    factor = np.zeros((len(ids), len(ids)))
    if [len(line) for line in posterior["factor"]] != list(range(1, len(ids) + 1)):
        raise ValueError("a factor that is not lower triangular")
    for number, line in enumerate(posterior["factor"]):
        factor[number, : number + 1] = [float(entry) for entry in line]
    if len(values) != len(ids) or len(set(ids)) != len(ids):
        raise ValueError("ids and values that do not belong together")
    in_bounds = all(1 / LARGEST_VALUE < value < LARGEST_VALUE for value in values)
    if not in_bounds or not (np.abs(factor) < LARGEST_SD).all():
        raise ValueError(NOT_LEARNED)
    if shipped.joint is None or ids[: len(shipped.joint.ids)] != list(shipped.joint.ids):
        raise ValueError("other parameters than the shipped ones")
    runs, made = int(document["runs"]), str(document["made"])
    if runs < 1:
        raise ValueError(f"{runs} runs")
    source = f"{name}: learned from {runs} own run{'' if runs == 1 else 's'} of {document['source']}"
    spreads = np.sqrt((factor**2).sum(axis=1))
    rows = [
        _changed(_base(shipped, row_id), row_id, value, float(sd), source if row_id in changed else None, made, shipped)
        for row_id, value, sd in zip(ids, values, spreads, strict=True)
    ]
    rows += [
        _changed(shipped.rows[row_id], row_id, 1.0, _spread(posterior["own_sd"][row_id]), source, made, shipped)
        for row_id in RESIDUALS
    ]
    facts = CalibrationFacts(
        name=name,
        source=str(document["source"]),
        runs=runs,
        gpus=tuple(str(gpu) for gpu in document["gpus"]),
        width_ratio={str(figure): _figure(ratio) for figure, ratio in document["width_ratio"].items()},
        learned=tuple(_learned(entry) for entry in document["learned"]),
    )
    return ReadCalibration(
        facts=facts,
        parameters=replace(shipped.replaced(rows), joint=Joint(ids=tuple(ids), factor=factor)),
        terms=tuple(row.id for row in rows if row.id in changed),
        version=_shown(document.get("mpplan", "")),
        learned_terms=tuple(str(entry["term"]) for entry in document["learned"]),
        stacks=tuple(str(stack) for stack in document.get("stacks", ())),
        mixtures=tuple(bool(mixture) for mixture in document.get("mixtures", ())),
        images=tuple(bool(image) for image in document.get("images", ())),
        adapters=tuple(bool(adapter) for adapter in document.get("adapters", ())),
        precisions=tuple(str(precision) for precision in document.get("precisions", ())),
        most_nodes=None if document.get("most_nodes") is None else int(document["most_nodes"]),
        records=tuple(
            LearnedRecord(gpu=str(entry["gpu"]), name=str(entry["record"]), digest=str(entry["digest"]))
            for entry in document.get("records", ())
        ),
    )


def _learned(entry: Mapping[str, Any]) -> LearnedFact:
    message = entry["words_message"]
    if message["key"] not in LEARNED:
        raise ValueError(f"words {message['key']}")
    values = {
        str(name): value if isinstance(value, str) else _figure(value) for name, value in message["values"].items()
    }
    return LearnedFact(
        words=Message(message["key"], tuple(values.items())), before=_figure(entry["before"]["mid"]),
        after=_figure(entry["after"]["mid"]), unit=str(entry["unit"]),
    )  # fmt: skip


ROUNDED = 1e-5
"""Relative difference that rounding to the digits of a file makes."""
NOT_LEARNED = "a number that no calibration learns"


def _figure(value: object) -> float:
    """Return a figure that an answer repeats; Python's JSON reads `NaN`, and `1e999` as infinity, which are refused."""
    figure = float(value)  # type: ignore[arg-type]  # see `_spread`
    if not math.isfinite(figure):
        raise ValueError(NOT_LEARNED)
    return figure


def _spread(value: object) -> float:
    sd = float(value)  # type: ignore[arg-type]  # a damaged file raises, and the caller says so
    if not 0.0 < sd < LARGEST_SD:
        raise ValueError(f"own_sd {sd}")
    return sd


def _base(shipped: Parameters, row_id: str) -> Parameter:
    """Return the shipped row of an id; for a term of one GPU or model, the general row that it derives from."""
    return shipped.rows[row_id] if row_id in shipped.rows else shipped.rows[row_id.partition(".")[0]]


def _changed(
    base: Parameter, row_id: str, value: float, sd: float, source: str | None, made: str, shipped: Parameters
) -> Parameter:
    share = shipped.families[base.family].bound == "share"
    row = replace(base, id=row_id)
    if source is None:
        moved = abs(value / base.value - 1.0) > ROUNDED
        return with_range(row, value, sd, share=share) if moved else row
    read = as_learned_if_moved(with_range(row, value, sd, share=share), base, source)
    return replace(read, date=made) if read.learned else read

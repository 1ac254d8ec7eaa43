"""One published training run as a typed row: its configuration (`PublishedRun`) and, as a separate type, its result.

The types are separate so that a prediction cannot see the answer: everything that predicts takes a `PublishedRun`,
which has no field for the published value, the second metric, the source or the notes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields, replace
from operator import attrgetter
from typing import TypeVar

from planner.errors import Message, UsageError
from planner.lazy import dataclass
from planner.text import shortened
from planner.training.frameworks import MEM_KINDS
from planner.training.recipe import LOSSES, OFFLOADS
from planner.units import parse_count, ungrouped, with_point
from planner.validation.columns import READ_COLUMNS, YES, YES_NO, understood

FAMILIES = ("dense", "moe", "bert", "encdec", "cnn")
"""Values of the column `family`; blank: a decoder."""

METRICS = (
    "tokens_per_s_per_gpu",
    "step_time_s",
    "samples_per_s",
    "tflops_per_gpu",
    "mfu",
    "peak_mem_gib",
    "gpu_hours",
    "time_to_train_min",
    "energy_mwh",
    "avg_gpu_power_w",
    "avg_node_power_w",
)
"""Metrics that can be predicted, with their units in their names (`samples_per_s` is over all GPUs)."""

ENERGY_SCOPES = ("gpu", "node_dc", "node_ac", "facility", "accelerator_system", "idle", "rated")
"""Metering point of a row's energy or power; the last two test arithmetic only."""

OUT_OF_MEMORY = "OOM"
"""Value of a row whose source states that the configuration does not fit."""

REQUIRED = ("id", "model", "precision", "gpu", "n_gpus", "metric")
"""Columns that a file must have; any other column may be missing and then counts as blank."""

LEAST_VALUE, MOST_VALUE = 1e-12, 1e15
"""Bounds of the value of any metric: published values range from 0.05 to 4e7. A value beyond them is a typing error,
whose ratio to a prediction would fill the page."""

RESULT = ("id", "metric", "value", "source")
"""Columns of a row's result."""

ANSWERS = ("value", "second_metric", "second_value", "source", "notes")
"""Columns that no prediction reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRun:
    """Configuration of a published run; None where its source does not state a value."""

    id: str
    metric: str
    """The metric to predict, one of `METRICS`."""
    gpu: str
    model: str = ""
    precision: str | None = None
    group: str = ""
    family: str = ""
    params_total: float | None = None
    params_active: float | None = None
    n_layers: int | None = None
    hidden: int | None = None
    n_heads: int | None = None
    n_kv_heads: int | None = None
    ffn_hidden: int | None = None
    vocab: int | None = None
    seq_len: int | None = None
    global_batch_seqs: float | None = None
    micro_batch: int | None = None
    grad_accum: int | None = None
    n_gpus: int | None = None
    gpus_per_node: int | None = None
    tp: int | None = None
    pp: int | None = None
    vp: int | None = None
    cp: int | None = None
    ep: int | None = None
    dp: int | None = None
    zero_or_fsdp_stage: str = ""
    act_ckpt: str = ""
    attention: str = ""
    compile: str = ""
    framework: str = ""
    network: str = ""
    flops_convention: str = ""
    pair: str = ""
    """Key that links the precisions of one workload."""
    series: str = ""
    """Key that links repeated measurements of one configuration."""
    tier: str = ""
    flag: str = ""
    """Reason why the row should not count in a score; blank where it should."""
    method: str = ""
    power_limit_w: float | None = None
    tokens_total: float | None = None
    energy_scope: str = ""
    pue: float | None = None
    mem_kind: str = ""
    n_experts: int | None = None
    top_k: int | None = None
    n_shared_experts: int | None = None
    expert_ffn: int | None = None
    source_kind: str = ""
    lineage: str = ""
    """One team and its software, whose errors are correlated. No equation reads it."""
    optimizer: str = ""
    offload: str = ""
    fused_loss: str = ""
    in_backward: str = ""
    """`y`: the optimizer steps inside the backward pass, and each gradient is freed once it is used."""
    mean_tokens: float | None = None
    """Mean tokens of an example, where examples are padded to the longest of a micro-batch; None: sequences are
    full."""
    lora_rank: int | None = None
    lora_targets: str = ""
    trained_layers: int | None = None
    """Number of last layers that `freeze` trains."""
    mtp_layers: int | None = None
    """Modules of multi-token prediction that are trained; None: those of the published model, where the framework
    supports them."""
    policy: str = ""
    """Id of the precision policy; blank: the framework's policy for the precision."""
    loss: str = ""
    """One of `recipe.LOSSES`; `fused_loss` only separates the first from the others; blank: as `fused_loss` states."""


LABELS = ("id", "group", "pair", "series", "tier", "flag", "source_kind", "lineage")
"""Columns with a run's name, its links to other rows, its lineage and the judgement of its source.

No equation reads any of them, so runs that differ only in labels have the same prediction.
"""
unlabelled: Callable[[PublishedRun], tuple[object, ...]] = attrgetter(
    *(f.name for f in fields(PublishedRun) if f.name not in LABELS)
)
"""Key of a run: its fields other than the labels."""
MEASURED_BY = ("metric", "flops_convention")
"""Columns with the measured metric and the convention by which its FLOP were counted."""
one_configuration: Callable[[PublishedRun], tuple[object, ...]] = attrgetter(
    *(f.name for f in fields(PublishedRun) if f.name not in (*LABELS, *MEASURED_BY))
)
"""Key of a configuration: the fields other than the labels, whatever was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedResult:
    """The result of a row, read only after everything is predicted."""

    id: str
    value: float | None
    """Value in the unit of the row's metric; None where it is blank or an out-of-memory statement."""
    out_of_memory: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A row that cannot be read or predicted, with the reason."""

    id: str
    reason: str | Message
    metric: str = ""


_WHOLE = tuple(f.name for f in fields(PublishedRun) if f.type == "int | None")
_REAL = tuple(f.name for f in fields(PublishedRun) if f.type == "float | None")
_TEXT = tuple(f.name for f in fields(PublishedRun) if f.name not in _WHOLE + _REAL)
NUMERIC = (*_WHOLE, *_REAL, "value")
"""Columns that hold numbers."""
_WORDS = {
    "family": FAMILIES, "energy_scope": ENERGY_SCOPES, "mem_kind": MEM_KINDS, "offload": OFFLOADS,
    "fused_loss": YES_NO, "in_backward": YES_NO, "loss": LOSSES,
}  # fmt: skip
"""Columns that hold one of a few words, with these words."""
NONE_OR_MORE = ("mtp_layers",)
"""Whole-number columns in which 0 is a value; in any other column 0 counts as blank."""
MOST_PUE = 5
"""Highest PUE that is accepted, as for a plan."""
COUNTS = ("params_total", "params_active", "tokens_total", "seq_len", "global_batch_seqs", "vocab")
"""Columns that may be written with a suffix, like the inputs of a plan: `8B`, `1.5T`, `4k`."""
CONFIGURATION = tuple(f.name for f in fields(PublishedRun))
"""Columns that describe a run, in the order of the type."""
COLUMNS = (*CONFIGURATION, *ANSWERS)
"""Every column that a file of published runs may have."""


def _number(text: str, *, with_suffix: bool) -> float:
    """Read a number, for a count also with a suffix such as `1.5T`; NaN where the text is not a number."""
    plain = ungrouped(text)
    if plain is None:
        return math.nan
    text = plain
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return parse_count(text, "") if with_suffix else math.nan
    except UsageError:
        return math.nan


@dataclass(frozen=True, slots=True)
class _Cells:
    given: Mapping[str, str]
    """Text by column, without surrounding blanks; blank columns, which are the majority in most files, are left out."""
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, cells: Mapping[str, str]) -> _Cells:
        return cls({column: str(text).strip() for column, text in cells.items() if text and str(text).strip()})

    def text(self, name: str) -> str:
        text = self.given.get(name, "")
        return understood(name, text) if text and name in READ_COLUMNS else text

    def real(self, name: str) -> float | None:
        text = self.text(name)
        if not text:
            return None
        value = _number(text, with_suffix=name in COUNTS)
        if not (math.isfinite(value) and value >= 0):
            pointed = with_point(text)
            offer = "" if pointed is None else f"; with a decimal point: {pointed}"
            self.problems.append(f"{name}: `{text}` is not a number of at least 0{offer}")
            return None
        return value

    def whole(self, name: str) -> int | None:
        value = self.real(name)
        if value is None:
            return None
        if value != round(value) or not 0 < value < 1e15:
            if value == 0 and name in NONE_OR_MORE:
                return 0
            if value == 0:
                if name in REQUIRED:
                    self.problems.append(f"{name}: {self.text(name)} must be above 0")
                return None
            self.problems.append(f"{name}: `{self.text(name)}` is not a whole number")
            return None
        return int(value)

    def word(self, name: str, options: tuple[str, ...]) -> str:
        text = self.text(name).lower()
        if text and text not in options:
            self.problems.append(f"{name}: unknown `{text}`; known are {', '.join(options)}")
        return text


def parse_run(cells: Mapping[str, str], line: int | None = None) -> PublishedRun | Rejected:
    """Read one row of a file of published runs; unknown columns are ignored.

    Args:
        cells: text by column name; a missing column counts as blank.
        line: line of the row, to name a row that has no id.

    Returns:
        The run, or the reason why the row cannot be read, which names every wrong cell.
    """
    read = _Cells.of(cells)
    given = read.given
    name = read.text("id") or (f"line {line}" if line is not None else "row without id")
    values: dict[str, object] = {column: read.text(column) for column in _TEXT if column in given}
    values |= {column: read.whole(column) for column in _WHOLE if column in given}
    values |= {column: read.real(column) for column in _REAL if column in given}
    values |= {"id": name, "gpu": read.text("gpu")}
    values["metric"] = metric = read.word("metric", METRICS)
    values |= {column: read.word(column, words) for column, words in _WORDS.items() if column in given}
    values["precision"] = read.text("precision").lower() or None
    _check_losses(read)
    pue = values.get("pue")
    if isinstance(pue, float) and not 1 <= pue <= MOST_PUE:
        read.problems.append(f"pue: `{read.text('pue')}` is not a number from 1 to {MOST_PUE}")
    missing = [column for column in ("metric", "gpu") if not read.text(column)]
    read.problems.extend(f"{column}: blank" for column in missing)
    if read.problems:
        return Rejected(id=name, reason="; ".join(read.problems), metric=metric)
    return PublishedRun(**values)  # type: ignore[arg-type]  # every value was read for its own column


def _check_losses(read: _Cells) -> None:
    """Note a problem where the two columns of the loss contradict each other."""
    loss, fused = read.text("loss").lower(), read.text("fused_loss").lower()
    if loss in LOSSES and fused in YES_NO and (loss == LOSSES[0]) == (fused in YES):
        read.problems.append(f"loss: `{loss}` contradicts fused_loss `{fused}`")


def parse_result(cells: Mapping[str, str], line: int | None = None) -> PublishedResult | Rejected:
    """Read the result of a row.

    Returns:
        The published value, or the reason why it cannot be read.
    """
    read = _Cells.of({column: cells[column] for column in RESULT if column in cells})
    name = read.text("id") or (f"line {line}" if line is not None else "row without id")
    oom = read.text("value").upper() == OUT_OF_MEMORY
    value = None if oom else read.real("value")
    if value == 0.0:
        read.problems.append(f"value: {read.text('value')} must be above 0")
    elif value is not None and not LEAST_VALUE <= value <= MOST_VALUE:
        bounds = f"between {LEAST_VALUE:g} and {MOST_VALUE:g}"
        read.problems.append(f"value: `{shortened(read.text('value'))}` is not a number {bounds}")
    if read.problems:
        return Rejected(id=name, reason="; ".join(read.problems), metric=read.text("metric"))
    return PublishedResult(id=name, value=value, out_of_memory=oom, source=read.text("source"))


Done = TypeVar("Done")


def once_for_alike(
    runs: Iterable[PublishedRun | Rejected],
    work: Callable[[PublishedRun], Done | Rejected],
    as_of: Callable[[Done, PublishedRun], Done],
) -> list[Done | Rejected]:
    """Apply `work` to runs in their order, once for runs that differ only in labels; rejected runs stay rejected.

    Args:
        runs: runs as read.
        work: function of one run; returns its result, or why it cannot be done.
        as_of: converts the result of a run to another run that differs from it only in labels.
    """
    known: dict[tuple[object, ...], Done | Rejected] = {}
    result: list[Done | Rejected] = []
    for run in runs:
        if isinstance(run, Rejected):
            result.append(run)
            continue
        key = unlabelled(run)
        if key not in known:
            known[key] = work(run)
        done = known[key]
        result.append(replace(done, id=run.id) if isinstance(done, Rejected) else as_of(done, run))
    return result

"""The row that `mpplan calibrate` learns from, built from a log, its plan and the user's inputs."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from planner.comparison.basis import Basis
from planner.comparison.pace import Pace
from planner.comparison.planned import Planned
from planner.lazy import dataclass
from planner.models.shape import ModelShape
from planner.runlog.log import RunLog
from planner.training.frameworks import find_framework, named_stacks
from planner.training.method import PRETRAIN, find_method
from planner.training.recipe import Recipe
from planner.validation.defaults import Filled
from planner.validation.model import CannotPredictError, catalogue_model, model_of
from planner.validation.runs import COLUMNS, Rejected, parse_run
from planner.validation.software import Software, software_of

LAYOUT = {
    "tp": "tp", "pp": "pp", "vp": "vp", "cp": "cp", "ep": "ep", "micro_batch": "micro_batch",
    "zero_or_fsdp_stage": "zero",
}  # fmt: skip
"""Layout columns, stated by the log or taken from the plan."""
NEEDED = ("model", "precision", "gpu", "n_gpus", "seq_len", "global_batch_seqs")
"""Columns without which `mpplan calibrate` cannot predict a row."""
SHAPE = {
    "params_total": "params_total", "n_layers": "layers", "hidden": "hidden", "n_heads": "heads",
    "n_kv_heads": "kv_heads", "ffn_hidden": "ffn_hidden", "vocab": "vocab", "n_experts": "experts", "top_k": "top_k",
    "n_shared_experts": "shared_experts", "expert_ffn": "expert_ffn",
}  # fmt: skip
"""Shape columns, filled for a model without a catalogue name: derived, or from a config.json or the log."""
FAMILY = {"encoder": "bert", "encoder-decoder": "encdec"}
"""Value of the column `family` by the kind of model; blank: a decoder."""


TRAINER = "Hugging Face"
"""Framework name in logs of the Hugging Face Trainer, whichever kernels ran in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRow:
    """Lines for a file of runs: one for the throughput, and one for the peak memory where the log has it."""

    lines: tuple[dict[str, str], ...]
    """Cells by column; empty where the log has no step time."""
    missing: tuple[str, ...]
    """Columns of `NEEDED` without a value."""


def calibration_row(
    log: RunLog, basis: Basis, planned: Planned | None, pace: Pace | None, rate: float | None
) -> CalibrationRow:
    """Return the row of a run; unknown cells are blank.

    Args:
        log: the run.
        basis: what is known besides.
        planned: its plan; None without one.
        pace: its steps; None where the log has no time.
        rate: tokens per second and GPU; None where unknown.
    """
    shared = _shared(log, basis, planned)
    missing = tuple(name for name in NEEDED if not shared.get(name))
    lines = []
    if pace is not None and rate is not None:
        lines.append({**shared, "metric": "tokens_per_s_per_gpu", "value": f"{rate:.6g}"})
    elif pace is not None:
        lines.append({**shared, "metric": "step_time_s", "value": f"{pace.step_s.mid:.6g}"})
    peak, kind = log.facts.get("peak_mem_gib"), log.facts.get("mem_kind")
    if pace is not None and isinstance(peak, float) and isinstance(kind, str) and peak > 0:
        lines.append({**shared, "metric": "peak_mem_gib", "value": f"{peak:.6g}", "mem_kind": kind})
    return CalibrationRow(lines=tuple(lines), missing=missing)


def row_id(name: str) -> str:
    """Return a name for a run, derived from its file name."""
    stem = re.sub(r"\.(log|txt|out|err|gz|jsonl?|csv)\b", "", name.lower())
    return re.sub(r"[^a-z0-9]+", "-", stem).strip("-")[:60] or "run"


def _shared(log: RunLog, basis: Basis, planned: Planned | None) -> dict[str, str]:
    own = basis.sources.get("model") == "log"
    cells: dict[str, object] = {
        "id": row_id(log.name),
        "series": row_id(log.name),
        "model": None if basis.model is None or _misdescribed(basis.model) else "own" if own else basis.model.name,
        "precision": basis.precision,
        "gpu": None if basis.gpu is None else basis.gpu.id,
        "n_gpus": basis.gpus,
        "seq_len": basis.seq_len,
        "global_batch_seqs": basis.global_batch,
        "act_ckpt": basis.act_ckpt,
        "framework": _framework(log, planned),
        "method": None if basis.method == PRETRAIN else basis.method,
    }
    if planned is not None:
        cells |= {"optimizer": planned.recipe.optimizer.id}
        cells |= {} if "gpu" in basis.differs else planned.stated
    if basis.recipe is not None:
        cells |= _trained(basis.recipe)
    same = planned is not None and not {"gpus", "global_batch", "seq_len"} & set(basis.differs)
    layout: Mapping[str, object] = (planned.plan.get("layout") or {}) if planned is not None and same else {}
    for column, name in LAYOUT.items():
        cells[column] = log.facts.get(column, layout.get(name))
    stated = log.facts.get("micro_batch")
    if isinstance(stated, float):  # a log counts examples, which may hold several sequences
        cells["micro_batch"] = stated * find_method(basis.method).sequences_per_example
    if basis.model is not None and not _misdescribed(basis.model):
        cells |= _shape(basis.model)
    return _written(cells | _software(_written(cells), basis, planned))


def _written(cells: Mapping[str, object]) -> dict[str, str]:
    return {name: _cell(cells.get(name)) for name in COLUMNS if _cell(cells.get(name))}


SAME_SHAPE_RATIO = 0.01
"""Tolerance between the parameters of a shape and those of the shape read back from its columns."""


def _misdescribed(model: ModelShape) -> bool:
    """Return whether the catalogue lacks the model and its columns would describe another model.

    No column states which layers of a hybrid scan, which layers of a mixture have no experts, latent attention, or a
    head size that does not follow from the hidden size.
    """
    if catalogue_model(model.name) is not None:
        return False
    if model.linear is not None:
        return True
    run = parse_run({"id": "", "metric": "step_time_s", "gpu": "any", "model": "own"} | _written(_shape(model)))
    if isinstance(run, Rejected):
        return True
    read_back = model_of(run, Filled())
    return any(
        abs(getattr(read_back, name) / getattr(model, name) - 1.0) > SAME_SHAPE_RATIO
        for name in ("params_total", "matrix_params_active")
    )


def _shape(model: ModelShape) -> dict[str, object]:
    """Return the cells of a shape, with 0 as blank; none for a catalogue model whose name implies them all."""
    named = catalogue_model(model.name)
    if named is not None and all(getattr(named, name) == getattr(model, name) for name in SHAPE.values()):
        return {}
    cells = {column: getattr(model, name) or None for column, name in SHAPE.items()}
    return cells | {"family": FAMILY.get(model.kind)}


def _trained(recipe: Recipe) -> dict[str, object]:
    """Return the cells of the training method and its settings, where they differ from what a blank cell means."""
    how = recipe.how
    return {
        "mean_tokens": None if recipe.lengths is None else float(f"{recipe.mean_len:.6g}"),
        "lora_rank": recipe.lora_rank if how.adapts else None,
        "lora_targets": recipe.lora_targets if how.adapts else None,
        "trained_layers": recipe.trained_layers if how.trains == "last-layers" else None,
        "offload": None if recipe.offload == "none" else recipe.offload,
        "in_backward": "y" if recipe.update_in_backward else None,
    }


def _software(row: Mapping[str, str], basis: Basis, planned: Planned | None) -> dict[str, object]:
    """Return the software cells of a run, where a reader of the row would read a blank cell otherwise.

    Modules of multi-token prediction are known without a plan; policy, loss and attention come from the plan.
    """
    if basis.model is None:
        return {}
    ours: dict[str, object] = {"mtp_layers": basis.model.mtp_layers}
    recipe = basis.recipe if planned is not None else None
    if recipe is not None:
        ours |= {"loss": recipe.loss}
        ours |= {"policy": recipe.policy.id} if recipe.policy.precision == basis.precision else {}
        ours |= {"attention": recipe.attention} if "gpu" not in basis.differs else {}
    inferred = _inferred_software(row, basis)
    if inferred is not None:
        return {name: value for name, value in ours.items() if value != getattr(inferred, name)}
    named = catalogue_model(basis.model.name)
    without = not basis.model.mtp_layers and (named is None or not named.mtp_layers)
    return {name: value for name, value in ours.items() if name != "mtp_layers" or not without}


def _inferred_software(row: Mapping[str, str], basis: Basis) -> Software | None:
    """Return the software that a reader would infer from a row; None where the row lacks too much to be predicted."""
    run = parse_run({**row, "metric": "step_time_s"})
    if isinstance(run, Rejected) or basis.gpu is None:
        return None
    try:
        return software_of(run, basis.gpu)
    except CannotPredictError:
        return None


def _framework(log: RunLog, planned: Planned | None) -> str:
    """Return the framework as `frameworks.csv` names it.

    Megatron-LM whose lines have a time of day (since March 2024) is Megatron-Core. Unsloth and others that bring their
    own kernels log like the Hugging Face Trainer, so the plan decides which one it is. The plan also decides the stack
    of other runs: what is learned from a run is how it differs from what was planned.
    """
    dated = log.framework == "Megatron-LM" and not np.all(np.isnan(log.steps.end_s))
    logged = "Megatron-Core" if dated else log.framework
    if planned is None:
        return logged
    named = named_stacks().get(planned.stack)
    if named is None:
        return ", ".join(part for part in (logged, f"stack {planned.stack}") if part)
    if named is find_framework(TRAINER) or logged not in ("", TRAINER):
        return logged or TRAINER
    return ", ".join(part for part in (logged, named.stack_name) if part)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.10g}" if isinstance(value, float) else str(value)

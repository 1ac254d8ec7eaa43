"""Runs of an invented team for the tests: real questions, with values a known factor away from the prediction."""

from __future__ import annotations

from collections.abc import Iterable

from planner.calibration.linear import Observation, observe
from planner.validation.predict import predict_prepared
from planner.validation.runs import PublishedResult, PublishedRun, parse_run
from planner.validation.setup import Prepared, prepare_run

ROW = {
    "id": "x", "model": "Llama3-8B", "family": "dense", "precision": "bf16", "gpu": "h100-sxm5-80gb", "n_gpus": "8",
    "seq_len": "4096", "global_batch_seqs": "64", "micro_batch": "1", "tp": "1", "pp": "1", "cp": "1",
    "zero_or_fsdp_stage": "3", "act_ckpt": "full", "attention": "flash", "framework": "FSDP",
    "metric": "tokens_per_s_per_gpu",
}  # fmt: skip


def prepared(**cells: str) -> Prepared:
    run = parse_run(ROW | cells)
    assert isinstance(run, PublishedRun), run
    ready = prepare_run(run)
    assert isinstance(ready, Prepared), ready
    return ready


def observation(factor: float = 1.0, lineage: str = "ours", **cells: str) -> Observation:
    """A run whose value is a factor times what the shipped parameters predict."""
    ready = prepared(**cells)
    value = factor * predict_prepared(ready).mid
    result = PublishedResult(id=ready.run.id, value=value, out_of_memory=False, source="")
    observed = observe(ready, result, lineage)
    assert observed is not None
    return observed


def team(factors: Iterable[float], **cells: str) -> list[Observation]:
    """Runs on 8, 16, 32 … GPUs, each a factor away from its prediction."""
    return [
        observation(
            factor, id=f"run-{number}", n_gpus=str(8 * 2**number), global_batch_seqs=str(64 * 2**number), **cells
        )
        for number, factor in enumerate(factors)
    ]

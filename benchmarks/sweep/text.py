"""The text of the page's part on layouts: the quality of the choice, question by question, and what limits it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchmarks.pages.markdown import table
from benchmarks.sweep.questions import (
    HEADERS,
    MAP,
    SUMMARY_HEADERS,
    map_rows,
    predict_sweep,
    question_rows,
    read_crossfit,
    read_sweep,
    summary_rows,
)
from benchmarks.sweep.twins import HEADERS as TWIN_HEADERS
from benchmarks.sweep.twins import sentences, twin_rows, twins
from planner.rates.parameters import shipped_parameters


def layouts_text(rows: Iterable[Mapping[str, str]], crossfit: Iterable[Mapping[str, str]]) -> str:
    """Return the whole part of the page.

    Args:
        rows: rows of the sweep, text by column name.
        crossfit: rows of `sweep_crossfit.csv`, text by column name.
    """
    observations, shipped = read_sweep(rows), shipped_parameters()
    sweeps = predict_sweep(observations, shipped)
    headers, cells = map_rows(next(sweep for sweep in sweeps if sweep.question == MAP))
    pairs = [twins(sweep) for sweep in sweeps]
    return "\n".join([
        table(SUMMARY_HEADERS, summary_rows(observations, shipped, read_crossfit(crossfit))),
        table(HEADERS, question_rows(sweeps)),
        sentences(sweeps, pairs) + "\n",
        table(TWIN_HEADERS, twin_rows(pairs)),
        f"The best speed of {MAP[0]} on {MAP[1]} GPUs by tensor and pipeline parallel, in tokens/s per GPU, measured / "
        "predicted:\n",
        table(headers, cells),
    ])  # fmt: skip

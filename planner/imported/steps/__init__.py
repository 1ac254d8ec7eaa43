"""Logs of training steps, one module for each way of writing them, tried in this order.

To add one, write `planner/imported/steps/<name>.py` with a `StepFormat` and list it here; a contract test runs it.
"""

from __future__ import annotations

from planner.errors import InputFileError
from planner.imported.source import SourceFile
from planner.imported.steps.hugging_face import HUGGING_FACE
from planner.imported.steps.log import StepLog
from planner.imported.steps.megatron import MEGATRON
from planner.imported.steps.nanotron import NANOTRON
from planner.imported.steps.table import TABLE
from planner.imported.steps.torchtitan import TORCHTITAN

STEP_FORMATS = (MEGATRON, NANOTRON, TORCHTITAN, HUGGING_FACE, TABLE)
"""All of them; the table comes last, since it is told by two of its column names alone."""


def read_steps(source: SourceFile) -> StepLog:
    """The steps that a log holds, in whatever of the formats.

    Raises:
        InputFileError: it is none of them, or a line is damaged.
    """
    chosen = next((form for form in STEP_FORMATS if form.recognises(source.head)), None)
    if chosen is None:
        known = ", ".join(form.name for form in STEP_FORMATS)
        raise InputFileError(
            f"{source.name}:1: expected a log of training steps, found none that is known",
            hint=f"known are {known}; a table has a column `step_time_s` or `timestamp`",
        )
    return chosen.read(source)

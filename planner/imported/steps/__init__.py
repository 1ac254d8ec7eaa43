"""Logs of training steps, with one module for each format.

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
"""All formats, in the order in which they are tried. The table comes last, because it is recognised from its column
names alone."""


def read_steps(source: SourceFile) -> StepLog:
    """Read the steps of a log in any of the formats.

    Raises:
        InputFileError: the log has none of the formats, or a line is damaged.
    """
    chosen = next((form for form in STEP_FORMATS if form.recognises(source.head)), None)
    if chosen is None:
        known = ", ".join(form.name for form in STEP_FORMATS)
        raise InputFileError(
            f"{source.name}:1: expected a log of training steps, found an unknown format",
            hint=f"known formats are {known}; a table needs a column `step_time_s` or `timestamp`",
        )
    return chosen.read(source)

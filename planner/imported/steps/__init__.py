"""Logs of training steps. Those of some frameworks have a module each, which refuses a damaged line, and says what is
known of their step times; all others that `mpplan compare` reads are read alike (`run.py`).

To add a module, write `planner/imported/steps/<name>.py` with a `StepFormat` and list it here; a contract test runs it.
"""

from __future__ import annotations

from planner.imported.source import SourceFile
from planner.imported.steps.hugging_face import HUGGING_FACE
from planner.imported.steps.log import StepLog
from planner.imported.steps.megatron import MEGATRON
from planner.imported.steps.nanotron import NANOTRON
from planner.imported.steps.run import is_run, read_run
from planner.imported.steps.table import TABLE
from planner.imported.steps.torchtitan import TORCHTITAN

STEP_FORMATS = (MEGATRON, NANOTRON, TORCHTITAN, HUGGING_FACE, TABLE)
"""The formats with a module, in the order in which they are tried. The table comes last, because it is recognised from
its column names alone."""


def is_step_log(head: str) -> bool:
    """Whether the beginning of a file is that of a log of training steps."""
    return any(form.recognises(head) for form in STEP_FORMATS) or is_run(head)


def read_steps(source: SourceFile) -> StepLog:
    """Read the steps of a log in any of the formats.

    Raises:
        InputFileError: the log has none of the formats, or a line is damaged.
    """
    chosen = next((form for form in STEP_FORMATS if form.recognises(source.head)), None)
    return read_run(source) if chosen is None else chosen.read(source)

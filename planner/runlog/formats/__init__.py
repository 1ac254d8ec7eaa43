"""Formats in which frameworks log training, one module each.

To add one, write `planner/runlog/formats/<name>.py` with a `LogFormat` and list it here; a contract test runs it. A
table of steps (`table.py`) is recognised by its first line instead.
"""

from __future__ import annotations

from planner.runlog.formats.arguments import ARGUMENTS
from planner.runlog.formats.bars import BARS
from planner.runlog.formats.composer import COMPOSER
from planner.runlog.formats.deepspeed import DEEPSPEED
from planner.runlog.formats.hugging_face import HUGGING_FACE
from planner.runlog.formats.litgpt import LITGPT
from planner.runlog.formats.megatron import MEGATRON
from planner.runlog.formats.nanotron import NANOTRON
from planner.runlog.formats.nemo import NEMO
from planner.runlog.formats.olmo_core import OLMO_CORE
from planner.runlog.formats.torchtitan import TORCHTITAN
from planner.runlog.formats.torchtune import TORCHTUNE

LOG_FORMATS = (
    MEGATRON, NANOTRON, TORCHTITAN, NEMO, HUGGING_FACE, TORCHTUNE, COMPOSER, LITGPT, OLMO_CORE, DEEPSPEED, BARS,
    ARGUMENTS,
)  # fmt: skip
"""All formats. Those with `joins` come last: their steps count only in a log in which no other format has steps."""

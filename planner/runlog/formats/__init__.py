"""The ways in which frameworks log training, one module each.

To add one, write `planner/runlog/formats/<name>.py` with a `LogFormat` and list it here; a contract test runs it. A
table of steps (`table.py`) is told by its first line instead.
"""

from __future__ import annotations

from planner.runlog.formats.arguments import ARGUMENTS
from planner.runlog.formats.bars import BARS
from planner.runlog.formats.deepspeed import DEEPSPEED
from planner.runlog.formats.hugging_face import HUGGING_FACE
from planner.runlog.formats.megatron import MEGATRON
from planner.runlog.formats.nanotron import NANOTRON
from planner.runlog.formats.nemo import NEMO
from planner.runlog.formats.torchtitan import TORCHTITAN

LOG_FORMATS = (MEGATRON, NANOTRON, TORCHTITAN, NEMO, HUGGING_FACE, DEEPSPEED, BARS, ARGUMENTS)
"""All of them. Those that `joins` come last: they lead only a log in which no other one has steps."""

"""Reading of a log that a test wrote."""

from __future__ import annotations

import io

from planner.runlog.log import RunLog
from planner.runlog.read import read_log


def read(content: bytes, name: str = "run.log") -> RunLog:
    return read_log(io.BytesIO(content), name)

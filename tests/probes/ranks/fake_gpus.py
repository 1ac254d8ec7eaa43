"""The probe process of one of several ranks, on a fake H200 of its own; torchrun can start it as the real one.

Its second argument says what is special about which rank, as JSON: fields of `Board` and of `FaultyPoints`, by rank.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import fields
from typing import Any

from probes.process.worker import main
from tests.probes.fake_cuda.board import Board
from tests.probes.fake_cuda.installed import fake_cuda
from tests.probes.fake_cuda.small import FaultyPoints
from tests.probes.fake_cuda.traced import traced


def board_of(local_rank: int, local_world: int, special: dict[str, Any]) -> Board:
    """The board of a rank: by default that of its number, of as many as there are ranks."""
    usual: dict[str, Any] = {"number": local_rank, "index": local_rank, "count": local_world}
    names = {field.name for field in fields(Board)}
    return Board(**(usual | {name: value for name, value in special.items() if name in names}))


def faulty_of(special: dict[str, Any]) -> FaultyPoints:
    """The points of a rank that something happens to."""
    names = ("out_of_memory", "uncapturable", "broken")
    return FaultyPoints(**{name: value for name, value in special.items() if name in names})


if __name__ == "__main__":
    wrong = json.loads(sys.argv.pop(2)).get(os.environ["RANK"], {})
    local_rank, local_world = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    board = board_of(local_rank, local_world, wrong)
    with traced(), fake_cuda(faulty_of(wrong), board, whole_models=False):
        code = main()
    sys.exit(code)

"""The probe processes of two ranks, on a fake H200 each; their exit codes go into the file that is named last.

Rank 0 alone says on stdout what happens. The second argument says what is special about which rank, as JSON: fields of
`Board` and of `FaultyPoints`, by rank.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from probes.process.worker import main
from tests.probes.fake_cuda.board import Board
from tests.probes.fake_cuda.installed import fake_cuda
from tests.probes.fake_cuda.small import FaultyPoints
from tests.probes.fake_cuda.traced import traced
from tests.probes.ranks.forked import fork_ranks


def board_of(local_rank: int, local_world: int, special: dict[str, Any]) -> Board:
    """The board of a rank: by default that of its number, of as many as there are ranks."""
    usual: dict[str, Any] = {"number": local_rank, "index": local_rank, "count": local_world}
    names = {field.name for field in fields(Board)}
    return Board(**(usual | {name: value for name, value in special.items() if name in names}))


def faulty_of(special: dict[str, Any]) -> FaultyPoints:
    """The points of a rank that something happens to."""
    names = ("out_of_memory", "uncapturable", "broken")
    return FaultyPoints(**{name: value for name, value in special.items() if name in names})


def measure(special: dict[str, dict[str, Any]]) -> int:
    """What one rank does; its exit code."""
    wrong = special.get(os.environ["RANK"], {})
    if os.environ["RANK"] != "0":
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    board = board_of(int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]), wrong)
    with traced(), fake_cuda(faulty_of(wrong), board, whole_models=False):
        return main()


if __name__ == "__main__":
    codes_path = Path(sys.argv.pop(3))
    run = partial(measure, json.loads(sys.argv.pop(2)))
    codes = fork_ranks(2, run, "torch.distributed.fsdp", "torch.nn.attention.bias")
    codes_path.write_text(json.dumps(codes), encoding="utf-8")

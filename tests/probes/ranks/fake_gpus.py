"""The probe process of one of several ranks, on a fake H200 of its own; a program for torchrun.

Its second argument says what is wrong with which rank, as JSON: for a rank, fields of `Board` and of `FaultyPoints`.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import fields

from probes.process.worker import main
from tests.probes.fake_cuda.board import Board
from tests.probes.fake_cuda.installed import fake_cuda
from tests.probes.fake_cuda.small import FaultyPoints

if __name__ == "__main__":
    wrong = json.loads(sys.argv.pop(2)).get(os.environ["RANK"], {})
    values = {name: wrong.pop(name) for name in {field.name for field in fields(Board)} & wrong.keys()}
    board = Board(**({"index": int(os.environ["LOCAL_RANK"]), "count": int(os.environ["LOCAL_WORLD_SIZE"])} | values))
    with fake_cuda(FaultyPoints(**wrong), board):
        code = main()
    sys.exit(code)

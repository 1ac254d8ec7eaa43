"""Ranks as forks of one process: what they import, PyTorch most of all, is imported once and not by each of them."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGKILL
from typing import IO, Any

ROOT = Path(__file__).parents[3]


@contextmanager
def held_port() -> Iterator[int]:
    """A port of this machine that the system gives to nobody else until the block ends, and that a rank can listen on.

    It is bound here without listening, and PyTorch's store binds it again, since both set SO_REUSEADDR. A port that is
    merely free now may be taken by anyone before rank 0 listens on it.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


def fork_ranks(world: int, run: Callable[[], int | None], *imported: str) -> list[int]:
    """Run it in so many processes, each of which is told its place as torchrun tells it; returns their exit codes.

    Args:
        world: so many.
        run: what each does; nothing that was imported for it may have started a thread, which a fork would not have.
        imported: modules that it imports only as it runs: once for all ranks.
    """
    for name in imported:
        importlib.import_module(name)
    with held_port() as port:
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        os.environ |= {"WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world)}
        ranks = [os.fork() or _end_as(rank, run) for rank in range(world)]
        return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in ranks]


def _end_as(rank: int, run: Callable[[], int | None]) -> int:
    """End this process with what it returns or fails with."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    code: Any = 1
    try:
        code = run() or 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


@contextmanager
def forking(command: Sequence[str], **settings: Any) -> Any:
    """A process that forks ranks, in a group with them, of which none is left when the block ends."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process: subprocess.Popen[str] = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, env=environment, text=True, start_new_session=True, **settings
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            _close(pipe)


def _close(pipe: IO[str] | None) -> None:
    if pipe is not None:
        pipe.close()

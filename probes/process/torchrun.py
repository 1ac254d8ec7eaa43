"""Several ranks through torchrun: the command that starts them, and the meaning of its last messages."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Mapping

from planner.errors import CannotMeasureError
from probes.record.options import Options


def is_rank(environment: Mapping[str, str]) -> bool:
    """Return whether torchrun has started this very process as one of several."""
    return "TORCHELASTIC_RUN_ID" in environment and int(environment.get("WORLD_SIZE", "1")) > 1


def ranks_of(environment: Mapping[str, str]) -> tuple[int, int, int]:
    """Return the ranks per node, the nodes, and the rank of this process, from torchrun's variables."""
    local = int(environment.get("LOCAL_WORLD_SIZE", "1"))
    return local, max(int(environment["WORLD_SIZE"]) // local, 1), int(environment["RANK"])


def torchrun(options: Options, log_dir: str) -> list[str]:
    """Return the command, up to the module that each rank runs.

    Args:
        options: give the ranks and nodes.
        log_dir: directory for torchrun's files.
    """
    if options.rdzv_endpoint is None:
        meeting = ["--standalone"]
    else:
        meeting = [
            f"--nnodes={options.nnodes}", "--rdzv-backend=c10d", f"--rdzv-endpoint={options.rdzv_endpoint}",
            "--rdzv-id=mpplan", f"--rdzv-conf=join_timeout={options.join_s:.0f}",
        ]  # fmt: skip
    return [
        sys.executable, "-m", "torch.distributed.run", *meeting, f"--nproc-per-node={options.ranks}",
        "--max-restarts=0", "--monitor-interval=0.2", f"--log-dir={log_dir}", "-m",
    ]  # fmt: skip


_ROOT_CAUSE = re.compile(
    r"Root Cause \(first observed failure\):.*?rank\s*:\s*(\d+).*?exitcode\s*:\s*(-?\d+)", re.DOTALL
)


def first_failure(stderr: str) -> str | None:
    """Return which rank failed first, and how, from torchrun's last messages; None if they do not report it."""
    cause = _ROOT_CAUSE.search(stderr)
    if cause is None:
        return None
    rank, code = cause[1], int(cause[2])
    if code < 0:
        name = signal.Signals(-code).name
        why = " (the system ran out of memory?)" if name == "SIGKILL" else ""
        return f"rank {rank} was ended by {name}{why}"
    return f"rank {rank} failed with exit code {code}"


def check_rendezvous(stderr: str, options: Options) -> None:
    """Check that the nodes met.

    Raises:
        CannotMeasureError: they did not.
    """
    if "RendezvousTimeoutError" in stderr:
        raise CannotMeasureError(
            f"fewer than {options.nnodes} nodes joined at {options.rdzv_endpoint} within {options.join_s:.0f} s",
            hint="start `mpplan probe` with the same `--rdzv-endpoint` on every node; `--join-timeout` waits longer",
        )
    if "RendezvousConnectionError" in stderr:
        raise CannotMeasureError(
            f"nothing answers at {options.rdzv_endpoint}",
            hint="`--rdzv-endpoint` is the address of one of the nodes, and a port that is open between them",
        )

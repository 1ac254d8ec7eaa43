"""The number of ranks of a probe, from its flags or torchrun, and the smaller run whose record predicts its steps."""

from __future__ import annotations

import os
import re

from planner.errors import InputFileError, UsageError
from planner.lazy import dataclass
from planner.records.home import user_path
from planner.records.store import record_of_gpu
from planner.units import parse_duration_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Several:
    """The ranks of a run."""

    ranks: int
    """Ranks on this node."""
    nnodes: int
    rdzv_endpoint: str | None
    join_s: float
    rank: int = 0
    """Rank of this process, if torchrun started it."""


def ranks_asked_for(
    ranks: int | None, nnodes: int, rdzv_endpoint: str | None, join_timeout: str, gpu_index: int
) -> Several:
    """Return the ranks that the flags or torchrun's environment ask for.

    Raises:
        UsageError: flags contradict each other or torchrun.
    """
    from probes.process.torchrun import is_rank, ranks_of

    join_s = parse_duration_s(join_timeout, "--join-timeout")
    if is_rank(os.environ):
        local, nodes, rank = ranks_of(os.environ)
        if ranks not in (None, local) or nnodes not in (1, nodes) or rdzv_endpoint:
            raise UsageError(
                f"torchrun has started {local} ranks on each of {nodes} nodes already",
                hint="leave out --ranks, --nnodes and --rdzv-endpoint: torchrun has its own",
            )
        return Several(ranks=local, nnodes=nodes, rdzv_endpoint=None, join_s=join_s, rank=rank)
    if nnodes > 1 and rdzv_endpoint is None:
        raise UsageError(
            f"--nnodes {nnodes} needs --rdzv-endpoint",
            hint="give every node the address of one of them and a free port there",
        )
    if rdzv_endpoint is not None and not re.fullmatch(r"[^\s:]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}", rdzv_endpoint):
        raise UsageError(
            f"--rdzv-endpoint: expected HOST:PORT, found `{rdzv_endpoint}`", hint="write it like `node01:29500`"
        )
    if nnodes > 1 and ranks is None:
        raise UsageError(f"--nnodes {nnodes} needs --ranks", hint="give the number of GPUs on each node")
    if (ranks or 1) * nnodes > 1 and gpu_index:
        raise UsageError(
            "--gpu-index selects a single GPU", hint="set CUDA_VISIBLE_DEVICES to choose the GPUs of --ranks"
        )
    return Several(ranks=ranks or 1, nnodes=nnodes, rdzv_endpoint=rdzv_endpoint, join_s=join_s)


def record_of_fewer(path: str, several: Several, kind: str) -> str:
    """Return the path of the record that `--verify-from` names; only rank 0 checks it.

    Raises:
        UsageError: there is only one rank, or the file cannot be read.
        InputFileError: it holds no steps of single ranks, has at least as many ranks, or is of another device kind.
    """
    ranks = several.ranks * several.nnodes
    if ranks < 2:
        raise UsageError("--verify-from predicts steps of several ranks", hint="add `--ranks`")
    own = user_path(path)
    if several.rank > 0:
        return str(own)
    points = record_of_gpu(own, None).file.latest()
    worlds = {p.communication.world or 0 for p in points if p.setup.parallel == "alone" and p.usable_time}
    if not worlds:
        raise InputFileError(
            f"{path}: parallel: expected steps of several ranks, found none",
            hint="measure them with `mpplan probe --ranks N`",
        )
    if max(worlds) >= ranks:
        raise InputFileError(
            f"{path}: world: expected fewer ranks than the {ranks} of this run, found {max(worlds)}",
            hint="name a record of fewer, or measure with more `--ranks`",
        )
    if points[0].device.kind != kind:
        raise InputFileError(
            f"{path}: device_kind: expected `{kind}`, found `{points[0].device.kind}`",
            hint="name a record of the same kind of device",
        )
    return str(own)

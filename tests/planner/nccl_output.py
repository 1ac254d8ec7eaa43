"""Output of nccl-tests as NVIDIA/nccl-tests `src/util.cu` prints it (2.17), of collectives that take chosen times."""

from __future__ import annotations

from collections.abc import Callable

FACTORS: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
    "sendrecv": lambda n: 1.0,
}
"""busbw over algbw, doc/PERFORMANCE.md."""
IN_PLACE = ("all_reduce", "all_gather", "reduce_scatter")
"""Collectives that are checked in place too."""
REDUCING = ("all_reduce", "reduce_scatter", "sendrecv")
"""Collectives whose column `redop` names an operation; that of sendrecv says `sum` as well."""
HEADER = (
    "#                                                              out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw"
    "  #wrong \n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)\n"
)
FOOTER = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 123.456 \n#\n"
H100 = "NVIDIA H100 80GB HBM3"


def printed(value: float, width: int) -> str:
    """A number as `getFloatStr` writes it: as many decimals as fit."""
    return next(text for digits in (2, 1, 0) if len(text := f"{value:{width}.{digits}f}") <= width)


def rank_lines(nodes: int, per_node: int, device: str = H100) -> str:
    """The devices of a run, as they have been listed since 2022."""
    return "# Using devices\n" + "".join(
        f"#  Rank {node * per_node + gpu:2d} Group  0 Pid {6800 + gpu:6d} on {f'host-{node}':>10s} device {gpu:2d} "
        f"[0000:{gpu:02x}:00] {device}\n"
        for node in range(nodes)
        for gpu in range(per_node)
    )


def row(collective: str, ranks: int, size: int, time_s: float, *, checked: bool = True) -> str:
    """One size, out of place and in place alike."""
    algorithm = size / time_s / 1e9
    bandwidths = f"{printed(algorithm, 6)}  {printed(algorithm * FACTORS[collective](ranks), 6)}"
    times = f"  {printed(time_s * 1e6, 7)}  {bandwidths}"
    redop = "sum" if collective in REDUCING else "none"
    verdicts = [f"{'0':>6s}" if has_verdict and checked else "   N/A" for has_verdict in (True, collective in IN_PLACE)]
    return f"{size:12d}  {size // 4:12d}  {'float':>8s}  {redop:>6s}  {-1:6d}" + "".join(
        f"{times}  {verdict}" for verdict in verdicts
    )


def output(
    collective: str,
    nodes: int,
    per_node: int,
    time_s: Callable[[float], float],
    *,
    sizes: tuple[int, ...] = tuple(2**power for power in range(3, 34)),
    named: bool = True,
    checked: bool = True,
    device: str = H100,
) -> str:
    """What a run prints.

    Args:
        collective: one of `FACTORS`.
        nodes: hosts.
        per_node: GPUs of each.
        time_s: of a message's bytes.
        sizes: of the messages; 8 B to 8 GiB.
        named: whether the version prints the collective's name (from 2025).
        checked: whether results were compared with what is right (`-c 1`).
        device: name of the GPUs.
    """
    start = f"# nccl-tests version 2.17.6\n# Collective test starting: {collective}_perf\n" if named else ""
    rows = [row(collective, nodes * per_node, size, time_s(float(size)), checked=checked) for size in sizes]
    settings = "# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 1 iters: 20\n#\n"
    return start + settings + rank_lines(nodes, per_node, device) + "#\n" + HEADER + "\n".join(rows) + "\n" + FOOTER

"""Points of several ranks for tests: collectives that take chosen times on H200s, as `mpplan probe` writes them."""

from __future__ import annotations

from collections.abc import Callable

from planner.records.communication import rates_of
from planner.records.measurement import Measurement
from tests.planner.recorded import H200, a_measurement

SIZES = tuple(2**power for power in range(10, 31))
"""1 KiB to 1 GiB."""


def collective(
    size_bytes: float, time_s: float, *, op: str = "all_reduce", group: str = "world", world: int = 16, nodes: int = 2,
    sd: float = 0.005, **changes: object,
) -> Measurement:  # fmt: skip
    """One size; `sd` is the relative standard error of its median."""
    algorithm, bus = rates_of(op, world, size_bytes, time_s)
    values: dict[str, object] = {
        "probe_id": f"collective/{op}/{group}/{size_bytes:.0f}", "kind": "collective", "precision": None,
        "recipe": None, "role": None, "op": op, "group": group, "backend": "nccl", "world": world, "nodes": nodes,
        "bytes": float(size_bytes), "algorithm_bytes_per_s": algorithm, "bus_bytes_per_s": bus, "time_median_s": time_s,
        "time_ci_low_s": time_s * (1.0 - 1.96 * sd), "time_ci_high_s": time_s * (1.0 + 1.96 * sd),
    }  # fmt: skip
    present = {key: value for key, value in (values | H200 | changes).items() if value is not None}
    return a_measurement(**present)


def collectives(time_s: Callable[[float], float], **changes: object) -> list[Measurement]:
    """1 KiB to 1 GiB in powers of two."""
    return [collective(float(size), time_s(float(size)), **changes) for size in SIZES]  # type: ignore[arg-type]

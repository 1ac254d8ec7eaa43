"""The events of a PyTorch profiler trace: which kernels an operator launched, and how long they ran.

Kineto exports a trace for Chrome's viewer (`torch.profiler`, `export_chrome_trace`). Its `traceEvents` hold operators
(`cat: cpu_op`, with shapes in `Input Dims` if `record_shapes=True`), launches (`cuda_runtime`, `cuda_driver`) and
kernels (`kernel`), with times in microseconds. A kernel has the `External id` of the operator that launched it and the
`correlation` of its launch. Kernels that a CUDA graph replays carry the id of whatever operator came last. A kernel is
therefore attributed to an operator only if its launch falls within that operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.imported.source import SourceFile, clean_name
from planner.lazy import dataclass
from planner.runlog.amounts import as_number
from planner.units import MICRO

LAUNCHES = ("cuda_runtime", "cuda_driver")
MOST_EVENTS = 5_000_000
HINT = "profile some steps with `profile(activities=[CPU, CUDA], record_shapes=True)` and `export_chrome_trace`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One call of an operator on the host."""

    name: str
    dims: tuple[tuple[int, ...], ...]
    """Shape of each input; empty if the input is not a tensor."""
    types: tuple[str, ...]
    """Type of each input, as PyTorch names it: `c10::BFloat16`, `float`."""
    values: tuple[str, ...]
    """Value of each input that is not a tensor, as text."""
    start_us: float
    end_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An operator with the kernels that it launched on one GPU."""

    operator: Operator
    kernels: tuple[str, ...]
    """Names of the kernels, in the order of the trace."""
    seconds: float
    """Total time of its kernels."""
    alone: bool
    """Whether no kernel of another stream ran at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One copy within the memory of a GPU."""

    copied_bytes: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """All work on the GPUs of a trace."""

    calls: tuple[Call, ...]
    """Operators that have kernels."""
    copies: tuple[Copy, ...]
    unlinked_s: dict[str, float]
    """Time of kernels that belong to no operator with shapes, by name."""
    total_s: float
    """Time of all kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Events:
    operators: dict[int, Operator] = field(default_factory=dict)
    """Operators by external id."""
    launches: dict[int, tuple[str, float]] = field(default_factory=dict)
    """Name and time of each launching call, by correlation."""
    kernels: list[_Kernel] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kernel:
    name: str
    start_us: float
    end_us: float
    device: int
    stream: int
    external: int | None
    correlation: int | None


def read_kernels(source: SourceFile, document: Mapping[str, Any]) -> Kernels:
    """Read the kernels of a trace, with the operators that launched them.

    Raises:
        InputFileError: there are no events, too many events or no kernels, or an event has invalid times.
    """
    events = document.get("traceEvents")
    if not isinstance(events, list) or len(events) > MOST_EVENTS:
        raise source.fail(1, f"traceEvents: expected a list of at most {MOST_EVENTS:,} events", HINT)
    read = _Events()
    for number, event in enumerate(events):
        if isinstance(event, dict) and event.get("ph") == "X":
            _take(source, number, event, read)
    if not read.kernels:
        raise source.fail(1, "traceEvents: expected GPU kernels, found none", HINT)
    return _linked(read)


def _take(source: SourceFile, number: int, event: Mapping[str, Any], read: _Events) -> None:
    category, args = event.get("cat"), event.get("args")
    details: Mapping[str, Any] = args if isinstance(args, dict) else {}
    if category == "cpu_op":
        external = _id(details, "External id", "external id")
        if external is not None and "Input Dims" in details:
            read.operators[external] = _operator(source, number, event, details)
    elif category in LAUNCHES:
        correlation = _id(details, "correlation")
        if correlation is not None:
            read.launches[correlation] = (str(event.get("name")), _span(source, number, event)[0])
    elif category == "kernel":
        start_us, end_us = _span(source, number, event)
        read.kernels.append(
            _Kernel(
                name=str(event.get("name")), start_us=start_us, end_us=end_us,
                device=_id(details, "device") or 0, stream=_id(details, "stream") or 0,
                external=_id(details, "External id", "external id"), correlation=_id(details, "correlation"),
            )
        )  # fmt: skip
    elif category == "gpu_memcpy" and "Device -> Device" in str(event.get("name")):
        start_us, end_us = _span(source, number, event)
        copied_bytes = as_number(details.get("bytes"))
        if copied_bytes and end_us > start_us:
            read.copies.append(Copy(copied_bytes=copied_bytes, seconds=(end_us - start_us) * MICRO))


def _id(details: Mapping[str, Any], *keys: str) -> int | None:
    value = next((details[key] for key in keys if key in details), None)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def _span(source: SourceFile, number: int, event: Mapping[str, Any]) -> tuple[float, float]:
    """Start and end of an event in microseconds."""
    start_us, duration_us = as_number(event.get("ts")), as_number(event.get("dur"))
    if start_us is None or duration_us is None:
        key = "ts" if start_us is None else "dur"
        value = clean_name(str(event.get(key))[:200])
        raise source.fail(1, f"traceEvents[{number}].{key}: expected a number of at least 0, found `{value}`", HINT)
    return start_us, start_us + duration_us


def _operator(source: SourceFile, number: int, event: Mapping[str, Any], details: Mapping[str, Any]) -> Operator:
    start_us, end_us = _span(source, number, event)
    return Operator(
        name=str(event.get("name")),
        dims=tuple(_shape(dims) for dims in _list(details.get("Input Dims"))),
        types=tuple(str(name) for name in _list(details.get("Input type"))),
        values=tuple(str(value) for value in _list(details.get("Concrete Inputs"))),
        start_us=start_us,
        end_us=end_us,
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _shape(dims: Any) -> tuple[int, ...]:
    """Sizes of a tensor; empty if it is not a tensor (a list of tensors, a number) or has no elements."""
    sizes = _list(dims)
    whole = all(isinstance(size, int) and not isinstance(size, bool) and 0 < size < 2**40 for size in sizes)
    return tuple(sizes) if whole else ()


def _linked(read: _Events) -> Kernels:
    alone = _alone(read.kernels)
    by_call: dict[tuple[int, int], list[int]] = {}
    unlinked: dict[str, float] = {}
    for number, kernel in enumerate(read.kernels):
        if _launched_within(kernel, read):
            by_call.setdefault((kernel.device, kernel.external or 0), []).append(number)
        else:
            unlinked[kernel.name] = unlinked.get(kernel.name, 0.0) + _seconds(kernel)
    return Kernels(
        calls=tuple(_calls(read, by_call, alone)),
        copies=tuple(read.copies),
        unlinked_s=unlinked,
        total_s=sum(_seconds(kernel) for kernel in read.kernels),
    )


def _calls(read: _Events, by_call: Mapping[tuple[int, int], list[int]], alone: npt.NDArray[np.bool_]) -> Iterator[Call]:
    for (_, external), numbers in by_call.items():
        kernels = [read.kernels[number] for number in numbers]
        yield Call(
            operator=read.operators[external],
            kernels=tuple(kernel.name for kernel in kernels),
            seconds=sum(_seconds(kernel) for kernel in kernels),
            alone=bool(alone[numbers].all()),
        )


def _launched_within(kernel: _Kernel, read: _Events) -> bool:
    """Whether the operator whose id a kernel carries launched it directly, not as part of a graph."""
    operator = None if kernel.external is None else read.operators.get(kernel.external)
    launch = None if kernel.correlation is None else read.launches.get(kernel.correlation)
    if operator is None or launch is None:
        return False
    name, launch_us = launch
    return "Graph" not in name and operator.start_us <= launch_us <= operator.end_us


def _seconds(kernel: _Kernel) -> float:
    return (kernel.end_us - kernel.start_us) * MICRO


def _alone(kernels: list[_Kernel]) -> npt.NDArray[np.bool_]:
    """Whether each kernel overlaps no kernel on another stream of its GPU, `[kernel]`."""
    starts, ends = np.array([k.start_us for k in kernels]), np.array([k.end_us for k in kernels])
    devices, streams = np.array([k.device for k in kernels]), np.array([k.stream for k in kernels])
    alone = np.ones(len(kernels), dtype=np.bool_)
    for device, stream in {(kernel.device, kernel.stream) for kernel in kernels}:
        same_stream = (devices == device) & (streams == stream)
        other_streams = (devices == device) & (streams != stream)
        if other_streams.any():
            order = np.argsort(starts[other_streams])
            begun, latest = starts[other_streams][order], np.maximum.accumulate(ends[other_streams][order])
            before = np.searchsorted(begun, ends[same_stream], side="left")
            latest_end = np.where(before > 0, latest[np.maximum(before - 1, 0)], -np.inf)
            alone[same_stream] = latest_end <= starts[same_stream]
    return alone

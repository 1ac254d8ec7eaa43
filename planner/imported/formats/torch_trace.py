"""Trace of the PyTorch profiler: its matrix products, attention and copies as points of a record.

Only kernels whose operator recorded its shapes become points. Elementwise kernels are left out: each moves its own
bytes, whereas the planner's rate of memory-bound work refers to the least traffic of a whole norm or loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.imported.formats.base import ImportFormat
from planner.imported.formats.trace_events import HINT, Call, Copy, Kernels, read_kernels
from planner.imported.formats.trace_shapes import (
    BACKWARD,
    FORWARD,
    AttentionShape,
    ProductShape,
    attention_of,
    product_of,
)
from planner.imported.reading import ImportContext, ImportedPoint, Reading, statistics_of
from planner.imported.source import SourceFile, clean_name
from planner.measured.kernels import ELEMENT_BYTES
from planner.records.figures import Sampling, TimeStatistics
from planner.records.machine import SoftwareVersions
from planner.records.work import RunSetup, WorkCounts, WorkShape
from planner.runlog.amounts import as_number
from planner.runlog.moments import Moment, parse_moment
from planner.units import MICRO, NANO

KERNEL_SD = 0.10
"""Relative standard deviation of a kernel's rate, since the clock, the temperature and the effect of its step on the
cache are unknown. The same kernel runs up to a tenth slower at the power limit than in a burst (`docs/kernels.md`)."""
FEW_SHAPES, FEW_SHAPES_SD = 6, 0.20
"""Number of shapes of one recipe below which other shapes have little evidence, and the relative standard deviation
that then applies."""
FEWEST_ALONE = 3
"""Number of undisturbed calls of a shape from which on the disturbed calls are left out."""
LEAST_COPY_BYTES = 256e6
"""Smallest copy that counts; smaller ones may come from a cache."""
CUDA_MAJOR, CUDA_MINOR = 1000, 10
"""Divisors of CUDART_VERSION for its major and minor version."""
LATEST_NS = 2**63 - 1
"""Latest time in nanoseconds since 1970 that the profiler's 64 bits can hold."""
SHOWN_KERNELS = 3
PRECISIONS = {
    "bf16-pure": "bf16", "fp16": "fp16", "fp32": "fp32", "tf32": "tf32", "fp8": "fp8", "fp8-rowwise": "fp8",
    "mxfp8": "mxfp8",
}  # fmt: skip

DOUBTS = (
    "kernels inside training steps: clock, heat and power limit are not known",
    "a few steps, traced: bursts run faster than hours of training",
)


def _recognises(head: str) -> bool:
    return head.lstrip().startswith("{") and ('"traceEvents"' in head or '"deviceProperties"' in head)


def _read(source: SourceFile, context: ImportContext) -> Reading:
    document = source.document()
    if not isinstance(document, dict):
        raise source.fail(1, "expected a JSON object with `traceEvents`", HINT)
    kernels = read_kernels(source, document)
    points = [*_products(kernels), *_attention(kernels), *_copies(kernels)]
    if not points:
        raise source.fail(1, "Input Dims: expected matrix products or attention with their shapes, found none", HINT)
    device = _device(document)
    rank = document.get("distributedInfo")
    ranks = _whole(rank.get("world_size")) if isinstance(rank, dict) else None
    doubts = [*DOUBTS, *_coverage_doubts(kernels, points)]
    if ranks is not None and ranks > 1:
        doubts.append(f"one rank of {ranks}")
    memory_bytes = as_number(device.get("totalGlobalMem"))
    return Reading(
        points=tuple(points),
        doubts=tuple(doubts),
        device_name=clean_name(str(device.get("name") or "")) or None,
        memory_total_bytes=memory_bytes or None,
        software=SoftwareVersions(cuda_version=_cuda(document)),
        date=_date(document),
    )


def _device(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Properties of the first GPU in the trace; a process sees the GPUs of its node, which are all of one kind."""
    devices = document.get("deviceProperties")
    first = devices[0] if isinstance(devices, list) and devices else None
    return first if isinstance(first, dict) else {}


def _whole(value: Any) -> int | None:
    amount = as_number(value)
    return None if amount is None or amount != int(amount) else int(amount)


def _cuda(document: Mapping[str, Any]) -> str | None:
    """CUDA version of the trace: `12.8` from 12080."""
    version = _whole(document.get("cuda_runtime_version"))
    if not version:
        return None
    major, remainder = divmod(version, CUDA_MAJOR)
    return f"{major}.{remainder // CUDA_MINOR}"


def _date(document: Mapping[str, Any]) -> str | None:
    """Time of the first event: nanoseconds of the base plus microseconds of the event, since 1970."""
    base_ns = document.get("baseTimeNanoseconds")
    events = document.get("traceEvents", [])
    first = next((e for e in events if isinstance(e, dict) and e.get("ph") == "X" and as_number(e.get("ts"))), None)
    if isinstance(base_ns, bool) or not isinstance(base_ns, int | float) or first is None:
        return None
    if not 0 <= base_ns <= LATEST_NS:
        return None
    seconds = base_ns * NANO + (as_number(first["ts"]) or 0.0) * MICRO
    moment: Moment | None = parse_moment(seconds)
    return None if moment is None else moment.iso()


def _coverage_doubts(kernels: Kernels, points: list[ImportedPoint]) -> list[str]:
    """Doubts about the share of kernel time that is in no point, and the longest kernels without shapes."""
    used_s = sum((point.time.median_s or 0.0) * (point.sampling.samples or 0) for point in points)
    share = 1.0 - min(used_s / kernels.total_s, 1.0) if kernels.total_s else 0.0
    longest = sorted(kernels.unlinked_s, key=lambda name: -kernels.unlinked_s[name])[:SHOWN_KERNELS]
    doubts = [f"{share:.0%} of the kernels' time is in no point: other kernels, or known by name only"]
    if longest:
        doubts.append(f"no shapes were recorded for {', '.join(clean_name(name) for name in longest)}")
    return doubts


def _undisturbed(calls: list[Call]) -> tuple[list[float], str]:
    """Times of the calls that ran alone if there are enough, else of all calls; and the quality of the times."""
    alone_s = [call.seconds for call in calls if call.alone and call.seconds > 0]
    if len(alone_s) >= FEWEST_ALONE or len(alone_s) == len(calls):
        return alone_s, "ok"
    return [call.seconds for call in calls if call.seconds > 0], "contended"


def _products(kernels: Kernels) -> list[ImportedPoint]:
    by_shape: dict[ProductShape, list[Call]] = {}
    for call in kernels.calls:
        shape = product_of(call)
        if shape is not None:
            by_shape.setdefault(shape, []).append(call)
    shapes = [shape.recipe for shape in by_shape]
    return [
        point
        for shape, calls in by_shape.items()
        if (point := _product(shape, calls, shapes.count(shape.recipe))) is not None
    ]


def _product(shape: ProductShape, calls: list[Call], shapes: int) -> ImportedPoint | None:
    times, quality = _undisturbed(calls)
    if not times:
        return None
    m, n, k, recipe = float(shape.m), float(shape.n), float(shape.k), shape.recipe
    size = ELEMENT_BYTES.get(recipe, 2.0)
    few = shapes < FEW_SHAPES
    return ImportedPoint(
        name=f"{shape.m}x{shape.n}x{shape.k}/{recipe}",
        kind="gemm",
        setup=RunSetup(precision=PRECISIONS[recipe], recipe=recipe),
        shape=WorkShape(gemm_m=shape.m, gemm_n=shape.n, gemm_k=shape.k),
        counts=WorkCounts(flop_model=2.0 * m * n * k, bytes_min=(m * k + n * k) * size + m * n * max(size, 2.0)),
        time=statistics_of(times),
        sampling=_sampling(times, calls, quality),
        sd_ratio=FEW_SHAPES_SD if few else KERNEL_SD,
        doubts=(f"fewer than {FEW_SHAPES} shapes of {recipe}: other shapes rest on these",) if few else (),
    )


def _sampling(times: list[float], calls: list[Call], quality: str) -> Sampling:
    return Sampling(samples=len(times), samples_gated=len(calls) - len(times), regime="burst", quality=quality)


def _attention(kernels: Kernels) -> list[ImportedPoint]:
    """Points of attention whose forward and backward kernels were both traced."""
    forward, backward = (_by_attention(kernels, operators) for operators in (FORWARD, BACKWARD))
    points = []
    for shape, calls in forward.items():
        forward_times, forward_quality = _undisturbed(calls)
        backward_times, backward_quality = _undisturbed(backward.get(shape, []))
        if forward_times and backward_times:
            quality = forward_quality if backward_quality == "ok" else backward_quality
            points.append(_attention_point(shape, forward_times, backward_times, quality))
    return points


def _by_attention(kernels: Kernels, operators: Mapping[str, Any]) -> dict[AttentionShape, list[Call]]:
    by_shape: dict[AttentionShape, list[Call]] = {}
    for call in kernels.calls:
        shape = attention_of(call, dict(operators))
        if shape is not None:
            by_shape.setdefault(shape, []).append(call)
    return by_shape


def _attention_point(shape: AttentionShape, forward: list[float], backward: list[float], quality: str) -> ImportedPoint:
    forward_time, backward_time = statistics_of(forward), statistics_of(backward)
    flop = 2.0 * shape.batch * shape.heads * shape.head_dim * float(shape.length) ** 2
    return ImportedPoint(
        name=f"s{shape.length}/b{shape.batch}h{shape.heads}kv{shape.kv_heads}d{shape.head_dim}/{shape.recipe}",
        kind="attention",
        setup=RunSetup(precision=PRECISIONS[shape.recipe], recipe=shape.recipe),
        shape=WorkShape(
            seq_len=shape.length, micro_batch=shape.batch, tokens=shape.batch * shape.length, heads=shape.heads,
            kv_heads=shape.kv_heads, head_dim=shape.head_dim,
        ),
        counts=WorkCounts(flop_model=3.0 * flop),
        time=TimeStatistics(
            median_s=(forward_time.median_s or 0.0) + (backward_time.median_s or 0.0),
            forward_median_s=forward_time.median_s,
            backward_median_s=backward_time.median_s,
        ),
        sampling=Sampling(samples=min(len(forward), len(backward)), regime="burst", quality=quality),
        sd_ratio=KERNEL_SD,
    )  # fmt: skip


def _copies(kernels: Kernels) -> list[ImportedPoint]:
    """Point of the copies of the most frequent size, among sizes that no cache can hold."""
    by_size: dict[float, list[Copy]] = {}
    for copy in kernels.copies:
        if copy.copied_bytes >= LEAST_COPY_BYTES:
            by_size.setdefault(copy.copied_bytes, []).append(copy)
    if not by_size:
        return []
    size_bytes, copies = max(by_size.items(), key=lambda item: len(item[1]))
    return [
        ImportedPoint(
            name="copy",
            kind="bandwidth",
            setup=RunSetup(role="copy"),
            counts=WorkCounts(bytes_min=2.0 * size_bytes),
            time=statistics_of([copy.seconds for copy in copies]),
            sampling=Sampling(samples=len(copies), regime="burst"),
            sd_ratio=KERNEL_SD,
        )
    ]


TORCH_TRACE = ImportFormat(
    name="torch-trace",
    what="a trace of the PyTorch profiler (`export_chrome_trace`), also as .json.gz",
    gives="rates of matrix products and attention by shape: plan with `--records` and the record",
    takes_steps=False,
    recognises=_recognises,
    read=_read,
)

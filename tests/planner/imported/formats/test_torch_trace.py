"""Traces of the PyTorch profiler: kernels whose shapes are known, those that are not, and what their times tell."""

from __future__ import annotations

import json

import pytest

from planner.errors import InputFileError
from planner.imported.formats.torch_trace import FEW_SHAPES_SD, KERNEL_SD
from planner.imported.formats.trace_events import read_kernels
from planner.imported.formats.trace_shapes import float_recipe
from planner.imported.reading import ImportedPoint, Reading
from planner.imported.source import SourceFile
from tests.planner.imported.readings import reading, sample, text_file
from tests.planner.imported.traces import BF16, START_US, Trace, add_attention, of_products, product_s
from tests.planner.recorded import SHAPES


def read(trace: Trace, **changes: object) -> Reading:
    return reading(SourceFile(name="trace.json", content=trace.written(**changes)))


def by_name(trace: Trace) -> dict[str, ImportedPoint]:
    return {point.name: point for point in read(trace).points}


def test_products_have_their_shape_their_type_and_the_median_of_their_time() -> None:
    points = by_name(of_products())

    assert list(points) == [f"{m}x{n}x{k}/bf16-pure" for m, n, k in SHAPES]
    point = points["8192x7168x8192/bf16-pure"]
    assert point.time.median_s == pytest.approx(product_s(8192, 7168, 8192), rel=1e-4)
    assert (point.setup.precision, point.setup.recipe, point.sampling.samples) == ("bf16", "bf16-pure", 8)
    assert point.counts.flop_model == 2.0 * 8192 * 7168 * 8192
    assert point.counts.bytes_min == 2.0 * (8192 * 8192 + 7168 * 8192 + 8192 * 7168)


def test_the_gpu_the_software_and_the_day_are_those_of_the_trace() -> None:
    trace = read(of_products())

    assert (trace.device_name, trace.memory_total_bytes) == ("NVIDIA H100 80GB HBM3", 84942979072.0)
    assert (trace.software.cuda_version, trace.date) == ("12.8", "2026-11-22T11:56:34+00:00")
    assert "one rank of 8" in trace.doubts


def test_all_kernels_that_an_operator_launched_count_for_it() -> None:
    trace = Trace()
    trace.call("aten::mm", [(64, 32), (32, 16)], [BF16, BF16], [("splitK", 3e-6), ("splitKreduce", 1e-6)])

    assert by_name(trace)["64x16x32/bf16-pure"].time.median_s == pytest.approx(4e-6, rel=1e-3)


def test_a_replayed_graph_gives_its_operator_no_kernels() -> None:
    trace = of_products()
    trace.call("aten::mm", [(99, 32), (32, 16)], [BF16, BF16], [("nvjet", 3e-6)], launch="cudaGraphLaunch")
    trace.call("aten::mm", [(98, 32), (32, 16)], [BF16, BF16], [("nvjet", 3e-6)], launched_late=True)

    assert not [name for name in by_name(trace) if name.startswith(("99x", "98x"))]


@pytest.mark.parametrize(
    ("name", "dims", "types", "kernel", "point"),
    [
        ("aten::addmm", [(16,), (8, 32), (32, 16)], [BF16] * 3, "nvjet", "8x16x32/bf16-pure"),
        ("aten::mm", [(8, 32), (32, 16)], ["c10::Half"] * 2, "hgemm", "8x16x32/fp16"),
        ("aten::mm", [(8, 32), (32, 16)], ["float"] * 2, "cutlass_80_tensorop_s1688tf32gemm", "8x16x32/tf32"),
        ("aten::mm", [(8, 32), (32, 16)], ["float"] * 2, "cutlass_80_simt_sgemm_128x64", "8x16x32/fp32"),
        ("aten::_scaled_mm", [(8, 32), (32, 16), (), ()], ["c10::Float8_e4m3fn"] * 2 + ["float"] * 2, "nvjet_qq",
         "8x16x32/fp8"),
        ("aten::_scaled_mm", [(8, 32), (32, 16), (8, 1), (1, 16)], ["c10::Float8_e4m3fn"] * 2 + ["float"] * 2, "nvjet",
         "8x16x32/fp8-rowwise"),
        ("aten::_scaled_mm", [(8, 32), (32, 16), (512,), (512,)],
         ["c10::Float8_e4m3fn"] * 2 + ["c10::Float8_e8m0fnu"] * 2, "nvjet", "8x16x32/mxfp8"),
    ],
)  # fmt: skip
def test_the_type_of_a_product_is_told_by_its_operands_and_kernels(
    name: str, dims: list[tuple[int, ...]], types: list[str], kernel: str, point: str
) -> None:
    trace = Trace()
    trace.call(name, dims, types, [(kernel, 5e-6)])

    assert list(by_name(trace)) == [point]


def test_the_time_of_all_kernels_is_that_of_calls_and_of_what_belongs_to_none() -> None:
    trace = of_products(repeats=2)
    trace.concurrent("ncclDevKernel_AllReduce", trace.device_us, 1e-3)

    kernels = read_kernels(text_file("", "trace.json"), trace.document())

    assert len(kernels.calls) == 2 * len(SHAPES)
    assert kernels.unlinked_s == {"ncclDevKernel_AllReduce": pytest.approx(1e-3)}
    assert kernels.total_s == pytest.approx(sum(call.seconds for call in kernels.calls) + 1e-3)


def test_a_kernel_that_names_no_arithmetic_leaves_it_open() -> None:
    assert float_recipe(("nvjet_tss_128x256",)) is None


@pytest.mark.parametrize(
    ("name", "dims", "types", "kernel"),
    [
        ("aten::mm", [(8, 32), (32, 16)], ["float", "float"], "nvjet_tss"),  # FP32 or TF32: the name does not say
        ("aten::mm", [(8, 32), (33, 16)], [BF16, BF16], "nvjet"),
        ("aten::mm", [(8, 32), (32, 16)], [BF16, "float"], "nvjet"),
        ("aten::bmm", [(4, 8, 32), (4, 32, 16)], [BF16, BF16], "nvjet"),
        ("aten::mul", [(8, 32), (8, 32)], [BF16, BF16], "elementwise"),
        ("aten::mm", [(8, -1), (-1, 16)], [BF16, BF16], "nvjet"),
        ("aten::_scaled_mm", [(8, 32), (32, 16), (3, 3)], ["c10::Float8_e4m3fn"] * 2 + ["float"], "nvjet"),
    ],
)
def test_what_is_not_known_for_sure_is_no_point(
    name: str, dims: list[tuple[int, ...]], types: list[str], kernel: str
) -> None:
    trace = Trace()
    trace.call(name, dims, types, [(kernel, 5e-6)])

    with pytest.raises(InputFileError, match="expected matrix products or attention with their shapes"):
        read(trace)


def test_causal_attention_has_its_forward_and_backward_time() -> None:
    trace = Trace()
    for _ in range(6):
        add_attention(trace, 2048, 4e-4, 9e-4)

    point = by_name(trace)["s2048/b1h32kv8d128/bf16-pure"]
    assert (point.time.forward_median_s, point.time.backward_median_s) == (pytest.approx(4e-4), pytest.approx(9e-4))
    assert point.counts.flop_model == 3.0 * 2.0 * 32 * 128 * 2048**2  # as the probe counts: half the scores, 1 + 2
    assert (point.shape.heads, point.shape.kv_heads, point.shape.tokens) == (32, 8, 2048)


def test_attention_that_is_not_causal_is_left_out() -> None:
    trace = of_products()
    add_attention(trace, 2048, 4e-4, 9e-4, causal="False")

    assert {point.kind for point in read(trace).points} == {"gemm"}


def test_kernels_beside_others_are_left_out_where_undisturbed_ones_remain() -> None:
    trace = of_products(repeats=6)
    trace.concurrent("ncclDevKernel_AllReduce", START_US, 20e-6)  # beside the first product of the first round

    points = by_name(trace)
    first = points["1024x1024x1024/bf16-pure"]
    assert (first.sampling.samples, first.sampling.samples_gated, first.sampling.quality) == (5, 1, "ok")


def test_a_shape_that_never_ran_alone_is_contended() -> None:
    trace = of_products(repeats=2)
    trace.concurrent("ncclDevKernel_AllReduce", START_US, 10.0)

    assert {point.sampling.quality for point in read(trace).points} == {"contended"}


def test_few_shapes_widen_what_rests_on_them() -> None:
    assert read(of_products(SHAPES[:5])).points[0].sd_ratio == FEW_SHAPES_SD
    assert read(of_products(SHAPES[:6])).points[0].sd_ratio == KERNEL_SD


def test_copies_too_large_for_a_cache_give_the_bandwidth() -> None:
    trace = of_products()
    trace.copy(2**30, 2 * 2**30 / 3e12)
    trace.copy(2**20, 1e-6)

    point = by_name(trace)["copy"]
    assert (point.kind, point.setup.role, point.sampling.samples) == ("bandwidth", "copy", 1)
    assert (point.counts.bytes_min or 0) / (point.time.median_s or 1) == pytest.approx(3e12, rel=1e-3)


def test_the_time_that_is_in_no_point_is_told_with_the_longest_names() -> None:
    trace = of_products(repeats=2)
    trace.concurrent("triton_poi_fused_add\x1b[31m", trace.device_us, 2 * sum(product_s(*shape) for shape in SHAPES))

    doubts = read(trace).doubts
    assert "50% of the kernels' time is in no point: other kernels, or known by name only" in doubts
    assert "no shapes were recorded for triton_poi_fused_add [31m" in doubts


def test_a_real_trace_of_a_cpu_holds_no_kernels_and_is_refused() -> None:
    with pytest.raises(InputFileError, match=r"torch-cpu\.trace\.json\.gz:1: traceEvents: expected GPU kernels"):
        reading(sample("torch-cpu.trace.json.gz"))


def test_the_operators_of_a_real_trace_stand_as_those_of_the_tests() -> None:
    """The made-up traces of a GPU have the operators' keys that torch 2.13 writes."""
    events = json.loads(sample("torch-cpu.trace.json.gz").text)["traceEvents"]
    real = next(event for event in events if event.get("name") == "aten::mm")
    made = next(event for event in of_products().events if event["name"] == "aten::mm")

    assert set(made) <= set(real)
    assert set(made["args"]) <= set(real["args"])
    assert real["args"]["Input type"][0] == BF16


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"traceEvents": 3}', "traceEvents: expected a list"),
        ('{"traceEvents": []}', "expected GPU kernels, found none"),
        ('{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": -1}]}', "traceEvents[0].dur"),
        ('{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "dur": 1}]}', "traceEvents[0].ts"),
        ('{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1, "dur": NaN}]}', "finite"),
        ('{"traceEvents": [[], 3, null, {"ph": "X"}]}', "found none"),
        ('[{"ph": "X"}]', "JSON object"),
    ],
)
def test_a_damaged_trace_is_refused_with_its_place(text: str, what: str) -> None:
    with pytest.raises(InputFileError) as caught:
        reading(text_file(text, "t.json"), form="torch-trace")
    assert str(caught.value).startswith("t.json:1: ")
    assert what in str(caught.value)

"""Matrix products in their three roles, at squares and at the shapes of shards of real models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import ceil

from planner.records.work import RunSetup, WorkCounts, WorkShape
from probes.device.device import Device
from probes.models.shapes import (
    LLAMA_8B,
    LLAMA_70B_TP8,
    LLAMA_405B_TP8,
    QWEN3_0_6B,
    SMALL,
    TINY,
    TINYLLAMA_1_1B,
    LayerShape,
)
from probes.precisions.interface import ROLES, PrecisionRecipe
from probes.timing.graphs import CAPTURED
from probes.timing.trial import CallTrial, Point, PointGroup, ProbePlan
from probes.workloads.expected import group_s

MNK = tuple[int, int, int]
TOKENS = 8192
"""Rows of the products at model shapes: one sequence of 8192 tokens."""
CACHES = 4.0
"""Operand sets rotate until they hold this many times the L2 cache, so that no call finds its operands there."""
L2_BYTES = 64e6
"""Assumed L2 cache of a device that does not report its size."""
MOST_COPIES = 128

_EXPERT: MNK = (512, 4096, 7168)
"""One expert of a fine-grained mixture of experts with few rows (DeepSeek-V3's sizes)."""
_HEAD: MNK = (TOKENS, 16032, 8192)
"""An eighth of a 70B model's output layer."""
_GPT2: tuple[MNK, ...] = ((1024, 2304, 768), (1024, 768, 3072))
"""Fused qkv and the second product of the feed-forward of GPT-2 small (Radford et al. 2019), one sequence."""
_SMALL_HEADS: tuple[MNK, ...] = ((1024, 50304, 768), (2048, 151936, 1024), (4096, 32000, 2048))
"""Output layers of GPT-2 small (vocabulary padded to 64s), Qwen3-0.6B and TinyLlama-1.1B: narrow, large vocabulary."""


def layer_shapes(layer: LayerShape, tokens: int) -> list[MNK]:
    """Return `(M, N, K)` of a layer's products."""
    return [(tokens, n, k) for k, n in layer.products]


class Gemm:
    """Rates of matrix products by shape, role and precision."""

    name = "gemm"
    summary = "matrix products at squares and shard shapes, forward and both gradients"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return one group per shape and role, with all precisions side by side."""
        groups = []
        for mnk, roles in self._shapes(plan):
            for role in roles:
                points = [
                    _point(recipe, role, mnk) for recipe in plan.kernel_recipes if _worth(recipe, role, mnk, plan)
                ]
                if points:
                    name = f"matrix product {mnk[0]}×{mnk[1]}×{mnk[2]} {role}"
                    estimate_s = group_s(plan, points) if plan.on_gpu else 0.8 * len(points)
                    groups.append(PointGroup(name=name, points=points, estimate_s=estimate_s))
        return groups

    def _shapes(self, plan: ProbePlan) -> list[tuple[MNK, tuple[str, ...]]]:
        if not plan.on_gpu:
            return _cpu_shapes(plan.suite)
        squares: list[tuple[MNK, tuple[str, ...]]] = [
            ((8192, 8192, 8192), ROLES),
            *(((n, n, n), ("forward",)) for n in (4096, 16384, 2048, 1024)),
        ]
        if plan.suite == "claims":
            return squares[:3]
        if plan.suite == "quick":
            return [squares[0], *[(mnk, ("forward",)) for mnk in layer_shapes(LLAMA_70B_TP8, TOKENS)]]
        shards = [mnk for layer in (LLAMA_70B_TP8, LLAMA_8B) for mnk in layer_shapes(layer, TOKENS)]
        shards += layer_shapes(LLAMA_405B_TP8, TOKENS)[2:]
        small = [*_GPT2, *layer_shapes(QWEN3_0_6B, 2048)[1:3], *layer_shapes(TINYLLAMA_1_1B, 4096)[1:3]]
        if plan.suite == "thorough":
            shards += [(m, n, k) for m in (1024, 2048, 4096) for _, n, k in layer_shapes(LLAMA_8B, TOKENS)]
        listed = [*squares, *((mnk, ROLES) for mnk in shards), (_HEAD, ROLES), (_EXPERT, ROLES)]
        listed += [(mnk, ROLES) for mnk in (*small, *_SMALL_HEADS)]
        return list({mnk: (mnk, roles) for mnk, roles in listed}.values())


def _cpu_shapes(suite: str) -> list[tuple[MNK, tuple[str, ...]]]:
    squares: list[tuple[MNK, tuple[str, ...]]] = [((n, n, n), ("forward",)) for n in (1024, 512, 256)]
    if suite == "quick":
        return squares[1:]
    if suite == "claims":
        return [squares[0], ((2048, 2048, 2048), ("forward",))]
    roles: list[tuple[MNK, tuple[str, ...]]] = [((256, 1408, 256), ROLES), ((512, 512, 1408), ("forward",))]
    if suite == "thorough":
        roles += [(mnk, ROLES) for layer in (TINY, SMALL) for mnk in layer_shapes(layer, 256)]
        roles.append(((2048, 2048, 2048), ("forward",)))
    return list(dict([*squares, *roles]).items())


def _worth(recipe: PrecisionRecipe, role: str, mnk: MNK, plan: ProbePlan) -> bool:
    """Return whether a product adds information that other products do not."""
    if recipe.precision in ("fp8", "mxfp8") and any(size % 16 for size in mnk):
        return False
    return not plan.on_gpu or plan.suite == "thorough" or _new_on_gpu(recipe, role, mnk)


def _new_on_gpu(recipe: PrecisionRecipe, role: str, mnk: MNK) -> bool:
    """Return whether to measure a product: all in BF16, tensorwise FP8 and MXFP8; others where they differ from these.

    FP16 runs at BF16's rates and is checked at squares. Strict FP32 runs without matrix units, so the role matters
    little, and it takes seconds at the largest size. Scales per row change the epilogue, which the forward role shows.
    Output layers stay in high precision.
    """
    M, N, K = mnk
    if M == N == K == 8192:
        return True
    if mnk in (_HEAD, *_SMALL_HEADS):
        return recipe.id == "bf16-autocast" or (recipe.id in ("fp32", "tf32") and role == "forward")
    if recipe.id == "fp16":
        return M == N == K
    if recipe.id == "fp32":
        return role == "forward" and 2.0 * M * N * K < 1e12
    return recipe.id in ("bf16-autocast", "fp8", "mxfp8") or role == "forward"


def _point(recipe: PrecisionRecipe, role: str, mnk: MNK) -> Point:
    M, N, K = mnk
    size = 1 if recipe.precision in ("fp8", "mxfp8") else 4 if recipe.operand == "float32" else 2
    out = 2 if size < 4 else 4
    flop = 2.0 * M * N * K
    return Point(
        probe_id=f"gemm/{M}x{N}x{K}/{role}/{recipe.id}",
        kind="gemm",
        workload="gemm",
        recipe=recipe,
        setup=RunSetup(role=role, data_distribution="normal"),
        shape=WorkShape(gemm_m=M, gemm_n=N, gemm_k=K),
        counts=WorkCounts(flop_model=flop, flop_hardware=flop, bytes_min=least_bytes(role, mnk, size, out)),
        build=partial(_build, recipe, role, mnk, size),
        graph=True,
    )


def least_bytes(role: str, mnk: MNK, size: int, out: int) -> float:
    """Return the least traffic: operands read once, result written once."""
    M, N, K = mnk
    sizes = {"forward": (M * K, N * K, M * N), "dgrad": (M * N, N * K, M * K), "wgrad": (M * N, M * K, N * K)}
    left, right, result = sizes[role]
    return float((left + right) * size + result * out)


def _build(recipe: PrecisionRecipe, role: str, mnk: MNK, size: int, device: Device) -> CallTrial:
    M, N, K = mnk
    operands = float((M * K + N * K) * size)
    copies = copies_of(operands, device) if device.kind == "cuda" else 2
    call = recipe.product(recipe, role, M, N, K, device, copies)
    each = -(-copies // CAPTURED) if device.kind == "cuda" else 1
    held_bytes = copies * operands
    if each == 1:
        return CallTrial(call=call, held_bytes=held_bytes, flags=recipe.flags)

    def calls() -> None:
        for _ in range(each):  # a graph holds `CAPTURED` of these calls, which together use all the copies
            call()

    return CallTrial(call=calls, held_bytes=held_bytes, flags=recipe.flags, steps=each)


def copies_of(operand_bytes: float, device: Device) -> int:
    """Return the number of operand sets that a product rotates through on a GPU."""
    enough = CACHES * (device.l2_bytes or L2_BYTES) / operand_bytes
    return min(max(ceil(enough), 3), MOST_COPIES)

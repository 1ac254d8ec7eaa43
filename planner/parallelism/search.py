"""The layouts that a question allows, as arrays.

The search space has tensor parallel sizes (powers of two that split the model and fit in the NVLink domain, or in the
node if there is none; 1 for 4-bit weights, whose packed blocks no common software splits: bitsandbytes); pipeline
depths that split the layers evenly or nearly so; context parallel sizes for long sequences; expert parallel sizes that
divide the experts; micro-batches of 1 to 128; the checkpointing modes of the software; ZeRO 1 (states) and, without a
pipeline, 3 (FSDP) and, except with Megatron's optimizer, 2 (gradients too); with compressed gradients, the ZeRO stages
that the method supports. A fixed value replaces its list. If the question leaves the batch to the search, each layout
takes the batch within the recipe's band that it divides and that is nearest to the recipe's.
"""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from planner.errors import Message, UsageError
from planner.hardware.cluster import Cluster
from planner.lazy import dataclass
from planner.parallelism.chunks import even_chunks, needed_depth
from planner.parallelism.layout import Layouts
from planner.parallelism.tensor import check_tensor_size, tensor_sizes
from planner.training.recipe import ACT_CKPT, Recipe

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedLayout:
    """The sizes that the user fixed; None leaves a size to the search."""

    tp: int | None = None
    pp: int | None = None
    vp: int | None = None
    cp: int | None = None
    ep: int | None = None
    zero: int | None = None
    micro_batch: int | None = None
    act_ckpt: str | None = None
    dp: int | None = None
    on_given_gpus: bool = False
    """Whether the number of GPUs is given. The search then tries all pipeline depths that divide it, even if the layers
    split less evenly, and more micro-batch sizes."""


def _powers(limit: float) -> list[int]:
    return [2**i for i in range(int(np.log2(max(limit, 1))) + 1)]


def divisors(number: int) -> list[int]:
    """All divisors in ascending order."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


STAGE_MULTIPLE = 4
"""If the layers do not split into four equal parts, teams count the ends of the model as layers: 126 and 2 of Llama 3.1
405B in 16 stages (arXiv 2407.21783), 70 and 2 of BLOOM in 12 (arXiv 2211.05100), 61 and 3 of DeepSeek-V3 in 16."""


UNEVEN = 1.18
"""Largest ratio of the fullest stage's layers to the mean at which a depth that does not divide the layers is tried.

This only bounds the search: for every depth tried, the step time is that of its fullest stage.
"""
UNEVEN_ON_GIVEN = 1.5
"""`UNEVEN` when the number of GPUs is given: few depths divide it, and memory may require an uneven one."""
MOST_UNEVEN = 32
"""Most pipeline stages at an uneven depth."""
MOST_UNEVEN_ON_GIVEN = 64
"""Most pipeline stages at an uneven depth when the number of GPUs is given."""


def pipeline_depths(recipe: Recipe, *, on_given_gpus: bool = False) -> list[int]:
    """Depths up to 128 that divide the layers, or the layers with the model's ends counted as up to three more.

    Depths with nearly even stages (`UNEVEN`, `UNEVEN_ON_GIVEN`) are also tried: those without a spare stage, or with
    one that multi-token prediction may have to itself; or every depth if the number of GPUs is given.
    """
    layers = recipe.model.layers
    padded = -(-layers // STAGE_MULTIPLE) * STAGE_MULTIPLE
    even = [depth for depth in {*divisors(layers), *divisors(padded)} if depth <= min(layers, 128)]
    needed = set(needed_depth(layers, np.arange(2, MOST_UNEVEN + 1)).tolist())
    tried, most = needed | {depth + 1 for depth in needed if recipe.model.mtp_unrolled}, UNEVEN
    if on_given_gpus:
        tried, most = set(range(2, MOST_UNEVEN_ON_GIVEN + 1)), UNEVEN_ON_GIVEN
    nearly = [depth for depth in tried if depth <= layers and -(-layers // depth) * depth <= most * layers]
    return sorted({*even, *nearly})


MANY_GPUS = 8192
"""Number of GPUs from which a rank may have half the tokens, since a batch is hard to spread over so many ranks."""


def context_powers(recipe: Recipe, most_gpus: float = 1) -> list[int]:
    """Powers of two that leave each rank at least 4 096 tokens of a sequence, or 2 048 from `MANY_GPUS` on."""
    return _powers(max(recipe.seq_len / (2048 if most_gpus >= MANY_GPUS else 4096), 1))


def context_sizes(recipe: Recipe, most_gpus: float = 1) -> list[int]:
    """The `context_powers` that divide the sequence length, as frameworks require."""
    return [size for size in context_powers(recipe, most_gpus) if recipe.seq_len % size == 0]


def expert_sizes(experts: int) -> list[int]:
    """Expert parallel sizes that divide the experts: 1, and those up to 128 with at most 32 experts per GPU."""
    if not experts:
        return [1]
    return [size for size in divisors(experts) if size == 1 or (size <= 128 and experts // size <= 32)]


def _virtual_sizes(recipe: Recipe) -> list[int]:
    return sorted({*(d for d in divisors(recipe.model.layers) if d <= 24), 1, 2, 4, 8})


def micro_batches(recipe: Recipe, *, on_given_gpus: bool = False) -> list[int]:
    """Divisors of the global batch up to 128 (images: 1024); if a search chooses the batch, the fixed lists below."""
    images = recipe.model.kind == "image"
    if recipe.batch_band is not None:
        sizes = OPEN_MICRO_BATCHES + (IMAGE_MICRO_BATCHES if images else ())
        sizes += BETWEEN_MICRO_BATCHES if on_given_gpus else ()
        return sorted(size for size in set(sizes) if size <= recipe.batch_band[1])
    most = IMAGE_MICRO_BATCHES[-1] if images else OPEN_MICRO_BATCHES[-1]
    return [size for size in divisors(recipe.global_batch) if size <= most]


OPEN_MICRO_BATCHES = (1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64, 128)
"""Micro-batch sizes to try when the batch is not fixed, so that none is required to divide it."""

BETWEEN_MICRO_BATCHES = (7, 9, 10, 14, 15, 20, 24, 28, 40, 48, 56, 96)
"""Further micro-batch sizes when the number of GPUs is given: 500 ranks train 15,000 sequences as 15 each, twice."""

IMAGE_MICRO_BATCHES = (48, 96, 192, 256, 384, 512, 768, 1024)
"""Further, larger micro-batch sizes for images."""

STEPS_PER_OCTAVE = 8
"""Node counts per doubling that a search over the number of GPUs tries first."""


def round_counts(cluster: Cluster, low: float, high: float) -> Ints:
    """GPU counts in whole nodes within a range: every node count up to 16, then eight per doubling."""
    node = cluster.gpus_per_node
    least, most = max(1, math.ceil(low / node)), math.floor(high / node)
    nodes = {
        mantissa << shift
        for shift in range(max(most, 1).bit_length())
        for mantissa in range(STEPS_PER_OCTAVE, 2 * STEPS_PER_OCTAVE)
    } | set(range(1, STEPS_PER_OCTAVE))
    return np.array(sorted(n * node for n in nodes if least <= n <= most), dtype=np.int64)


def counts_between(cluster: Cluster, low: int, high: int) -> Ints:
    """GPU counts in whole nodes between `low` and `high`, at most `MOST_BETWEEN`: the multiples of their spacing."""
    node = cluster.gpus_per_node  # experts and stages divide evenly over more of the multiples
    nodes = np.arange(low // node + 1, -(-high // node))
    step = max(-(-len(nodes) // MOST_BETWEEN), 1)
    return np.asarray(nodes[nodes % step == 0] * node, dtype=np.int64)


MOST_BETWEEN = 12
"""Number of GPU counts that a search tries between one that is too small and one that is large enough."""


def _grid(*axes: list[int]) -> list[Ints]:
    return [part.ravel() for part in np.meshgrid(*(np.array(axis, dtype=np.int64) for axis in axes), indexing="ij")]


def fixed_or(value: int | None, tried: list[int]) -> list[int]:
    """Sizes to try along one axis: the value that the user fixed, otherwise all of `tried`."""
    return tried if value is None else [value]


WHOLE_STATE_BYTES = 18.0
"""Bytes per parameter of unsharded mixed-precision states: 16-bit weights, gradients accumulated in FP32, FP32 master
weights and two FP32 moments, 2 + 4 + 4 + 8 (ZeRO, arXiv 1910.02054, section 3.1, with FP32 accumulation)."""


def _zero_stages(recipe: Recipe, cluster: Cluster, fixed: FixedLayout) -> list[int]:
    """ZeRO stages to try; 0 (plain data parallel) is among them where a whole copy of the states fits."""
    if fixed.zero is not None:
        return [fixed.zero]
    if recipe.grad_compression is not None:
        return list(range(recipe.grad_compression.most_zero + 1))
    fits_whole = recipe.model.params_total * WHOLE_STATE_BYTES < cluster.gpu.memory_bytes
    sharded = [1, 3] if recipe.kernels == "tuned" else [1, 2, 3]
    return [0, *sharded] if fits_whole else sharded


def of_samples(recipe: Recipe, sequences: str, images: str) -> str:
    """Choose a message key: `images` for a vision model, otherwise `sequences`."""
    return images if recipe.model.kind == "image" else sequences


def _check_fixed(recipe: Recipe, fixed: FixedLayout) -> None:
    model = recipe.model
    if fixed.tp:
        check_tensor_size(model, fixed.tp)
    if fixed.pp and fixed.pp > model.layers:
        raise UsageError(
            Message.of("error.pp_layers", pp=fixed.pp, layers=model.layers, model=model.name),
            hint=Message.of("hint.fewer_stages"),
        )
    if fixed.ep and fixed.ep > 1 and (not model.experts or model.experts % fixed.ep):
        if not model.experts:
            dense = Message.of("error.ep_dense", ep=fixed.ep, model=model.name)
            raise UsageError(dense, hint=Message.of("hint.leave_ep"))
        raise UsageError(
            Message.of("error.ep_experts", ep=fixed.ep, experts=model.experts, model=model.name),
            hint=Message.of("hint.one_of", values=tuple(divisors(model.experts))),
        )
    if fixed.vp and fixed.vp > 1 and (fixed.pp or 2) < 2:
        raise UsageError(Message.of("error.vp_needs_pp"), hint=Message.of("hint.set_pp"))
    if fixed.cp and recipe.seq_len % fixed.cp:
        raise UsageError(
            Message.of("error.cp_sequence", cp=fixed.cp, seq_len=recipe.seq_len),
            hint=Message.of(
                "hint.cp_sequence",
                values=tuple(d for d in divisors(recipe.seq_len) if d <= 64),
                seq_len=max(1, round(recipe.seq_len / fixed.cp)) * fixed.cp,
            ),
        )
    if fixed.micro_batch and recipe.batch_band is None and recipe.global_batch % fixed.micro_batch:
        sizes = [d for d in divisors(recipe.global_batch) if d <= 64]
        raise UsageError(
            Message.of(
                of_samples(recipe, "error.micro_batch", "error.micro_batch_images"),
                micro_batch=fixed.micro_batch,
                global_batch=recipe.global_batch,
            ),
            hint=Message.of("hint.one_of", values=tuple(sizes)),
        )


def _shape_axes(recipe: Recipe, cluster: Cluster, fixed: FixedLayout, most_gpus: float) -> list[Ints]:
    """Arrays of tp, cp, pp, vp, ep and micro_batch: all but the data parallel size, for up to `most_gpus` GPUs."""
    model = recipe.model
    experts = expert_sizes(model.experts)
    pp, vp = _grid(
        fixed_or(fixed.pp, pipeline_depths(recipe, on_given_gpus=fixed.on_given_gpus)),
        fixed_or(fixed.vp, _virtual_sizes(recipe)),
    )
    keep = (vp == 1) | ((pp > 1) & even_chunks(model.layers, pp * vp))
    pp, vp = pp[keep], vp[keep]
    tp, cp, pipeline, ep, mb = _grid(
        fixed_or(fixed.tp, tensor_sizes(recipe, cluster)),
        fixed_or(fixed.cp, context_sizes(recipe, most_gpus)),
        list(range(len(pp))),
        fixed_or(fixed.ep, experts),
        fixed_or(fixed.micro_batch, micro_batches(recipe, on_given_gpus=fixed.on_given_gpus)),
    )
    axes = [tp, cp, pp[pipeline], vp[pipeline], ep, mb]
    if fixed.micro_batch is None and recipe.seq_len >= 8192:
        keep = mb * (recipe.seq_len // np.maximum(cp, 1)) <= 262144
        axes = [axis[keep] for axis in axes]
    return axes


def enumerate_layouts(
    recipe: Recipe,
    cluster: Cluster,
    fixed: FixedLayout,
    *,
    gpus: int | Ints | None = None,
    gpus_between: tuple[float, float] = (1, 1 << 20),
) -> Layouts:
    """All layouts on exactly `gpus` (a number or several), or on any whole nodes within `gpus_between` if None.

    A single number is a user's, so it must be one that the fixed sizes divide; among several, one that they do not
    divide just has no layouts.

    Raises:
        UsageError: the fixed values contradict the model, each other or a single number of GPUs.
    """
    _check_fixed(recipe, fixed)
    if isinstance(gpus, int):
        _check_gpus(gpus, fixed, recipe)
    if gpus is None and recipe.batch_band is not None:
        gpus = round_counts(cluster, *gpus_between)
    most_gpus = float(gpus_between[1] if gpus is None else np.max(gpus, initial=1))
    tp, cp, pp, vp, ep, mb = _shape_axes(recipe, cluster, fixed, most_gpus)
    inner = tp * cp * pp
    if gpus is not None:
        counts = np.atleast_1d(np.asarray(gpus, dtype=np.int64))
        rows, columns = np.nonzero(counts[None, :] % inner[:, None] == 0)
        dp = counts[columns] // inner[rows]
    else:
        sizes = np.array(divisors(recipe.global_batch), dtype=np.int64)
        total = inner[:, None] * sizes[None, :]
        low, high = gpus_between
        rows, columns = np.nonzero((total >= low) & (total <= high) & (total % cluster.gpus_per_node == 0))
        dp = sizes[columns]
    if fixed.cp is None:
        usual = (cp[rows] <= context_sizes(recipe)[-1]) | (inner[rows] * dp >= MANY_GPUS)
        rows, dp = rows[usual], dp[usual]
    tp, cp, pp, vp, ep, mb = (a[rows] for a in (tp, cp, pp, vp, ep, mb))
    return _finish(recipe, fixed, _zero_stages(recipe, cluster, fixed), tp, cp, pp, vp, ep, mb, dp)


def _accumulation(recipe: Recipe, dp: Ints, mb: Ints, group: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Micro-batches per step and rank, in multiples of `group`, and whether the batch allows that number."""
    step = dp * mb * group
    if recipe.batch_band is None:
        return recipe.global_batch // np.maximum(dp * mb, 1), recipe.global_batch % np.maximum(step, 1) == 0
    least, most = recipe.batch_band
    groups = np.maximum(1, np.rint(recipe.global_batch / step)).astype(np.int64)
    if recipe.update_in_backward:
        groups = np.ones_like(groups)
    batch = groups * step
    return groups * group, (batch >= least) & (batch <= most)


def _finish(
    recipe: Recipe,
    fixed: FixedLayout,
    zero_stages: list[int],
    tp: Ints,
    cp: Ints,
    pp: Ints,
    vp: Ints,
    ep: Ints,
    mb: Ints,
    dp: Ints,
) -> Layouts:
    """Add accumulation, checkpointing and ZeRO stages, and keep the layouts that are consistent."""
    # Interleaving works through groups of pp micro-batches.
    accum, even = _accumulation(recipe, dp, mb, np.where(vp > 1, pp, 1))
    keep = even & (ep <= tp * cp * dp) & ((tp * cp * dp) % ep == 0)
    if recipe.update_in_backward:
        keep &= accum == 1  # gradients freed after use cannot be accumulated over micro-batches
    if recipe.how.trains == "last-layers":
        keep &= pp == 1  # the first stages would wait for the one being trained
    if recipe.how.pairs:
        keep &= mb % recipe.how.sequences_per_example == 0  # both answers of a pair are in one micro-batch
    if fixed.dp is not None:
        keep &= dp == fixed.dp
    tp, cp, pp, vp, ep, mb, dp, accum = (a[keep] for a in (tp, cp, pp, vp, ep, mb, dp, accum))
    modes = [ACT_CKPT.index(mode) for mode in ((fixed.act_ckpt,) if fixed.act_ckpt else recipe.act_ckpts)]
    index, zero = _grid(list(range(len(tp))), zero_stages)
    if fixed.zero is None:
        # Under a pipeline FSDP keeps its parameters gathered and its gradients whole, so it saves little over ZeRO 1.
        keep = (zero < 2) | (pp[index] == 1)
        # With one rank, all ZeRO stages are equal, except those that send gradients or parameters to the host.
        single_rank = (dp[index] * cp[index] == 1) & ((zero < 2) | (recipe.offload != "optimizer"))
        keep &= (zero == zero_stages[0]) | ~single_rank
        index, zero = index[keep], zero[keep]
        zero = np.where(single_rank[keep], 0, zero)
    codes = np.array(modes, dtype=np.int64)
    rows = np.repeat(index, len(codes))
    return Layouts(
        tp=tp[rows], pp=pp[rows], vp=vp[rows], cp=cp[rows], ep=ep[rows], dp=dp[rows],
        zero=np.repeat(zero, len(codes)), micro_batch=mb[rows], grad_accum=accum[rows],
        act_ckpt=np.tile(codes, len(index)), replicas=np.ones_like(rows), ckpt_modes=len(codes),
    )  # fmt: skip


def _raise_multiple(gpus: int, multiple: int, fixed_axes: dict[str, int]) -> NoReturn:
    """Raise an error for a number of GPUs that the fixed sizes do not divide."""
    axes = tuple(Message.of("flag.with_value", input=name, value=size) for name, size in fixed_axes.items())
    near = tuple(dict.fromkeys((max(multiple, gpus // multiple * multiple), (gpus // multiple + 1) * multiple)))
    raise UsageError(
        Message.of("error.gpus_multiple", gpus=gpus, multiple=multiple, axes=axes),
        hint=Message.of("hint.gpus_near", fewer=near[0], more=near[1])
        if len(near) > 1
        else Message.of("hint.gpus_only", gpus=near[0]),
    )


def _check_gpus(gpus: int, fixed: FixedLayout, recipe: Recipe) -> None:
    fixed_axes = {name: getattr(fixed, name) for name in ("tp", "pp", "cp") if getattr(fixed, name)}
    inner = int(np.prod([*fixed_axes.values(), 1]))
    if gpus % inner:
        _raise_multiple(gpus, inner, fixed_axes)
    ranks = (fixed.pp or 1) * (fixed.ep or 1)
    if gpus % ranks:
        _raise_multiple(gpus, ranks, {name: size for name in ("pp", "ep") if (size := getattr(fixed, name))})
    dp = gpus // inner
    if len(fixed_axes) == 3 and recipe.batch_band is None and recipe.global_batch % dp:
        raise UsageError(
            Message.of(
                of_samples(recipe, "error.dp_batch", "error.dp_batch_images"),
                dp=dp,
                gpus=gpus,
                inner=inner,
                global_batch=recipe.global_batch,
            ),
            hint=Message.of(
                of_samples(recipe, "hint.batch_near", "hint.batch_near_images"),
                global_batch=-(-recipe.global_batch // dp) * dp,
            ),
        )

"""Work of a measured point: sizes, settings, and the arithmetic and traffic that follow from them."""

from __future__ import annotations

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkShape:
    """Sizes of the work of one iteration, on this shard."""

    model: str | None = None
    """Model whose sizes were used, for example `llama-3.1-70b`."""
    layers: int | None = None
    """Number of layers that were run."""
    hidden: int | None = None
    """Hidden size; for a memory-bound operation, the width of a row."""
    heads: int | None = None
    """Query heads on this shard."""
    kv_heads: int | None = None
    """Key and value heads on this shard."""
    head_dim: int | None = None
    """Size of one head."""
    ffn_hidden: int | None = None
    """Inner size of the feed-forward network (of one expert in a mixture) on this shard."""
    vocab: int | None = None
    """Vocabulary size, for whole models."""
    experts: int | None = None
    """Routed experts held by this shard."""
    top_k: int | None = None
    """Routed experts per token on this shard, under balanced load."""
    seq_len: int | None = None
    """Tokens of a sequence; pixels along an image's side for a CNN."""
    micro_batch: int | None = None
    """Sequences (images for a CNN) per iteration."""
    tokens: int | None = None
    """Tokens (images for a CNN) per iteration."""
    tp: int | None = None
    """Tensor-parallel degree by which the sizes are divided."""
    ep: int | None = None
    """Expert-parallel degree by which the sizes are divided."""
    dp: int | None = None
    """Data-parallel degree of a step of several ranks."""
    pp: int | None = None
    """Pipeline-parallel degree: number of ranks in a pipeline."""
    vp: int | None = None
    """Number of stages that each rank of a pipeline holds; above 1, they are interleaved."""
    cp: int | None = None
    """Context-parallel degree."""
    micro_batches: int | None = None
    """Number of micro-batches in a step; `micro_batch` is the number of sequences in one of them."""
    gemm_m: int | None = None
    """Rows of a matrix product's result."""
    gemm_n: int | None = None
    """Columns of a matrix product's result."""
    gemm_k: int | None = None
    """Inner dimension of a matrix product."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetup:
    """Workload and settings of a run."""

    workload: str | None = None
    """Member of the workload registry that defines the point."""
    role: str | None = None
    """For a matrix product `forward`, `dgrad` or `wgrad`; for other points their operation, mode or pattern."""
    precision: str | None = None
    """Precision as the user asks for it: fp32, tf32, fp16, bf16, fp8, mxfp8."""
    recipe: str | None = None
    """How the precision was applied: member of the precision registry, for example `bf16-autocast`."""
    recipe_flags: tuple[str, ...] = ()
    """Other settings that select kernels: `torchao`, `scaled_mm`, `fast_accum_forward`, `e5m2_gradients` …"""
    parallel: str | None = None
    """Parallelism of a step: `alone` (each rank trains its own model, all at once; `alone-fsdp2` likewise, through
    FSDP), `ddp`, `fsdp2`, `tp`, `pp-1f1b`, `pp-interleaved`, `cp`, or several joined by `+`."""
    optimizer: str | None = None
    """Id of the optimizer that updates the parameters."""
    recompute: str | None = None
    """Activation checkpointing: `none` or `full`."""
    compiled: bool | None = None
    """True if it ran through `torch.compile`."""
    grad_accumulation: bool | None = None
    """True if gradients were added to existing ones (the second and later micro-batches of a step)."""
    attention_backend: str | None = None
    """Family of attention kernels that PyTorch chose: `flash`, `cudnn`, `efficient` or `math`; `…_expanded_kv` if keys
    and values were repeated to the number of query heads; `…_cpu` on a CPU."""
    data_distribution: str | None = None
    """`normal` for random data; never zeros, which run faster."""
    seed: int | None = None
    """Seed of the run's random numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCounts:
    """Arithmetic and traffic of one iteration, counted rather than measured."""

    params: int | None = None
    """Parameters of the module that was run."""
    flop_model: float | None = None
    """Model FLOP: without recomputation, attention halved for causality."""
    flop_hardware: float | None = None
    """FLOP with recomputation (checkpointing, and the scores that flash attention recomputes in the backward pass)."""
    bytes_min: float | None = None
    """Least memory traffic in bytes: each operand is moved once."""

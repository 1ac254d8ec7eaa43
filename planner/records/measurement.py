"""What `mpplan probe` leaves behind: `Measurement`, one JSON object per line of a record file.

A line stands on its own: it says what was run, how long it took, what it needed, how it was read and on what machine,
so that a file cut off anywhere is still a record. It never holds a host name, a user, a path or a raw device UUID.
`planner/records/jsonl.py` reads and writes the lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SCHEMA = "mpplan.probe/1"
"""Name and version of the line format; another version is reported and not used."""

STATUSES = ("ok", "unsupported", "oom", "gated", "error")
"""`gated`: the machine was never quiet enough to take a sample. A line with another status than `ok` has a `reason`."""

KINDS = (
    "support",
    "idle",
    "canary",
    "launch",
    "bandwidth",
    "gemm",
    "attention",
    "memory_op",
    "block",
    "optimizer",
    "end_to_end",
    "power",
    "meter",
    "limit",
    "verify",
)
"""What was measured."""

QUALITIES = ("ok", "contended", "drift", "throttled")
"""How far the times of a line can be trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measured point. Figures that do not apply or could not be read are None."""

    # -- identity
    schema: str = SCHEMA
    suite_version: int
    """Version of the suite's definitions; points of another version are measured anew by `--resume`."""
    run_id: str
    """Random id of one run; a file holds one run."""
    probe_id: str
    """Stable name of the point, for example `gemm/8192x8192x8192/forward/bf16`."""
    seq: int
    """Running number within the run."""
    status: str
    """One of `STATUSES`."""
    reason: str | None = None
    """Why there is no figure, or what to know about it."""
    kind: str
    """One of `KINDS`."""

    # -- what was run
    workload: str | None = None
    """Member of the workload registry that made the point."""
    model: str | None = None
    """Model whose shapes were used, for example `llama-3.1-70b`."""
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    """Query heads on this shard."""
    kv_heads: int | None = None
    head_dim: int | None = None
    ffn_hidden: int | None = None
    """Inner size of the feed-forward (of one expert for a mixture) on this shard."""
    vocab: int | None = None
    experts: int | None = None
    """Routed experts held by this shard."""
    top_k: int | None = None
    """Routed experts per token on this shard, balanced load."""
    seq_len: int | None = None
    micro_batch: int | None = None
    """Sequences (images for a CNN) per iteration."""
    tokens: int | None = None
    """Tokens (images for a CNN) per iteration."""
    tp: int | None = None
    """Tensor parallel degree that the shapes are a shard of."""
    ep: int | None = None
    """Expert parallel degree that the shapes are a shard of."""
    gemm_m: int | None = None
    gemm_n: int | None = None
    gemm_k: int | None = None
    role: str | None = None
    """Of a matrix product: `forward`, `dgrad` or `wgrad`; of another point: its phase or pattern."""
    precision: str | None = None
    """What the user asks for: fp32, tf32, fp16, bf16, fp8, mxfp8."""
    recipe: str | None = None
    """How the precision was applied: member of the precision registry, for example `bf16-autocast`."""
    recipe_flags: tuple[str, ...] = ()
    """What else decides the kernels: `torchao`, `scaled_mm`, `fast_accum_forward`, `e5m2_gradients` …"""
    optimizer: str | None = None
    optimizer_state_bytes_per_param: float | None = None
    """Measured growth of the optimizer's state."""
    recompute: str | None = None
    """Activation checkpointing: `none` or `full`."""
    compiled: bool | None = None
    grad_accumulation: bool | None = None
    """True: gradients were added to existing ones (the second and later micro-batches of a step)."""
    attention_backend: str | None = None
    data_distribution: str | None = None
    """`normal` for random data; never zeros, which run faster."""
    seed: int | None = None

    # -- counts
    params: int | None = None
    flop_model: float | None = None
    """Arithmetic of the mathematics per iteration: no recomputation, attention halved for causality."""
    flop_hardware: float | None = None
    """With recomputation (checkpointing, and the scores that flash attention forms again in the backward pass)."""
    bytes_min: float | None = None
    """Least memory traffic per iteration: each operand once."""

    # -- time
    time_median_s: float | None = None
    """Median time of one iteration."""
    time_ci_low_s: float | None = None
    """95 % order-statistic confidence interval of the median."""
    time_ci_high_s: float | None = None
    time_iqr_s: float | None = None
    time_p05_s: float | None = None
    time_p95_s: float | None = None
    time_min_s: float | None = None
    samples: int | None = None
    samples_gated: int | None = None
    """Samples taken while something else ran; they are kept out of the median where enough others remain."""
    rounds: int | None = None
    """Interleaved rounds in which the samples were taken."""
    iterations_per_sample: int | None = None
    time_forward_median_s: float | None = None
    time_backward_median_s: float | None = None
    time_optimizer_median_s: float | None = None
    time_burst_median_s: float | None = None
    """Before heat and power limits settled, where `regime` is `sustained`."""
    warmup_s: float | None = None
    compile_s: float | None = None
    """Time of the first, compiling call."""
    stop_reason: str | None = None
    """`ci` converged, `cap` time or sample limit, `window` one energy window."""
    regime: str | None = None
    """`sustained` (hot, inside an energy window) or `burst`."""

    # -- memory
    memory_allocated_peak_bytes: float | None = None
    """Peak of live tensors, weights, gradients and states included."""
    memory_active_peak_bytes: float | None = None
    memory_reserved_peak_bytes: float | None = None
    """What the caching allocator held from the driver; None where other points lived in it at the same time."""
    memory_forward_peak_bytes: float | None = None
    memory_backward_peak_bytes: float | None = None
    memory_optimizer_peak_bytes: float | None = None
    memory_persistent_bytes: float | None = None
    """Live between iterations: weights, gradients, states."""
    memory_tracker_peak_bytes: float | None = None
    """Peak by bookkeeping of the same step on fake tensors, without running it."""
    memory_source: str | None = None
    """`cuda_allocator` or `cpu_allocator_events`."""
    alloc_retries: int | None = None
    """Allocator retries during the timed part; more than none makes the time invalid."""
    ooms: int | None = None

    # -- energy
    energy_j_per_iteration: float | None = None
    power_mean_w: float | None = None
    power_p95_w: float | None = None
    power_instant_mean_w: float | None = None
    """Mean of the instantaneous power field over the same window."""
    power_average_mean_w: float | None = None
    """Mean of the driver's one-second average field over the same window."""
    power_idle_w: float | None = None
    energy_window_s: float | None = None
    energy_ticks: int | None = None
    energy_tick_period_s: float | None = None
    energy_source: str | None = None
    """`counter`, `instant`, `rapl` or `none`."""
    energy_quality: str | None = None
    """`ok`; `inconsistent`: counter and power differ by more than 5 %; `short`: too few ticks; `single`: one source."""
    energy_scope: str | None = None
    """`board`, `module` (Grace Hopper: CPU included) or `package` (RAPL)."""
    energy_reason: str | None = None
    """Why energy is unknown."""

    # -- heat and clocks
    temperature_start_c: float | None = None
    temperature_end_c: float | None = None
    memory_temperature_c: float | None = None
    sm_clock_median_hz: float | None = None
    sm_clock_min_hz: float | None = None
    memory_clock_hz: float | None = None
    clock_event_mask: int | None = None
    """NVML's reasons, all samples OR-ed: 4 power cap (normal under load), 8, 32, 64, 128 slow-downs."""
    power_limit_w: float | None = None
    """Enforced limit while measuring."""

    # -- quality
    quality: str | None = None
    """One of `QUALITIES`."""
    other_load_ratio: float | None = None
    """Share of the machine that others used while the samples were taken."""
    canary_ratio: float | None = None
    """Canary before this point over the first canary of the run."""
    attempts: int | None = None

    # -- numerics
    product_error_ratio: float | None = None
    """Relative error of a matrix product against FP64: shows which arithmetic really ran."""
    loss_trace: tuple[float, ...] = ()
    """Loss of successive steps with the same start and data in every precision."""
    loss_scale: float | None = None
    """FP16: scale of the loss after the last step."""

    # -- prediction checked by `--verify`
    predicted_time_s: float | None = None
    predicted_memory_bytes: float | None = None
    predicted_energy_j: float | None = None
    predicted_from: tuple[str, ...] = ()
    """Probe ids that the prediction rests on."""

    # -- provenance
    device_kind: str
    """`cuda` or `cpu`."""
    device_name: str
    device_hash: str | None = None
    """First 12 hex digits of a salted SHA-256 of the device's UUID."""
    compute_capability: str | None = None
    sm_count: int | None = None
    l2_bytes: float | None = None
    memory_total_bytes: float | None = None
    mig: bool | None = None
    ecc: bool | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    driver_version: str | None = None
    cuda_version: str | None = None
    cudnn_version: str | None = None
    nccl_version: str | None = None
    torch_version: str | None = None
    torch_git: str | None = None
    triton_version: str | None = None
    torchao_version: str | None = None
    transformers_version: str | None = None
    python_version: str | None = None
    os_kernel: str | None = None
    hypervisor: bool | None = None
    cpu_model: str | None = None
    cpu_isa: tuple[str, ...] = ()
    threads: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    """Variables from a fixed list that change speed, for example `OMP_NUM_THREADS`."""
    mpplan_version: str | None = None
    git_commit: str | None = None
    git_dirty: bool | None = None
    timestamp_utc: str | None = None
    monotonic_s: float | None = None

    @property
    def usable_time(self) -> bool:
        """Whether the line holds a time that a plan may rest on."""
        return self.status == "ok" and self.time_median_s is not None and not self.alloc_retries

    @property
    def time_relative_sd(self) -> float | None:
        """Standard error of the median, relative: half the interval over 1.96; variance tripled where contended."""
        if self.time_median_s is None or self.time_ci_low_s is None or self.time_ci_high_s is None:
            return None
        sd = (self.time_ci_high_s - self.time_ci_low_s) / (2 * 1.96 * self.time_median_s)
        return float(sd * 3**0.5) if self.quality == "contended" else float(sd)

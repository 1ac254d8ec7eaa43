"""Figures of a measured point: time, memory, energy, power, temperatures, numerics, and its prediction."""

from __future__ import annotations

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeStatistics:
    """Order statistics of the time of one iteration; keys begin with `time_`."""

    median_s: float | None = None
    """Median."""
    ci_low_s: float | None = None
    """Lower end of the median's 95 % order-statistic confidence interval."""
    ci_high_s: float | None = None
    """Upper end of that interval."""
    iqr_s: float | None = None
    """Interquartile range."""
    p05_s: float | None = None
    """5th percentile."""
    p95_s: float | None = None
    """95th percentile."""
    min_s: float | None = None
    """Fastest sample."""
    forward_median_s: float | None = None
    """Median of the forward pass."""
    backward_median_s: float | None = None
    """Median of the backward pass."""
    optimizer_median_s: float | None = None
    """Median of the optimizer update."""
    burst_median_s: float | None = None
    """Median before temperature and power limit settled, if the regime is `sustained`; all other times are from the
    window."""
    host_median_s: float | None = None
    """Median time in which the host launches one iteration on an otherwise idle GPU; no iteration is shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the times were sampled, and how far they can be trusted."""

    samples: int | None = None
    """Number of samples behind the statistics."""
    samples_gated: int | None = None
    """Number of samples taken while something else ran; they are excluded from the median if enough others remain."""
    rounds: int | None = None
    """Number of interleaved rounds in which the samples were taken."""
    iterations_per_sample: int | None = None
    """Iterations that one sample averages over."""
    warmup_s: float | None = None
    """Time spent warming up."""
    compile_s: float | None = None
    """Time of the first call, which compiles."""
    stop_reason: str | None = None
    """`ci`: the interval converged; `cap`: the time limit was reached; `window`: one energy window."""
    regime: str | None = None
    """`sustained`: hot and without pauses, so that the clock is the one that the power limit allows in the long run
    (all points with an energy window, and all whole steps on a GPU); `burst`: alternating with other points, so that
    the clock recovers."""
    quality: str | None = None
    """One of `QUALITIES`."""
    other_load_ratio: float | None = None
    """Share of the host's CPUs that other processes used while the samples were taken; on a GPU, 1 if another process
    was on the device."""
    canary_ratio: float | None = None
    """Time of the canary beside this point over its usual time, or time of the canary before this point over that of
    the first canary of the run."""
    clock: str | None = None
    """`canary`: CPU time, divided by `canary_ratio` sample by sample; None: time as measured on the device."""
    attempts: int | None = None
    """Number of times that the point was measured until enough samples were quiet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakMemory:
    """Device memory of one iteration; keys begin with `memory_` except for the last three."""

    allocated_peak_bytes: float | None = None
    """Peak of live tensors, weights, gradients and states included."""
    active_peak_bytes: float | None = None
    """Peak of the caching allocator's active blocks."""
    reserved_peak_bytes: float | None = None
    """Memory that the caching allocator reserved for this point, including cached and fragmented memory."""
    process_bytes: float | None = None
    """Device memory of the whole process as the driver counts it, after the step."""
    context_bytes: float | None = None
    """Part of `process_bytes` outside the caching allocator: CUDA context, kernels, libraries, captured graphs."""
    forward_peak_bytes: float | None = None
    """Peak during the forward pass."""
    backward_peak_bytes: float | None = None
    """Peak during the backward pass."""
    optimizer_peak_bytes: float | None = None
    """Peak during the optimizer update."""
    persistent_bytes: float | None = None
    """Memory that stays live between iterations: weights, gradients, states."""
    tracker_peak_bytes: float | None = None
    """Peak of the same step as estimated by tracking fake tensors, without running it."""
    source: str | None = None
    """`cuda_allocator` or `cpu_allocator_events`."""
    alloc_retries: int | None = None
    """Number of allocator retries during the timed part; any retry makes the time invalid."""
    ooms: int | None = None
    """Number of out-of-memory events that the allocator recovered from."""
    optimizer_state_bytes_per_param: float | None = None
    """Measured growth of the optimizer's state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyUse:
    """Energy of one iteration, and how it was read; keys begin with `energy_`."""

    j_per_iteration: float | None = None
    """Mean power times the median time of an iteration in the window."""
    window_s: float | None = None
    """Length of the window: between the counter ticks used or, without a counter, the whole window."""
    ticks: int | None = None
    """Number of counter ticks within the window."""
    tick_period_s: float | None = None
    """Median time between ticks."""
    source: str | None = None
    """`counter`, `instant`, `rapl` or `none`."""
    quality: str | None = None
    """`ok`; `inconsistent`: counter and power differ by more than 5 %; `short`: too few ticks; `single`: one source."""
    scope: str | None = None
    """`board`, `module` (Grace Hopper: CPU included) or `package` (RAPL)."""
    reason: str | None = None
    """Why the energy is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerDraw:
    """Power over the energy window, or of a burst; keys begin with `power_`."""

    mean_w: float | None = None
    """Mean power, from the best source available."""
    p95_w: float | None = None
    """95th percentile of the instantaneous power field."""
    instant_mean_w: float | None = None
    """Mean of the instantaneous power field over the same window, or over a sustained run too short for an energy. For
    a burst, it is the mean of the readings while it was timed; some include power of work up to 100 ms earlier."""
    average_mean_w: float | None = None
    """Mean of the driver's one-second average field over the same window."""
    idle_w: float | None = None
    """Mean power while nothing ran."""


SLOWED_DOWN_MASK = 0x8 | 0x20 | 0x40 | 0x80
"""NVML's clock event reasons for slowdowns other than the power cap: hardware slowdown, software and hardware thermal
slowdown, and an external power brake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """Temperatures, clocks and the power limit while the point was timed: over its window or its own batches."""

    temperature_start_c: float | None = None
    """Core temperature at the start."""
    temperature_end_c: float | None = None
    """Core temperature at the end."""
    memory_temperature_c: float | None = None
    """Memory temperature at the end."""
    sm_clock_median_hz: float | None = None
    """Median clock of the multiprocessors."""
    sm_clock_min_hz: float | None = None
    """Lowest clock of the multiprocessors."""
    memory_clock_hz: float | None = None
    """Memory clock at the end."""
    clock_event_mask: int | None = None
    """NVML's clock event reasons, OR-ed over all samples: 4 is the power cap (normal under load), the bits of
    `SLOWED_DOWN_MASK` are slowdowns."""
    power_limit_w: float | None = None
    """Enforced power limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numerics:
    """Effect of the arithmetic on the values."""

    product_error_ratio: float | None = None
    """Relative error of a matrix product against FP64, which shows which arithmetic really ran."""
    loss_trace: tuple[float, ...] = ()
    """Loss of successive steps, with the same initial weights and data in every precision."""
    loss_scale: float | None = None
    """Loss scale after the last step, in FP16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingNumerics:
    """Result of real training in a lower precision (`mpplan numerics`); keys begin with `numerics_`.

    The lower precision itself is the point's `precision` and `recipe`.
    """

    task: str | None = None
    """Trained task: a built-in one, or `own`."""
    instrument: str | None = None
    """`parity`, `loss-scaling` or `policy`."""
    baseline: str | None = None
    """The higher precision of a pair."""
    emulated: bool | None = None
    """True if the precision was emulated by exact quantise–dequantise in at least some layers, because the device lacks
    such arithmetic."""
    steps: int | None = None
    """Number of steps of each run."""
    seeds: int | None = None
    """Number of pairs of runs."""
    metric: str | None = None
    """Metric that is compared: `loss` or `accuracy`."""
    difference_low: float | None = None
    """Lower end of the 90 % interval of the mean difference, lower precision minus baseline."""
    difference_mid: float | None = None
    """Mean difference."""
    difference_high: float | None = None
    """Upper end of the interval."""
    margin: float | None = None
    """Equivalence margin: half the width of the interval of differences that count as equal."""
    verdict: str | None = None
    """Verdict of the equivalence test: `equivalent`, `not_equivalent` or `cannot_tell`."""
    seeds_needed: int | None = None
    """Number of pairs that would give a verdict; None if no number is enough or known."""
    seeds_would_show: str | None = None
    """Verdict that so many pairs would give if the difference is what it appears to be."""
    real_layers: int | None = None
    """Number of layers that ran in the lower precision on the device's own hardware units."""
    lowered_layers: int | None = None
    """Number of layers that ran in the lower precision, including emulated ones."""
    trains: bool | None = None
    """For loss scaling: whether any step was taken at any scale. False: the precision does not train this model."""
    skipped_step_ratio: float | None = None
    """Share of the steps of these runs that were lost to overflows of the scaled loss."""
    steady_skipped_step_ratio: float | None = None
    """Share of steps lost in a long run, once the scale has settled; None if no step was taken."""
    steady_basis: str | None = None
    """Basis of that share: `arithmetic`, one step in each growth interval; `measured`, clearly more in these runs."""
    lowered_parameters_ratio: float | None = None
    """For a recommended policy: the share of the parameters that can be in the lower precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedFigures:
    """Prediction from other points, made by `--verify` before the point was run; keys begin with `predicted_`."""

    time_s: float | None = None
    """Median time of one iteration."""
    memory_bytes: float | None = None
    """Peak of live tensors."""
    energy_j: float | None = None
    """Energy of one iteration."""
    probe_ids: tuple[str, ...] = ()
    """Points that the prediction rests on; the key is `predicted_from`."""

"""What a measured point found: time, memory, energy, power, temperatures, numerics, and what had been predicted."""

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
    """Upper end of it."""
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
    """Median before heat and power limits settled, where the regime is `sustained`; all others are of the window."""
    host_median_s: float | None = None
    """Median time in which the host launches one iteration of a GPU that has nothing else to do: no iteration is
    shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the times were sampled, and how far they can be trusted."""

    samples: int | None = None
    """Samples behind the statistics."""
    samples_gated: int | None = None
    """Samples taken while something else ran; they are kept out of the median where enough others remain."""
    rounds: int | None = None
    """Interleaved rounds in which the samples were taken."""
    iterations_per_sample: int | None = None
    """Iterations that one sample averages over."""
    warmup_s: float | None = None
    """Time spent warming up."""
    compile_s: float | None = None
    """Time of the first, compiling call."""
    stop_reason: str | None = None
    """`ci`: the interval converged; `cap`: the time limit was reached; `window`: one energy window."""
    regime: str | None = None
    """`sustained`: hot, without a pause, so that the clock is the one that the power limit allows in the long run (all
    points with an energy window, and all whole steps on a GPU); `burst`: in turns with others, so that it recovers."""
    quality: str | None = None
    """One of `QUALITIES`."""
    other_load_ratio: float | None = None
    """Share of the host's CPUs that other processes used while the samples were taken; on a GPU 1 where another
    process was on the device."""
    canary_ratio: float | None = None
    """The canary beside this point over its usual time, or the one before it over the first of the run."""
    clock: str | None = None
    """`canary`: CPU time, divided by `canary_ratio` sample by sample; None: the device's clock as it went."""
    attempts: int | None = None
    """Times that the point was measured until enough samples were quiet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakMemory:
    """Device memory of one iteration; keys begin with `memory_` except for the last three."""

    allocated_peak_bytes: float | None = None
    """Peak of live tensors, weights, gradients and states included."""
    active_peak_bytes: float | None = None
    """Peak of the caching allocator's active blocks."""
    reserved_peak_bytes: float | None = None
    """What the caching allocator took from the driver for this point, cached and broken-up memory included."""
    process_bytes: float | None = None
    """Device memory of the whole process by the driver's count, when the step was over."""
    context_bytes: float | None = None
    """Of it what the caching allocator does not hold: CUDA context, loaded kernels, libraries, captured graphs."""
    forward_peak_bytes: float | None = None
    """Peak during the forward pass."""
    backward_peak_bytes: float | None = None
    """Peak during the backward pass."""
    optimizer_peak_bytes: float | None = None
    """Peak during the optimizer update."""
    persistent_bytes: float | None = None
    """Live between iterations: weights, gradients, states."""
    tracker_peak_bytes: float | None = None
    """Peak of the same step by bookkeeping on fake tensors, without running it."""
    source: str | None = None
    """`cuda_allocator` or `cpu_allocator_events`."""
    alloc_retries: int | None = None
    """Allocator retries during the timed part; any retry makes the time invalid."""
    ooms: int | None = None
    """Out-of-memory events that the allocator recovered from."""
    optimizer_state_bytes_per_param: float | None = None
    """Measured growth of the optimizer's state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyUse:
    """Energy of one iteration and how it was read; keys begin with `energy_`."""

    j_per_iteration: float | None = None
    """Mean power times the median time of an iteration in the window."""
    window_s: float | None = None
    """Length of the window: between the counter ticks used, or the whole window without a counter."""
    ticks: int | None = None
    """Counter ticks within the window."""
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
    """Mean, from the best source at hand."""
    p95_w: float | None = None
    """95th percentile of the instantaneous field."""
    instant_mean_w: float | None = None
    """Mean of the instantaneous power field over the same window, or over a sustained run too short for an energy. Of a
    burst, over readings while it was timed: some hold part of what ran up to 100 ms before."""
    average_mean_w: float | None = None
    """Mean of the driver's one-second average field over the same window."""
    idle_w: float | None = None
    """Mean while nothing ran."""


SLOWED_DOWN_MASK = 0x8 | 0x20 | 0x40 | 0x80
"""NVML's clock event reasons that are no power cap: the hardware's slow-down, heat by software and by hardware, and an
external brake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """Temperatures, clocks and the power limit while the point was timed: over its window, or its own batches."""

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
    """NVML's clock event reasons, all samples OR-ed: 4 power cap (normal under load); `SLOWED_DOWN_MASK` slow-downs."""
    power_limit_w: float | None = None
    """Enforced power limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numerics:
    """What the arithmetic did to the values."""

    product_error_ratio: float | None = None
    """Relative error of a matrix product against FP64: shows which arithmetic really ran."""
    loss_trace: tuple[float, ...] = ()
    """Loss of successive steps, with the same start and data in every precision."""
    loss_scale: float | None = None
    """FP16: scale of the loss after the last step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingNumerics:
    """What real training showed of a lower precision (`mpplan numerics`); keys begin with `numerics_`.

    The lower precision itself is the point's `precision` and `recipe`.
    """

    task: str | None = None
    """What was trained: a built-in task, or `own`."""
    instrument: str | None = None
    """`parity`, `loss-scaling` or `policy`."""
    baseline: str | None = None
    """The higher precision of a pair."""
    emulated: bool | None = None
    """True: by exact quantise–dequantise, at least in some layers, where the device has no such arithmetic."""
    steps: int | None = None
    """Steps of each run."""
    seeds: int | None = None
    """Pairs of runs."""
    metric: str | None = None
    """What is compared: `loss` or `accuracy`."""
    difference_low: float | None = None
    """Lower end of the 90 % interval of the mean difference, lower precision minus baseline."""
    difference_mid: float | None = None
    """Mean difference."""
    difference_high: float | None = None
    """Upper end of the interval."""
    margin: float | None = None
    """Half the width of what counts as equal."""
    verdict: str | None = None
    """Of the test of equivalence: `equivalent`, `not_equivalent` or `cannot_tell`."""
    seeds_needed: int | None = None
    """Pairs that would tell; None where no number is enough or known."""
    seeds_would_show: str | None = None
    """The verdict that so many pairs would show, were the difference what it seems."""
    real_layers: int | None = None
    """Layers that ran in the lower precision on the device's own units."""
    lowered_layers: int | None = None
    """Layers that ran in it, those that were emulated included."""
    trains: bool | None = None
    """Of loss scaling: whether any step was taken at any scale. False: the precision does not train this model."""
    skipped_step_ratio: float | None = None
    """Steps lost to overflows of the scaled loss, of the steps of these runs."""
    steady_skipped_step_ratio: float | None = None
    """The same of a long run, when the scale has settled; None where no step was taken."""
    steady_basis: str | None = None
    """What says so: `arithmetic`, one step in each growth interval; `measured`, clearly more in these runs."""
    lowered_parameters_ratio: float | None = None
    """Of a recommended policy: the share of the parameters that can be in the lower precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedFigures:
    """What other points predict of this one, with `--verify` before it was run; keys begin with `predicted_`."""

    time_s: float | None = None
    """Median time of one iteration."""
    memory_bytes: float | None = None
    """Peak of live tensors."""
    energy_j: float | None = None
    """Energy of one iteration."""
    probe_ids: tuple[str, ...] = ()
    """Points that the prediction rests on; the key is `predicted_from`."""

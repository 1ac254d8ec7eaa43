"""Power of a GPU by what it does, and energy of a step and a run by item."""

from __future__ import annotations

from dataclasses import dataclass

from planner.rates import Rates, Value
from planner.step import StepTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnergy:
    """Joules of a whole run by item, `[draw]` or `[layout]`."""

    gpu: Value
    host: Value
    network: Value
    pue_overhead: Value

    @property
    def total(self) -> Value:
        """At the facility's meter: (GPU + host + network) times PUE."""
        return self.gpu + self.host + self.network + self.pue_overhead


def gpu_step_j(step: StepTimes, rates: Rates) -> Value:
    """Board energy of one GPU over one step: seconds of each activity times its power."""
    waiting = step.tp_comm + step.cp_comm + step.ep_comm + step.pp_comm + step.bubble + step.dp_comm + step.jitter
    return rates.power_error * (
        step.matmul * rates.power_linear_w
        + step.recompute * rates.power_linear_w
        + step.attention * rates.power_attention_w
        + (step.memory_bound + step.optimizer) * rates.power_memory_w
        + waiting * rates.power_wait_w
        + (step.launch + step.offload) * 0.5 * (rates.power_idle_w + rates.power_wait_w)
    )


def run_energy(
    gpu_power_w: Value, gpus: Value, busy_s: Value, wall_s: Value, rates: Rates, pue: Value
) -> RunEnergy:
    """Energy of `gpus` GPUs that train `busy_s` and hold their GPUs for `wall_s` (the rest of it waiting or idle)."""
    idle_s = wall_s - busy_s
    gpu = gpus * (busy_s * gpu_power_w + idle_s * 0.5 * (rates.power_idle_w + rates.power_wait_w))
    host = gpu * rates.host_share
    network = gpu * rates.network_share
    return RunEnergy(gpu=gpu, host=host, network=network, pue_overhead=(gpu + host + network) * (pue - 1.0))

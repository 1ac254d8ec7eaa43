"""From steps to a run: goodput, GPU power by activity, and the energy of the run by item."""

from __future__ import annotations

import numpy as np

from planner.lazy import dataclass
from planner.performance.step import StepTimes
from planner.rates.terms import Rates, Value
from planner.units import HOUR_S


def goodput_ratio(gpus: Value, rates: Rates) -> Value:
    """Useful over wall-clock time, in (0, 1].

    Checkpoints are written at the interval that loses least time (Young 1974: sqrt(2 x stall x time between failures)).
    Each failure costs the restart and half an interval of repeated steps. Further standstill seen in published runs
    (changes to the run, people, queues) is added and never makes a run shorter. A step that is skipped because the loss
    scale overflows is repeated.
    """
    failures_per_s = np.maximum(gpus * rates.failures_per_gpu_h / HOUR_S, 1e-12)
    interval_s = np.sqrt(2.0 * rates.checkpoint_s / failures_per_s)
    lost = rates.checkpoint_s / interval_s + failures_per_s * (rates.restart_s + 0.5 * interval_s)
    stopped = np.maximum(rates.standstill_ratio, 1.0)
    result: Value = rates.useful_step_ratio / ((1.0 + lost) * (1.0 + rates.evaluation_ratio) * stopped)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnergy:
    """Joules of a whole run by item, `[draw]` or `[layout]`."""

    gpu: Value
    host: Value
    network: Value
    pue_overhead: Value

    @property
    def machines(self) -> Value:
        """Energy of GPUs, hosts and switches, without the facility's overhead."""
        return self.gpu + self.host + self.network

    @property
    def total(self) -> Value:
        """Energy at the facility's meter: that of the machines times PUE."""
        return self.machines + self.pue_overhead


def gpu_step_j(step: StepTimes, rates: Rates, products_draw_ratio: Value = 1.0, host_s: Value = 0.0) -> Value:
    """Board energy of one GPU over one step: seconds of each activity times its power.

    Args:
        step: seconds by item.
        rates: watts by activity.
        products_draw_ratio: mean power of the products relative to products that run at the power limit.
        host_s: seconds of the optimizer item in which the GPU waits for the host.
    """
    product_w = rates.power_linear_w * rates.product_power_ratio * products_draw_ratio
    waiting = step.tp_comm + step.cp_comm + step.ep_comm + step.pp_comm + step.bubble + step.dp_comm + step.jitter
    return (
        rates.power_stack_error_ratio
        * rates.power_error_ratio
        * (
            (step.matmul + step.recompute) * product_w
            + step.attention * rates.power_attention_w
            + (step.memory_bound + step.optimizer - host_s) * rates.power_memory_w
            + waiting * rates.power_wait_w
            + (step.launch + step.offload + step.allocator + host_s) * 0.5 * (rates.power_idle_w + rates.power_wait_w)
        )
    )


def host_w(rates: Rates) -> Value:
    """A GPU's share of its host's power (CPUs, memory, fans, network cards) in watts, independent of GPU load.

    0 for a device whose power is unknown (a CPU).
    """
    least = np.where(np.greater(rates.host_power_w, 0.0), rates.host_least_w, 0.0)
    result: Value = np.maximum(rates.host_power_w, least)
    return result


def host_and_network_w(rates: Rates) -> Value:
    """A GPU's shares of the power of its host and of the switches, in watts, drawn for as long as the GPU is held."""
    return host_w(rates) + rates.network_power_w


def run_energy(gpu_power_w: Value, gpus: Value, busy_s: Value, wall_s: Value, rates: Rates, pue: Value) -> RunEnergy:
    """Energy of `gpus` GPUs that train for `busy_s` out of the `wall_s` for which they are held.

    The GPUs wait or idle for the rest. Hosts and switches draw constant power for all of `wall_s`.
    """
    idle_s = wall_s - busy_s
    gpu = gpus * (busy_s * gpu_power_w + idle_s * 0.5 * (rates.power_idle_w + rates.power_wait_w))
    host, network = gpus * wall_s * host_w(rates), gpus * wall_s * rates.network_power_w
    return RunEnergy(gpu=gpu, host=host, network=network, pue_overhead=(gpu + host + network) * (pue - 1.0))

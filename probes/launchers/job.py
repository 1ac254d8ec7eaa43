"""Turns a user's request into the job that a launcher writes, or into an error that states what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil

from planner.errors import UsageError
from planner.units import DAY_S, HOUR_S, MINUTE_S
from probes import precisions, workloads
from probes.launchers.base import Launcher, ProbeJob
from probes.launchers.device_names import find_nvidia
from probes.launchers.settings import GPU, SETTING_BY_NAME, TIME
from probes.record.options import BUDGETS_S, RANKS_BUDGETS_S, Options

RANKS_PER_NODE = 8
"""Default if neither the user nor the GPU's row of the catalogue gives a number."""

MOST_NODES = 100_000
MOST_RANKS = 1024
"""Most ranks per node; a larger number is a typing error."""

START_S = 20 * MINUTE_S
"""Seconds in a job's time limit for installing, waiting for the other nodes and starting PyTorch."""


def make_job(
    launcher: Launcher,
    probe: Options,
    *,
    ranks: int | None = None,
    nodes: int | None = None,
    given: Mapping[str, str],
) -> ProbeJob:
    """Make the job for a launcher, with every text checked.

    Args:
        launcher: where the job will run.
        probe: what each rank measures.
        ranks: processes per node; None: the GPUs that nodes of this GPU have in the catalogue, else 8.
        nodes: number of nodes; None: one.
        given: values of settings by name, as typed.

    Raises:
        UsageError: a setting is missing or unknown to this launcher, or its value cannot be in a job file.
    """
    on_cpu = probe.device == "cpu"
    settings = _checked(launcher, given, on_cpu=on_cpu)
    gpu = find_nvidia(settings[GPU]) if GPU in settings else None
    count = _counted("--nnodes", nodes, most=MOST_NODES) or 1
    per_node = _counted("--ranks", ranks, most=MOST_RANKS) or (gpu.gpus_per_node if gpu else RANKS_PER_NODE)
    if TIME in settings:
        _check_time(settings[TIME], _budget_s(probe, count * per_node))
    return ProbeJob(
        nodes=count,
        ranks_per_node=per_node,
        arguments=arguments(probe, count * per_node),
        limit_s=_limit_s(probe, count * per_node),
        on_cpu=on_cpu,
        gpu=gpu,
        settings=settings,
    )


def arguments(probe: Options, ranks: int = 1) -> tuple[str, ...]:
    """Return the flags of `mpplan probe` that request the same measurements, from known names and numbers only.

    Args:
        probe: what is to be measured.
        ranks: number of ranks of the whole job.

    Raises:
        UsageError: a precision or workload is unknown.
    """
    precisions.choose(probe.precisions)
    workloads.choose(probe.workloads, ranks)
    flags = ["--suite", probe.suite]
    if probe.device == "cpu":
        flags += ["--device", "cpu"]
    if probe.precisions:
        flags += ["--precision", _listed(probe.precisions)]
    if probe.workloads:
        flags += ["--workload", _listed(probe.workloads)]
    if probe.budget_s is not None:
        flags += ["--budget", f"{probe.budget_s:.15g}s"]
    if probe.verify:
        flags.append("--verify")
    if probe.seed:
        flags += ["--seed", str(probe.seed)]
    return tuple(flags)


def _listed(names: Iterable[str]) -> str:
    return ",".join(name.strip().lower() for name in names)


def _checked(launcher: Launcher, given: Mapping[str, str], *, on_cpu: bool) -> dict[str, str]:
    settings = {}
    for name, text in given.items():
        if name not in launcher.takes:
            flags = ", ".join(f"`{SETTING_BY_NAME[known].flag}`" for known in launcher.takes)
            raise UsageError(f"{launcher.name} does not take --{name}", hint=f"it takes {flags}")
        settings[name] = SETTING_BY_NAME[name].read(text)
    if on_cpu and GPU in settings:
        raise UsageError("--gpu cannot be combined with --device cpu", hint="leave one of them out")
    for need in launcher.needs:
        if need.setting not in settings and not (on_cpu and need.setting == GPU):
            raise UsageError(f"a recipe for {launcher.name} needs {need.what}", hint=need.hint)
    return settings


def _counted(flag: str, count: int | None, *, most: int) -> int | None:
    if count is not None and not 1 <= count <= most:
        raise UsageError(f"{flag}: expected 1 to {most:,}, found `{count}`", hint=f"for example `{flag} 2`")
    return count


def _budget_s(probe: Options, ranks: int) -> float:
    """Return the seconds that the measurements themselves may take."""
    suites = (BUDGETS_S if ranks == 1 else RANKS_BUDGETS_S)["cpu" if probe.device == "cpu" else "cuda"]
    return probe.budget_s or suites[probe.suite]


def _limit_s(probe: Options, ranks: int) -> float:
    return (3 if probe.verify else 2) * _budget_s(probe, ranks) + START_S


def _check_time(text: str, budget_s: float) -> None:
    """Refuse a time limit that would end the job before the probe ends.

    Raises:
        UsageError: the time limit is too short.
    """
    limit_s = _sbatch_s(text)
    if 0 < limit_s < budget_s:
        least = ceil(budget_s / MINUTE_S)
        room = f"`--time {least + int(START_S / MINUTE_S)}` leaves room for starting it, too"
        raise UsageError(
            f"--time: the job would end after {limit_s / MINUTE_S:g} minutes, but the probe may measure for "
            f"{budget_s / MINUTE_S:.3g}",
            hint=f"{room}; or give the probe less time with --budget",
        )


def _sbatch_s(text: str) -> float:
    """Parse a time limit as sbatch does: minutes[:seconds], hours:minutes:seconds, days-hours[:minutes[:seconds]].

    The result is in seconds; 0 means no limit.
    """
    days, dash, clock = text.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    if not dash:
        parts = [0, *parts] if len(parts) < 3 else parts
    hours, minutes, seconds = (*parts, 0, 0)[:3]
    return int(days or 0) * DAY_S + hours * HOUR_S + minutes * MINUTE_S + seconds

"""Launchers, which describe to a cluster how to run the probe. One file per launcher, listed here.

Nothing here measures, starts a job or needs torch: `asked.make_job` checks the request, and a launcher writes it down.
"""

from __future__ import annotations

from planner.errors import UsageError
from planner.text import shortened
from probes.launchers import kubernetes, skypilot, slurm
from probes.launchers.base import Launcher, ProbeJob

LAUNCHERS: tuple[Launcher, ...] = (slurm.LAUNCHER, skypilot.LAUNCHER, kubernetes.LAUNCHER)
"""All launchers."""


def launcher_by_name(name: str) -> Launcher:
    """Return the launcher with this name.

    Raises:
        UsageError: no launcher has this name.
    """
    for launcher in LAUNCHERS:
        if launcher.name == name.strip().lower():
            return launcher
    names = ", ".join(launcher.name for launcher in LAUNCHERS)
    raise UsageError(f"--recipe: unknown launcher `{shortened(name)}`", hint=f"use one of {names}")


__all__ = ["LAUNCHERS", "Launcher", "ProbeJob", "launcher_by_name"]

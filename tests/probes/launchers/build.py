"""Jobs as a user asks for them."""

from __future__ import annotations

from typing import Any

from probes.launchers import launcher_by_name
from probes.launchers.job import make_job
from probes.record.options import Options

SETTINGS = {
    "slurm": {"partition": "gpu"},
    "skypilot": {"gpu": "h100-sxm5-80gb"},
    "kubernetes": {"gpu": "h100-sxm5-80gb", "image": "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime"},
}
"""What each launcher needs, and a GPU where it takes one."""


def recipe(name: str, probe: Options | None = None, *, ranks: int | None = None, nodes: int = 1, **given: str) -> str:
    """The job file of a launcher; settings are those of `SETTINGS` with `given` on top."""
    probe = probe or Options(device="cuda")
    settings: dict[str, Any] = {**SETTINGS[name], **given}
    if probe.device == "cpu":
        settings.pop("gpu", None)
    launcher = launcher_by_name(name)
    return launcher.write(make_job(launcher, probe, ranks=ranks, nodes=nodes, given=settings))

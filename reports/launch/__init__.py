"""Convert a plan to the configuration of a training framework: one module per framework, listed here.

Each framework's module maps plan fields to settings of a specific release; nothing here starts a job.
"""

from __future__ import annotations

from typing import Any

from planner.errors import UsageError
from planner.rows import near_names
from planner.text import shortened
from reports.launch import accelerate, axolotl, deepspeed, megatron, skypilot, torchtitan
from reports.launch.framework import Framework, LaunchFile, render
from reports.launch.planned_run import planned_run

FRAMEWORKS: tuple[Framework, ...] = (
    megatron.FRAMEWORK,
    torchtitan.FRAMEWORK,
    deepspeed.FRAMEWORK,
    accelerate.FRAMEWORK,
    axolotl.FRAMEWORK,
    skypilot.FRAMEWORK,
)
"""All frameworks, in the order of the help."""


def find_framework(name: str) -> Framework:
    """Return the framework of this name, ignoring case.

    Raises:
        UsageError: there is no such framework.
    """
    names = {framework.name: framework for framework in FRAMEWORKS}
    plain = name.strip().lower()
    if plain not in names:
        near = near_names(plain, names, 1)
        hint = f"did you mean `{near[0]}`? All: " if near else "one of "
        raise UsageError(f"--launch: unknown framework `{shortened(name)}`", hint=f"{hint}{', '.join(names)}")
    return names[plain]


def launch_file(
    document: dict[str, Any],
    framework: str,
    *,
    precision: str | None = None,
    gpu: str | None = None,
    view: str = "plans",
    file: str = "the answer",
) -> LaunchFile:
    """Return the configuration of one plan of an answer for a framework.

    Args:
        document: `mpplan.estimate/2`, checked and cleaned.
        framework: name of the framework.
        precision: precision of the plan; default: the requested one.
        gpu: GPU of the plan, named as in a question; default: the GPU of the answer's sentence.
        view: `plans` or `same_deadline`.
        file: name of the answer in errors.

    Raises:
        UsageError: there is no such framework or plan, or the framework cannot run the plan.
        InputFileError: the answer names something that is in no catalogue, or has no samples to train on.
    """
    run = planned_run(document, precision=precision, gpu=gpu, view=view, file=file)
    return render(find_framework(framework), run, FRAMEWORKS)


__all__ = ["FRAMEWORKS", "Framework", "LaunchFile", "find_framework", "launch_file"]

"""`mpplan probe --recipe`: write a job file that runs the probe on a cluster, instead of measuring here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from mpplan.ui.config import sources
from mpplan.ui.console import note
from mpplan.ui.output import open_output
from planner.errors import UsageError
from planner.question.input import flag_of
from planner.units import parse_duration_s
from probes.launchers import LAUNCHERS, launcher_by_name
from probes.launchers.settings import SETTINGS, Setting
from probes.record.options import SUITES, Options

PANEL = "On a cluster"

CARRIED = ("suite", "device", "precision", "workload", "budget", "seed", "verify", "ranks", "nnodes")
"""Parameters of `mpplan probe` that go into the job."""
HERE = ("output", "quiet")
"""Parameters of `mpplan probe` that concern the job file itself."""


def with_recipe(command: Callable[..., None]) -> Callable[..., None]:
    """Give `mpplan probe` the flag `--recipe` and its settings; with the flag, the command writes the job file instead.

    Args:
        command: a function whose annotations resolve at run time.
    """
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    added = [_recipe_flag(), *(_flag(setting.name, setting.metavar, _help(setting)) for setting in SETTINGS)]

    def run(context: typer.Context, **values: Any) -> None:
        recipe = values.pop("recipe")
        settings = {setting.name: values.pop(setting.name) for setting in SETTINGS}
        given = {name: text for name, text in settings.items() if text is not None}
        if recipe is None:
            _refuse_settings(given)
            command(**values)
        else:
            _write(recipe, values, given, typed=[name for name, source in sources(context).items() if source == "flag"])

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in [*own, *added]]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [context, *keyword]}
    run.__signature__ = inspect.Signature([context, *keyword])  # type: ignore[attr-defined]  # where Typer looks
    return run


def _recipe_flag() -> inspect.Parameter:
    return _flag(
        "recipe", "LAUNCHER", "Do not measure: write a job file for slurm, skypilot or kubernetes, to -o or stdout."
    )


def _help(setting: Setting) -> str:
    takers = ", ".join(launcher.name for launcher in LAUNCHERS if setting.name in launcher.takes)
    return f"{takers}: {setting.help[0].lower()}{setting.help[1:]}"


def _flag(name: str, metavar: str, help_text: str) -> inspect.Parameter:
    option = typer.Option(flag_of(name), metavar=metavar, help=help_text, rich_help_panel=PANEL)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, option]
    )


def _refuse_settings(given: Mapping[str, str]) -> None:
    """Raise for cluster settings, which have no meaning for a probe that starts here.

    Raises:
        UsageError: a setting was given.
    """
    for name in given:
        raise UsageError(
            f"{flag_of(name)} only applies to a job file", hint="add `--recipe slurm`, `skypilot` or `kubernetes`"
        )


def _write(recipe: str, values: Mapping[str, Any], given: Mapping[str, str], *, typed: list[str]) -> None:
    from probes.launchers.job import make_job  # this import loads all workloads, which only a recipe needs

    launcher = launcher_by_name(recipe)
    for name in typed:
        if name in values and name not in (*CARRIED, *HERE):
            raise UsageError(f"--recipe measures nothing here, so {flag_of(name)} has no effect", hint="leave it out")
    job = make_job(launcher, _asked(values), ranks=values.get("ranks"), nodes=values.get("nnodes"), given=given)
    file = values["output"] or "-"
    output = open_output(file)
    output.write(launcher.write(job))
    quiet = bool(values["quiet"])
    if not output.is_stdout:
        note(f"wrote {file}, for {job.what}", quiet=quiet)
    command = launcher.start.format(file="FILE" if output.is_stdout else file)
    note(f"start it with `{command}`; {launcher.returned}", quiet=quiet)


def _asked(values: Mapping[str, Any]) -> Options:
    """Return the options of the measurement in the job.

    Raises:
        UsageError: a value is not allowed.
    """
    if values["suite"] not in SUITES:
        raise UsageError(f"--suite: unknown suite `{values['suite']}`", hint=f"use one of {', '.join(SUITES)}")
    if values["device"] not in ("gpu", "cuda", "cpu"):
        raise UsageError(f"--device: unknown device `{values['device']}`", hint="use `gpu` or `cpu`")
    return Options(
        suite=values["suite"],
        device="cpu" if values["device"] == "cpu" else "cuda",
        precisions=_names(values["precision"]),
        workloads=_names(values["workload"]),
        budget_s=parse_duration_s(values["budget"], "--budget") if values["budget"] else None,
        verify=values["verify"],
        seed=values["seed"],
    )


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())

"""What a framework is to `mpplan export --launch`, and the file that one makes of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.errors import UsageError
from planner.text import one_line
from reports.launch.planned_run import PlannedRun

Settings = Mapping[str, object]
"""Settings by name, in the order of the file; a mapping is a section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Something that a framework cannot do as a plan has it: a refusal, or what a file leaves out."""

    applies: Callable[[PlannedRun], bool]
    what: str
    """One sentence without a full stop, for the page of the documentation, the file and the screen."""
    hint: str = ""
    """Of a refusal: flags of `mpplan estimate` that make a plan without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What of a plan a framework takes, and where it stands."""

    what: str
    where: tuple[str, ...]
    """Names of settings as the file has them, sections joined by a point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """One framework; each is a file of this folder."""

    name: str
    """What the user types."""
    title: str
    """What its makers call it, with the release that these settings are of."""
    source: str
    """Address of what declares the settings."""
    form: str
    """Kind of the file, in words."""
    suffix: str
    """Extension of the file, with its point."""
    start: str
    """The command that starts it, with `{file}`."""
    takes: tuple[Taken, ...]
    refuses: tuple[Rule, ...]
    leaves_out: tuple[Rule, ...]
    write: Callable[[PlannedRun, tuple[str, ...]], str]
    """The file of a plan that nothing refuses, with the head and the notes that its comments hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFile:
    """A file to start training with."""

    text: str
    notes: tuple[str, ...]
    """What of the plan is not in it, one sentence each."""


def render(framework: Framework, run: PlannedRun) -> LaunchFile:
    """The configuration of a plan for a framework.

    Raises:
        UsageError: the framework cannot run the plan; the first reason, with what to ask for instead.
    """
    for rule in framework.refuses:
        if rule.applies(run):
            raise UsageError(f"{framework.title} cannot run this plan: {rule.what}", hint=rule.hint or OTHERS)
    notes = tuple(rule.what for rule in framework.leaves_out if rule.applies(run))
    return LaunchFile(text=framework.write(run, (*head(framework, run), *_commented(notes))), notes=notes)


OTHERS = "another framework may: `mpplan export --help` lists them"


def head(framework: Framework, run: PlannedRun) -> tuple[str, ...]:
    """Lines that name the plan: model, precision, GPUs, duration, when it was made, by which mpplan."""
    low, mid, high = run.days
    layout = run.layout
    axes = ", ".join(f"{axis} {getattr(layout, axis)}" for axis in ("tp", "pp", "vp", "cp", "ep", "dp", "zero"))
    lines = (
        f"{run.model}, {run.method}, {run.precision} (policy {run.policy.id}), {run.gpus} x {run.gpu} on "
        f"{run.nodes} {'node' if run.nodes == 1 else 'nodes'}, view {run.view}",
        f"Layout: {axes}, micro-batch {layout.micro_batch}, accumulation {layout.grad_accum}, "
        f"checkpointing {layout.act_ckpt}, replicas {layout.replicas}",
        f"Run: {run.steps:,} steps of {layout.global_batch:,} x {_length(run)}; predicted to take "
        f"{mid:.3g} days ({low:.3g} to {high:.3g})",
        f"Planned {run.created_at} by mpplan {run.version} ({run.schema}); settings of {framework.title}",
        f"Start: {framework.start.format(file='FILE' + framework.suffix)}",
    )
    return tuple(one_line(line) for line in lines)


def _commented(notes: tuple[str, ...]) -> tuple[str, ...]:
    return ("", "Not in this file:", *(f"- {note}" for note in notes)) if notes else ()


def _length(run: PlannedRun) -> str:
    """Tokens of a sequence; of padded ones the mean beside the most."""
    if run.mean_len >= run.seq_len:
        return f"{run.seq_len:,} tokens"
    return f"up to {run.seq_len:,} tokens ({run.mean_len:,.0f} on average)"

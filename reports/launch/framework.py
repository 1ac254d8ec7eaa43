"""What a framework is to `mpplan export --launch`, and the file that one makes of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from planner.errors import UsageError
from planner.lazy import dataclass
from planner.text import one_line
from reports.launch.planned_run import PlannedRun
from reports.text.language import words_for

Settings = Mapping[str, object]
"""Settings by name, in the order of the file; a mapping is a section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Something that a framework cannot do as a plan has it: a refusal, or what a file leaves out."""

    applies: Callable[[PlannedRun], bool]
    what: str
    """One sentence without a full stop, for the page of the documentation, the file and the screen."""
    hint: str = ""
    """Of a refusal: flags of `mpplan estimate` that make a plan without it; the frameworks that take the plan as it is
    are found and named with it."""


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
    trains: bool = True
    """Whether it trains by itself what its file says; else it only starts what another does."""
    write: Callable[[PlannedRun, tuple[str, ...]], str]
    """The file of a plan that nothing refuses, with the head and the notes that its comments hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFile:
    """A file to start training with."""

    text: str
    notes: tuple[str, ...]
    """What of the plan is not in it, one sentence each."""


def render(framework: Framework, run: PlannedRun, others: Iterable[Framework] = ()) -> LaunchFile:
    """The configuration of a plan for a framework.

    Args:
        framework: which writes it.
        run: the plan.
        others: frameworks that a refusal may point to.

    Raises:
        UsageError: the framework cannot run the plan; the first reason, with what to ask for instead.
    """
    refusal = refusal_of(framework, run)
    if refusal is not None:
        raise UsageError(
            f"{framework.title} cannot run this plan: {refusal.what}", hint=_instead(framework, refusal, run, others)
        )
    notes = tuple(rule.what for rule in framework.leaves_out if rule.applies(run))
    return LaunchFile(text=framework.write(run, (*head(framework, run), *_commented(notes))), notes=notes)


def refusal_of(framework: Framework, run: PlannedRun) -> Rule | None:
    """The first rule by which a framework cannot run a plan; None where it can."""
    return next((rule for rule in framework.refuses if rule.applies(run)), None)


def _instead(framework: Framework, refusal: Rule, run: PlannedRun, others: Iterable[Framework]) -> str:
    """What to do: plan anew, or give this very plan to a framework that takes it."""
    takers = [
        candidate.name
        for candidate in others
        if candidate.trains and candidate.name != framework.name and refusal_of(candidate, run) is None
    ]
    alone, named = len(takers) == 1, words_for("en").join([f"`--launch {name}`" for name in takers])
    as_it_is = f"{named or 'no other framework'} {'takes' if alone or not takers else 'take'} it as it is"
    return f"{refusal.hint}; {as_it_is}" if refusal.hint else as_it_is


def head(framework: Framework, run: PlannedRun) -> tuple[str, ...]:
    """Lines that name the plan: model, precision, GPUs, duration, when it was made, by which mpplan."""
    layout = run.layout
    axes = ", ".join(f"{axis} {getattr(layout, axis)}" for axis in ("tp", "pp", "vp", "cp", "ep", "dp", "zero"))
    limit = "" if run.power_limit_w is None else f" at {run.power_limit_w:,.0f} W"
    lines = (
        f"{run.model}, {run.method}, {run.precision} (policy {run.policy.id}), {run.gpus} x {run.gpu}{limit} on "
        f"{run.nodes} {'node' if run.nodes == 1 else 'nodes'}, view {run.view}",
        f"Layout: {axes}, micro-batch {layout.micro_batch}, accumulation {layout.grad_accum}, "
        f"checkpointing {layout.act_ckpt}, replicas {layout.replicas}",
        f"Run: {run.steps:,} {'step' if run.steps == 1 else 'steps'} of {run.batch_examples:,} {samples_of(run)}; "
        f"predicted to take {run.duration}",
        f"Planned {run.created_at} by mpplan {run.version} ({run.schema}); settings of {framework.title}",
        f"Start: {framework.start.format(file='FILE' + framework.suffix)}",
    )
    return tuple(one_line(line) for line in lines)


def _commented(notes: tuple[str, ...]) -> tuple[str, ...]:
    return ("", "Not in this file:", *(f"- {note}" for note in notes)) if notes else ()


def samples_of(run: PlannedRun) -> str:
    """What a step is made of, in words: images and their size, or sequences and their length."""
    if run.image_size is not None:
        return f"images of {run.image_size:,} x {run.image_size:,} pixels"
    what = "pairs of sequences" if run.how.pairs else "sequences"
    if run.padded:
        return f"{what} of up to {run.seq_len:,} tokens ({run.mean_len:,.0f} on average)"
    return f"{what} of {run.seq_len:,} tokens"

"""The definition of a framework for `mpplan export --launch`, and the file it writes for a plan."""

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
    """A limitation of a framework with respect to a plan: a refusal, or something that the file leaves out."""

    applies: Callable[[PlannedRun], bool]
    what: str
    """One sentence without a full stop, for the documentation page, the file and the screen."""
    hint: str = ""
    """Hint of a refusal: flags of `mpplan estimate` that make a plan without the obstacle. Frameworks that accept the
    plan unchanged are found and named as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """A part of a plan that a framework accepts, and its place in the file."""

    what: str
    where: tuple[str, ...]
    """Names of settings as in the file, with sections joined by a full stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """One framework; each is a module of this folder."""

    name: str
    """The name that the user types."""
    title: str
    """The official name, with the release that the settings are for."""
    source: str
    """Address of the declaration of the settings."""
    form: str
    """Kind of file, in words."""
    suffix: str
    """Extension of the file, including its full stop."""
    start: str
    """The command that starts training, with the placeholder `{file}`."""
    takes: tuple[Mapped, ...]
    refuses: tuple[Rule, ...]
    leaves_out: tuple[Rule, ...]
    trains: bool = True
    """Whether the framework itself trains what the file says; otherwise it only starts another program."""
    write: Callable[[PlannedRun, tuple[str, ...]], str]
    """Writes the file of a plan that no rule refuses, with the header and notes as comments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFile:
    """A file that starts training."""

    text: str
    notes: tuple[str, ...]
    """Parts of the plan that are not in the file, one sentence each."""


def render(framework: Framework, run: PlannedRun, others: Iterable[Framework] = ()) -> LaunchFile:
    """Return the configuration of a plan for a framework.

    Args:
        framework: the framework that writes it.
        run: the plan.
        others: frameworks that a refusal may point to.

    Raises:
        UsageError: the framework cannot run the plan; the error gives the first reason and a remedy.
    """
    refusal = refusal_of(framework, run)
    if refusal is not None:
        raise UsageError(
            f"{framework.title} cannot run this plan: {refusal.what}", hint=_instead(framework, refusal, run, others)
        )
    notes = tuple(rule.what for rule in framework.leaves_out if rule.applies(run))
    return LaunchFile(text=framework.write(run, (*head(framework, run), *_commented(notes))), notes=notes)


def refusal_of(framework: Framework, run: PlannedRun) -> Rule | None:
    """Return the first rule by which a framework cannot run a plan; None if it can."""
    return next((rule for rule in framework.refuses if rule.applies(run)), None)


def _instead(framework: Framework, refusal: Rule, run: PlannedRun, others: Iterable[Framework]) -> str:
    """Suggest a remedy: plan again, or give this plan to a framework that accepts it."""
    takers = [
        candidate.name
        for candidate in others
        if candidate.trains and candidate.name != framework.name and refusal_of(candidate, run) is None
    ]
    alone, named = len(takers) == 1, words_for("en").join([f"`--launch {name}`" for name in takers])
    as_it_is = f"{named or 'no other framework'} {'takes' if alone or not takers else 'take'} it as it is"
    return f"{refusal.hint}; {as_it_is}" if refusal.hint else as_it_is


def head(framework: Framework, run: PlannedRun) -> tuple[str, ...]:
    """Return lines that name the plan: model, precision, GPUs, duration, and the date and version of its creation."""
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
    """Describe the samples of a step: images and their size, or sequences and their length."""
    if run.image_size is not None:
        return f"images of {run.image_size:,} x {run.image_size:,} pixels"
    what = "pairs of sequences" if run.how.pairs else "sequences"
    if run.padded:
        return f"{what} of up to {run.seq_len:,} tokens ({run.mean_len:,.0f} on average)"
    return f"{what} of {run.seq_len:,} tokens"

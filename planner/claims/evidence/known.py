"""What claims are judged by: the planner's answers, the shipped published runs, and a record of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from planner.answer.plan import Answer, Plan, Saving
from planner.records.measurement import Measurement
from planner.rows import CATALOG, read_rows
from planner.validation.runs import PublishedResult, PublishedRun, parse_result, parse_run

AS_OF = "2026-11-22"
"""Day whose prices the ledger's questions take: a verdict must not change overnight."""

Ask = Callable[..., Answer]
"""Answers a question as `mpplan estimate` does; its names are those of the inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The evidence at hand."""

    ask: Ask
    points: Sequence[Measurement] = ()
    """Points of the user's own measurement records; empty: none."""
    record: str = ""
    """Name of the record that they are from."""
    _answers: dict[tuple[tuple[str, object], ...], Answer] = field(default_factory=dict)

    def answer(self, **inputs: object) -> Answer:
        """The answer to a question; asked once, however many claims need it."""
        key = tuple(sorted(inputs.items()))
        if key not in self._answers:
            self._answers[key] = self.ask(as_of=AS_OF, **inputs)
        return self._answers[key]

    def plan(self, precision: str, **inputs: object) -> Plan:
        """The plan of one precision on the same GPUs.

        Args:
            precision: `fp32`, `bf16` and so on.
            inputs: the question.
        """
        plans = self.answer(precision=precision, **inputs).plans
        return next(plan for plan in plans if plan.precision == precision)

    def saving(self, metric: str, frm: str, to: str, **inputs: object) -> Saving:
        """How much less one precision takes than another on the same GPUs, with its range."""
        savings = self.answer(precision=to, **inputs).savings
        return next(
            saving for saving in savings
            if (saving.view, saving.metric, saving.frm, saving.to) == ("same_gpus", metric, frm, to)
        )  # fmt: skip


def command_of(**inputs: object) -> str:
    """The question as a command line, so that a reader can ask it again."""
    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in inputs.items())
    return f"mpplan estimate {flags}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A published run with its result."""

    run: PublishedRun
    value: float
    source: str


@cache
def published_runs() -> tuple[Published, ...]:
    """The shipped published runs that have a value and no flag against them."""
    rows = read_rows(CATALOG / "published_runs.csv")
    read = ((parse_run(row.cells, row.line), parse_result(row.cells, row.line)) for row in rows)
    return tuple(
        Published(run=run, value=result.value, source=result.source)
        for run, result in read
        if isinstance(run, PublishedRun) and isinstance(result, PublishedResult) and result.value and not run.flag
    )

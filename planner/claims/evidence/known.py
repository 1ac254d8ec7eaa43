"""The evidence by which claims are judged: planner answers, shipped published runs, training and a local record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache

from planner.answer.plan import Answer, Plan, Saving
from planner.claims.evidence.trained import Trained, shipped_trained
from planner.errors import UsageError
from planner.lazy import dataclass
from planner.records.measurement import Measurement
from planner.rows import CATALOG, read_rows
from planner.validation.runs import PublishedResult, PublishedRun, parse_result, parse_run

AS_OF = "2026-11-22"
"""Day of the prices in the ledger's questions; fixed, since a verdict must not change overnight."""

Ask = Callable[..., Answer]
"""Answers a question as `mpplan estimate` does, with the names of its inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The available evidence."""

    ask: Ask
    ask_briefly: Ask | None = None
    """As `ask`, but without details of a plan such as its products, in half the time; None: `ask` is used."""
    points: Sequence[Measurement] = ()
    """Points of the user's own measurement records; empty: none."""
    record: str = ""
    """Name of the record with these points."""
    trained: Trained | None = None
    """Results of `mpplan numerics` on this machine; None: the shipped ones."""
    _answers: dict[tuple[tuple[str, object], ...], Answer] = field(default_factory=dict)
    _brief_answers: dict[tuple[tuple[str, object], ...], Answer] = field(default_factory=dict)

    @property
    def training(self) -> Trained:
        """Results of training in lower precisions: from this machine, else the shipped ones."""
        return self.trained or shipped_trained()

    def answer(self, **inputs: object) -> Answer:
        """Return the answer to a question, without products; each question is asked once for all claims."""
        key = tuple(sorted(inputs.items()))
        if key not in self._brief_answers:
            self._brief_answers[key] = (self.ask_briefly or self.ask)(as_of=AS_OF, **inputs)
        return self._brief_answers[key]

    def plan(self, precision: str, **inputs: object) -> Plan:
        """Return the plan of one precision on the same GPUs, without its products.

        Args:
            precision: `fp32`, `bf16` and so on.
            inputs: the question.
        """
        return _plan_in(precision, self.answer(precision=precision, **inputs), inputs)

    def whole_plan(self, precision: str, **inputs: object) -> Plan:
        """Return the plan of one precision on the same GPUs, with its products; arguments as in `plan`."""
        key = (("precision", precision), *sorted(inputs.items()))
        if key not in self._answers:
            self._answers[key] = self.ask(as_of=AS_OF, precision=precision, **inputs)
        return _plan_in(precision, self._answers[key], inputs)

    def saving(self, metric: str, frm: str, to: str, **inputs: object) -> Saving:
        """Return the saving of one precision over another on the same GPUs, with its range."""
        savings = self.answer(precision=to, **inputs).savings
        asked = ("same_gpus", metric, frm, to)
        saving = next((s for s in savings if (s.view, s.metric, s.from_, s.to) == asked), None)
        if saving is None:
            raise unanswered(f"no saving of {metric} from {frm} to {to}", precision=to, **inputs)
        return saving


def _plan_in(precision: str, answer: Answer, inputs: Mapping[str, object]) -> Plan:
    plan = next((plan for plan in answer.plans if plan.precision == precision), None)
    if plan is None:
        raise unanswered(f"no plan in {precision}", precision=precision, **inputs)
    return plan


def command_of(**inputs: object) -> str:
    """Return the question as a command line, so that a reader can repeat it."""
    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in inputs.items())
    return f"mpplan estimate {flags}"


def unanswered(missing: str, **inputs: object) -> UsageError:
    """Return the error of a ledger question without the required answer; its hint is the command that asks it."""
    return UsageError(f"the ledger of claims found {missing}", hint=f"`{command_of(**inputs)}` shows why")


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A published run with its result."""

    run: PublishedRun
    value: float
    source: str


def published_run(name: str) -> Published:
    """Return the published run of an id.

    Raises:
        UsageError: there is no such run with a value and without a flag.
    """
    row = next((row for row in published_runs() if row.run.id == name), None)
    if row is None:
        raise UsageError(f"the ledger of claims found no published run `{name}`", hint="`make rows` checks the file")
    return row


@cache
def published_runs() -> tuple[Published, ...]:
    """Return the shipped published runs that have a value and no flag."""
    rows = read_rows(CATALOG / "published_runs.csv")
    read = ((parse_run(row.cells, row.line), parse_result(row.cells, row.line)) for row in rows)
    return tuple(
        Published(run=run, value=result.value, source=result.source)
        for run, result in read
        if isinstance(run, PublishedRun) and isinstance(result, PublishedResult) and result.value and not run.flag
    )

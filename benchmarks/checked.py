"""Write `docs/checked.md`: well-known runs, asked as a person would ask, compared with what was published.

Run it with `make checked`. The totals also go to `planner/catalog/asked_totals.csv`, which an answer states beside its
high figures.

The questions are rows of `checked.csv`: the flags of `mpplan estimate` that give the model, the GPU, the number of
GPUs, the tokens and the precision, and the published run with which the answer is compared.
"""

from __future__ import annotations

import csv
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.accuracy import LeftOut
from benchmarks.pages.markdown import paragraph, percent, signed, table
from mpplan.api.planned import planned
from planner.answer.plan import Plan
from planner.errors import MpplanError
from planner.evidence import Estimate
from planner.question.asked import Ask
from planner.question.resolve import resolve
from planner.rows import CATALOG
from planner.units import DAY_S, MINUTE_S
from reports.text.messages import word

ROOT = Path(__file__).resolve().parents[1]
PAGE, TEMPLATE = ROOT / "docs" / "checked.md", Path(__file__).with_suffix(".template.md")
QUESTIONS, RUNS = Path(__file__).with_suffix(".csv"), CATALOG / "published_runs.csv"
ASKED_TOTALS = CATALOG / "asked_totals.csv"
A_MONTH = "a month"
"""Value of the column `gpus_from` where the row does not state the number of GPUs."""
INSIDE_AIM, ERROR_AIM = 0.9, 0.15
"""Targets for the share inside the range and for the median error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A published figure, and its counterpart in a plan."""

    unit: str
    fact: Callable[[dict[str, str]], float]
    """Figure of a row of the published runs, in the unit."""
    answer: Callable[[Plan], Estimate | None]
    """Figure of a plan, in the unit."""


def _step_tokens_per_s(row: dict[str, str]) -> float:
    """Return the tokens per second and GPU of a row that states the seconds of a step."""
    tokens = float(row["global_batch_seqs"]) * float(row["seq_len"])
    return tokens / float(row["value"]) / float(row["n_gpus"])


METRICS = {
    "gpu_hours": Metric(unit="GPU-hours", fact=lambda row: float(row["value"]), answer=lambda plan: plan.gpu_hours),
    "time_to_train_min": Metric(
        unit="days",
        fact=lambda row: float(row["value"]) * MINUTE_S / DAY_S,
        answer=lambda plan: plan.duration_days,
    ),
    "step_time_s": Metric(unit="tokens/s/GPU", fact=_step_tokens_per_s, answer=lambda plan: plan.tokens_per_s_per_gpu),
}
"""Metrics by the name in the row."""
SPEEDS = frozenset({METRICS["step_time_s"].unit})
"""Units in which more is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One run with its question, its published figure and the answer."""

    question: dict[str, str]
    """The row of `checked.csv`."""
    unit: str
    fact: float
    answer: Estimate | None
    """Answer in the same unit; None where the planner refused."""
    refused: str | None
    """Reason for the refusal, in words."""

    @property
    def inside(self) -> bool:
        """Whether the fact is inside the answer's 90% range; never where the planner refused."""
        return self.answer is not None and self.answer.low <= self.fact <= self.answer.high

    @property
    def below_high(self) -> bool:
        """Whether the run took no more GPU time than the answer's high end; for a speed, no less than the low end."""
        if self.answer is None:
            return False
        return self.fact >= self.answer.low if self.unit in SPEEDS else self.fact <= self.answer.high

    @property
    def error_ratio(self) -> float | None:
        """Middle of the range over the fact, less 1."""
        return None if self.answer is None else self.answer.mid / self.fact - 1.0


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def texts_of(asked: str) -> dict[str, str]:
    """Return the typed texts by the name of the input: `--gpus 8` is `gpus` and `8`."""
    words = shlex.split(asked)
    return {flag.removeprefix("--").replace("-", "_"): text for flag, text in zip(words[::2], words[1::2], strict=True)}


def ask(asked: str) -> Plan:
    """Return the plan in the requested precision, without any measurement of this machine.

    Raises:
        MpplanError: the planner refuses the question.
    """
    question = resolve(Ask(texts=texts_of(asked)))
    return planned(replace(question, policies=(question.policy,))).plans[0]


def check(question: dict[str, str], runs: dict[str, dict[str, str]]) -> Checked:
    """Ask one question and compare the answer with the fact.

    Args:
        question: a row of `checked.csv` that has flags.
        runs: the published runs by id.
    """
    row = runs[question["row"]]
    metric = METRICS[row["metric"]]
    answer, refused = None, None
    try:
        answer = metric.answer(ask(question["asked"]))
    except MpplanError as error:
        refused = word(error.message)
    return Checked(question=question, unit=metric.unit, fact=metric.fact(row), answer=answer, refused=refused)


def check_all() -> list[Checked]:
    """Check every question that has flags, in the order of the file."""
    runs = {row["id"]: row for row in read(RUNS)}
    return [check(question, runs) for question in read(QUESTIONS) if question["asked"]]


def counted(checked: Iterable[Checked]) -> list[Checked]:
    """Return the entries whose fact is exactly what was asked."""
    return [entry for entry in checked if not entry.question["apart"]]


def inside_ratio(checked: Sequence[Checked]) -> float:
    """Return the share of facts inside the range, 0..1; a refusal counts as outside."""
    return sum(entry.inside for entry in checked) / len(checked)


def median_error(checked: Iterable[Checked]) -> float:
    """Return the median absolute error of the middle, over the answered questions."""
    return float(np.median([abs(entry.error_ratio) for entry in checked if entry.error_ratio is not None]))


def figure(value: float) -> str:
    """Return three significant digits, with thousands separators."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:g}"


def _asked(question: dict[str, str]) -> str:
    star = " \\*" if question["gpus_from"] == A_MONTH else ""
    return f"`{question['asked']}`{star}"


def _line(entry: Checked, remark: str) -> list[str]:
    question, answer = entry.question, entry.answer
    head = [f"{question['run']} ({question['row']})", _asked(question), f"{figure(entry.fact)} {entry.unit}"]
    if answer is None or entry.error_ratio is None:
        return [*head, "refused", "no", "–", entry.refused or ""]
    span = f"{figure(answer.mid)} ({figure(answer.low)}–{figure(answer.high)})"
    return [*head, span, "yes" if entry.inside else "no", signed(entry.error_ratio), remark]


def runs_table(checked: Iterable[Checked], remark: str) -> str:
    """Return one line for each run; its last cell is the column `remark` of the question."""
    heads = ("run (row)", "asked", "fact", "answer", "inside", "error", "")
    return table(heads, (_line(entry, entry.question[remark]) for entry in checked)).rstrip()


def summary(checked: Sequence[Checked]) -> str:
    """Return the shares in words."""
    inside = sum(entry.inside for entry in checked)
    refused = sum(entry.answer is None for entry in checked)
    errors = [entry.error_ratio for entry in checked if entry.error_ratio is not None]
    none = "No question was refused." if not refused else f"{refused} refused, counted as outside."
    return paragraph(
        f"**{inside} of {len(checked)} facts lie inside the 90% range** ({percent(inside_ratio(checked), 0)}; target: "
        f"{percent(INSIDE_AIM, 0)}). The median error of the central estimate is {percent(median_error(checked), 0)} "
        f"(target: {percent(ERROR_AIM, 0)}); the median of the signed errors is "
        f"{signed(float(np.median(errors)))}. {none}"
    )


def page(checked: Sequence[Checked], questions: Iterable[dict[str, str]]) -> str:
    """Return the page in Markdown."""
    scored = counted(checked)
    left_out = ([f"{q['run']} ({q['row']})", q["apart"]] for q in questions if not q["asked"])
    return TEMPLATE.read_text(encoding="utf-8").format(
        total=len(scored),
        summary=summary(scored).rstrip(),
        runs=runs_table(scored, "note"),
        apart=runs_table((entry for entry in checked if entry.question["apart"]), "apart"),
        left_out=table(("run (row)", "why"), left_out).rstrip(),
    )


def asked_totals_text(scored: Sequence[Checked], date: str) -> str:
    """Return the row that an answer states beside its high figures (`planner.answer.run_totals`)."""
    inside, below_high = sum(entry.inside for entry in scored), sum(entry.below_high for entry in scored)
    source = "benchmarks/checked.csv, asked with the model, the GPUs and the tokens alone (docs/checked.md)"
    return f'runs,inside,below_high,source,date\n{len(scored)},{inside},{below_high},"{source}",{date}\n'


def main() -> None:
    """Ask, compare, write."""
    checked = check_all()
    PAGE.write_text(page(checked, read(QUESTIONS)), encoding="utf-8")
    ASKED_TOTALS.write_text(asked_totals_text(counted(checked), LeftOut().date), encoding="utf-8")


if __name__ == "__main__":
    main()

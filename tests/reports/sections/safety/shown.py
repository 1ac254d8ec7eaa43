"""The made-up answer with what a real run of `mpplan numerics` showed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mpplan.api.document import to_document
from planner.answer.plan import Answer
from planner.safety.answered import with_safety
from planner.safety.document import findings_of, tasks_shown
from reports.document.facts import Facts
from reports.page.build import checked
from tests.planner.safety.recorded import document
from tests.reports import sample


def answer_shown(*, lower: str = "nvfp4", run: bool = True) -> Answer:
    """The answer with FP8's row as that of `lower`, so that the schedules of the run have a time."""
    plain = sample.answer()
    plans = tuple(replace(plan, precision=lower) if plan.precision == "fp8" else plan for plan in plain.plans)
    savings = tuple(row for row in plain.savings if "fp8" not in (row.from_, row.to))
    plain = replace(plain, plans=plans, savings=savings if lower != "fp8" else plain.savings)
    if not run:
        return with_safety(plain, (), "typical")
    return with_safety(
        plain, findings_of(document(), "numerics.json"), "typical", tasks_shown(document(), "numerics.json")
    )


def document_shown(**how: Any) -> dict[str, Any]:
    """Its document."""
    return to_document(answer_shown(**how))


def facts_shown(**how: Any) -> Facts:
    """Its facts."""
    return Facts(checked(document_shown(**how)))

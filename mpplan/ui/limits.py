"""`--max-cost`, `--max-days`, `--max-energy`: limits on the high ends of figures; a script sees exit code 7."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from planner.errors import LimitError
from planner.lazy import dataclass
from planner.question.inputs import PRECISION
from planner.question.parsers import parse_usd
from planner.units import parse_count

if TYPE_CHECKING:
    from planner.answer.plan import Answer, Plan
    from planner.evidence import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on the high ends of a plan's figures; None means no limit."""

    cost_usd: float | None
    duration_days: float | None
    energy_mwh: float | None

    def crossed(self, plans: Iterable[Plan]) -> list[str]:
        """Return one phrase for each limit that the high end of a plan's figure exceeds."""
        return [
            f"the high figure of the {what} of {_where(plan)}, {_figure(estimate)} {unit}, "
            f"is above {flag} {limit:,.10g}"
            for plan in plans
            for what, unit, flag, limit, estimate in (
                ("cost", "USD", "--max-cost", self.cost_usd, plan.cost_usd),
                ("duration", "days", "--max-days", self.duration_days, plan.duration_days),
                ("energy", "MWh", "--max-energy", self.energy_mwh, plan.energy_mwh),
            )
            if limit is not None and estimate is not None and estimate.high > limit
        ]


def read_limits(*, cost: str | None, days: str | None, energy: str | None) -> Limits:
    """Read the three flags.

    Raises:
        UsageError: a limit is not a positive number.
    """
    return Limits(
        cost_usd=None if cost is None else parse_usd(cost, "--max-cost"),
        duration_days=None if days is None else parse_count(days, "--max-days", "`30` or `0.5`, in days"),
        energy_mwh=None if energy is None else parse_count(energy, "--max-energy", "`120` or `0.5`, in MWh"),
    )


def check_limits(limits: Limits, answer: Answer) -> None:
    """Check the plans of the requested precision on the same GPUs.

    Raises:
        LimitError: a high end exceeds its limit; the error names the limit and the figure.
    """
    asked = answer.question[PRECISION.name].value
    crossed = limits.crossed(plan for plan in answer.plans if plan.precision == asked)
    if crossed:
        raise LimitError("; ".join(crossed), hint="the answer above is still valid; change the plan or the limit")


def _where(plan: Plan) -> str:
    return f"{plan.precision.upper()} on {plan.gpus:,} × {plan.gpu}"


def _figure(estimate: Estimate) -> str:
    figure = f"{estimate.high:,.0f}" if estimate.high >= 100 else f"{estimate.high:.3g}"
    return f"{'≥ ' if estimate.at_least else ''}{figure}"


def unchecked(limits: Limits, answer: Answer) -> list[str]:
    """Return a warning for each limit that was checked against none or only part of its figure."""
    asked = answer.question[PRECISION.name].value
    plans = [plan for plan in answer.plans if plan.precision == asked and plan.fits]
    warnings = []
    if limits.cost_usd is not None and any(plan.cost_usd is None for plan in plans):
        warnings.append("--max-cost was not checked: without a GPU price the cost is unknown; give --price")
    elif limits.cost_usd is not None and any(plan.cost_usd.at_least for plan in plans if plan.cost_usd is not None):
        warnings.append("--max-cost was checked against only part of the cost: a price is missing")
    dark = list(dict.fromkeys(plan.gpu for plan in plans if plan.energy_mwh is None))
    if limits.energy_mwh is not None and dark:
        warnings.append(f"--max-energy was not checked: no power figures are known for {', '.join(dark)}")
    return warnings

"""From a question to an `Answer`: the search over GPU counts and layouts, with its winner shown per precision."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from planner.answer.plan import LOWER_IS_BETTER, Answer, Plan, Saving, Unsupported
from planner.answer.run_totals import load_run_totals
from planner.costs.facility_power import CapEffect, LimitSearch
from planner.costs.prices import NO_LEDGER, GpuPrice, Ledger, SiteFacts
from planner.errors import Message, NoPlanError, UsageError
from planner.evidence import Estimate
from planner.hardware.cluster import Cluster
from planner.planning.basis import collect_assumptions, collect_evidence, collect_gaps, collect_warnings
from planner.planning.case import Case, make_case
from planner.planning.choice import best_on, fewest, leaner
from planner.planning.inputs import shown_inputs
from planner.planning.power_cap import cap_warning, over_cap, under_cap, without_default_deadline
from planner.planning.ranges import DRAWS, Ranged, infeasible, ranged_plan, why_not
from planner.question.question import Question
from planner.rates.parameters import Parameters
from planner.rates.terms import Draws, Term
from planner.training.policies import why_unsupported
from planner.units import DAY_S

Measured = Mapping[str, Mapping[str, Mapping[str, Term]]]
"""Terms from measurement records: by GPU id, then by policy id, then by term name."""

SAVINGS_FROM = ("bf16", "tf32", "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What the user's own evidence says of the rates."""

    measured: Measured
    """From measurement records."""
    parameters: Parameters | None
    """From a calibration on own runs; None: the shipped ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """All precisions on one kind of GPU."""

    cluster: Cluster
    cases: tuple[Case, ...]
    same_gpus: tuple[Ranged, ...]
    same_deadline: tuple[Ranged, ...]
    deadline_s: float | None
    """The deadline of the second view; None where there is none because the asked precision has no plan here."""
    failure: NoPlanError | None
    """Why the asked precision has no plan on this GPU."""
    cap: CapEffect | None = None
    """What the cap on the facility's power does here; None without one."""


def estimate(
    question: Question,
    prices: Mapping[str, GpuPrice],
    site: SiteFacts,
    measured: Measured | None = None,
    *,
    parameters: Parameters | None = None,
    ledgers: Mapping[str, Ledger] | None = None,
    limits: tuple[LimitSearch, ...] = (),
    version: str = "",
    command: tuple[str, ...] = (),
    created_at: str | None = None,
) -> Answer:
    """Answer a question.

    Args:
        question: what was asked, resolved.
        prices: USD per GPU-hour by GPU id, for every GPU of the question.
        site: PUE, electricity and grid of the place.
        measured: terms from measurement records, which win over published and assumed rates.
        parameters: those of a calibration; None: the shipped ones.
        ledgers: what else is booked for the hours of a GPU, by GPU id; nothing where left out.
        limits: what the search for power limits found, which the question's clusters have; for the document.
        version: mpplan's version, for the document.
        command: the command line, for the document.
        created_at: ISO time, for the document; None: now.

    Raises:
        NoPlanError: the asked precision fits nowhere, or misses the deadline or budget with every number of GPUs.
        UsageError: the asked precision is lacking on every GPU asked for, or the layout is inconsistent.
    """
    unsupported = _unsupported(question)
    known = _Known(measured=measured or {}, parameters=parameters)
    sides = _sides(question, unsupported, prices, site, known, ledgers or {})
    if all(side.failure for side in sides):
        raise next(side.failure for side in sides if side.failure)
    deadline_s = next(side.deadline_s for side in sides if side.deadline_s)
    plans = tuple(r.plan for s in sides for r in s.same_gpus)
    cases = tuple(c for s in sides for c in s.cases)
    caps = tuple(s.cap for s in sides if s.cap is not None)
    shown = without_default_deadline(question) if any(cap.binding for cap in caps) else question
    return Answer(
        question=shown_inputs(shown, plans, prices, site, billed=any(case.electricity_on for case in cases)),
        model=question.model,
        plans=plans,
        same_deadline=tuple(r.plan for s in sides for r in s.same_deadline),
        deadline_days=deadline_s / DAY_S,
        savings=tuple(s for side in sides for s in _savings(side)),
        unsupported=tuple(unsupported),
        assumptions=collect_assumptions(shown, cases),
        gaps=collect_gaps(question, cases, site),
        warnings=_warnings(question, prices, plans, caps),
        evidence=collect_evidence(cases, site),
        created_at=created_at or datetime.now(UTC).isoformat(timespec="seconds"),
        version=version,
        command=command,
        power_caps=caps,
        power_limit_search=limits,
        run_totals=load_run_totals(),
    )


def _sides(
    question: Question,
    unsupported: list[Unsupported],
    prices: Mapping[str, GpuPrice],
    site: SiteFacts,
    known: _Known,
    ledgers: Mapping[str, Ledger],
) -> list[_Side]:
    """Every GPU that has the asked precision, one after the other: the first that has a plan sets the deadline."""
    draws = Draws(count=DRAWS, seed=question.seed)
    lacking = {u.gpu for u in unsupported if u.precision == question.asked.precision}
    sides: list[_Side] = []
    for cluster in question.clusters:
        gpu = cluster.gpu.id
        if gpu in lacking:
            continue
        earlier_s = next((s.deadline_s for s in sides if s.deadline_s), None)
        ledger = ledgers.get(gpu, NO_LEDGER)
        cases = _cases(question, cluster, prices[gpu], site, known, ledger)
        sides.append(_side(question, cluster, cases, draws, earlier_s))
    return sides


def _unsupported(question: Question) -> list[Unsupported]:
    unsupported = []
    for cluster in question.clusters:
        for policy in question.policies:
            reason = why_unsupported(policy, cluster.gpu)
            if reason:
                unsupported.append(Unsupported(precision=policy.precision, gpu=cluster.gpu.id, reason=reason))
    lacking = [u for u in unsupported if u.precision == question.asked.precision]
    if len(lacking) == len(question.clusters):
        raise UsageError(
            Message.of(
                "error.unsupported",
                gpu=lacking[0].gpu,
                precision=lacking[0].precision,
                reason=lacking[0].reason,
            ),
            hint=Message.of("hint.supported"),
        )
    return unsupported


def _cases(
    question: Question,
    cluster: Cluster,
    price: GpuPrice,
    site: SiteFacts,
    known: _Known,
    ledger: Ledger,
) -> tuple[Case, ...]:
    measured = known.measured.get(cluster.gpu.id, {})
    return tuple(
        make_case(question, p, cluster, price, site, measured.get(p.id), ledger, parameters=known.parameters)
        for p in question.policies
        if why_unsupported(p, cluster.gpu) is None
    )


def _side(
    question: Question, cluster: Cluster, cases: tuple[Case, ...], draws: Draws, earlier_s: float | None
) -> _Side:
    """All precisions on one GPU; `earlier_s` is the deadline by which the GPUs before it are compared."""
    asked = next(c for c in cases if c.policy.id == question.asked.id)
    try:
        question, cap = under_cap(question, asked, draws)
        anchor = asked_plan(question, asked, draws)
    except NoPlanError as error:
        if len(question.clusters) == 1:
            raise
        return _failed_side(question, cluster, cases, error, draws, question.deadline_s or earlier_s)
    deadline_s = question.deadline_s or earlier_s
    gpus = anchor.plan.gpus
    same_gpus = tuple(anchor if c is asked else _on(c, question, gpus, draws) for c in cases)
    assert anchor.plan.duration_days is not None
    limit_s = deadline_s or anchor.plan.duration_days.mid * DAY_S
    same_deadline = tuple(
        anchor
        if c is asked and question.gpus is None and (question.deadline_s is not None or deadline_s is None)
        else _in_time(c, question, limit_s, draws)
        for c in cases
    )
    return _Side(
        cluster=cluster, cases=cases, same_gpus=same_gpus, same_deadline=same_deadline, deadline_s=limit_s,
        failure=None, cap=cap,
    )  # fmt: skip


def _failed_side(
    question: Question,
    cluster: Cluster,
    cases: tuple[Case, ...],
    error: NoPlanError,
    draws: Draws,
    deadline_s: float | None,
) -> _Side:
    """The asked precision has no plan: one of several GPUs is then shown with the reason beside the others."""
    gpus = question.gpus

    def on_same(case: Case) -> Ranged:
        if gpus is None or case.policy.id == question.asked.id:
            return infeasible(case, gpus or 0, -(-(gpus or 0) // cluster.gpus_per_node), error.message)
        return _on(case, question, gpus, draws)

    def in_time(case: Case) -> Ranged:
        if deadline_s is None:
            return infeasible(case, 0, 0, error.message)
        return _in_time(case, question, deadline_s, draws)

    return _Side(
        cluster=cluster,
        cases=cases,
        same_gpus=tuple(on_same(c) for c in cases),
        same_deadline=tuple(in_time(c) for c in cases),
        deadline_s=None,
        failure=error,
    )


def asked_plan(question: Question, case: Case, draws: Draws) -> Ranged:
    """The asked precision: on the N given (checked against deadline and budget), else on the fewest whole nodes."""
    if question.budget_usd is not None and case.price.usd_per_gpu_h is None:
        raise UsageError(
            Message.of("error.budget_without_price", gpu=case.cluster.gpu.id),
            hint=Message.of("hint.price_or_target"),
        )
    if question.gpus is None:
        choice = fewest(case, question.fixed, draws, deadline_s=question.deadline_s, budget_usd=question.budget_usd)
        return ranged_plan(case, choice, draws)
    choice = best_on(case, question.fixed, question.gpus)
    if choice.best is None:
        raise NoPlanError(
            Message.of(
                "error.no_plan_on",
                precision=case.policy.precision,
                gpus=question.gpus,
                gpu=case.cluster.gpu.id,
                why=why_not(case, choice),
            ),
            hint=_what_would_fit(question, case, draws),
        )
    result = ranged_plan(case, choice, draws)
    _check_targets(question, case, result.plan, draws)
    return result


def _what_would_fit(question: Question, case: Case, draws: Draws) -> Message:
    try:
        choice = fewest(case, question.fixed, draws)
    except NoPlanError as error:
        return error.hint
    return Message.of("hint.fits_on", gpus=int(choice.winner.gpus[0]), ways=leaner(case, question.fixed))


def _check_targets(question: Question, case: Case, plan: Plan, draws: Draws) -> None:
    duration, cost = plan.duration_days, plan.cost_usd
    assert duration is not None
    over_s = duration.mid * DAY_S - (question.deadline_s or math.inf)
    if over_s > 0:
        longer_days = duration.mid * 1.02
        try:
            enough = fewest(case, question.fixed, draws, deadline_s=question.deadline_s)
            hint = Message.of("hint.more_gpus", gpus=int(enough.winner.gpus[0]), deadline_days=longer_days)
        except NoPlanError:
            hint = Message.of("hint.later_deadline", deadline_days=longer_days)
        raise NoPlanError(
            Message.of(
                "error.over_deadline",
                gpus=plan.gpus,
                gpu=plan.gpu,
                precision=plan.precision,
                days=duration.mid,
                over_days=over_s / DAY_S,
            ),
            hint=hint,
        )
    if question.budget_usd is not None and cost is not None and cost.mid > question.budget_usd:
        raise NoPlanError(
            Message.of(
                "error.over_budget",
                precision=plan.precision,
                gpus=plan.gpus,
                gpu=plan.gpu,
                usd=cost.mid,
                over_usd=cost.mid - question.budget_usd,
            ),
            hint=Message.of("hint.larger_budget", budget_usd=cost.mid * 1.02),
        )


def _on(case: Case, question: Question, gpus: int, draws: Draws) -> Ranged:
    choice = best_on(case, question.fixed, gpus)
    if choice.best is None:
        return infeasible(case, gpus, -(-gpus // case.cluster.gpus_per_node), why_not(case, choice), choice)
    return ranged_plan(case, choice, draws)


def _in_time(case: Case, question: Question, deadline_s: float, draws: Draws) -> Ranged:
    try:
        choice = fewest(case, question.fixed, draws, deadline_s=deadline_s)
    except NoPlanError as error:
        return infeasible(case, 0, 0, error.message)
    gpus = int(choice.winner.gpus[0])
    over = over_cap(case, gpus, question.money.power_cap_w)
    if over is not None:
        return infeasible(case, gpus, -(-gpus // case.cluster.gpus_per_node), over, choice)
    return ranged_plan(case, choice, draws)


def _savings(side: _Side) -> list[Saving]:
    """1 - to/from of every figure, draw by draw with common draws."""
    savings = []
    gpu = side.cluster.gpu.id
    for view, results in (("same_gpus", side.same_gpus), ("same_deadline", side.same_deadline)):
        fitting = {r.plan.precision: r for r in results if r.plan.fits}
        for frm in (name for name in SAVINGS_FROM if name in fitting):
            for to, target in fitting.items():
                if to == frm:
                    continue
                for metric in (name for name in LOWER_IS_BETTER if name in target.draws):
                    base = fitting[frm].draws[metric]
                    ratio = 1.0 - target.draws[metric] / np.where(base > 0, base, np.nan)
                    if not np.all(np.isfinite(ratio)):
                        continue
                    saved = Estimate.of_draws(ratio)
                    savings.append(
                        Saving(
                            view=view, gpu=gpu, metric=metric, frm=frm, to=to,
                            low=saved.low, mid=saved.mid, high=saved.high,
                        )
                    )  # fmt: skip
    return savings


def _warnings(
    question: Question, prices: Mapping[str, GpuPrice], plans: tuple[Plan, ...], caps: tuple[CapEffect, ...]
) -> tuple[Message, ...]:
    asked = question.asked.precision
    warnings = [*collect_warnings(question, prices)]
    warnings += [cap_warning(cap, plans, asked) for cap in caps if cap.binding]
    for plan in plans:
        if plan.precision == asked and plan.memory_risk is not None and plan.memory_risk > question.memory_risk:
            warnings.append(
                Message.of("warning.memory_risk", gpu=plan.gpu, risk=plan.memory_risk, allowed=question.memory_risk)
            )
        if plan.precision == asked and plan.duration_days and plan.duration_days.mid > 365:
            years = plan.duration_days.mid / 365
            warnings.append(Message.of("warning.years", gpus=plan.gpus, gpu=plan.gpu, years=years))
    return tuple(warnings)

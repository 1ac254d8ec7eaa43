"""Turn a question into an `Answer`: search GPU counts and layouts, and show the winner of each precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from planner.answer.plan import Answer, CurvePoint, Saving, Unsupported
from planner.answer.run_totals import RunTotals, load_run_totals
from planner.costs.facility_power import CapEffect, LimitSearch
from planner.errors import Message, NoPlanError, UsageError
from planner.hardware.cluster import Cluster
from planner.lazy import dataclass
from planner.parallelism.search import FixedLayout
from planner.planning.advice.dearer import far_dearer, unrepeated
from planner.planning.advice.held_back import held_back
from planner.planning.advice.warnings import advice_on, warnings_of
from planner.planning.basis import (
    collect_assumptions,
    collect_evidence,
    collect_gaps,
    lacking_gaps,
)
from planner.planning.case import Case, RatesAndPrices
from planner.planning.curve import curve_around
from planner.planning.inputs import shown_inputs
from planner.planning.power.cap import under_cap, without_default_deadline
from planner.planning.ranges import DRAWS, Ranged, infeasible
from planner.planning.requested import UnpricedError, asked_plan
from planner.planning.savings import savings_between
from planner.planning.targets import SOONER_RATIO, at_confidence, targets_of
from planner.planning.views import in_time, on_same_gpus
from planner.question.question import Question
from planner.question.resolve import DEFAULT_STACK
from planner.rates.terms import Draws
from planner.training.method import find_method
from planner.training.support import best_able, method_lacks, no_gpu_can
from planner.units import DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class _GpuResult:
    """All precisions on one kind of GPU."""

    cluster: Cluster
    cases: tuple[Case, ...]
    same_gpus: tuple[Ranged, ...]
    same_deadline: tuple[Ranged, ...]
    deadline_s: float | None
    """The deadline of the second view; None where the requested precision has no plan here."""
    cap: CapEffect | None = None
    """The effect of the cap on the facility's power; None without a cap."""
    curve: tuple[CurvePoint, ...] = ()
    """The requested precision over numbers of GPUs around its plan's."""
    advice: tuple[Message, ...] = ()
    """Better plans close to that of the requested precision."""
    urgent: tuple[Message, ...] = ()
    """Messages about that plan to read before all others."""

    @property
    def savings(self) -> tuple[Saving, ...]:
        """The savings of every precision against every other one, in both views."""
        gpu = self.cluster.gpu.id
        return (
            *savings_between("same_gpus", gpu, self.same_gpus),
            *savings_between("same_deadline", gpu, self.same_deadline),
        )


def estimate(
    question: Question,
    rates_and_prices: RatesAndPrices,
    *,
    limits: tuple[LimitSearch, ...] = (),
    detailed: bool = True,
    version: str = "",
    command: tuple[str, ...] = (),
    created_at: str | None = None,
) -> Answer:
    """Answer a question.

    Args:
        question: the resolved question.
        rates_and_prices: prices of every GPU of the question, facts of the site, and the user's own rates.
        limits: results of the power-limit search, which the question's clusters already use; for the document.
        detailed: whether to compute what the short answer leaves out, a third of the time: the fewest GPUs of each
            precision by one deadline (else `same_deadline` is empty), and the details of plans (`Case.detailed`).
        version: mpplan's version, for the document.
        command: the command line, for the document.
        created_at: ISO time, for the document; None: now.

    Raises:
        NoPlanError: the requested precision fits nowhere, or misses the deadline or budget with every number of GPUs.
        UsageError: no requested GPU supports the requested precision, or the layout is inconsistent.
    """
    unsupported, prices, site = unsupported_by(question), rates_and_prices.prices, rates_and_prices.site
    results = _results(question, unsupported, rates_and_prices, detailed=detailed)
    deadline_s = next(result.deadline_s for result in results if result.deadline_s)
    plans = tuple(ranged.plan for result in results for ranged in result.same_gpus)
    cases = tuple(c for result in results for c in result.cases)
    caps = tuple(result.cap for result in results if result.cap is not None)
    shown_question = without_default_deadline(question) if any(cap.binding for cap in caps) else question
    billed = any(case.electricity_on for case in cases)
    inputs = shown_inputs(shown_question, plans, prices, site, billed=billed, why_so_many=_why_so_many(results))
    return Answer(
        question=inputs, model=question.model, plans=plans,
        same_deadline=tuple(ranged.plan for result in results for ranged in result.same_deadline),
        deadline_days=deadline_s / DAY_S,
        savings=tuple(saving for result in results for saving in result.savings),
        unsupported=tuple(unsupported),
        assumptions=collect_assumptions(shown_question, inputs, cases, plans),
        gaps=(*lacking_gaps(unsupported), *collect_gaps(question, cases, site)),
        warnings=_warnings(results, warnings_of(question, prices, plans, caps, cases)),
        evidence=collect_evidence(cases, site),
        created_at=created_at or datetime.now(UTC).isoformat(timespec="seconds"), version=version, command=command,
        power_caps=caps, power_limit_search=limits, confidence=question.confidence_ratio,
        curve=tuple(point for result in results for point in result.curve),
        run_totals=_run_totals(question, rates_and_prices),
        tokens_per_sequence=None if question.model.kind == "image" else question.mean_len,
    )  # fmt: skip


def _warnings(results: list[_GpuResult], warnings: list[Message]) -> tuple[Message, ...]:
    """Return all warnings in reading order: urgent ones, those about the whole answer, then better plans close by."""
    urgent = (message for result in results for message in result.urgent)
    return (*urgent, *warnings, *(message for result in results for message in result.advice))


def _why_so_many(results: Iterable[_GpuResult]) -> str:
    """Return the key of the note that says what decided the number of GPUs, where the user did not."""
    if any(result.cap is not None and result.cap.binding for result in results):
        return "note.fastest_under_cap"
    reasons = (ranged.why_so_many for result in results for ranged in result.same_gpus)
    return next((reason for reason in reasons if reason is not None), "note.sold_alone")


def _results(
    question: Question, unsupported: list[Unsupported], rates_and_prices: RatesAndPrices, *, detailed: bool
) -> list[_GpuResult]:
    """Plan every GPU in turn; the first that has the requested precision and a plan sets the deadline.

    A GPU that lacks the requested precision is planned after the others, in its best one; a GPU that runs none is left
    out. A GPU without a plan is shown with the reason, beside others that have one.

    Raises:
        NoPlanError: no GPU with the requested precision has a plan; the error of the one that needs the least money, if
            any.
        UnpricedError: none has a plan, and all lack the price that a budget needs.
    """
    draws = Draws(count=DRAWS, seed=question.seed)
    instead = {u.gpu: u.instead for u in unsupported if u.precision == question.policy.precision}
    policies = {policy.precision: policy for policy in question.policies}
    results: dict[str, _GpuResult] = {}
    failed: dict[str, tuple[Question, Cluster, tuple[Case, ...], NoPlanError | UnpricedError]] = {}
    deadline_s: float | None = None
    for cluster in sorted(question.clusters, key=lambda cluster: cluster.gpu.id in instead):
        gpu = cluster.gpu.id
        asked = policies.get(instead[gpu] or "") if gpu in instead else question.policy
        if asked is None:
            continue
        if gpu in instead and not results:
            break  # no GPU with the requested precision has a plan
        case_of = partial(_asked_case, cluster, rates_and_prices)
        cases = _cases(question, cluster, rates_and_prices, detailed=detailed)
        gpu_question = replace(question, policy=asked)
        try:
            results[gpu] = _result_on(gpu_question, cluster, cases, case_of, draws, deadline_s)
        except (NoPlanError, UnpricedError) as error:
            failed[gpu] = gpu_question, cluster, cases, error
        else:
            deadline_s = deadline_s or results[gpu].deadline_s
    if not results:
        raise _refusal([why for *_, why in failed.values()])
    for gpu, (gpu_question, cluster, cases, why) in failed.items():
        results[gpu] = _failed_result(gpu_question, cluster, cases, why, draws, question.deadline_s or deadline_s)
    return [results[cluster.gpu.id] for cluster in question.clusters if cluster.gpu.id in results]


def _refusal(failures: Sequence[NoPlanError | UnpricedError]) -> NoPlanError | UnpricedError:
    """Return why no GPU has a plan: the error of the GPU that needs the least money, if any, else the first."""
    refusals = [failure for failure in failures if isinstance(failure, NoPlanError)]
    short = {failure.enough.usd: failure for failure in refusals if failure.enough is not None}
    return short[min(short)] if short else next(iter(refusals), failures[0])


def _run_totals(question: Question, rates_and_prices: RatesAndPrices) -> RunTotals | None:
    """Return how published runs compare with their predicted high ends, where that applies to this question.

    All of these runs pre-train language models and were predicted without the user's own evidence; the well-known ones
    were asked without any details of their setup.
    """
    has_own_rates = bool(rates_and_prices.measured) or rates_and_prices.parameters is not None
    if question.fine_tunes or question.model.has_network or has_own_rates:
        return None
    totals = load_run_totals()
    as_asked = replace(question.fixed, on_given_gpus=False) == FixedLayout() and question.framework is None
    if as_asked and question.stack == DEFAULT_STACK:
        return totals
    return replace(totals, asked_runs=0, asked_below_high=0)


def unsupported_by(question: Question) -> list[Unsupported]:
    """Return the precisions that GPUs of a question lack.

    Raises:
        UsageError: every GPU lacks the requested precision.
    """
    unsupported = []
    for cluster in question.clusters:
        for policy in question.policies:
            reason = question.why_unable(policy, cluster.gpu)
            if reason:
                best = (
                    best_able(question.model, question.policies, cluster.gpu, question.method)
                    if policy.id == question.policy.id
                    else None
                )
                unsupported.append(
                    Unsupported(
                        precision=policy.precision, gpu=cluster.gpu.id, reason=reason,
                        instead=None if best is None else best.precision,
                    )
                )  # fmt: skip
    lacking = [u for u in unsupported if u.precision == question.policy.precision]
    if len(lacking) == len(question.clusters):
        raise UsageError(
            Message.of(
                "error.unsupported",
                gpu=lacking[0].gpu,
                precision=lacking[0].precision,
                reason=lacking[0].reason,
            ),
            hint=_instead_of(question, lacking[0]),
        )
    return unsupported


def _instead_of(question: Question, lacking: Unsupported) -> Message:
    """Suggest a replacement for a precision: another precision, or also another GPU where that helps."""
    if lacking.instead is None:
        return Message.of("hint.supported")
    if method_lacks(question.policy, question.method):
        return Message.of("hint.best_for_method", precision=lacking.instead, method=find_method(question.method).name)
    if no_gpu_can(question.model, question.policy, question.method):
        return Message.of("hint.best_for_model", precision=lacking.instead)
    return Message.of("hint.best_precision", precision=lacking.instead, lacking=lacking.precision)


def _cases(
    question: Question, cluster: Cluster, rates_and_prices: RatesAndPrices, *, detailed: bool
) -> tuple[Case, ...]:
    """Return the cases of all precisions in which the GPU can train."""
    return tuple(
        rates_and_prices.case(question, cluster, policy, detailed=detailed)
        for policy in question.policies_on(cluster.gpu)
    )


def _asked_case(cluster: Cluster, rates_and_prices: RatesAndPrices, question: Question) -> Case | None:
    """Return the case of the requested precision alone; None where the GPU cannot run it."""
    alone = replace(question, policies=(question.policy,))
    return next(iter(_cases(alone, cluster, rates_and_prices, detailed=False)), None)


def _result_on(
    question: Question,
    cluster: Cluster,
    cases: tuple[Case, ...],
    case_of: Callable[[Question], Case | None],
    draws: Draws,
    earlier_s: float | None,
) -> _GpuResult:
    """Plan all precisions on one GPU; `earlier_s` is the deadline by which the GPUs before it are compared.

    Raises:
        NoPlanError: the requested precision has no plan here.
        UnpricedError: the GPU lacks the price that a budget needs.
    """
    asked = next(c for c in cases if c.policy.id == question.policy.id)
    question, cap = under_cap(question, asked, draws)
    anchor = asked_plan(question, asked, draws)
    deadline_s = question.deadline_s or earlier_s
    gpus = anchor.plan.gpus
    cases = tuple(c if c is asked else _with_batch_of(anchor, c) for c in cases)
    same_gpus = tuple(anchor if c is asked else on_same_gpus(c, question, gpus, draws) for c in cases)
    assert anchor.plan.duration_days is not None
    limit_s = deadline_s or at_confidence(anchor.draws["duration_days"], question.confidence_ratio) * DAY_S

    def deadline_of(case: Case) -> float:
        """Return the deadline of a case; one that was planned rather than requested is slightly looser."""
        return limit_s if case is asked or question.deadline_s is not None else limit_s / SOONER_RATIO

    keeps_anchor = question.gpus is None and (question.deadline_s is not None or deadline_s is None)
    same_deadline = tuple(
        anchor
        if c is asked and keeps_anchor
        else in_time(
            _with_batch_of(anchor, c), question, deadline_of(c), draws, on_same, question.batch_band, shown_s=limit_s
        )
        for c, on_same in zip(cases, same_gpus, strict=True)
        if c.detailed
    )
    curve = curve_around(asked, question.fixed, anchor.plan, targets_of(question), draws)
    urgent = (*far_dearer(question, asked, anchor.plan, curve, draws), *anchor.more)
    advice = (*held_back(asked, cases, same_gpus), *advice_on(question, asked, anchor, curve, case_of, draws))
    return _GpuResult(
        cluster=cluster, cases=cases, same_gpus=same_gpus, same_deadline=same_deadline, deadline_s=limit_s,
        cap=cap, curve=curve, advice=unrepeated(advice, urgent), urgent=urgent,
    )  # fmt: skip


def _with_batch_of(anchor: Ranged, case: Case) -> Case:
    """Return the case with the batch of the requested precision's plan: all compared precisions share one batch."""
    layout = anchor.plan.layout
    assert layout is not None
    recipe = replace(case.recipe, global_batch=layout.global_batch, batch_band=None, keeps_batch=False)
    return replace(case, recipe=recipe)


def _failed_result(
    question: Question,
    cluster: Cluster,
    cases: tuple[Case, ...],
    error: NoPlanError | UnpricedError,
    draws: Draws,
    deadline_s: float | None,
) -> _GpuResult:
    """Show a GPU on which the requested precision has no plan, with the reason, beside the other GPUs."""
    gpus = question.gpus

    def why(case: Case) -> Message:
        if case.policy.id == question.policy.id:
            return error.original_message
        return Message.of("why.asked_has_none", precision=question.policy.precision)

    def on_same(case: Case) -> Ranged:
        if gpus is None or case.policy.id == question.policy.id:
            return infeasible(case, gpus or 0, why(case))
        return on_same_gpus(case, question, gpus, draws)

    def by_deadline(case: Case) -> Ranged:
        if deadline_s is None:
            return infeasible(case, 0, why(case))
        return in_time(case, question, deadline_s, draws)

    return _GpuResult(
        cluster=cluster,
        cases=cases,
        same_gpus=tuple(on_same(c) for c in cases),
        same_deadline=tuple(by_deadline(c) for c in cases if c.detailed),
        deadline_s=None,
    )

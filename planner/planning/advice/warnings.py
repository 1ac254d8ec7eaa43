"""Messages that may change a decision about a plan: warnings, and better plans close by."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.answer.plan import CurvePoint, Plan
from planner.costs.facility_power import CapEffect
from planner.costs.prices import GpuPrice
from planner.errors import Message
from planner.models.shape import ModelShape
from planner.parallelism.search import FixedLayout, context_powers, context_sizes
from planner.planning.advice.dearer import cheaper_close_by, cost_share, has_costs
from planner.planning.advice.safer import SaferWays
from planner.planning.advice.settings import differences
from planner.planning.basis import collect_warnings, extrapolated, on_hosts
from planner.planning.case import Case
from planner.planning.choice import Choice, best_given, splits_of
from planner.planning.curve import points_on
from planner.planning.fitting.shortage import NEXT_COUNT_RATIO
from planner.planning.power.cap import cap_warning
from planner.planning.ranges import Ranged
from planner.planning.risk import MOST_RISK, risk_of
from planner.planning.targets import SOONER_RATIO, Targets, digits_apart, targets_of
from planner.question.question import Question
from planner.rates.parameters import shipped_parameters
from planner.rates.terms import Draws

LEAST_BELOW = 0.75
"""Share of the given GPUs below which rounder numbers are not considered."""
RISKY_SOONER = 1.25
"""How many times faster a layout must be to be mentioned although its memory risk is above the limit."""
RISKY_AT_MOST = 0.15
"""Highest memory risk of a layout that is suggested for its speed before any riskier one; where the plan is risky
itself, the most by which the layout's risk may exceed the plan's."""
RISKY_ON_AVERAGE = 1.15
"""How many times sooner the run must end on average if the layout is tried and, where it runs out of memory, the plan
follows. A few steps show that, so a trial takes no time to speak of."""
MOST_PERCENTAGES = 10
"""By how many percent the risk that is allowed may exceed the risk of a layout for the layout to be planned."""
ABOUT_AS_FAST = 1.1
"""A higher percentage is not tried once a plan's time is within this factor of the fastest layout that is
acceptable."""
MANY_MORE = 4
"""How many times as many GPUs a rounder sequence length must allow for it to be named."""
WORTH_A_WORD_RATIO = 0.97
"""Share of a plan's time and cost below which the use of all GPUs of its nodes is suggested."""


def warnings_of(
    question: Question,
    prices: Mapping[str, GpuPrice],
    plans: Sequence[Plan],
    caps: Sequence[CapEffect],
    cases: Sequence[Case],
) -> list[Message]:
    """Return warnings about prices, the power cap, extrapolation, hosts, checkpointing, memory, and runs of years.

    Args:
        question: the question.
        prices: by GPU id.
        plans: all plans of the first view.
        caps: the effect of a power cap, by GPU.
        cases: the cases that the plans were evaluated with.
    """
    asked = [plan for plan in plans if plan.precision == question.policy.precision]
    able = {plan.gpu for plan in asked}
    ledgers = {case.cluster.gpu.id: case.ledger for case in cases}
    warnings = [*collect_warnings(question, prices, ledgers, asked)]
    positions = question.model.learned_positions
    if 0 < positions < question.seq_len:  # a fine-tuning is refused
        warnings.append(
            Message.of("warning.positions", name=question.model.name, positions=positions, seq_len=question.seq_len)
        )
    warnings += _assumed_layers(question.model)
    warnings += _assumed_lengths(question)
    warnings += _limits_as_sold(question)
    warnings += _unusual_checkpointing(question)
    warnings += [
        cap_warning(cap, tuple(plans), question.policy.precision) for cap in caps if cap.binding and cap.gpu in able
    ]
    case_of = {(case.cluster.gpu.id, case.policy.id): case for case in cases}
    fitting = [(plan, case_of[plan.gpu, plan.policy]) for plan in asked if plan.fits]
    of_plans = [extrapolated(case, plan.nodes) for plan, case in fitting]
    of_plans += [on_hosts(case, plan) for plan, case in fitting if plan.layout]
    of_plans += [uneven_sequence(case, plan) for plan, case in fitting if question.fixed.cp is None]
    warnings += dict.fromkeys(warning for warning in of_plans if warning is not None)
    most_gpus = question.most_gpus if question.max_gpus is None else None
    if most_gpus is not None and any(plan.gpus * NEXT_COUNT_RATIO > most_gpus for plan in asked):
        warnings.append(Message.of("warning.most_gpus", most=most_gpus))
    for plan in asked:
        if plan.memory_risk is not None and plan.memory_risk > question.memory_risk:
            key = "warning.memory_risk_tuning" if question.fine_tunes else "warning.memory_risk"
            risk, allowed = plan.memory_risk, question.memory_risk
            warnings.append(
                Message.of(key, gpu=plan.gpu, risk=risk, allowed=allowed, digits=digits_apart(risk, allowed))
            )
        if plan.duration_days and plan.duration_days.mid > 365:
            years = plan.duration_days.mid / 365
            key = _key_of_years(question, plan)
            most = question.most_gpus or plan.gpus
            warnings.append(Message.of(key, gpus=plan.gpus, gpu=plan.gpu, years=years, most=most))
    return warnings


def _assumed_layers(model: ModelShape) -> Iterator[Message]:
    """Warn of layers whose speed neither a measurement nor a published run shows (`_scan_s` in `compute.py`)."""
    linear = model.linear
    if linear is None:
        return
    if linear.step_rank:
        yield Message.of("warning.assumed_mamba_1")
    elif linear.gate_rank:
        yield Message.of("warning.assumed_kda")
    elif not linear.scans:
        yield Message.of("warning.assumed_convolutions")


def _assumed_lengths(question: Question) -> Iterator[Message]:
    """Warn that the length of the examples, which makes most of the range, is an assumption."""
    if question.lengths_assumed:
        row = shipped_parameters().find("example_length_ratio")
        yield Message.of("warning.assumed_lengths", low=row.low, high=row.high)


def _unusual_checkpointing(question: Question) -> Iterator[Message]:
    """Warn that the named software has no setting for the requested checkpointing."""
    asked, framework = question.fixed.act_ckpt, question.framework
    if asked is not None and framework is not None and asked not in framework.act_ckpts:
        new = Message.of("flag.with_value", input="act_ckpt", value=asked)
        old = Message.of("flag.with_value", input="stack", value=str(framework.stack_name))
        yield Message.of("warning.unusual_checkpointing", new=new, old=old)


def _limits_as_sold(question: Question) -> Iterator[Message]:
    """Warn of GPUs that cannot be set to as high a power limit as was requested for all."""
    for cluster in question.clusters:
        asked_w, sold_w = cluster.power_limit_w, cluster.gpu.tdp_w
        if asked_w is not None and asked_w > sold_w > 0:
            yield Message.of("warning.limit_as_sold", gpu=cluster.gpu.id, sold_w=sold_w, asked_w=asked_w)


def uneven_sequence(case: Case, plan: Plan) -> Message | None:
    """Return a warning that a sequence of a rounder length could be split over many more GPUs, or None."""
    seq_len, split = case.recipe.seq_len, context_sizes(case.recipe)[-1]
    rounder = context_powers(case.recipe)[-1]
    if plan.layout is None or plan.layout.cp < split or rounder < MANY_MORE * split:
        return None
    near = round(seq_len / rounder) * rounder
    return Message.of("warning.uneven_sequence", seq_len=seq_len, cp=split, near=near)


def _key_of_years(question: Question, plan: Plan) -> str:
    """Return the key of the warning about a run of years, which depends on the reason for not using more GPUs."""
    if question.gpus is not None:
        return "warning.years"
    if question.most_gpus is not None and plan.gpus * NEXT_COUNT_RATIO > question.most_gpus:
        return "warning.years_capped"
    return "warning.years_asked"


def advice_on(
    question: Question,
    case: Case,
    anchor: Ranged,
    curve: tuple[CurvePoint, ...],
    case_of: Callable[[Question], Case | None],
    draws: Draws,
) -> tuple[Message, ...]:
    """Return better plans close to that of the requested precision: at another risk, on fewer GPUs, or on whole nodes.

    Args:
        question: the question.
        case: the requested precision on one kind of GPU.
        anchor: its plan.
        curve: its curve over more and fewer GPUs.
        case_of: builds the case of another question on that GPU; None: the GPU cannot run it.
        draws: the common draws.
    """
    advice = () if anchor.choice is None else _about_memory(question, case, anchor.plan, anchor.choice, case_of, draws)
    if question.gpus is None:
        return advice
    targets = targets_of(question)
    below = rounder_below(case, question.fixed, anchor.plan, targets, draws)
    near = (*curve, *below)
    sooner = tuple(sooner_on_fewer(near))
    whole = tuple(on_whole_nodes(case, question.fixed, anchor.plan, near, targets, draws))
    cheaper = () if sooner or whole else tuple(cheaper_close_by(anchor.plan, near, targets.most_gpus))
    return (*advice, *sooner, *whole, *cheaper)


def _about_memory(
    question: Question,
    case: Case,
    plan: Plan,
    choice: Choice,
    case_of: Callable[[Question], Case | None],
    draws: Draws,
) -> tuple[Message, ...]:
    """Return a much faster layout at a higher risk, a leaner loss and the quickest safe way, as far as memory is short.

    Where the loss makes the plan about as fast, a layout with a risk far above the limit is not worth a trial.
    """
    ways = SaferWays(question, case, plan, draws, case_of)
    lean = tuple(ways.leaner_loss())
    risky = faster_at_a_risk(question, case, choice, min((_time_ratio(message) for message in lean), default=math.inf))
    if risky is None and choice.safe:
        return lean
    safe = ways.quickest(RISKY_SOONER if choice.safe else 0.0)
    return tuple(dict.fromkeys(message for message in (risky, *lean, *safe) if message is not None))


def _time_ratio(message: Message) -> float:
    ratio = dict(message.values)["time_ratio"]
    assert isinstance(ratio, float)
    return ratio


def faster_at_a_risk(question: Question, case: Case, choice: Choice, safe_ratio: float = math.inf) -> Message | None:
    """Return a message that a much faster layout on the same GPUs has a memory risk above the limit, or None.

    For a plan that is risky itself, its own risk takes the place of the limit. A layout with a risk somewhat above that
    is preferred to one that is only more likely to run than not. The message names what would be planned there at the
    least whole percentage that leads to a plan about as fast as the fastest.

    Args:
        question: the question.
        case: the requested precision on one kind of GPU.
        choice: the plan's layout, and those that it won against.
        safe_ratio: time of a safe way to train over that of the plan; a layout that is only about as fast is not worth
            a risk far above the limit.
    """
    if choice.best is None:
        return None
    least, most = case.memory_risk, RISKY_AT_MOST
    if not choice.safe:
        least = risk_of(case, choice.winner)
        most = min(least + RISKY_AT_MOST, MOST_RISK)
    bolder = _planned_at_a_risk(question, case, choice, least, most)
    if bolder is None:
        safe_s = safe_ratio * float(choice.scores.wall_s[choice.best])
        bolder = _planned_at_a_risk(question, case, choice, max(least, most), MOST_RISK, safe_s)
    return None if bolder is None else _told_at_a_risk(question, case, choice, *bolder)


def _planned_at_a_risk(
    question: Question, case: Case, choice: Choice, least: float, most: float, safe_s: float = math.inf
) -> tuple[Choice, int] | None:
    """Return what is planned if a risk up to `most` is allowed, and the percentage to ask for.

    None where no layout is much faster than the plan, or clearly faster than a safe way that takes `safe_s` seconds.
    """
    first = _fastest_at_a_risk(case, choice, least, most)
    if first is None or safe_s <= ABOUT_AS_FAST * first[1]:
        return None
    percent, fastest_s = first
    best: tuple[Choice, int] | None = None
    best_s = float(choice.scores.wall_s[choice.best]) / RISKY_SOONER
    for allowed in range(percent, min(math.floor(most * 100), percent + MOST_PERCENTAGES) + 1):
        bolder = best_given(replace(case, memory_risk=allowed / 100), question.fixed, choice.gpus)
        if bolder.best is None or not bolder.safe:
            continue
        wall_s = float(bolder.scores.wall_s[bolder.best])
        if wall_s < best_s and _pays(case, choice, wall_s, risk_of(case, bolder.winner)):
            best, best_s = (bolder, allowed), wall_s
        if wall_s <= ABOUT_AS_FAST * fastest_s:
            break
    return best


def _fastest_at_a_risk(case: Case, choice: Choice, least: float, most: float) -> tuple[int, float] | None:
    """Return the risk, in whole percent rounded up, and the time of the fastest layout with a risk in (least, most].

    Only the leanest layout of each split that is much faster than the plan is considered, if a trial of it pays.
    """
    layouts, scores = choice.layouts, choice.scores
    plan_s = float(scores.wall_s[choice.best])
    faster = (layouts.gpus == choice.gpus) & case.fits(scores) & (scores.wall_s * RISKY_SOONER <= plan_s)
    by_memory = np.flatnonzero(faster)[np.argsort(scores.memory_bytes[faster], kind="stable")]
    leanest = by_memory[np.unique(splits_of(layouts)[by_memory], return_index=True)[1]]
    for i in leanest[np.argsort(scores.wall_s[leanest], kind="stable")].tolist():
        risk, wall_s = risk_of(case, layouts.only(i)), float(scores.wall_s[i])
        if least < risk <= most and _pays(case, choice, wall_s, risk):
            return math.ceil(risk * 100), wall_s
    return None


def _pays(case: Case, choice: Choice, wall_s: float, risk: float) -> bool:
    """Return whether the run ends clearly sooner on average if a layout is tried and the plan follows where it fails.

    The layout needs more memory than the plan, so where the plan runs out of memory, the layout does so too.
    """
    plan_s = float(choice.scores.wall_s[choice.best])
    plan_risk = 0.0 if choice.safe else risk_of(case, choice.winner)
    fails = (risk - plan_risk) / (1.0 - plan_risk)
    return RISKY_ON_AVERAGE * ((1.0 - fails) * wall_s + fails * plan_s) <= plan_s


def _told_at_a_risk(question: Question, case: Case, choice: Choice, bolder: Choice, percent: int) -> Message:
    """State the settings in which a riskier layout differs, its gain and risk, and the flags that plan it."""
    risk = risk_of(case, bolder.winner)
    flags = [Message.of("flag.with_value", input="memory_risk", value=f"{percent}%")]
    if question.gpus is None:
        flags.insert(0, Message.of("flag.with_value", input="gpus", value=choice.gpus))
    new, old = differences(bolder.winner.at(0), choice.winner.at(0))
    return Message.of(
        "warning.faster_at_a_risk", gpu=case.cluster.gpu.id, risk=risk, allowed=case.memory_risk,
        new=new, old=old,
        sooner=1.0 - float(bolder.scores.wall_s[bolder.best]) / float(choice.scores.wall_s[choice.best]),
        digits=digits_apart(risk, case.memory_risk), flags=tuple(flags),
    )  # fmt: skip


def rounder_below(case: Case, fixed: FixedLayout, plan: Plan, targets: Targets, draws: Draws) -> tuple[CurvePoint, ...]:
    """Return plans on somewhat fewer GPUs whose number splits in more ways, where the number was given.

    Of 94 nodes these are 92, 88 and 80; few pipelines and batches divide evenly over 94.
    """
    node = case.cluster.gpus_per_node
    nodes = plan.gpus // node
    rounder = {nodes >> shift << shift for shift in range(1, nodes.bit_length())}
    counts = sorted(n * node for n in rounder if LEAST_BELOW * nodes <= n and n * node < plan.gpus)
    return tuple(points_on(case, fixed, counts, targets, draws)) if counts else ()


def sooner_on_fewer(points: Iterable[CurvePoint]) -> Iterator[Message]:
    """Yield messages by GPU that fewer GPUs finish sooner than the plan's, since a batch divides over some numbers."""
    by_gpu: dict[str, list[CurvePoint]] = {}
    for point in points:
        by_gpu.setdefault(point.gpu, []).append(point)
    for gpu, curve in by_gpu.items():
        plan = next(point for point in curve if point.chosen)
        best = min((p for p in curve if p.gpus <= plan.gpus), key=lambda point: point.duration_days.mid)
        ratio = best.duration_days.mid / plan.duration_days.mid
        if ratio <= SOONER_RATIO:
            yield Message.of(
                "warning.fewer_gpus", gpu=gpu, gpus=plan.gpus, fewer=best.gpus, sooner=1.0 - ratio,
                saved=1.0 - ratio * best.gpus / plan.gpus,
            )  # fmt: skip


def on_whole_nodes(
    case: Case, fixed: FixedLayout, plan: Plan, near: Iterable[CurvePoint], targets: Targets, draws: Draws
) -> Iterator[Message]:
    """Yield a message that all GPUs of a plan's nodes finish sooner and cheaper than the part of them that was given.

    There is no message where fewer GPUs, among the points in `near`, finish as soon.
    """
    whole = plan.nodes * case.cluster.gpus_per_node
    if not plan.gpus < whole <= targets.most_gpus:
        return
    assert plan.duration_days is not None
    fewer_days = min((point.duration_days.mid for point in near if point.gpus < plan.gpus), default=math.inf)
    for point in points_on(case, fixed, [whole], targets, draws):
        days = point.duration_days.mid
        time_ratio = days / plan.duration_days.mid
        key = "warning.whole_nodes" if has_costs(point, plan) else "warning.whole_nodes_hours"
        cost_ratio = cost_share(point, plan)
        if max(time_ratio, cost_ratio) <= WORTH_A_WORD_RATIO and days <= SOONER_RATIO * fewer_days:
            yield Message.of(
                key, gpu=plan.gpu, gpus=plan.gpus, whole=whole, nodes=plan.nodes, sooner=1.0 - time_ratio,
                saved=1.0 - cost_ratio,
            )  # fmt: skip

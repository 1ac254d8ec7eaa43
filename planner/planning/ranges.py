"""Turn a chosen layout into a `Plan`: draw the uncertain inputs, evaluate the layout, and take percentiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt

from planner.answer.plan import Contribution, LostLayout, Plan, Probability
from planner.errors import Message
from planner.evidence import Estimate, middle
from planner.lazy import dataclass
from planner.parallelism.layout import Layout
from planner.parallelism.search import of_samples
from planner.performance.evaluation import Evaluation
from planner.performance.memory import memory_range_gib, shortfall_gib, usable_bytes
from planner.performance.operations import recomputed_flop_per_token, worked_flop_per_token
from planner.performance.run import RunEnergy
from planner.planning.case import Case
from planner.planning.choice import SIMPLER, Choice, complexity, expected_s_per_sequence
from planner.planning.footprint import bill_and_footprint, metered_mid
from planner.planning.risk import RISK_DRAWS, risk_of
from planner.planning.targets import NO_TARGETS, Targets, probability
from planner.rates.terms import Draws, Value
from planner.units import DAY_S, GIB, MWH_J, TERA, TONNE_KG
from planner.used.collectives import collectives_used
from planner.used.kernels import attention_used, gain_of_narrow, products_used

SHOWN_DIGITS = 4
"""Decimals of the figures in the reason why a layout lost; each document has dozens of them."""
AS_FAST_RATIO = 0.0005
"""A layout that is slower by less than this fraction is as fast at the digits that are shown."""
SLOWER = 3
"""Slower layouts that are shown beside the winner."""
TRIED = 12
"""Ways of splitting that are looked at for these."""

DRAWS = 1001
"""Odd, so that one draw, the last, has every input at its mid."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranged:
    """A plan with the draws behind its figures, so that savings can be computed draw by draw."""

    plan: Plan
    draws: dict[str, Floats]
    """Draws by metric, `[draw]`; empty where the plan does not fit."""
    choice: Choice | None = None
    """The layout, among those that it won against."""
    why_so_many: str | None = None
    """Key of the note that says what decided the number of GPUs; None where the number was given."""
    more: tuple[Message, ...] = ()
    """Advice on how much sooner the run would finish for slightly more money than the budget."""


def _items(parts: object, unit: float, total: float | None = None) -> dict[str, float]:
    """Return the items of the last draw in a unit, with their sum, scaled alike to sum to `total` if that is given.

    In the last draw every input is at its mid. A step is shown as the middle of its draws, to which its items are
    scaled.
    """
    values = {f.name: float(np.ravel(getattr(parts, f.name))[-1]) / unit for f in fields(parts)}  # type: ignore[arg-type]
    whole = sum(values.values())
    if total is not None and whole > 0:
        values = {name: value * total / whole for name, value in values.items()}
        whole = sum(values.values())
    return values | {"total": whole}


def _energy_items(energy: RunEnergy, total_mwh: float) -> dict[str, float]:
    """Return the items of the energy at the meter; those of the machines do not depend on the PUE.

    The middle of a sum is slightly above the sum of the middles, so the middles of the three machine items are scaled
    up to it. The PUE overhead is the rest of the total.
    """
    parts = {name: middle(getattr(energy, name)) for name in ("gpu", "host", "network")}
    machines, apart = middle(energy.machines) / MWH_J, sum(parts.values())
    items = {name: part * machines / apart if apart else 0.0 for name, part in parts.items()}
    items["pue_overhead"] = max(0.0, total_mwh - sum(items.values()))
    return items | {"total": sum(items.values())}


def infeasible(case: Case, gpus: int, why: Message, choice: Choice | None = None) -> Ranged:
    """Return a plan that says why it does not fit; its figures are None."""
    plan = Plan(
        precision=case.policy.precision,
        policy=case.policy.id,
        gpu=case.cluster.gpu.id,
        gpus=gpus,
        nodes=_nodes(case, gpus),
        layout=None,
        fits=False,
        why_not=why,
        memory_gib=None,
        memory_capacity_gib=usable_bytes(case.cluster.gpu) / GIB,
        step_s=None,
        layouts_evaluated=choice.evaluated if choice else 0,
    )
    return Ranged(plan=plan, draws={})


def _nodes(case: Case, gpus: int) -> int:
    return -(-gpus // case.cluster.gpus_per_node)


def why_not(case: Case, choice: Choice) -> Message:
    """Explain how much memory these GPUs lack, or that no layout divides evenly over them."""
    gpu = case.cluster.gpu
    if not len(choice.layouts):
        return _no_split(case)
    leanest = int(np.argmin(choice.scores.memory_bytes))
    need, room = float(choice.scores.memory_bytes[leanest]) / GIB, usable_bytes(gpu) / GIB
    if need <= room:  # it fits at mid, but not under most draws
        risk = round(risk_of(case, choice.layouts.only(leanest)), SHOWN_DIGITS)
        return Message.of("why.likely_too_big", layouts=len(choice.layouts), risk=risk, gpu=gpu.id)
    return Message.of(
        "why.does_not_fit",
        layouts=len(choice.layouts),
        needed_gib=need,
        short_gib=shortfall_gib(need, room),
        capacity_gib=room,
        gpu=gpu.id,
    )


def _no_split(case: Case) -> Message:
    """Explain that no layout divides these GPUs, the model and the batch, or any batch of the allowed range."""
    band = case.recipe.batch_band
    if band is None:
        return Message.of(
            of_samples(case.recipe, "why.no_even_split", "why.no_even_split_images"),
            global_batch=case.recipe.global_batch,
        )
    return Message.of(
        of_samples(case.recipe, "why.no_batch_splits", "why.no_batch_splits_images"), least=band[0], most=band[1]
    )


def _lost(case: Case, choice: Choice, step_s: float) -> tuple[LostLayout, ...]:
    """Return layouts that lost: the fastest if a simpler one won, one faster at mid, three slower ones, one too big.

    The slower ones are split in different ways, and at most one of them runs out of memory too often.

    Args:
        case: the question on one kind of GPU.
        choice: the winner and the other layouts.
        step_s: the plan's step time, the middle of its range; the others' are in proportion to their steps at mid
            rates.
    """
    if choice.best is None:
        return ()
    scores, room = choice.scores, usable_bytes(case.cluster.gpu)
    best_s = float(scores.wall_s[choice.best])
    order = np.argsort(scores.wall_s, kind="stable")
    order = order[choice.layouts.gpus[order] == choice.layouts.gpus[choice.best]]
    fits = scores.memory_bytes[order] <= room
    best = [] if choice.fastest is None else [choice.fastest]
    others = [int(i) for i in order[fits] if i not in (choice.best, choice.fastest)]
    faster = [i for i in others if scores.wall_s[i] < best_s][:1]
    slower = _slower(case, choice, [i for i in others if scores.wall_s[i] >= best_s], best_s)
    too_big = [int(i) for i in order[~fits] if np.isfinite(scores.wall_s[i])][:1]  # layouts far too big are not timed
    return tuple(
        LostLayout(
            layout=choice.layouts.at(i),
            step_s=step_s * float(scores.step_s[i] / scores.step_s[choice.best]),
            memory_gib=float(scores.memory_bytes[i]) / GIB,
            why=_why_lost(case, choice, i, best_s, room),
        )
        for i in best + faster + slower + too_big
    )


def _slower(case: Case, choice: Choice, order: list[int], best_s: float) -> list[int]:
    """Return up to `SLOWER` of the slower layouts, each split in another way, of which one at most is too risky.

    The risk counts up to the lead for which a simpler layout would have won; others lost by their time. Of the risky
    ones the simplest is returned, because users ask why it was not chosen.
    """
    splits: dict[Layout, int] = {}
    for i in order:
        splits.setdefault(replace(choice.layouts.at(i), vp=1, micro_batch=1, grad_accum=1), i)
        if len(splits) == TRIED:
            break
    tried = list(splits.values())
    close = [i for i in tried if choice.scores.wall_s[i] < SIMPLER * best_s]
    case.memory_ahead(choice.layouts.take(np.array(close, dtype=np.intp)), RISK_DRAWS)
    risky = [i for i in close if risk_of(case, choice.layouts.only(i)) > case.memory_risk]
    complexities = (
        complexity(choice.layouts.take(np.array(risky, dtype=np.intp)), case.recipe).tolist() if risky else []
    )
    shown = [i for _, i in sorted(zip(complexities, risky, strict=True), key=lambda pair: pair[0])[:1]]
    shown += [i for i in tried if i not in risky][: SLOWER - len(shown)]
    return sorted(shown, key=lambda i: float(choice.scores.wall_s[i]))


def _why_lost(case: Case, choice: Choice, index: int, best_s: float, room: float) -> Message:
    """Explain why a layout lost: less simple, too big, too risky, another batch, or slower at mid or over the draws."""
    if index == choice.fastest:
        simpler = Message.of("why.simpler", faster_ratio=round(choice.slower_ratio, SHOWN_DIGITS))
        return _faster_with_other_batch(case, choice, index) or simpler
    over = float(choice.scores.memory_bytes[index]) - room
    if over > 0:
        return Message.of("why.too_big", over_gib=round(over / GIB, SHOWN_DIGITS))
    slower_ratio = float(choice.scores.wall_s[index]) / best_s - 1
    if slower_ratio < SIMPLER - 1.0:
        risk = risk_of(case, choice.layouts.only(index))
        if risk > case.memory_risk:
            return Message.of("why.too_risky", risk=round(risk, SHOWN_DIGITS))
    if slower_ratio >= AS_FAST_RATIO:
        return Message.of("why.slower", slower_ratio=round(slower_ratio, SHOWN_DIGITS))
    if slower_ratio >= 0:
        return Message.of("why.as_fast")
    on_average = Message.of("why.slower_on_average", faster_ratio=round(-slower_ratio, SHOWN_DIGITS))
    return _faster_with_other_batch(case, choice, index) or on_average


def _faster_with_other_batch(case: Case, choice: Choice, index: int) -> Message | None:
    """Return how much faster a layout is on average whose batch is not the one that the winner keeps; else None."""
    assert choice.best is not None
    pair = choice.layouts.take(np.array([choice.best, index], dtype=np.intp))
    kept, other = (pair.global_batch == case.recipe.global_batch).tolist()
    if not (case.recipe.keeps_batch and kept) or other:
        return None
    own_s, other_s = expected_s_per_sequence(case, pair).tolist()
    faster_ratio = own_s / other_s - 1.0
    return Message.of("why.other_batch", faster_ratio=round(faster_ratio, SHOWN_DIGITS)) if faster_ratio > 0 else None


def _contributions(case: Case, target: Value, draws: Draws) -> tuple[Contribution, ...]:
    """Return the largest shares of the inputs in the variance of the log duration: squared correlations over draws."""
    log = np.log(np.ravel(target))
    if log.size < 2 or float(log.std()) == 0.0:
        return ()
    off = (log - log.mean()) / log.std()
    shares = []
    for name, (away, sd) in case.rates.log_changes(draws).items():
        r = float(off @ away) / (log.size * sd)
        shares.append((r * r, case.rates.terms[name]))
    shares.sort(key=lambda pair: pair[0], reverse=True)
    return tuple(
        Contribution(
            term=term.name,
            label=term.family.label,
            share_ratio=share,
            measure_with=None if term.family.narrowed_by is None else Message.of(term.family.narrowed_by),
        )
        for share, term in shares[:6]
        if share > 0.01
    )


def _metrics(case: Case, drawn: Evaluation, count: int) -> dict[str, Floats]:
    """Return the draws of every metric of a plan (`plan.METRICS`), `[draw]` each; no cost where no price is known."""
    peak = case.cluster.gpu.peak_flop_per_s[case.policy.linear_compute]
    metrics: dict[str, Value] = {
        "tokens_per_s_per_gpu": drawn.tokens_per_s_per_gpu,
        "samples_per_s_per_gpu": drawn.tokens_per_s_per_gpu / case.recipe.mean_len,
        "tflops_per_gpu": drawn.model_flop_per_s_per_gpu / TERA,
        "mfu": drawn.model_flop_per_s_per_gpu / peak,
        "duration_days": drawn.wall_s / DAY_S,
        "gpu_hours": drawn.gpu_h,
        "energy_mwh": drawn.energy.total / MWH_J,
        "cost_usd": drawn.cost_usd,
        "carbon_tco2e": drawn.carbon_kg / TONNE_KG,
    }
    if case.price.usd_per_gpu_h is None:
        del metrics["cost_usd"]
    if case.recipe.model.has_network:
        del metrics["tokens_per_s_per_gpu"]
    return {name: np.broadcast_to(np.asarray(v, dtype=np.float64).ravel(), (count,)) for name, v in metrics.items()}


BUILT_FROM_MIDS = ("cost_usd", "carbon_tco2e")
"""Metrics whose mids are sums and products of other mids (see `bill_and_footprint`)."""


def _ranges(case: Case, drawn: Evaluation, arrays: Mapping[str, Floats]) -> dict[str, Estimate]:
    """Return the ranges of all metrics except those in `BUILT_FROM_MIDS`."""
    ranges = {name: Estimate.of_draws(values) for name, values in arrays.items() if name not in BUILT_FROM_MIDS}
    mid = float(metered_mid(case, drawn.energy).mwh)
    return ranges | {"energy_mwh": Estimate.of_draws(arrays["energy_mwh"], mid=mid)}


def _utilisation(case: Case, act_ckpt: str, mfu: float) -> tuple[float, float]:
    """Return MFU with attention counted in full, and HFU, from MFU."""
    causal, full = (worked_flop_per_token(case.recipe, causal_half=half) for half in (True, False))
    return mfu * full / causal, mfu * (1.0 + recomputed_flop_per_token(case.recipe, act_ckpt) / causal)


def ranged_plan(case: Case, choice: Choice, draws: Draws, targets: Targets = NO_TARGETS) -> Ranged:
    """Return the plan of the winning layout with the range of every figure and its chance of meeting the targets."""
    n = draws.count
    at = choice.winner
    drawn = case.evaluate(at, draws)
    gpus, layout = int(at.gpus[0]), at.at(0)
    footprint = bill_and_footprint(case, gpus, drawn, draws)
    arrays = _metrics(case, drawn, n)
    ranges = _ranges(case, drawn, arrays)
    step_range_s = Estimate.of_draws(drawn.step_s)
    mfu_full_attention, hfu = _utilisation(case, layout.act_ckpt, ranges["mfu"].mid)
    unseen = case.recipe.model.has_network or not case.detailed
    # the gain of a narrow type needs the products, and the short answer shows it, too
    has_products = not case.recipe.model.has_network and (case.detailed or case.policy.narrow)
    products = products_used(case.recipe, at, case.mid) if has_products else ()
    plan = Plan(
        precision=case.policy.precision,
        policy=case.policy.id,
        gpu=case.cluster.gpu.id,
        gpus=gpus,
        nodes=_nodes(case, gpus),
        layout=layout,
        fits=True,
        why_not=None,
        memory_gib=_items(drawn.memory, GIB),
        memory_capacity_gib=usable_bytes(case.cluster.gpu) / GIB,
        memory_range_gib=memory_range_gib(drawn.memory_bytes),
        memory_risk=risk_of(case, at),
        probability=_probability(arrays, targets),
        step_s=_items(drawn.step, 1.0, step_range_s.mid),
        step_range_s=step_range_s,
        mfu_full_attention=mfu_full_attention,
        hfu=hfu,
        goodput_ratio=Estimate.of_draws(drawn.goodput_ratio),
        skipped_step_ratio=_skipped(case),
        energy_items_mwh=_energy_items(drawn.energy, ranges["energy_mwh"].mid),
        gpu_power_w=Estimate.of_draws(drawn.gpu_power_w),
        peak_power_mw=footprint.peak_power_mw,
        mean_power_mw=footprint.mean_power_mw,
        cost_usd=footprint.cost_usd,
        cost_lines=footprint.cost_lines,
        carbon_tco2e=footprint.carbon_tco2e,
        carbon_market_tco2e=footprint.carbon_market_tco2e,
        embodied_tco2e=footprint.embodied_tco2e,
        carbon_with_embodied_tco2e=footprint.carbon_with_embodied_tco2e,
        model_flop=footprint.model_flop,
        sci_kg_per_run=footprint.sci_kg_per_run,
        sci_kg_per_1e21_flop=footprint.sci_kg_per_1e21_flop,
        products=() if unseen else products,
        attention_kernel=None if unseen else attention_used(case.recipe, at, case.mid),
        narrow_gain=gain_of_narrow(case.recipe, case.mid, products),
        collectives=collectives_used(case.recipe, case.cluster, at, case.rates) if case.detailed else (),
        uncertainty=_contributions(case, drawn.wall_s, draws) if case.detailed else (),
        lost_layouts=_lost(case, choice, step_range_s.mid) if case.detailed else (),
        layouts_evaluated=choice.evaluated,
        **ranges,
    )
    if case.cluster.gpu.tdp_w <= 0:
        plan = _without_power(plan)
    return Ranged(plan=plan, draws={**arrays, "step_s": np.broadcast_to(np.ravel(drawn.step_s), (n,))}, choice=choice)


def _skipped(case: Case) -> float | None:
    """Return the share of steps that overflows undo; None where no training showed that the loss scale settles."""
    return 1.0 - float(case.mid.useful_step_ratio) or None


def _probability(arrays: dict[str, Floats], targets: Targets) -> Probability:
    """Return the probability of meeting each target; None for an unset target, or for a budget without a price."""
    cost = arrays.get("cost_usd")
    return Probability(
        deadline=None
        if targets.deadline_s is None
        else probability(arrays["duration_days"] * DAY_S, targets.deadline_s),
        budget=None if targets.budget_usd is None or cost is None else probability(cost, targets.budget_usd),
    )


def _without_power(plan: Plan) -> Plan:
    """Set energy, carbon and their cost to None for a device of unknown power: they are unknown, not zero."""
    return replace(
        plan,
        energy_mwh=None,
        energy_items_mwh=None,
        gpu_power_w=None,
        peak_power_mw=None,
        mean_power_mw=None,
        carbon_tco2e=None,
        carbon_market_tco2e=None,
        carbon_with_embodied_tco2e=None,
        sci_kg_per_run=None,
        sci_kg_per_1e21_flop=None,
        cost_usd=plan.cost_usd if plan.cost_usd is not None and plan.cost_usd.mid > 0 else None,
    )

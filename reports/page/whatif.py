"""The sliders, and the closed form behind them.

Only inputs with a proportional effect can be changed without planning again: price, electricity, PUE, grid factor,
tokens, goodput and the number of runs. `templates/arithmetic.js` holds the same arithmetic; a test runs both over
random inputs.
"""

from __future__ import annotations

import math
from dataclasses import asdict, fields
from typing import Any

from planner.lazy import dataclass
from planner.units import DAY_S, HOUR_S, KWH_J, MWH_J
from reports.document.facts import CARBON, COST, DURATION, ENERGY, Doc, Facts
from reports.text.language import Words
from reports.text.numbers import Rung

KWH_PER_MWH = MWH_J / KWH_J
KG_PER_T = 1000.0
HOURS_PER_DAY = DAY_S / HOUR_S
DIGITS = 8
"""Significant digits of hours, energy and carbon in the page: far more than it shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """The values of the sliders."""

    price: float
    """USD per GPU-hour; 0 if the plan has no price."""
    electricity: float
    """USD per kWh; 0 if the plan bills none because the rent includes it."""
    pue: float
    grid: float
    """kg CO₂e per kWh."""
    tokens: float
    """Tokens, or images for an image model."""
    goodput: float
    """Share of the hours that advances the training."""
    runs: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The figures of one plan from which the closed form starts, each as (low, mid, high)."""

    precision: str
    gpu_hours: tuple[float, float, float]
    days: tuple[float, float, float]
    energy_mwh: tuple[float, float, float]
    carbon_t: tuple[float, float, float]
    cost_usd: tuple[float, float, float] | None
    rental_usd: float
    """Part of the middle cost that is GPU-hours times price."""
    idle_usd: float = 0.0
    """Part of `rental_usd` that follows electricity: for own machines, that of hours without work and the staff's share
    of all of it."""
    electricity_usd: float = 0.0
    """Part of the middle cost that is electricity, including that of work besides the run."""
    share_usd: float = 0.0
    """Part of the middle cost that is a share of the GPU line without being GPU-hours: the network."""
    work_usd: float = 0.0
    """Part of the middle cost that is GPU-hours of work besides the run: experiments, failed work. These hours count
    against the minimum of an offer, like those of the run."""
    hourly_usd: float = 0.0
    """Part of the middle cost that is hours at separate prices: CPU machines, storage during the run."""
    fixed_usd: float = 0.0
    """Part of the middle cost that is paid once: fees, outbound data transfer, storage after the run."""
    term_usd: float = 0.0
    """Minimum that an offer bills for its GPUs, however short the run; 0 without a minimum."""
    held_ratio: float = 1.0
    """Ratio of billed GPUs to the GPUs of the run; above 1 if an offer's minimum is larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The figures of a plan at given knobs, each as (low, mid, high)."""

    cost_usd: tuple[float, float, float] | None
    days: tuple[float, float, float]
    gpu_hours: tuple[float, float, float]
    energy_mwh: tuple[float, float, float]
    carbon_t: tuple[float, float, float]
    bill_usd: tuple[float, float, float]
    """Cost of electricity for all of the energy, at the price of the slider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """One slider with its range."""

    name: str
    label: str
    value: float
    low: float
    high: float
    step: float
    quantity: str
    """Name of the unit ladder for its value."""


def _times(ends: tuple[float, float, float], factor: float) -> tuple[float, float, float]:
    return (ends[0] * factor, ends[1] * factor, ends[2] * factor)


def outcome(base: Base, plan: Knobs, knobs: Knobs) -> WhatIf:
    """Return the figures of a plan under other knobs; with the plan's own knobs, these are the plan's own figures.

    Args:
        base: the plan's starting figures.
        plan: the knobs at which it was made.
        knobs: the knobs to evaluate.
    """
    work = knobs.tokens / plan.tokens * (plan.goodput / knobs.goodput)
    hours = work * knobs.runs
    energy = _times(base.energy_mwh, hours * (knobs.pue / plan.pue))
    return WhatIf(
        cost_usd=_cost(base, plan, knobs, hours),
        days=_times(base.days, work),
        gpu_hours=_times(base.gpu_hours, hours),
        energy_mwh=energy,
        carbon_t=_times(base.carbon_t, hours * (knobs.pue / plan.pue) * (knobs.grid / plan.grid)),
        bill_usd=_times(energy, KWH_PER_MWH * knobs.electricity),
    )


def _cost(base: Base, plan: Knobs, knobs: Knobs, hours: float) -> tuple[float, float, float] | None:
    """Return the cost, with low, mid and high each following from the bill for its own hours.

    The range of the plan's cost beyond that of the hours is the uncertainty of the GPUs' price, so it widens only what
    the GPUs cost, as in a plan made with these knobs. A price set with the slider has no uncertainty.
    """
    ran = _times(base.gpu_hours, 1 / base.gpu_hours[1])
    if knobs.price != plan.price:
        scale = base.cost_usd[1] / sum(_bill(base, plan, plan, 1.0)) if base.cost_usd is not None else 1.0
        ends = [scale * sum(_bill(base, plan, knobs, end * hours)) for end in ran]
    elif base.cost_usd is not None:
        ends = [_end(base, plan, knobs, usd, end, hours) for usd, end in zip(base.cost_usd, ran, strict=True)]
    else:
        return None
    return (min(ends[0], ends[1]), ends[1], max(ends[1], ends[2]))


def _end(base: Base, plan: Knobs, knobs: Knobs, usd: float, end: float, hours: float) -> float:
    """Return one end of the cost at the plan's price.

    `usd` and `end` are this end of the plan's cost and of its hours relative to mid; `hours` is the ratio of the hours
    at the knobs to the plan's.
    """
    (gpus, others), (moved, beside) = _bill(base, plan, plan, end), _bill(base, plan, knobs, end * hours)
    if usd > others and gpus:
        return (usd - others) / gpus * moved + beside
    return usd * ((moved + beside) / (gpus + others))


def _bill(base: Base, plan: Knobs, knobs: Knobs, hours: float) -> tuple[float, float]:
    """Return the cost of the GPUs and of all else at other knobs, as the lines in `planner/costs/bill.py`.

    `hours` is the ratio to the plan's hours at mid.
    """
    price, pue = knobs.price / plan.price if plan.price else 1.0, knobs.pue / plan.pue
    power = hours * pue * knobs.electricity
    rental = base.gpu_hours[1] * knobs.price if base.cost_usd is None else base.rental_usd
    used = (rental + base.work_usd) * hours
    gpus = max(base.term_usd, rental * base.held_ratio * hours, used) + base.share_usd * hours
    billed = base.energy_mwh[1] * KWH_PER_MWH
    if plan.electricity and base.cost_usd is not None:
        billed = base.electricity_usd / plan.electricity
        if base.idle_usd:
            price *= 1.0 + base.idle_usd / rental * (pue * knobs.electricity / plan.electricity - 1.0)
    return gpus * price, billed * power + base.hourly_usd * hours + base.fixed_usd


def _ends(estimate: Doc) -> tuple[float, float, float]:
    return (float(estimate["low"]), float(estimate["mid"]), float(estimate["high"]))


GPU_LINES = ("gpu_rental", "gpu_owned")
"""Cost lines that are GPU-hours times a price."""
WORK_LINES = ("failed_work", "experiments")
"""Cost lines that are a share of the GPU lines, and of electricity if it is billed."""
HOURLY_LINES = ("cpu_hosts", "storage")
"""Cost lines that are hours at a separate price, except for storage after the run."""
GROWING_LINES = (*GPU_LINES, *WORK_LINES, *HOURLY_LINES, "network", "electricity", "minimum_term")
"""Cost lines that grow with the run; all other lines are paid once."""


def _lines(plan: Doc, *ids: str) -> list[Doc]:
    return [line for line in plan["cost_lines"] if line["id"] in ids]


def _usd(plan: Doc, *ids: str) -> float:
    return sum(float(line["usd"]["mid"]) for line in _lines(plan, *ids))


def base_of(plan: Doc, quote: Doc | None = None, owned: Doc | None = None) -> Base:
    """Return the starting figures of a plan that fits.

    Args:
        plan: a plan of the document.
        quote: the row of `money.quotes` by which the plan is billed.
        owned: the row of `money.owned` for the plan's GPU.
    """
    cost = _ends(plan[COST]) if plan[COST] and plan[COST]["mid"] > 0 else None
    rental, power, work = _usd(plan, *GPU_LINES), _usd(plan, "electricity"), _usd(plan, *WORK_LINES)
    if cost and not plan["cost_lines"]:
        rental = cost[1]
    parts = [part for line in _lines(plan, "storage") for part in line["children"]]
    after = sum(float(part["usd"]["mid"]) for part in parts if part["id"] == "storage_after")
    hourly = _usd(plan, *HOURLY_LINES) - after
    once = [line for line in plan["cost_lines"] if line["id"] not in GROWING_LINES]
    fixed = sum(float(line["usd"]["mid"]) for line in once) + after
    powered = work * power / (rental + power) if power else 0.0
    term, held = _minimum(plan, rental, work - powered, quote)
    return Base(
        precision=plan["precision"],
        gpu_hours=_ends(plan["gpu_hours"]),
        days=_ends(plan[DURATION]),
        energy_mwh=_ends(plan[ENERGY]),
        carbon_t=_ends(plan[CARBON]),
        cost_usd=cost if rental + power + work + hourly + fixed > 0 else None,
        rental_usd=rental,
        idle_usd=_idle_usd(plan, owned) if cost else 0.0,
        electricity_usd=power + powered,
        share_usd=_usd(plan, "network"),
        work_usd=work - powered,
        hourly_usd=hourly,
        fixed_usd=fixed,
        term_usd=term,
        held_ratio=held,
    )


def _idle_usd(plan: Doc, owned: Doc | None) -> float:
    """Return the part of the line of own machines that follows electricity; see `Base.idle_usd`."""
    parts = [part for line in _lines(plan, "gpu_owned") for part in line["children"]]
    idle = sum(float(part["usd"]["mid"]) for part in parts if part["id"] == "owned_electricity")
    items = (owned or {}).get("items_usd_per_gpu_h") or {}
    staff, power = (float(items.get(name, 0.0)) for name in ("staff", "electricity"))
    others = sum(items.values()) - staff
    return idle + (power * staff / others * float(plan["gpu_hours"]["mid"]) if parts and others > 0 else 0.0)


def _minimum(plan: Doc, rental_usd: float, work_usd: float, quote: Doc | None) -> tuple[float, float]:
    """Return an offer's minimum GPU bill and the ratio of billed GPUs; without known terms as the bill implies."""
    lines = _lines(plan, *GPU_LINES)
    price = _unit_price(lines[0]) if lines else None
    if quote is None or "minimum_gpus" not in quote or price is None:
        unused = _usd(plan, "minimum_term")
        return (rental_usd + work_usd + unused if unused else 0.0), 1.0
    gpus = max(plan["gpus"], quote["minimum_gpus"])
    return gpus * quote["minimum_term_days"] * HOURS_PER_DAY * price, gpus / plan["gpus"]


def _pue(facts: Facts, plan: Doc) -> float | None:
    """Return the given PUE, else the one implied by the energy items."""
    given = facts.given("pue")
    if isinstance(given, int | float) and given >= 1:
        return float(given)
    items = plan["energy_items_mwh"] or {}
    machines = sum(size for name, size in items.items() if name not in ("pue_overhead", "total"))
    return 1.0 + float(items.get("pue_overhead", 0.0)) / machines if machines > 0 else None


def _unit_price(line: Doc) -> float | None:
    """Return the unit price of a line in USD, or the sum of its items for owned machines; None if unknown."""
    if line["unit_price_usd"]:
        return float(line["unit_price_usd"]["mid"])
    parts = [child["unit_price_usd"] for child in line.get("children") or ()]
    return sum(float(part["mid"]) for part in parts) if parts and all(parts) else None


def knobs_of(facts: Facts, plan: Doc) -> Knobs | None:
    """Return the knobs at which a plan was made, from the plan and the question; None if a required one is unknown."""
    pue, tokens = _pue(facts, plan), facts.amount
    if not (pue and plan[ENERGY] and plan[CARBON] and plan[CARBON]["mid"] and plan["goodput_ratio"] and tokens):
        return None
    rental = _lines(plan, *GPU_LINES)
    price = _unit_price(rental[0]) if rental else None
    billed = _lines(plan, "electricity")
    own = billed[0]["unit_price_usd"]["mid"] if billed and billed[0]["unit_price_usd"] else facts.given("electricity")
    return Knobs(
        price=float(price) if price else 0.0,
        electricity=float(own) if isinstance(own, int | float) else 0.0,
        pue=pue,
        grid=plan[CARBON]["mid"] * KG_PER_T / (plan[ENERGY]["mid"] * KWH_PER_MWH),
        tokens=tokens,
        goodput=float(plan["goodput_ratio"]["mid"]),
    )


MOST_USD_PER_H = 20.0
"""Maximum of the price slider if a plan has no price: above every price per GPU-hour in the book."""


def sliders(knobs: Knobs, words: Words, amount: str = "tokens") -> tuple[Slider, ...]:
    """Return one slider per knob of the plan, from a fraction to a multiple of its value.

    Args:
        knobs: the knobs of the plan.
        words: words of the language.
        amount: what the run trains on, `tokens` or `images`.
    """

    def slider(name: str, value: float, low: float, high: float, quantity: str, label: str = "") -> Slider:
        return Slider(name=name, label=words(f"whatif.{label or name}"), value=value, low=low, high=high,
                      step=(high - low) / 400, quantity=quantity)  # fmt: skip

    built = []
    if knobs.price:
        built.append(slider("price", knobs.price, knobs.price * 0.25, knobs.price * 2.25, "unit_price"))
    else:
        built.append(slider("price", 0.0, 0.0, MOST_USD_PER_H, "unit_price", "price_unknown"))
    built.append(slider("electricity", knobs.electricity, 0.0, max(0.5, 2 * knobs.electricity), "unit_price"))
    built.append(slider("pue", knobs.pue, 1.0, max(2.0, knobs.pue), "plain"))
    built.append(slider("grid", knobs.grid, 0.0, max(1.0, knobs.grid), "plain"))
    built.append(slider("tokens", knobs.tokens, knobs.tokens * 0.1, knobs.tokens * 4, amount, amount))
    built.append(slider("goodput", knobs.goodput, 0.5, 1.0, "percent"))
    built.append(Slider(name="runs", label=words("whatif.runs"), value=1, low=1, high=10, step=1, quantity="plain"))
    return tuple(built)


def _at_least(facts: Facts, plan: Doc) -> bool:
    """Return whether a plan's cost is a lower bound; without a cost, whether costs beyond the GPUs are not in it."""
    if plan[COST] is None:
        return facts.given("beside") is not None
    return bool(plan[COST].get("at_least"))


def _differing_knobs(own: Knobs, shared: Knobs) -> dict[str, Any] | None:
    """Return a plan's knobs if they differ from the page's by more than the rounding in the document; else None."""
    pairs = [(value, asdict(shared)[name]) for name, value in asdict(own).items()]
    same = all(a == b or (a and b and math.isclose(a, b, rel_tol=1e-8)) for a, b in pairs)
    return None if same else asdict(own)


def _stated(base: Base, knobs: dict[str, Any] | None, at_least: bool) -> dict[str, Any]:
    """Return a plan for the script without default values: parts of the bill that are absent, the page's own knobs."""
    usual = {part.name: part.default for part in fields(base)} | {"knobs": None, "at_least": False}
    figures = asdict(base) | {"knobs": knobs, "at_least": at_least}
    for name in ("gpu_hours", "days", "energy_mwh", "carbon_t"):
        figures[name] = [float(f"{end:.{DIGITS}g}") for end in figures[name]]
    return {name: value for name, value in figures.items() if value != usual[name]}


def _rung(rung: Rung) -> tuple[float | str, ...]:
    """Return a unit as `arithmetic.js` reads it, with whole numbers without their decimal point to save space."""
    at, per = (int(value) if value == int(value) else value for value in (rung.at, rung.per))
    return at, per, rung.text, rung.decimals, rung.least, int(rung.cents)


def slider_data(facts: Facts, words: Words) -> tuple[dict[str, Any], tuple[Slider, ...]]:
    """Return what the page's script needs to redo the arithmetic, and the sliders to draw; empty without a plan.

    No slider is drawn where its price is free or unbilled.
    """
    answer = facts.answer
    knobs = knobs_of(facts, answer) if answer else None
    if answer is None or knobs is None:
        return {}, ()
    plans = [plan for plan in facts.fitting() if plan[ENERGY]]
    quantities = (
        "money", "unit_price", "days", "gpu_hours", "energy", "carbon", "percent", "plain", facts.amount_quantity,
    )  # fmt: skip
    quotes, owned = (
        {row["gpu"]: row for row in (facts.doc.get("money") or {}).get(name) or ()} for name in ("quotes", "owned")
    )
    own = {plan["precision"]: knobs_of(facts, plan) for plan in plans}
    data = {
        "asked": facts.asked,
        "gpu": answer["gpu"],
        "knobs": asdict(knobs),
        "plans": [
            _stated(
                base_of(plan, quotes.get(plan["gpu"]), owned.get(plan["gpu"])),
                _differing_knobs(plan_knobs, knobs),
                _at_least(facts, plan),
            )
            for plan in plans
            if (plan_knobs := own[plan["precision"]])
        ],
        "ladders": {name: [_rung(r) for r in words.ladder(name)] for name in quantities},
        "words": {
            key: words(key) for key in ("at_least", "range", "range.joint", "whatif.same", "whatif.moved", "none")
        },
        "at_least": _at_least(facts, answer),
    }
    drawn = sliders(knobs, words, facts.amount_quantity)
    # If power is free, the cost has no electricity part that could grow with its price; likewise unbilled GPUs.
    free = {"electricity"} if knobs.electricity == 0 and _lines(answer, "electricity") else set()
    free |= {"price"} if not knobs.price and answer[COST] else set()
    return data, tuple(slider for slider in drawn if slider.name not in free)

"""One precision on one kind of GPU: everything that its layouts are evaluated with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.cluster import Cluster
from planner.evaluation import Evaluation, Score, UnitPrices, evaluate, score
from planner.evidence import Estimate
from planner.layout import Layouts
from planner.parameters import Z90
from planner.precision import PrecisionPolicy
from planner.price import GpuPrice, SiteFacts
from planner.question import Question
from planner.rates import Draws, Rates, RateSet, Term, Value, resolve_rates
from planner.recipe import Recipe

LEAST_LOW = 0.001
"""Least low end over mid that is drawn: a range down to 0 has no logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Recipe, machines, rates and prices of one precision on one kind of GPU."""

    recipe: Recipe
    cluster: Cluster
    rates: RateSet
    mid: Rates
    """Mid values of `rates`."""
    price: GpuPrice
    site: SiteFacts
    tokens: float
    electricity_on: bool
    """Electricity is a line of its own (the user gave its price), or the only line where no GPU price is known."""

    @property
    def policy(self) -> PrecisionPolicy:
        """The precision policy."""
        return self.recipe.policy

    def unit_prices(self, draws: Draws | None = None) -> UnitPrices:
        """Unit prices at mid, or drawn between their ends."""
        price, site = self.price.usd_per_gpu_h, self.site
        electricity = site.electricity_usd_per_kwh if self.electricity_on else None
        return UnitPrices(
            usd_per_gpu_h=None if price is None else drawn(price, "price", draws),
            usd_per_kwh=None if electricity is None else drawn(electricity, "electricity", draws),
            pue=np.maximum(drawn(site.pue, "pue", draws), 1.0),  # no facility draws less than its machines
            kg_co2e_per_kwh=drawn(site.grid_kg_co2e_per_kwh, "grid", draws),
        )

    def evaluate(self, at: Layouts, draws: Draws | None = None) -> Evaluation:
        """Layouts at mid values, or one layout under draws."""
        rates = self.rates.sample(draws) if draws else self.mid
        return evaluate(self.recipe, self.cluster, at, rates, self.unit_prices(draws), self.tokens)

    def score(self, at: Layouts) -> Score:
        """Many layouts at mid values."""
        return score(self.recipe, self.cluster, at, self.mid, self.unit_prices(), self.tokens)


def drawn(estimate: Estimate, name: str, draws: Draws | None) -> Value:
    """An estimate as its mid, or as draws whose 5th, 50th and 95th percentile are its three figures."""
    if draws is None or estimate.low == estimate.high or estimate.mid <= 0:
        return estimate.mid
    z = draws.normal(name)
    up = np.log(estimate.high / estimate.mid) / Z90
    down = np.log(estimate.mid / max(estimate.low, estimate.mid * LEAST_LOW)) / Z90
    result: Value = estimate.mid * np.exp(np.where(z > 0, up, down) * z)
    return result


def make_case(
    question: Question,
    policy: PrecisionPolicy,
    cluster: Cluster,
    price: GpuPrice,
    site: SiteFacts,
    measured: Mapping[str, Term] | None = None,
) -> Case:
    """Put a case together; `measured` are terms from records of this GPU, which win over everything else."""
    recipe = question.recipe(policy, cluster)
    rates = resolve_rates(cluster, recipe, measured)
    return Case(
        recipe=recipe,
        cluster=cluster,
        rates=rates,
        mid=rates.sample(),
        price=price,
        site=site,
        tokens=question.tokens,
        electricity_on=question.money.electricity_usd_per_kwh is not None or price.usd_per_gpu_h is None,
    )

"""One precision on one kind of GPU, with everything that is needed to evaluate its layouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from planner.costs.bill import BillPrices, RunDraws, total_draws_usd
from planner.costs.prices import NO_LEDGER, GpuPrice, Ledger, SiteFacts
from planner.costs.quantity import DataSize, Energy
from planner.evidence import Z90, Estimate
from planner.hardware.cluster import CARDS_PER_MACHINE, Cluster
from planner.lazy import dataclass
from planner.parallelism.layout import Layout, Layouts
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.performance.evaluation import Evaluation, Score, UnitPrices, evaluate, memory_of, peak_bytes_of, score
from planner.performance.memory import MemoryItems, usable_bytes
from planner.performance.model_states import offloaded_bytes
from planner.performance.optimizer_step import paged_out_bytes
from planner.performance.shards import shard_params, trained_share
from planner.question.batch import tuning_band, tuning_batch
from planner.question.question import Question
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Parameters
from planner.rates.terms import Draws, Rates, RateSet, Term, Value
from planner.training.method import find_method
from planner.training.precision import PrecisionPolicy
from planner.training.recipe import Recipe
from planner.units import HOUR_S

Measured = Mapping[str, Mapping[str, Mapping[str, Term]]]
"""Terms from measurement records: by GPU id, then by policy id, then by term name."""

LEAST_LOW = 0.001
"""Smallest ratio of low to mid that is drawn: a range down to 0 has no logarithm."""
TIMED_UP_TO = 1.25
"""Ratio of needed to usable memory up to which a search still times a layout, where plans list the layouts that lost;
otherwise only layouts that fit are timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scored:
    """Every layout on a set of GPU counts, with its figures at mid."""

    counts: frozenset[int]
    layouts: Layouts
    scores: Score


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
    """Whether electricity is a separate line of the bill, because the user gave its price or owns the machines."""
    ledger: Ledger = NO_LEDGER
    """Costs of this GPU's hours beyond their price, and its embodied carbon."""
    memory_risk: float = 0.05
    """Highest probability of running out of memory that a layout may have."""
    detailed: bool = True
    """Whether plans carry full details: the contributions to their range, the layouts that lost, and the kernels and
    collectives used. The gain of a narrow type is always there."""
    embodied_on: bool = False
    """Whether to report carbon including GPU manufacturing as a second number. The SCI score includes it if it is
    known."""
    by_examples: bool = False
    """Whether the length of the run was given in examples and passes over them, not in tokens."""
    measured: Mapping[str, Term] | None = None
    """Terms from records of this GPU in this precision; `rates` already include them."""
    evaluation_cache: dict[tuple[Layout, Draws], Evaluation] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Cache of layouts evaluated under draws: a search asks for the evaluation of its winner again."""
    memory_cache: dict[tuple[Layout, Draws], MemoryItems] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Cache of peak memory under draws. Memory is computed before anything else: a layout at risk is not evaluated."""
    score_cache: dict[FixedLayout, list[_Scored]] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Cache of the layouts scored on sets of GPU counts: the curve covers many counts that the search has scored."""

    def trained_as(self, recipe: Recipe) -> Case:
        """Return the case of another recipe on the same GPUs; `measured` is kept only for the same precision policy."""
        measured = self.measured if recipe.policy.id == self.policy.id else None
        rates = resolve_rates(self.cluster, recipe, measured, self.rates.parameters)
        return replace(self, recipe=recipe, rates=rates, mid=rates.sample(), measured=measured)

    def on(self, gpus: int) -> Case:
        """Return the case for another number of GPUs; cards may then be in machines of another size."""
        cluster = self.cluster.holding(gpus)
        if cluster is self.cluster:
            return self
        rates = resolve_rates(cluster, self.recipe, self.measured, self.rates.parameters)
        return replace(self, cluster=cluster, rates=rates, mid=rates.sample())

    def with_usual_batch(self, gpus: int) -> Case:
        """Return the case with the default batch on a number of GPUs: that of a fine-tuning depends on it."""
        recipe = self.recipe
        if recipe.batch_band is None or not find_method(recipe.method).fine_tunes:
            return self
        batch = tuning_batch(gpus, recipe.how.sequences_per_example)
        if batch == recipe.global_batch:
            return self
        band = tuning_band(batch, in_backward=recipe.update_in_backward)
        return replace(self, recipe=replace(recipe, global_batch=batch, batch_band=band))

    @property
    def elsewhere(self) -> Case:
        """The case for any number of GPUs, with cards in full machines."""
        return self.on(CARDS_PER_MACHINE)

    @property
    def policy(self) -> PrecisionPolicy:
        """The precision policy."""
        return self.recipe.policy

    def unit_prices(self, draws: Draws | None = None) -> UnitPrices:
        """Return unit prices at mid, or drawn from their ranges."""
        price, site = self.price.usd_per_gpu_h, self.site
        electricity = site.electricity_usd_per_kwh if self.electricity_on else None
        return UnitPrices(
            usd_per_gpu_h=None if price is None else drawn(price, "price", draws),
            usd_per_kwh=None if electricity is None else drawn(electricity, "electricity", draws),
            pue=np.maximum(drawn(site.pue, "pue", draws), 1.0),  # no facility draws less than its machines
            kg_co2e_per_kwh=drawn(site.grid_kg_co2e_per_kwh, "grid", draws),
        )

    def evaluate(self, at: Layouts, draws: Draws | None = None) -> Evaluation:
        """Evaluate layouts at mid values, or a single layout under draws."""
        if draws is None:
            return self._evaluate(at, None)
        key = at.at(0), draws
        if key not in self.evaluation_cache:
            self.evaluation_cache[key] = self._evaluate(at, draws)
        return self.evaluation_cache[key]

    def memory(self, at: Layouts, draws: Draws) -> MemoryItems:
        """Return the peak memory of a single layout under draws."""
        key = at.at(0), draws
        if key not in self.memory_cache:
            self.memory_cache[key] = memory_of(self.recipe, at, self.rates.sample(draws))
        return self.memory_cache[key]

    def evaluate_ahead(self, layouts: Layouts, draws: Draws) -> None:
        """Evaluate several layouts under draws in one pass and cache the results for `evaluate`."""
        new = _unknown(layouts, draws, self.evaluation_cache)
        if len(new) < 2:
            return
        rates, prices = self.rates.sample(draws), self.unit_prices(draws)
        together = evaluate(self.recipe, self.cluster, layouts.take(new).column, rates, prices, self.tokens)
        for row, i in enumerate(new.tolist()):
            evaluation = together.of_row(row)
            self.memory_cache[layouts.at(i), draws] = evaluation.memory
            self.evaluation_cache[layouts.at(i), draws] = self._with_bill(layouts.only(i), evaluation, prices)

    def memory_ahead(self, layouts: Layouts, draws: Draws) -> None:
        """Compute the peak memory of several layouts under draws in one pass and cache the results for `memory`."""
        new = _unknown(layouts, draws, self.memory_cache)
        if len(new) < 2:
            return
        together = memory_of(self.recipe, layouts.take(new).column, self.rates.sample(draws))
        for row, i in enumerate(new.tolist()):
            self.memory_cache[layouts.at(i), draws] = together.of_row(row)

    def host_bytes(self, at: Layouts) -> float:
        """Return the bytes of offloaded or paged-out training state that one layout keeps in each host's memory."""
        held = float(np.max(offloaded_bytes(self.recipe, at)))
        if self.recipe.optimizer.paged:
            needed_bytes, room_bytes = peak_bytes_of(self.recipe, at, self.mid), usable_bytes(self.cluster.gpu)
            paged = paged_out_bytes(self.recipe, shard_params(self.recipe, at), at, needed_bytes, room_bytes)
            held += float(np.max(paged))
        return held * min(self.cluster.gpus_per_node, int(at.gpus[0]))

    def _evaluate(self, at: Layouts, draws: Draws | None) -> Evaluation:
        rates = self.rates.sample(draws) if draws else self.mid
        prices = self.unit_prices(draws)
        memory = self.memory(at, draws) if draws else None
        evaluation = evaluate(self.recipe, self.cluster, at, rates, prices, self.tokens, memory)
        return self._with_bill(at, evaluation, prices)

    def _with_bill(self, at: Layouts, evaluation: Evaluation, prices: UnitPrices) -> Evaluation:
        """Return the evaluation with the cost of all lines of the bill."""
        if not self.ledger.has_lines:
            return evaluation
        gpus = at.gpus.astype(np.float64)
        run = self.run_draws(gpus, evaluation.gpu_h, evaluation.energy.total, prices)
        return replace(evaluation, cost_usd=total_draws_usd(run, self.bill_prices))

    def score(self, at: Layouts, *, energy: bool = False) -> Score:
        """Score many layouts at mid, with energy if requested; layouts far too large are not timed (`TIMED_UP_TO`)."""
        prices, most_bytes = (
            self.unit_prices(),
            usable_bytes(self.cluster.gpu) * (TIMED_UP_TO if self.detailed else 1.0),
        )
        energy = energy or self.ledger.has_lines
        scores = score(self.recipe, self.cluster, at, self.mid, prices, self.tokens, most_bytes, energy=energy)
        timed = np.flatnonzero(np.isfinite(scores.wall_s))
        if not self.ledger.has_lines or not len(timed):
            return scores
        assert scores.energy_j is not None
        gpus = at.gpus[timed].astype(np.float64)
        run = self.run_draws(gpus, gpus * scores.wall_s[timed] / HOUR_S, scores.energy_j[timed], prices)
        cost_usd = np.full(len(at), np.inf)
        cost_usd[timed] = total_draws_usd(run, self.bill_prices)
        return replace(scores, cost_usd=cost_usd)

    def score_on(self, fixed: FixedLayout, counts: Iterable[int]) -> tuple[Layouts, Score]:
        """Return every layout on some numbers of GPUs with its scores at mid, reusing earlier scores.

        Args:
            fixed: the parts of the layout that the user fixed.
            counts: numbers of GPUs.

        Raises:
            UsageError: the fixed values contradict the model or each other.
        """
        blocks = self.score_cache.setdefault(fixed, [])
        missing, parts = set(counts), []
        for block in blocks:
            if known := missing & block.counts:
                missing -= known
                index = np.flatnonzero(np.isin(block.layouts.gpus, sorted(known)))
                parts.append((block.layouts.take(index), block.scores.take(index)))
        if missing or not parts:
            layouts = enumerate_layouts(
                self.recipe, self.cluster, fixed, gpus=np.array(sorted(missing), dtype=np.int64)
            )
            scores = self.score(layouts)
            blocks.append(_Scored(counts=frozenset(missing), layouts=layouts, scores=scores))
            parts.append((layouts, scores))
        if len(parts) == 1:
            return parts[0]
        return Layouts.joined([layouts for layouts, _ in parts]), Score.joined([scores for _, scores in parts])

    def fits(self, scores: Score) -> npt.NDArray[np.bool_]:
        """Return which layouts need no more memory at mid than a process can use, `[layout]`."""
        return np.asarray(scores.memory_bytes <= usable_bytes(self.cluster.gpu))

    @property
    def bill_prices(self) -> BillPrices:
        """The prices behind the lines of a bill."""
        site = self.site
        return BillPrices(
            gpu=self.price,
            usd_per_kwh=site.electricity_usd_per_kwh if self.electricity_on else None,
            electricity_evidence=() if site.electricity_evidence is None else (site.electricity_evidence.id,),
            ledger=self.ledger,
        )

    @property
    def checkpoint(self) -> DataSize:
        """The size of a checkpoint: the trained weights, their master weights and the optimizer states."""
        policy, optimizer = self.policy, self.recipe.optimizer
        per_param = policy.weight_bytes + policy.master_bytes
        per_param += optimizer.full_moments * policy.moment_bytes + optimizer.fixed_state_bytes
        return DataSize(size_bytes=self.recipe.model.params_total * trained_share(self.recipe) * per_param)

    def run_draws(self, gpus: Value, gpu_h: Value, energy_j: Value, prices: UnitPrices) -> RunDraws:
        """Return the quantities that a bill is made from, one amount per layout or per draw."""
        hours = np.asarray(gpu_h, dtype=np.float64)

        def like_hours(value: Value | None) -> npt.NDArray[np.float64] | None:
            return None if value is None else np.broadcast_to(np.asarray(value, dtype=np.float64), hours.shape)

        return RunDraws(
            gpus=gpus,
            gpu_h=hours,
            usd_per_gpu_h=like_hours(prices.usd_per_gpu_h),
            checkpoint=self.checkpoint,
            energy=Energy(j=np.broadcast_to(np.asarray(energy_j, dtype=np.float64), hours.shape)),
            usd_per_kwh=like_hours(prices.usd_per_kwh),
        )


def _unknown(layouts: Layouts, draws: Draws, known: Mapping[tuple[Layout, Draws], object]) -> npt.NDArray[np.intp]:
    """Return the indices of the layouts that `known` does not hold under the draws."""
    return np.array([i for i in range(len(layouts)) if (layouts.at(i), draws) not in known], dtype=np.intp)


def drawn(estimate: Estimate, name: str, draws: Draws | None) -> Value:
    """Return the mid of an estimate, or draws whose 5th, 50th and 95th percentiles are its three figures."""
    if draws is None or estimate.low == estimate.high or estimate.mid <= 0:
        return estimate.mid
    z = draws.normal(name)
    up = np.log(estimate.high / estimate.mid) / Z90
    down = np.log(estimate.mid / max(estimate.low, estimate.mid * LEAST_LOW)) / Z90
    result: Value = estimate.mid * np.exp(np.where(z > 0, up, down) * z)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesAndPrices:
    """What plans are made with besides the question: prices, facts of the site, and the user's own rates."""

    prices: Mapping[str, GpuPrice]
    """Price of a GPU-hour by GPU id, for every GPU of the question."""
    site: SiteFacts
    """PUE, electricity and grid."""
    ledgers: Mapping[str, Ledger] = field(default_factory=dict)
    """Costs of a GPU's hours beyond their price, by GPU id; a GPU that is left out has none."""
    measured: Measured = field(default_factory=dict)
    """Terms from measurement records, which take precedence over published and assumed rates."""
    parameters: Parameters | None = None
    """Parameters of a calibration; None: the shipped ones."""

    def case(
        self, question: Question, cluster: Cluster, policy: PrecisionPolicy | None = None, *, detailed: bool = True
    ) -> Case:
        """Return the case of one precision on one kind of GPU.

        Args:
            question: the question.
            cluster: machines of the GPU.
            policy: the precision; None: the requested one.
            detailed: see `Case.detailed`.
        """
        gpu, policy = cluster.gpu.id, question.policy if policy is None else policy
        return make_case(
            question, policy, cluster, self.prices[gpu], self.site, self.measured.get(gpu, {}).get(policy.id),
            self.ledgers.get(gpu, NO_LEDGER), parameters=self.parameters, detailed=detailed,
        )  # fmt: skip


def make_case(
    question: Question,
    policy: PrecisionPolicy,
    cluster: Cluster,
    price: GpuPrice,
    site: SiteFacts,
    measured: Mapping[str, Term] | None = None,
    ledger: Ledger = NO_LEDGER,
    *,
    parameters: Parameters | None = None,
    detailed: bool = True,
) -> Case:
    """Assemble a case.

    `measured` are terms from records of this GPU, which take precedence over everything else. `parameters` are those of
    a calibration; None: the shipped ones. `detailed`: see `Case.detailed`. Own machines take their price from the
    ledger; the electricity of their working hours is then a separate line of the bill.
    """
    recipe = question.recipe(policy, cluster)
    rates = resolve_rates(cluster, recipe, measured, parameters)
    return Case(
        recipe=recipe,
        cluster=cluster,
        rates=rates,
        mid=rates.sample(),
        price=price if ledger.owned is None else ledger.owned.without_energy,
        site=site,
        tokens=question.tokens,
        electricity_on=question.money.pays_electricity or ledger.owned is not None,
        ledger=ledger,
        memory_risk=question.memory_risk,
        detailed=detailed,
        embodied_on=question.money.embodied,
        by_examples=question.by_examples,
        measured=measured,
    )

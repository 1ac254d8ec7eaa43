"""The layout search on published runs: is its layout at least as fast, and is the published one among its best?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from planner.errors import UsageError
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.performance.evaluation import score
from planner.rates.ladder import resolve_rates
from planner.validation.setup import NO_PRICES, Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """Result of the search for one published run."""

    id: str
    gain: float
    """Step time of the published layout over that of the best found, both by the model; 1 or more: at least as fast."""
    rank: int
    """1 plus the number of splits (tp, pp, cp, ep) that are faster than the published split, each at its best."""
    layouts: int


def searchable(prepared: Prepared) -> bool:
    """Return whether the run states its split, and is a decoder on more than one GPU."""
    run = prepared.run
    return (
        run.group in ("throughput", "precision_pair")
        and prepared.recipe.model.kind == "decoder"
        and None not in (run.tp, run.pp, run.micro_batch)
        and (run.n_gpus or 1) > 1
        and not run.flag
    )


def search(prepared: Prepared) -> Searched | None:
    """Search all layouts on the run's own GPUs and batch; None where no layout divides evenly."""
    recipe, cluster = prepared.recipe, prepared.cluster
    published = prepared.layouts.at(0)
    try:
        layouts = enumerate_layouts(recipe, cluster, FixedLayout(), gpus=published.gpus)
    except UsageError:
        return None
    if not len(layouts):
        return None
    rates = resolve_rates(cluster, recipe).sample()
    own = score(recipe, cluster, prepared.layouts, rates, NO_PRICES, recipe.tokens_per_step)
    scores = score(recipe, cluster, layouts, rates, NO_PRICES, recipe.tokens_per_step)
    limit = max(cluster.gpu.memory_bytes, float(own.memory_bytes[0]))  # the run fitted: the search may use as much
    step = np.where(scores.memory_bytes <= limit * (1 + 1e-9), scores.step_s, np.inf)
    best: dict[tuple[int, ...], float] = {}
    for split, time in zip(zip(layouts.tp, layouts.pp, layouts.cp, layouts.ep, strict=True), step, strict=True):
        key = tuple(int(axis) for axis in split)
        best[key] = min(best.get(key, np.inf), float(time))
    published_split = (published.tp, published.pp, published.cp, published.ep)
    own_s = float(own.step_s[0])
    ours = min(best.get(published_split, np.inf), own_s)
    rank = 1 + sum(time < ours * (1 - 1e-9) for split, time in best.items() if split != published_split)
    return Searched(id=prepared.run.id, gain=own_s / min(min(best.values()), np.inf), rank=rank, layouts=len(layouts))


def search_all(runs: Iterable[Prepared]) -> list[Searched]:
    """Search once per distinct question (model, machines, batch, precision, published split)."""
    done: dict[object, Searched | None] = {}
    searches = []
    for prepared in runs:
        if not searchable(prepared):
            continue
        same = replace(prepared.run, id="", pair="", series="", tier="", flag="", group="", metric="step_time_s")
        key = (replace(same, source_kind="", framework="", flops_convention=""), prepared.framework.id)
        if key not in done:
            done[key] = search(prepared)
            if (result := done[key]) is not None:
                searches.append(result)
    return searches

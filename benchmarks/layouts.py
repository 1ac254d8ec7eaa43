"""Layouts evaluated per second on one core; the target is a million.

Every layout is counted for which itemised memory, step time, energy and cost are computed, feasible or not. Layouts
that the enumeration omits and the draws of a range are not counted. Two named baselines make the figure comparable
between machines:

- `plain Python`: the same equations for one layout at a time (`tests/planner/brute_force.py`), on a sample;
- `numpy copy`: how many 64-bit numbers are copied within the cache in the time of one layout.

Run it from the repository's root: `python -m benchmarks.layouts [rounds]`.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from planner.costs.prices import GpuPrice, SiteFacts
from planner.errors import Message
from planner.evidence import Estimate, Evidence, EvidenceKind
from planner.parallelism.layout import Layouts
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.performance.evaluation import CHUNK, Score, score
from planner.planning.case import Case, make_case
from planner.question.asked import Ask
from planner.question.resolve import resolve
from tests.planner.brute_force import OneLayout

QUESTIONS = {
    "70B in FP8 on 8 to 100 000 H100": {"params": "70B", "precision": "fp8"},
    "8B in BF16 on 8 to 100 000 A100": {"params": "8B", "precision": "bf16", "gpu": "a100-sxm4-80gb"},
    "DeepSeek-V3 in FP8 on 8 to 100 000 H100": {"model": "deepseek-v3", "precision": "fp8"},
}
FIXED = Evidence(id="fixed", kind=EvidenceKind.ASSUMED, what="a fixed value", source="this file")
SAMPLE = 200
"""Number of layouts that plain Python evaluates."""


def make(asked: dict[str, str]) -> tuple[Case, Layouts]:
    """Return a question with a price and a place, and all layouts that the search would consider."""
    question = resolve(Ask(texts=asked))
    machine = question.clusters[0]
    basis = Message.of("price.basis.given")
    price = GpuPrice(gpu=machine.gpu.id, usd_per_gpu_h=Estimate.exactly(2.5), basis=basis, evidence=())
    place = SiteFacts(
        pue=Estimate.exactly(1.25),
        electricity_usd_per_kwh=Estimate.exactly(0.08),
        grid_kg_co2e_per_kwh=Estimate.exactly(0.37),
        market_kg_co2e_per_kwh=None,
        pue_evidence=FIXED,
        grid_evidence=FIXED,
    )
    case = make_case(question, question.policy, machine, price, place)
    return case, enumerate_layouts(case.recipe, machine, FixedLayout(), gpus_between=(1, 100_000))


def per_second(count: int, work: Callable[[], object], rounds: int) -> float:
    """Return items per second, as the median of some rounds."""
    durations_s = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        durations_s.append(time.perf_counter() - start)
    return count / statistics.median(durations_s)


def plain(case: Case, layouts: Layouts) -> None:
    """Compute the same figures in plain Python, one layout at a time."""
    prices = case.unit_prices()
    for i in range(len(layouts)):
        layout = OneLayout(case.recipe, case.cluster, layouts.at(i), case.mid)
        layout.memory()
        layout.run(prices, case.tokens)


def everything(case: Case, layouts: Layouts) -> Score:
    """Return the scores of all layouts, including those whose memory would exclude them from a search's timing."""
    return score(case.recipe, case.cluster, layouts, case.mid, case.unit_prices(), case.tokens)


def copied(count: int) -> None:
    """Copy one column of numbers in chunks of the planner's size."""
    column, target = np.zeros(CHUNK), np.zeros(CHUNK)
    for _ in range(0, count, CHUNK):
        np.copyto(target, column)


def main(rounds: int) -> None:
    """Measure and print one line per question."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for name, asked in QUESTIONS.items():
        case, layouts = make(asked)
        everything(case, layouts)  # a first run without measuring
        ours = per_second(len(layouts), lambda case=case, layouts=layouts: everything(case, layouts), rounds)  # type: ignore[misc]
        sample = layouts.take(np.linspace(0, len(layouts) - 1, SAMPLE).astype(np.intp))
        loop = per_second(SAMPLE, lambda case=case, sample=sample: plain(case, sample), 3)  # type: ignore[misc]
        copy = per_second(50 * len(layouts), lambda layouts=layouts: copied(50 * len(layouts)), rounds)  # type: ignore[misc]
        sys.stdout.write(
            f"{ours:12,.0f} layouts/s  {ours / loop:6.0f} x plain Python  {copy / ours:6,.0f} numbers of a numpy copy  "
            f"{len(layouts):8,} layouts  {name}\n"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)

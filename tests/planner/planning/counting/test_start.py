"""Where the search for a number of GPUs starts: near the answer, without leaving out a plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.planning.counting import start
from planner.planning.counting.counts import fewest
from planner.planning.counting.search import CountSearch
from planner.planning.counting.start import Start, start_of
from planner.planning.targets import Targets, probability
from tests.planner.build import case_of
from tests.planner.planning.test_choice import DRAWS, FREE

QUESTIONS = [
    ({"params": "70B"}, 20),
    ({"params": "405B", "tokens": "8T"}, 60),
    ({"params": "70B", "gpu": "a100-sxm4-80gb", "global_batch": "1024"}, 60),
    ({"model": "deepseek-v3", "gpu": "h200-sxm-141gb"}, 60),
]


def search_of(asked, days):
    return CountSearch(case=case_of(**asked), fixed=FREE, draws=DRAWS, targets=Targets(deadline_s=days * 86400))


@pytest.mark.parametrize(("asked", "days"), QUESTIONS)
def test_the_fewest_gpus_looked_at_leave_no_plan_out(asked, days, monkeypatch):
    search = search_of(asked, days)
    started = start_of(search)
    choice = fewest(search.case, FREE, DRAWS, search.targets)
    monkeypatch.setattr(start, "MANY_NODES", 1 << 20)  # what the dense peak alone would take
    from_the_peak = start_of(search_of(asked, days))
    without = fewest(search.case, FREE, DRAWS, search.targets)

    assert 1.2 * from_the_peak.least < started.least <= choice.gpus
    assert from_the_peak.likely == from_the_peak.least
    assert without.winner.at(0) == choice.winner.at(0)


@pytest.mark.parametrize(("asked", "days"), QUESTIONS)
def test_the_likely_number_is_close_to_the_answer_where_the_batch_is_open(asked, days):
    search = search_of(asked, days)
    started = start_of(search)
    choice = fewest(search.case, FREE, DRAWS, search.targets)

    if "global_batch" in asked:
        assert started.likely == started.least
    else:
        assert started.least < 0.75 * choice.gpus
        assert 0.7 * choice.gpus < started.likely <= choice.gpus
        assert search.wall_ratio > 1.1  # so that the first range is compared under draws only where it may be in time


def test_without_a_deadline_one_gpu_may_be_enough():
    search = CountSearch(case=case_of(params="8B"), fixed=FREE, draws=DRAWS, targets=Targets())

    assert start_of(search) == Start(least=1, likely=1)


def test_a_start_above_the_answer_costs_no_plan(monkeypatch):
    search = search_of({"params": "70B"}, 20)
    monkeypatch.setattr(start, "FASTER_THAN_LEAN", 1e3)  # far more GPUs than a plan may take
    targets = replace(search.targets, most_gpus=4096)
    choice = fewest(search.case, FREE, DRAWS, targets)

    assert choice.gpus <= 4096
    assert probability(search.case.evaluate(choice.winner, DRAWS).wall_s, 20 * 86400) >= targets.confidence_ratio

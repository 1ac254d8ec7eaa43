"""The default suite and a verification on a fake H200, and what is asked of both afterwards.

Most of the time of a verification goes to the bookkeeping of memory, a second for each model: the short one has a
target of each of a few families, the whole one has them all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from planner.records.measurement import Measurement
from probes.record.options import Options
from probes.session.outcome import Outcome
from probes.session.suite import Session
from probes.timing.trial import ProbePlan
from probes.verify.cases import VerifyCase, targets
from probes.verify.run import verify
from tests.probes.fake_cuda.installed import fake_cuda
from tests.probes.fake_cuda.small import FaultyPoints
from tests.probes.fake_cuda.traced import traced

OUT_OF_MEMORY = "block/llama-3.1-405b/tp8/L4/s8192b1/bf16-fsdp"
UNCAPTURABLE = "gemm/1024x1024x1024/forward/bf16-autocast"
FEW = (("llama", "bf16-fsdp", False), ("bert", "bf16-autocast", False), ("llama", "fp8", True))
"""Families of the targets of a short verification: long models and wide ones, with and without compilation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """What came of it."""

    outcome: Outcome
    targets: int
    lines: dict[str, Measurement]
    suite_s: float
    verify_s: float
    expected_s: dict[str, float]
    """Of the suite, by workload."""
    took_s: dict[str, float]
    left_on_a_stream: bool
    second_lines: list[Measurement]
    """What a second verification gives."""
    second_verify_s: float


def few_targets(plan: ProbePlan) -> list[VerifyCase]:
    """The first of each of the few families."""
    planned = targets(plan)
    return [next(case for case in planned if case.family == family) for family in FEW]


def run_suite(folder: Path) -> SuiteRun:
    """Run the suite and a short verification."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("probes.verify.run.targets", few_targets)
        return replace(run_whole_suite(folder), targets=len(FEW))


def run_whole_suite(folder: Path) -> SuiteRun:
    """Run both, with memory that runs out once and a product that no graph holds."""
    faulty = FaultyPoints(out_of_memory={OUT_OF_MEMORY}, uncapturable={UNCAPTURABLE})
    with traced(), fake_cuda(faulty) as gpu:
        session = Session(Options(path=str(folder / "r.jsonl")))
        expected, took = _account(session)
        outcome = session.run()
        suite_s, suite_expected = session.elapsed_s, dict(expected)
        suite_took = dict(took)
        verify(session)
        verified_s = session.elapsed_s
        second_lines = verify(session)
        second_verify_s = session.elapsed_s - verified_s
        stray = gpu.stream is not gpu.default_stream
        session.close()
    return SuiteRun(
        outcome=outcome, targets=len(targets(session.plan)), lines=dict(session.ledger.known), suite_s=suite_s,
        verify_s=verified_s - suite_s,
        expected_s=suite_expected, took_s=suite_took, left_on_a_stream=stray,
        second_lines=second_lines, second_verify_s=second_verify_s,
    )  # fmt: skip


def _account(session: Session) -> tuple[dict[str, float], dict[str, float]]:
    """Expected and real time by workload, filled in while the session runs."""
    expected: dict[str, float] = Counter()
    took: dict[str, float] = Counter()
    measure = session.measure

    def measured(group: Any, *others: Any) -> Any:
        began_s = session.elapsed_s
        lines = measure(group, *others)
        name = group.points[0].workload
        expected[name] += group.estimate_s
        took[name] += session.elapsed_s - began_s
        return lines

    session.measure = measured  # type: ignore[method-assign]
    return expected, took

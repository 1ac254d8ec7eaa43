"""How long a pipeline takes."""

from __future__ import annotations

import pytest

from planner.measured.network.messages import pipeline_ratio


def test_a_pipeline_of_four_waits_three_eighths_of_its_work_with_eight_micro_batches() -> None:
    assert pipeline_ratio(4, 8) == pytest.approx(1 + 3 / 8)  # (p - 1) / m, arXiv:2104.04473, section 2.2.1


def test_two_stages_a_rank_halve_the_wait() -> None:
    assert pipeline_ratio(4, 8, virtual_stages=2) == pytest.approx(1 + 3 / 16)  # (p - 1) / (v m), section 2.2.2


def test_one_rank_never_waits() -> None:
    assert pipeline_ratio(1, 8) == 1.0


def test_every_micro_batch_waits_for_the_rank_with_most_work() -> None:
    """Two ranks of 0.8 and 1.2 s a micro-batch, eight of them: seven wait for the second, the first passes both."""
    assert 8 * pipeline_ratio(2, 8, slowest_ratio=1.2) == pytest.approx(7 * 1.2 + 0.8 + 1.2)

"""How long the ranks of a pipeline wait."""

from __future__ import annotations

import pytest

from planner.measured.network.messages import bubble_ratio


def test_a_pipeline_of_four_waits_three_eighths_of_its_work_with_eight_micro_batches() -> None:
    assert bubble_ratio(4, 8) == pytest.approx(3 / 8)  # (p - 1) / m, arXiv:2104.04473, section 2.2.1


def test_two_stages_a_rank_halve_the_wait() -> None:
    assert bubble_ratio(4, 8, virtual_stages=2) == pytest.approx(3 / 16)  # (p - 1) / (v m), section 2.2.2


def test_one_rank_never_waits() -> None:
    assert bubble_ratio(1, 8) == 0.0

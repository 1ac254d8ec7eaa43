"""The tables of `mpplan numerics`, also of an answer that was cut off."""

from __future__ import annotations

import pytest

from mpplan.commands.measuring.numerics_tables import numerics_text, percent

DOCUMENT = {
    "device_name": "Some CPU", "size": "small", "tasks": [{"id": "char-lm", "what": "a decoder", "parameters": 120704}],
    "loss_scaling": [], "histograms": [], "parity": [], "sensitivity": [], "policy": [], "schedule": [],
}  # fmt: skip
PAIR = {
    "precision": "nvfp4", "mode": "emulated", "difference_low": -0.01, "difference_mid": 0.002, "difference_high": 0.04,
    "verdict": "not_equivalent", "seeds_needed": None, "pairs": 3, "diverged": 1,
}  # fmt: skip
SCALING = {
    "task": "char-lm", "static": [{}] * 41, "largest_without_overflow_log2": 16, "smallest_with_overflow_log2": None,
    "dynamic": [{"name": "usual", "steps": 50, "skipped_step_ratio": 0.02, "steady_skipped_step_ratio": 1 / 2001}],
}  # fmt: skip


def test_an_answer_without_any_section_still_says_what_was_trained():
    assert numerics_text(DOCUMENT) == "Some CPU, small tasks\n  char-lm: a decoder, 120,704 parameters\n"


def test_a_pair_says_how_it_was_run_and_shouts_where_it_is_not_equal():
    parity = {"task": "char-lm", "metric": "loss", "margin": 0.02, "seeds": 4, "steps": 30, "pairs": [PAIR]}

    text = numerics_text(DOCUMENT | {"parity": [parity]})

    row = next(line for line in text.splitlines() if "nvfp4" in line)
    assert row.split("  ")[0] == "char-lm"
    for cell in ("emulated", "+0.002", "-0.01 … +0.04", "± 0.02", "NOT equivalent"):
        assert cell in row


def test_scales_are_powers_and_a_limit_that_was_not_found_is_none():
    text = numerics_text(DOCUMENT | {"loss_scaling": [SCALING]})

    assert "2^16" in text
    assert "none" in text
    assert "0.05 %" in text


@pytest.mark.parametrize(
    ("ratio", "shown"), [(None, "-"), (0.0, "0 %"), (3e-6, "<0.01 %"), (0.01234, "1.23 %"), (1.0, "100 %")]
)
def test_a_share_is_never_rounded_to_nothing(ratio, shown):
    assert percent(ratio) == shown

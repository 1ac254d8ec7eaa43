"""The rows of gradient compressions."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from planner.training.grad_compression import find_grad_compression, load_grad_compressions


def test_none_is_no_method_and_names_do_not_mind_punctuation():
    assert find_grad_compression("none") is None
    assert find_grad_compression("Power-SGD") is load_grad_compressions()["powersgd"]
    assert find_grad_compression("1-bit") is load_grad_compressions()["1bit"]
    with pytest.raises(UsageError):
        find_grad_compression("zip")


def test_every_row_quotes_its_papers_effect_on_accuracy():
    for row in load_grad_compressions().values():
        assert "published effect on accuracy: " in row.evidence.what
        assert "arXiv" in row.evidence.source
        assert bool(row.rank) != bool(row.sent_bits)


def test_the_bytes_of_1_bit_adam_over_a_run_are_what_its_paper_states_beside_fp16_gradients():
    row = load_grad_compressions()["1bit"]

    # w + (1 - w) / 16 of the volume, w = 15 % of the steps: 4.9 times fewer; the paper says up to 5
    run_ratio = 1 / (row.warmup_ratio + (1 - row.warmup_ratio) * row.sent_bits / 16)
    assert run_ratio == pytest.approx(row.published_bytes_ratio, rel=0.05)

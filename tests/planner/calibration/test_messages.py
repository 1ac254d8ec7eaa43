"""What was learned, in words: no more is said than the runs can tell."""

from __future__ import annotations

import pytest

from planner.calibration.messages import total_words, words_of
from planner.calibration.own_runs import LearnedTerm, Total
from planner.rates.parameters import Figure
from reports.text.messages import word


@pytest.mark.parametrize(
    ("told_as", "after", "within", "key"),
    [
        ("hidden", 0.8, 0.3, "learned.hidden_better"),
        ("hidden", 0.4, 0.3, "learned.hidden_worse"),
        ("", 0.8, 0.1, "learned.more"),
        ("", 0.4, 0.1, "learned.less"),
        ("", 0.8, 0.3, "learned.perhaps_more"),  # most teams' 0.6 is as likely
        ("", 0.4, 0.3, "learned.perhaps_less"),
        ("hidden", 0.61, 0.3, "learned.surer"),
    ],
)
def test_what_was_learned_is_worded_as_its_row_says(told_as, after, within, key):
    term = LearnedTerm(
        term="overlap_dp_ratio.tuned", name="overlap_dp_ratio", label="overlap", unit="ratio", before=(0.5, 0.6, 0.7),
        after=(after - within, after, after + within), told_as=told_as, bounded=False,
    )  # fmt: skip

    assert words_of(term).key == key


@pytest.mark.parametrize(("ratio", "key"), [(0.8, "learned.part_less"), (1.2, "learned.part_more")])
def test_what_is_learned_of_one_gpu_names_it(ratio, key):
    term = LearnedTerm(
        term="gpu_error_ratio.l40s", name="gpu_error_ratio", label="", unit="ratio", before=(0.8, 1.0, 1.2),
        after=(ratio - 0.1, ratio, ratio + 0.1), told_as="", bounded=False, member="l40s",
    )  # fmt: skip

    message = words_of(term)

    assert message.key == key
    assert dict(message.values)["name"] == "l40s"


@pytest.mark.parametrize(
    ("measured", "learned", "words"),
    [
        (0.88, 0.9, "take 12% less time than most teams'; with this calibration, plans of such runs take 10% less"),
        (1.002, 1.0, "take as much time as most teams'; with this calibration, plans of such runs take about as much"),
        (
            4.6,
            2.6,
            "take 4.6 times as much time as most teams'; "
            "with this calibration, plans of such runs take 2.6 times as much",
        ),
    ],
)
def test_a_total_is_told_in_the_form_that_fits_its_size(measured, learned, words):
    total = Total(figure=Figure.TIME, measured_ratio=measured, learned_ratio=learned)

    assert word(total_words(total)) == f"overall, your runs {words}"

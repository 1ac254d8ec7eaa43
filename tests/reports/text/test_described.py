from __future__ import annotations

from reports.text.described import described, rows_told
from reports.text.language import words_for

WORDS = words_for("en")


def test_a_chart_in_words_names_every_row_with_its_text():
    rows = [("FP8", "$1.2 million"), ("BF16", "$1.7 million")]

    assert rows_told(rows, WORDS) == "FP8: $1.2 million; BF16: $1.7 million"
    assert rows_told(rows, WORDS) in described(rows, WORDS)

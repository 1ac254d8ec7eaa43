"""The table of every task and precision that was trained."""

from __future__ import annotations

from reports.sections.safety.trained import trained_table
from reports.text.language import words_for
from tests.reports.sections.safety.shown import document_shown

EN = words_for("en")
SHOWN = document_shown()["numerics"]


def test_every_task_and_precision_has_its_row():
    table = trained_table(SHOWN, EN)

    assert table is not None
    texts = [[cell.text for cell in row.cells] for row in table.rows]
    assert [(row[0], row[1]) for row in texts] == [
        ("char-lm", "BF16"), ("char-lm", "FP16"), ("char-lm", "FP8, emulated"), ("char-lm", "NVFP4, emulated"),
        ("masked-lm", "BF16"), ("masked-lm", "FP8, emulated"), ("masked-lm", "NVFP4, emulated"),
    ]  # fmt: skip
    assert texts[0][2:] == ["+0.00001 (−0.00049 to +0.00051) nats", "equal within ±0.02", "31 steps, 3 pairs of runs"]
    assert trained_table(SHOWN | {"pairs": []}, EN) is None


def test_runs_that_ended_in_nan_are_counted_with_and_without_an_interval():
    partial = SHOWN["pairs"][0] | {"diverged": 3, "pairs": 5}
    all_of_them = partial | {"low": None, "mid": None, "high": None, "diverged": 8, "pairs": 0}
    table = trained_table(SHOWN | {"pairs": [partial, all_of_them]}, EN)

    assert table is not None
    assert table.rows[0].cells[2].text == "+0.00001 (−0.00049 to +0.00051) nats; 3 of 8 runs ended in NaN"
    assert table.rows[1].cells[2].text == "8 of 8 runs ended in NaN"

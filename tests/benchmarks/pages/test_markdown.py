"""Figures of written pages: the minus sign, no sign on zero, columns of figures on the right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.pages.markdown import percent, signed, table

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    ("ratio", "plain", "with_sign"),
    [
        (-0.057, "−5.7%", "−6%"),
        (0.103, "10.3%", "+10%"),
        (-0.0004, "0.0%", "0%"),
        (0.0, "0.0%", "0%"),
        (None, "–", "–"),
    ],
)
def test_a_negative_percentage_has_a_minus_sign_and_zero_has_none(ratio, plain, with_sign):
    assert (percent(ratio), signed(ratio)) == (plain, with_sign)


@pytest.mark.parametrize("cell", ["−10%", "+3%", "1,234", "–", "1.28 x", "7.1% / 25.5%", "1.2e−05"])
def test_a_column_of_figures_is_aligned_right(cell):
    assert table(("run", "error"), [("GPT-3", cell)]).splitlines()[1] == "|---|---:|"


def test_a_column_with_text_is_aligned_left_unless_the_leading_columns_of_text_are_counted():
    rows = [("h100", "bf16", "566 TFLOP/s")]

    assert table(("GPU", "type", "large"), rows).splitlines()[1] == "|---|---|---|"
    assert table(("GPU", "type", "large"), rows, text_columns=2).splitlines()[1] == "|---|---|---:|"


@pytest.mark.parametrize("page", ["accuracy.md", "checked.md", "claims.md", "kernels.md"])
def test_the_written_pages_have_no_hyphen_for_a_minus(page):
    text = (DOCS / page).read_text(encoding="utf-8")

    assert re.findall(r"(?<![\w`.–-])-\d[\d.,]*(?:%|(?= nats| points|,))", text) == []

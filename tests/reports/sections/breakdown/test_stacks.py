"""Bars made of parts: known items first, as many decimals as the smallest total needs, nothing of size 0."""

from __future__ import annotations

from reports.sections.breakdown.stacks import shown, stack_of
from reports.text.language import words_for
from reports.text.numbers import Rung

SECONDS = Rung(at=0.0, per=1.0, text="{} s", column="s")
PLANS = [
    {"items": {"total": 2.5, "attention": 0.5, "products": 2.0, "copies": 0.0}},
    {"items": {"total": 25.0, "novelty": 5.0, "products": 20.0}},
]


def stack():
    return stack_of(PLANS, lambda plan: plan["items"], "step", ("products", "attention", "copies"), SECONDS)


def test_known_items_come_in_their_order_unknown_ones_after_and_empty_ones_not_at_all():
    assert stack().names == ("products", "attention", "novelty")


def test_the_smallest_total_gets_three_digits_and_all_sizes_its_decimals():
    assert stack().decimals == 2
    assert shown(stack(), 20.0, words_for("en")) == "20.00 s"

"""The glossary explains what an answer prints: each symbol of the layout line, policy, stack and kind of evidence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from planner.evidence import EvidenceKind
from planner.parallelism.layout import ACT_CKPT, Layout
from planner.training.frameworks import named_stacks
from planner.training.policies import load_policies
from planner.training.precision import EXTRA_PRECISIONS, PRECISIONS
from planner.training.recipe import STACKS
from reports.sections.comparison.layout import AXES, layout_text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
TERMS = re.findall(r"\*\*([^*]+)\*\*", PAGE)
WORKED = Layout(tp=4, pp=7, vp=1, cp=1, ep=1, dp=16, zero=1, micro_batch=2, grad_accum=32, act_ckpt="none")


def table_below(words: str) -> list[list[str]]:
    """The first cells of the table that follows these words, as the words in code marks that they hold."""
    lines = PAGE[PAGE.index(words) :].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(re.findall(r"`([^`]+)`", line.split("|")[1]))
    return rows


def as_document(layout: Layout) -> dict[str, object]:
    return {axis: getattr(layout, axis) for axis in AXES}


def test_every_symbol_that_a_layout_line_can_have_is_explained():
    full = Layout(tp=4, pp=7, vp=10, cp=2, ep=8, dp=16, zero=3, micro_batch=2, grad_accum=32, act_ckpt="none")
    printed = {re.match(r"[A-Za-z]+", word).group(0) for word in layout_text(as_document(full)).split()}
    explained = {re.match(r"[A-Za-z]+", symbol).group(0) for (symbol,) in table_below("## The layout line")}

    assert printed == explained == {"TP", "PP", "VP", "CP", "EP", "DP", "ZeRO", "MB"}


def test_the_worked_line_is_what_such_a_layout_prints_with_its_gpus_and_its_batch():
    assert f"Layout {layout_text(as_document(WORKED))}; memory" in PAGE
    assert f"4 × 7 × 16 = {WORKED.gpus}." in PAGE
    assert f"16 × 2 × 32 = {WORKED.global_batch:,};" in PAGE
    assert f"with 4,096 tokens each, {WORKED.global_batch * 4096 / 1e6:.1f} million" in PAGE


def test_every_stack_is_explained():
    assert sorted(table_below("**Stack**")) == sorted([stack] for stack in (*STACKS, *named_stacks()))


def test_every_kind_of_evidence_is_explained_best_first():
    assert table_below("**Evidence**") == [[kind.value] for kind in EvidenceKind]


def test_every_part_of_the_name_of_a_policy_is_explained():
    words = {word for row in table_below("**Policy**") for word in row}
    rest = {name: name for name in load_policies()}
    for name in rest:
        for word in sorted(words, key=len, reverse=True):
            rest[name] = re.sub(rf"(^|-){word}(?=-|$)", "", rest[name])

    assert set(PRECISIONS + EXTRA_PRECISIONS) <= words
    assert {name: left for name, left in rest.items() if left} == {}


@pytest.mark.parametrize(
    "term",
    ["MFU", "HFU", "Goodput", "Knee", "Step", "GPU-hour", "Policy", "Stack", "Lineage", "At confidence", "Memory risk",
     "Evidence", "The figure to budget with", "PUE", "Peak power", "Gap", "Assumption", "≥"],
)  # fmt: skip
def test_a_term_has_its_entry(term):
    assert term in TERMS


def test_the_ways_to_recompute_are_named():
    assert [way for way in ACT_CKPT if f"`{way}`" not in PAGE] == []

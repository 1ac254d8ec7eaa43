"""Why FP16 and BF16 differ: named when their steps do, with the reason that the document gives."""

from __future__ import annotations

from typing import Any

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.comparison.bf16_fp16 import apart_notes
from reports.text.language import words_for
from tests.reports import sample

WORDS = words_for("en")


def notes_of(
    fp16: dict[str, Any], layout: dict[str, Any] | None = None, assumption: str = "", policy: str = "fp16"
) -> tuple[str, ...]:
    """The notes when items of FP16's step, and perhaps its layout and recipe, differ from BF16's."""
    document = sample.document()
    plans = {plan["precision"]: plan for plan in document["plans"]}
    bf16 = plans["bf16"]
    step = bf16["step_s"] | fp16
    step["total"] = sum(size for name, size in step.items() if name != "total")
    plans["fp16"] |= {"step_s": step, "layout": bf16["layout"] | (layout or {}), "fits": True, "policy": policy}
    if assumption:
        document["assumptions"].append(
            {"id": "dispatcher", "text": "", "text_message": {"key": assumption, "values": {}}, "change_with": None}
        )
    facts = Facts(checked(document))
    return apart_notes(facts, facts.plans(), WORDS)


def bf16_step(item: str) -> float:
    return float(next(plan for plan in sample.document()["plans"] if plan["precision"] == "bf16")["step_s"][item])


def test_equal_steps_need_no_reason():
    assert notes_of({}) == ()


def test_the_item_that_differs_is_named_with_both_times_and_the_recipes():
    total = bf16_step("total")
    (note,) = notes_of({"dp_comm": bf16_step("dp_comm") + 0.5 * total})
    assert "data parallel communication" in note
    assert "recipes, fp16 and bf16" in note


def test_an_item_that_no_recipe_decides_is_named_alone():
    (note,) = notes_of({"pp_comm": bf16_step("pp_comm") + 0.5 * bf16_step("total")})
    assert "pipeline communication" in note
    assert "recipes" not in note


def test_other_layouts_are_named_in_place_of_an_item():
    (note,) = notes_of({"matmul": bf16_step("matmul") + 0.5 * bf16_step("total")}, layout={"vp": 3})
    assert "best layouts differ" in note
    assert "VP3" in note


def test_experts_that_only_bf16_reaches_cheaply_are_the_reason():
    slower = {"ep_comm": 0.5 * bf16_step("total")}
    (note,) = notes_of(slower, assumption="assumption.sent_once")
    assert "DeepEP" in note
    (other,) = notes_of(slower, assumption="assumption.sent_to_each")
    assert "DeepEP" not in other


def test_deepep_is_not_blamed_for_an_item_that_it_does_not_change():
    (note,) = notes_of({"pp_comm": 0.5 * bf16_step("total")}, assumption="assumption.sent_once")
    assert "DeepEP" not in note


def test_recipes_with_the_same_types_are_not_blamed():
    slower = {"matmul": bf16_step("matmul") + 0.5 * bf16_step("total")}
    (other,) = notes_of(slower, layout={"vp": 3})
    (same,) = notes_of(slower, layout={"vp": 3}, policy="fp16-megatron")
    assert "recipes" in other
    assert "recipes" not in same


def test_layouts_that_differ_only_in_checkpointing_are_told_apart_by_it():
    slower = {"recompute": bf16_step("total")}
    (note,) = notes_of(slower, layout={"act_ckpt": "every-2"})
    first, second = note.partition("best layouts differ: ")[2].split(" with ")[:2]

    assert "checkpointing" in first
    assert "checkpointing" in second

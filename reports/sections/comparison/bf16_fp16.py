"""Why the plans of BF16 and FP16 differ: both multiply equally fast, so the reason lies elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from planner.answer.plan import STEP_ITEMS
from planner.training.policies import load_policies
from reports.document.facts import Doc, Facts
from reports.sections.comparison.layout import global_batch, text_apart_from
from reports.text.language import Words
from reports.text.numbers import magnitude, rung_for

EQUALLY_FAST = ("fp16", "bf16")
"""Formats that every GPU with both multiplies at the same rate."""
NOTABLE_RATIO = 0.05
"""Smallest difference between two steps that is explained."""
SET_BY_RECIPE = ("dp_comm", "memory_bound", "optimizer")
"""Items of a step that depend on the types in which a recipe keeps and sends tensors."""

KEPT_OR_SENT = ("weight_bytes", "master_bytes", "gradient_bytes", "reduce_bytes", "gather_bytes")
"""Bytes per element of a recipe that make two steps differ."""


def apart_notes(facts: Facts, plans: Sequence[Doc], words: Words) -> tuple[str, ...]:
    """Say what makes FP16 and BF16 differ, if both are among the plans and their steps differ notably."""
    both = [plan for plan in plans if plan["precision"] in EQUALLY_FAST and plan["fits"] and plan["step_s"]]
    if len(both) < len(EQUALLY_FAST):
        return ()
    fast, slow = sorted(both, key=lambda plan: float(plan["step_s"]["total"]))
    if slow["step_s"]["total"] < fast["step_s"]["total"] * (1.0 + NOTABLE_RATIO) or _batches_differ(slow, fast):
        return ()
    values = {"slow": words.name("precision", slow["precision"]), "fast": words.name("precision", fast["precision"])}
    item = max(STEP_ITEMS, key=lambda name: float(slow["step_s"].get(name, 0.0)) - float(fast["step_s"].get(name, 0.0)))
    alike = slow["layout"] == fast["layout"]
    if alike:
        note = words("apart.item", **values, **_seconds(slow, fast, item, words))
    else:
        slow_layout, fast_layout = (
            text_apart_from(own["layout"], other["layout"], words) for own, other in ((slow, fast), (fast, slow))
        )
        note = words("apart.layouts", **values, slow_layout=slow_layout, fast_layout=fast_layout)
    reason = None
    if fast["precision"] == "bf16" and _sends_once(facts) and (item == "ep_comm" or not alike):
        reason = words("apart.experts")
    elif (item in SET_BY_RECIPE or not alike) and _types_differ(slow, fast):
        reason = words("apart.recipe", slow_policy=slow["policy"], fast_policy=fast["policy"])
    return (note if reason is None else words("apart.because", note=note, reason=reason),)


def _types_differ(slow: Doc, fast: Doc) -> bool:
    """Return whether two known recipes keep or send weights or gradients in types of different widths."""
    known = load_policies()
    if slow["policy"] not in known or fast["policy"] not in known:
        return False
    return any(getattr(known[slow["policy"]], kept) != getattr(known[fast["policy"]], kept) for kept in KEPT_OR_SENT)


def _batches_differ(slow: Doc, fast: Doc) -> bool:
    return global_batch(slow) != global_batch(fast)


def _seconds(slow: Doc, fast: Doc, item: str, words: Words) -> dict[str, str]:
    """Return the name of an item and its time in both steps, with two digits of the longer one."""
    longer, shorter = float(slow["step_s"][item]), float(fast["step_s"].get(item, 0.0))
    rung = rung_for(words.ladder("seconds"), longer)
    decimals = max(0, 1 - magnitude(longer / rung.per))
    slow_s, fast_s = (rung.text.format(words.fixed(size, rung, decimals)) for size in (longer, shorter))
    return {"item": words.name("step", item), "slow_s": slow_s, "fast_s": fast_s}


def _sends_once(facts: Facts) -> bool:
    """Return whether BF16 reaches experts through DeepEP, as the assumptions say."""
    return any(entry["text_message"]["key"] == "assumption.sent_once" for entry in facts.doc["assumptions"])

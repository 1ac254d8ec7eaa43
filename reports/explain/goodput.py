"""The goodput of a plan as a node: the share left by failures and checkpoints, times the share of steps not skipped."""

from __future__ import annotations

from reports.document.facts import Doc
from reports.document.text_facts import is_of_skipped_steps
from reports.explain.derivation import Node

NOTE = "failures, restarts, repeated steps, checkpoints, evaluation and start-up"


def goodput_node(plan: Doc, evidence: tuple[str, ...], power: int = 1) -> Node:
    """Return the share of the hours that advances the training.

    Args:
        plan: a plan with its figures; has `skipped_step_ratio` if training showed how many steps loss scaling skips.
        evidence: ids of the sources of the goodput in the plan's precision.
        power: -1 if the parent divides by it.
    """
    stated = plan["goodput_ratio"] or {"low": None, "mid": 1.0, "high": None}
    skipped = plan.get("skipped_step_ratio")
    if skipped is None:
        return Node(
            label="Goodput", value=stated["mid"], low=stated["low"], high=stated["high"], power=power, note=NOTE,
            evidence=evidence,
        )  # fmt: skip
    of_skips = tuple(name for name in evidence if is_of_skipped_steps(name))
    useful = 1.0 - skipped
    others = Node(
        label="Goodput without skipped steps", value=stated["mid"] / useful, note=NOTE,
        evidence=tuple(name for name in evidence if name not in of_skips),
    )  # fmt: skip
    made_again = Node(
        label="Share of steps that are not skipped", value=useful, evidence=of_skips,
        note=f"{skipped:.3%} of the steps are skipped because of loss-scale overflows and repeated",
    )  # fmt: skip
    return Node(
        label="Goodput", value=stated["mid"], low=stated["low"], high=stated["high"], power=power,
        formula="goodput without skipped steps × share of steps that are not skipped", how="product",
        children=(others, made_again),
    )  # fmt: skip

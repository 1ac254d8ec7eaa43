"""What `mpplan numerics` trains, by kind: text says more of a language model than pictures do, and the other way round.

The tasks are those of `probes/numerics/tasks`; a test holds the two together.
"""

from __future__ import annotations

LANGUAGE, VISION = "language", "vision"

KIND_OF_TASK = {
    "char-lm": LANGUAGE, "char-moe": LANGUAGE, "masked-lm": LANGUAGE, "digits-cnn": VISION, "digits-vit": VISION,
}  # fmt: skip


def plan_kind(*, sees_images: bool) -> str:
    """The kind of task that is like a plan's model.

    Args:
        sees_images: whether the model's samples are images.
    """
    return VISION if sees_images else LANGUAGE


def is_of(task: str | None, kind: str) -> bool:
    """Whether a task is surely of a kind; a task of the user's own is of none that we know."""
    return KIND_OF_TASK.get(task or "") == kind


def suits(task: str | None, kind: str) -> bool:
    """Whether a task may stand for a plan: it is of the plan's kind, or the user's own choice."""
    return KIND_OF_TASK.get(task or "", kind) == kind

"""Tasks of `mpplan numerics` by kind, since a task on text says more about a language model than one on images.

The same holds the other way round. The tasks are those of `probes/numerics/tasks`; a test keeps the two lists equal.
"""

from __future__ import annotations

LANGUAGE, VISION = "language", "vision"

KIND_OF_TASK = {
    "char-lm": LANGUAGE, "char-moe": LANGUAGE, "masked-lm": LANGUAGE, "digits-cnn": VISION, "digits-vit": VISION,
}  # fmt: skip


def plan_kind(*, sees_images: bool) -> str:
    """Kind of task that is like a plan's model.

    Args:
        sees_images: whether the model's samples are images.
    """
    return VISION if sees_images else LANGUAGE


def is_of(task: str | None, kind: str) -> bool:
    """Whether a task is certainly of a kind; the kind of a user's own task is unknown."""
    return KIND_OF_TASK.get(task or "") == kind


def suits(task: str | None, kind: str) -> bool:
    """Whether a task may represent a plan: it is of the plan's kind, or the user's own task."""
    return KIND_OF_TASK.get(task or "", kind) == kind

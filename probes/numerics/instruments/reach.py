"""Which parts of a task's model a precision reaches, determined before any training in it."""

from __future__ import annotations

from dataclasses import asdict

from probes.numerics.instruments.time import Keep, Plain
from probes.numerics.lowering.applied import applied
from probes.numerics.lowering.recipes import LowerRecipe
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run


def reach(task: Task, place: Place, recipe: LowerRecipe, keep: Keep) -> Plain:
    """Return the fields of `Applied` as a plain document, determined once, in one forward pass from new weights.

    Args:
        task: what is trained.
        place: device and size.
        recipe: the lower precision.
        keep: stores the answer.
    """

    def work() -> Plain:
        run = Run(task, 0, place)
        run.lower(recipe)
        return asdict(applied(run.job.model, run.switches, recipe, lambda: run.loss(run.job.batch(0))))

    return keep(f"{recipe.id}/applied", work)

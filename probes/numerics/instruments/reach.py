"""What a precision reaches in the model of a task: asked before anything is trained in it."""

from __future__ import annotations

from dataclasses import asdict

from probes.numerics.instruments.time import Keep, Plain
from probes.numerics.lowering.applied import applied
from probes.numerics.lowering.recipes import LowerRecipe
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run


def reach(task: Task, place: Place, recipe: LowerRecipe, keep: Keep) -> Plain:
    """The fields of `Applied` as a plain document; looked at once, in one forward pass from new weights.

    Args:
        task: what is trained.
        place: where.
        recipe: the lower precision.
        keep: keeps the answer.
    """

    def work() -> Plain:
        run = Run(task, 0, place)
        run.lower(recipe)
        return asdict(applied(run.job.model, run.switches, recipe, lambda: run.loss(run.job.batch(0))))

    return keep(f"{recipe.id}/applied", work)

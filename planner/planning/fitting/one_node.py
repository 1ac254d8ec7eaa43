"""Whether one node holds a run, which decides the usual stack of a fine-tuning, whatever the number of GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from planner.hardware.cluster import Cluster, cards_of_one_machine
from planner.parallelism.search import enumerate_layouts
from planner.performance.evaluation import peak_bytes_of
from planner.performance.memory import memory_risk
from planner.planning.risk import RISK_DRAWS
from planner.question.inputs import DEFAULT_MEMORY_RISK, MEMORY_RISK
from planner.question.question import Question
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Parameters
from planner.rates.terms import Term
from planner.training.recipe import Recipe

MOST_LEAN = 3
"""Number of layouts whose risk is drawn: those that need the least memory at mid."""

LEAN_LOSS = "fused"
"""Loss that never holds all logits. The usual stack of one node takes it with one switch: Liger's kernels in the
`TrainingArguments` of Hugging Face (its documentation of `use_liger_kernel`)."""


def with_its_losses(question: Question) -> Iterator[Question]:
    """Yield the question with the loss of its stack, then, where the user chose no loss, with the lean loss."""
    yield question
    if question.tuning.loss is None:
        yield replace(question, tuning=replace(question.tuning, loss=LEAN_LOSS))


def held_by_a_node(
    question: Question,
    cluster: Cluster,
    measured: Mapping[str, Term] | None = None,
    parameters: Parameters | None = None,
) -> bool:
    """Return whether a layout of the requested precision on one node is safe; True for a GPU that lacks that precision.

    For cards that are sold one by one, a full machine is a node, whatever part of it is requested. The run decides, not
    its layout: the question's layout counts only by the sizes that split a model, its batch is rounded up so that at
    least one sequence falls to each GPU, and the risk limit is the usual one.

    Args:
        question: the question.
        cluster: one kind of GPU.
        measured: terms from records of this GPU in the requested precision.
        parameters: those of a calibration; None: the shipped ones.
    """
    if question.why_unable(question.policy, cluster.gpu) is not None:
        return True
    cluster = replace(cluster, gpus_per_node=cards_of_one_machine(cluster.gpu, None) or cluster.gpus_per_node)
    recipe = _evenly(question.recipe(question.policy, cluster), cluster.gpus_per_node)
    fixed = replace(question.fixed, micro_batch=None, zero=None, act_ckpt=None, dp=None)
    layouts = enumerate_layouts(recipe, cluster, fixed, gpus=np.array([cluster.gpus_per_node], dtype=np.int64))
    if not len(layouts):
        return False
    rates = resolve_rates(cluster, recipe, measured, parameters)
    needed_bytes = np.broadcast_to(peak_bytes_of(recipe, layouts, rates.sample()), len(layouts))
    drawn, usual_risk = rates.sample(RISK_DRAWS), MEMORY_RISK.parse(DEFAULT_MEMORY_RISK, MEMORY_RISK.flag)
    return any(
        memory_risk(peak_bytes_of(recipe, layouts.only(int(i)), drawn), cluster.gpu) <= usual_risk
        for i in np.argsort(needed_bytes, kind="stable")[:MOST_LEAN]
    )


def _evenly(recipe: Recipe, gpus: int) -> Recipe:
    """Return the recipe with a batch that divides over a number of GPUs: the given batch, rounded up."""
    if recipe.batch_band is not None:
        return recipe
    step = gpus * recipe.how.sequences_per_example
    return replace(recipe, global_batch=-(-recipe.global_batch // step) * step)

"""Ways to train with less memory: each is one flag that is put into a question or taken out of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planner.errors import Message
from planner.lazy import dataclass
from planner.parallelism.search import FixedLayout
from planner.performance.memory import usable_bytes
from planner.planning.case import Case
from planner.question.question import Question
from planner.training.optimizers import find_optimizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A change of one input to another value."""

    input: str
    value: str | int | None
    """The new value; None: the flag is left out."""
    was: str | int = ""
    """The value that was given, where the flag is left out."""

    @property
    def flag(self) -> Message:
        """The flag to add or to leave out, as a message."""
        if self.value is None:
            return Message.of("hint.without", input=self.input, value=self.was)
        return Message.of("flag.with_value", input=self.input, value=self.value)

    def taken(self, case: Case, fixed: FixedLayout) -> tuple[Case, FixedLayout]:
        """Return a case and the fixed parts of its layout with this way taken."""
        recipe, value = case.recipe, str(self.value)
        if self.input == "loss":
            return case.trained_as(replace(recipe, chunked_loss=True, fused_head=True)), fixed
        if self.input == "optimizer":
            return case.trained_as(replace(recipe, optimizer=find_optimizer(value))), fixed
        if self.input == "offload":
            return case.trained_as(replace(recipe, offload=value)), fixed
        return case, self._fixing(fixed)

    def apply(self, question: Question) -> Question:
        """Return a question with this way taken."""
        if self.input == "loss":
            return replace(question, tuning=replace(question.tuning, loss=str(self.value)))
        if self.input == "optimizer":
            return replace(question, optimizer=find_optimizer(str(self.value)))
        if self.input == "offload":
            return replace(question, offload=str(self.value))
        return replace(question, fixed=self._fixing(question.fixed))

    def _fixing(self, fixed: FixedLayout) -> FixedLayout:
        return replace(fixed, **{self.input: self.value})  # type: ignore[arg-type]  # a column of the layout


def leaner(case: Case, fixed: FixedLayout) -> Iterator[Way]:
    """Yield ways that would need less memory and are not taken yet; a vision model has no other layout."""
    recipe = case.recipe
    if not recipe.model.has_network:
        if has_large_logits(case):
            yield Way(input="loss", value="fused")
        for name in given(case, fixed, "tp", "pp", "zero"):
            yield Way(input=name, value=None, was=getattr(fixed, name))
        if fixed.act_ckpt not in (None, "full"):
            yield Way(input="act_ckpt", value=None, was=str(fixed.act_ckpt))
    if fixed.micro_batch not in (None, 1):
        yield Way(input="micro_batch", value=1)
    if recipe.model.has_network:
        return
    if recipe.offload != "optimizer":
        yield Way(input="offload", value="optimizer")
    if recipe.optimizer.full_moments and not recipe.how.adapts:  # adapters have almost no optimizer states
        yield Way(input="optimizer", value="adamw-8bit")


LARGE_LOGITS = 0.1
"""Share of a GPU's memory from which the logits of one sequence are worth a hint."""


def has_large_logits(case: Case) -> bool:
    """Return whether computing the loss in pieces would save a good part of the memory."""
    recipe = case.recipe
    logits_bytes = recipe.seq_len * recipe.model.vocab * float(np.ravel(case.mid.logit_stored_bytes)[0])
    return not recipe.fused_head and logits_bytes > LARGE_LOGITS * usable_bytes(case.cluster.gpu)


def given(case: Case, fixed: FixedLayout, *names: str) -> tuple[str, ...]:
    """Return which parts of a layout the user fixed; sizes of 1 do not count where the method or model implies them."""
    recipe = case.recipe
    as_usual = (None, 1) if recipe.how.fine_tunes or recipe.model.has_network else (None,)
    return tuple(name for name in names if getattr(fixed, name) not in (as_usual if name != "micro_batch" else (None,)))

"""Ways to fine-tune that fit on the given GPUs, for a refusal: the smallest change to the question comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from planner.errors import Message, UsageError
from planner.lazy import dataclass
from planner.parallelism.search import enumerate_layouts
from planner.performance.memory import usable_bytes
from planner.planning.case import Case
from planner.planning.fitting.lean import needs_messages
from planner.planning.fitting.neighbours import next_above
from planner.planning.fitting.one_node import LEAN_LOSS, held_by_a_node, with_its_losses
from planner.planning.fitting.variants import Variant, asked_as, changes, given_loss, variants_of
from planner.planning.fitting.ways import Way, has_large_logits, leaner
from planner.planning.risk import MOST_HOST_BYTES, WORTH_TRYING, risk_of
from planner.question.question import Question
from planner.training.method import find_method
from planner.units import GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A way to train, and the flags that turn the question into it."""

    flags: tuple[Message, ...]
    apply: Callable[[Question], Question]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """Collects the changes that make a question fit, with the text of a refusal for each."""

    question: Question
    case: Case
    gpus: int
    ways: list[Message]
    fitting: list[frozenset[Message]]
    """Flags of the ways that fit."""

    def try_changes(self, candidates: Iterable[_Change]) -> bool:
        """Try some changes, except those that include one that is enough; return whether any way fits by now."""
        for change in candidates:
            flags = frozenset(change.flags)
            if flags and not any(enough <= flags for enough in self.fitting):
                way = self._fitting_way(change)
                if way is not None:
                    self.ways.append(way)
                    self.fitting.append(flags)
        return bool(self.ways)

    def _fitting_way(self, change: _Change) -> Message | None:
        """Return a change with its needs and risk; None where it does not fit, or its risk is not worth a try."""
        changed, cluster = self._as_planned(change.apply), self.case.cluster
        if changed.why_unable(changed.policy, cluster.gpu) is not None:
            return None
        changed_case = self.case.trained_as(changed.recipe(changed.policy, cluster))
        try:
            layouts = enumerate_layouts(changed_case.recipe, cluster, changed.fixed, gpus=self.gpus)
        except UsageError:  # the fixed parts of the layout exclude it
            return None
        if not len(layouts):
            return None
        needed_bytes = changed_case.score(layouts).memory_bytes
        leanest = int(np.argmin(needed_bytes))
        if needed_bytes[leanest] > usable_bytes(cluster.gpu):
            return None
        risk, host_bytes = risk_of(changed_case, layouts.only(leanest)), changed_case.host_bytes(layouts.only(leanest))
        if risk > max(self.case.memory_risk, WORTH_TRYING) or host_bytes > MOST_HOST_BYTES:
            return None
        needed = Message.of("hint.needs_gib", needed_gib=float(needed_bytes[leanest]) / GIB)
        key = "hint.way_without" if change.flags[0].key == "hint.without" else "hint.way"
        return Message.of(key, flags=change.flags, needs=(needed, *needs_messages(self.case, host_bytes, risk)))

    def _as_planned(self, apply: Callable[[Question], Question]) -> Question:
        """Return the question of a way as planned: with the stack and loss of one node, where a node holds it."""
        if self.question.on_a_node is not None:
            for with_loss in with_its_losses(apply(self.question.on_a_node)):
                if held_by_a_node(with_loss, self.case.cluster, parameters=self.case.rates.parameters):
                    return with_loss
        return apply(self.question)


def ways_that_fit(question: Question, case: Case, gpus: int) -> tuple[Message, ...]:
    """Return the ways to train that fit on a number of GPUs, as flags with what they need and risk.

    The smallest changes come first: a leaner loss, a given flag left out, more kept on the host, or two of these where
    none is enough alone. Other types or other optimizer states follow, then other methods. Where adapters were asked
    for, methods that train adapters come first among these, and the rest is tried only if none of them fits.
    """
    search = _Search(question=question, case=case, gpus=gpus, ways=[], fitting=[])
    ways = [_way_change(way) for way in leaner(case, question.fixed)]
    if not search.try_changes(ways):
        search.try_changes(_combined(*pair) for pair in combinations(ways, 2))
    variants = list(_with_losses(question, case))
    search.try_changes(_variant_change(question, variant) for variant in variants if variant.method == question.method)
    other_methods = [variant for variant in variants if variant.method != question.method]
    if find_method(question.method).adapts:
        adapter_changes = [
            _variant_change(question, variant) for variant in other_methods if find_method(variant.method).adapts
        ]
        left_out = [way for way in ways if way.flags[0].key == "hint.without"]
        if search.try_changes(adapter_changes) or search.try_changes(
            _combined(change, way) for change in adapter_changes for way in left_out
        ):
            return tuple(search.ways)
    search.try_changes(_variant_change(question, variant) for variant in other_methods)
    return tuple(search.ways)


def _way_change(way: Way) -> _Change:
    return _Change(flags=(way.flag,), apply=way.apply)


def _variant_change(question: Question, variant: Variant) -> _Change:
    return _Change(flags=changes(question, variant), apply=lambda original: asked_as(original, variant))


def _combined(first: _Change, second: _Change) -> _Change:
    """Combine two changes into one, with removed flags after added ones."""
    flags = sorted((*first.flags, *second.flags), key=lambda flag: flag.key == "hint.without")
    return _Change(flags=tuple(flags), apply=lambda original: second.apply(first.apply(original)))


def _with_losses(question: Question, case: Case) -> Iterator[Variant]:
    """Yield every variant; where logits are large and the user chose no loss, also each one with the lean loss."""
    lean = given_loss(question) is None and (question.tuning.loss == LEAN_LOSS or has_large_logits(case))
    for variant in variants_of(question):
        yield variant
        if lean and variant.loss is None:
            yield replace(variant, loss=LEAN_LOSS)


def fits_with(case: Case, question: Question, ways: tuple[Message, ...], most_gpus: int) -> Message:
    """Return a hint with the fewest more GPUs that hold the run as asked, then the ways that fit on the given GPUs."""
    more = next_above(case, question.fixed, question.gpus or 1, most_gpus)
    if more is None:
        return Message.of("hint.fits_with", ways=ways, gpu=case.cluster.gpu.id)
    numbers = {"gpus": more.gpus, "asked_gpus": question.gpus or 1}
    if more.risk is None:
        return Message.of("hint.fits_on_or_with", ways=ways, **numbers)
    return Message.of("hint.fits_on_or_with_at_risk", ways=ways, **numbers, risk=more.risk)

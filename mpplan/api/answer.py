"""The main job as a function from a question to an `Answer`, used by both the command and the Python API."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from mpplan.version import __version__
from planner.decimals import own_decimals
from planner.errors import Message
from planner.lazy import dataclass
from planner.question.asked import Ask, InputValue, text_of
from planner.question.cost_inputs import CALIBRATION, NUMERICS, RECORDS
from planner.question.inputs import INPUTS, NETWORK_FILE, STACK, find_input
from planner.question.resolve import DEFAULT_STACK, TUNING_STACK
from planner.question.tuning_inputs import LOSS
from planner.safety.training import NO_TRAINING, Training
from planner.training.recipe import LOSSES

if TYPE_CHECKING:
    from mpplan.api.network import MeasuredNetwork
    from planner.answer.plan import Answer, LearnedFact
    from planner.calibration.document import ReadCalibration
    from planner.planning.case import Measured
    from planner.question.question import Question
    from planner.rates.parameters import Parameters
    from planner.records.store import StoredRecord

Given = str | int | float | bool | Decimal | date | os.PathLike[str] | Iterable[str] | None
"""Types that the value of an input may have in Python. Text is parsed as if it followed the flag."""


def estimate(**inputs: Given) -> Answer:
    """Answer a question as `mpplan estimate` does.

    The names are those of `planner.question.inputs`: the long flags of `mpplan estimate` that belong to the question
    (not its output and limits), with underscores. Sizes may be numbers or text: `params="70B"`, `tokens=1.4e12`,
    `gpu=["h100-sxm5-80gb", "b200-sxm-180gb"]`. An input that is left out, or None, takes the documented default,
    and the answer says so. The defaults in `mpplan.toml` and `MPPLAN_ESTIMATE_...` belong to the command and are not
    read here. `plans` of the answer has one plan per precision and GPU; a figure (`cost_usd`, `duration_days`) has
    `low`, `mid` and `high`, or is None if unknown.

    Raises:
        UsageError: a name or value is wrong.
        InputFileError: a file that the question names is invalid.
        NoPlanError: no plan is feasible; the error says what is short and what would fit.
        InternalError: the answer breaks an invariant, which is a bug of mpplan.
    """
    return _estimated(inputs, detailed=True)


def estimate_briefly(**inputs: Given) -> Answer:
    """Answer a question as `estimate` does, but only the short answer (`planner.planning.estimate`), in half the time.

    Raises:
        UsageError, InputFileError, NoPlanError: as `estimate`.
    """
    return _estimated(inputs, detailed=False)


@own_decimals()
def _estimated(inputs: dict[str, Given], *, detailed: bool) -> Answer:
    from mpplan.api.document import worded_errors
    from planner.answer.document import to_document
    from planner.answer.invariants import require_possible

    with worded_errors():
        result = answer_question(_ask(inputs), detailed=detailed)
        require_possible(to_document(result.answer))
    unused = (Message.of("warning.unused_line", problem=problem) for problem in result.damage)
    return replace(result.answer, warnings=(*result.answer.warnings, *unused))


_KEYWORDS = [
    inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Given") for item in INPUTS
]
estimate.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what `help` and editors show
    _KEYWORDS, return_annotation="Answer"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """An answer, and the damaged lines of the measurement records that the user named for it."""

    answer: Answer
    damage: tuple[str, ...]
    """Each line that could not be used, as `file:line: key: what`."""


def answer_question(ask: Ask, *, command: tuple[str, ...] = (), detailed: bool = True) -> Result:
    """Resolve, price and plan a question.

    If one node cannot hold a fine-tuning run with the default stack, a lean loss or else the multi-node stack is used.

    Args:
        ask: the question as typed.
        command: the command line, kept in the answer.
        detailed: whether to work out also what the short answer does not show (`planner.planning.estimate`).

    Raises:
        UsageError, InputFileError, NoPlanError: as `estimate`.
    """
    resolved = resolve_ask(ask)
    outgrown = _outgrown(resolved)
    if outgrown:
        resolved = _with_lean_loss(ask, outgrown, resolved.question) or _over_nodes(ask, outgrown, resolved.question)
    return _planned(ask, resolved, command, detailed=detailed)


def _planned(ask: Ask, resolved: ResolvedQuestion, command: tuple[str, ...], *, detailed: bool) -> Result:
    """Price and plan a question, and add notices about everything that was measured, learned or chosen for it."""
    from mpplan.api.auto import with_chosen_inputs
    from mpplan.api.planned import planned
    from planner.safety.answered import with_safety

    question, records = resolved.question, ask.text(RECORDS)
    answer = planned(
        question,
        command=command,
        records=records,
        measured=resolved.measured,
        parameters=resolved.parameters,
        detailed=detailed,
    )
    answer = replace(answer, warnings=(*answer.warnings, *resolved.notices, *_network_warnings(resolved, answer)))
    answer = with_chosen_inputs(answer, resolved.chosen) if resolved.chosen else answer
    answer = with_safety(answer, resolved.training.findings, question.stack, resolved.training.shown)
    damage = resolved.damage if records else ()
    return Result(answer=_with_calibration(answer, question, resolved.calibration), damage=damage)


def _outgrown(resolved: ResolvedQuestion) -> list[str]:
    """Return the GPUs of which one node cannot hold this fine-tuning run; empty if the user chose the stack.

    The number of GPUs that was asked for is not considered. The stack thus depends on the run and not on the number of
    GPUs: all points of a curve over GPU counts share one stack, as do two questions that differ only in that count.
    """
    from planner.planning.fitting.one_node import held_by_a_node

    question = resolved.question
    stack = question.inputs[STACK.name]
    if not question.fine_tunes or (stack.source, stack.value) != ("default", TUNING_STACK):
        return []
    terms = {gpu: by_policy.get(question.policy.id) for gpu, by_policy in resolved.measured.items()}
    return [
        cluster.gpu.id
        for cluster in question.clusters
        if not held_by_a_node(question, cluster, terms.get(cluster.gpu.id), resolved.parameters)
    ]


def _with_lean_loss(ask: Ask, gpus: Iterable[str], on_a_node: Question) -> ResolvedQuestion | None:
    """Resolve the question again with a loss that keeps no logits in memory.

    The usual stack stays, so that a small excess of memory does not change the training software. Returns None if the
    user chose a loss, or if the lean loss is not enough.

    Args:
        ask: the question as typed.
        gpus: catalogue ids of the GPUs of which one node cannot hold the run with the default loss of its stack.
        on_a_node: the question as resolved with the default loss.
    """
    from planner.planning.fitting.one_node import LEAN_LOSS

    if on_a_node.tuning.loss is not None:
        return None
    texts, sources = {**ask.texts, LOSS.name: LEAN_LOSS}, {**ask.sources, LOSS.name: "derived"}
    resolved = resolve_ask(replace(ask, texts=texts, sources=sources))
    if _outgrown(resolved):
        return None
    outgrown = tuple(sorted(gpus))
    key = "warning.lean_loss" if len(outgrown) == len(on_a_node.clusters) else "warning.one_lean_loss"
    new, old = (Message.of("flag.with_value", input=LOSS.name, value=name) for name in (LEAN_LOSS, LOSSES[0]))
    warning = Message.of(key, gpus=outgrown, new=new, old=old)
    loss = InputValue(value=LEAN_LOSS, source="derived", note=Message.of("note.lean_loss", gpus=outgrown))
    question = replace(resolved.question, on_a_node=on_a_node, inputs={**resolved.question.inputs, LOSS.name: loss})
    return replace(resolved, question=question, notices=(*resolved.notices, warning))


def _over_nodes(ask: Ask, gpus: Iterable[str], on_a_node: Question) -> ResolvedQuestion:
    """Resolve the question again with the default stack for several nodes.

    Args:
        ask: the question as typed.
        gpus: catalogue ids of the GPUs that need more than one node.
        on_a_node: the question as resolved for one node.
    """
    texts, sources = {**ask.texts, STACK.name: DEFAULT_STACK}, {**ask.sources, STACK.name: "default"}
    resolved = resolve_ask(replace(ask, texts=texts, sources=sources))
    outgrown = frozenset(gpus)
    key = "warning.stack_over_nodes" if len(outgrown) == len(on_a_node.clusters) else "warning.one_stack_over_nodes"
    new, old = (Message.of("flag.with_value", input="stack", value=name) for name in (DEFAULT_STACK, TUNING_STACK))
    warning = Message.of(key, gpus=tuple(sorted(outgrown)), new=new, old=old)
    question = replace(resolved.question, over_nodes=outgrown, on_a_node=on_a_node)
    return replace(resolved, question=question, notices=(*resolved.notices, warning))


def resolve_ask(ask: Ask) -> ResolvedQuestion:
    """Resolve a question: settle each `auto`, and add measurements and learned parameters.

    Raises:
        UsageError, InputFileError: an input is wrong.
        NoPlanError: no GPU or method can replace an `auto`.
    """
    from mpplan.api.auto import is_open, settle

    calibration = _calibration(ask.text(CALIBRATION))
    network = _network(ask.text(NETWORK_FILE))
    notes: Mapping[str, Message] = {}
    if is_open(ask):
        settled = settle(ask, calibration, network)
        ask, notes = settled.ask, settled.notes
    training = _named_training(ask.text(NUMERICS))
    resolved = _with_network(_recorded(ask, calibration, training), network)
    resolved = _with_training(resolved, training)
    mismatches = () if calibration is None else _record_mismatches(resolved, calibration, network)
    return replace(resolved, chosen=notes, notices=(*resolved.notices, *mismatches))


def _record_mismatches(
    resolved: ResolvedQuestion, calibration: ReadCalibration, network: MeasuredNetwork | None
) -> tuple[Message, ...]:
    """Warn if the records behind the plan are not those that its calibration was learned with."""
    from mpplan.api.run_records import learned_records, record_mismatches

    used = learned_records(resolved.records, resolved.networks if network is None else {})
    return record_mismatches(calibration, used, [cluster.gpu.id for cluster in resolved.question.clusters])


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedQuestion:
    """A resolved question with the rates that the user and the package measured for it."""

    question: Question
    measured: Measured
    """Terms from records, the measured network and training results."""
    calibration: ReadCalibration | None = None
    """What the user's own runs taught; None: nothing."""
    chosen: Mapping[str, Message] = field(default_factory=dict)
    """A note for each input that was left to `auto`, by the input's name."""
    notices: tuple[Message, ...] = ()
    """Which evidence was used, and what a reader must know about it."""
    damage: tuple[str, ...] = ()
    """Each line of a record that could not be used, as `file:line: key: what`."""
    records: Mapping[str, StoredRecord] = field(default_factory=dict)
    """Records of single-GPU measurements, by GPU id."""
    networks: Mapping[str, StoredRecord] = field(default_factory=dict)
    """Records with collectives between GPUs, by GPU id."""
    named: bool = False
    """Whether the user named the records."""
    training: Training = NO_TRAINING
    """What training runs showed about the precisions."""

    @property
    def parameters(self) -> Parameters | None:
        """The parameters of the calibration; None means the shipped parameters."""
        return None if self.calibration is None else self.calibration.parameters


def _recorded(ask: Ask, calibration: ReadCalibration | None, training: Training | None) -> ResolvedQuestion:
    """Resolve the question and add the terms of records; shipped ones not where own runs were on the same GPU.

    A document of training results may add a precision to those that are compared by default.
    """
    from planner.question.resolve import NO_DEVICES, resolve
    from planner.records.home import any_records

    parameters, calibrated = (None, ()) if calibration is None else (calibration.parameters, calibration.facts.gpus)
    records, planned = ask.text(RECORDS), None
    if records is None and not any_records():
        question, added = _with_trained_precision(resolve(ask, NO_DEVICES), training)
        planned = [cluster.gpu.id for cluster in question.clusters]
        if not any_records(gpu for gpu in planned if gpu not in calibrated):
            return ResolvedQuestion(question=question, measured={}, calibration=calibration, notices=added)
    from mpplan.api.measurements import chosen_records, damage, measured_for, own_devices
    from mpplan.api.record_shelf import RecordShelf
    from mpplan.api.safety import recorded_training

    shelf = RecordShelf(records, gpus=planned, not_shipped_of=calibrated)
    question, added = _with_trained_precision(resolve(ask, own_devices(shelf)), training)
    gpus = [cluster.gpu.id for cluster in question.clusters]
    chosen = chosen_records(shelf, gpus)
    return ResolvedQuestion(
        question=question, measured=measured_for(question, chosen, parameters), calibration=calibration,
        notices=(*chosen.notices, *shelf.notices, *added),
        damage=damage(chosen.all), records=chosen.records, networks=chosen.networks, named=records is not None,
        training=recorded_training(shelf, gpus),
    )  # fmt: skip


def _named_training(name: str | None) -> Training | None:
    if name is None:
        return None
    from mpplan.api.safety import named_training

    return named_training(name)


def _with_trained_precision(question: Question, training: Training | None) -> tuple[Question, tuple[Message, ...]]:
    if training is None or not training.shown:
        return question, ()
    from mpplan.api.safety import with_trained_precision

    return with_trained_precision(question, training.shown)


def _with_training(resolved: ResolvedQuestion, named: Training | None) -> ResolvedQuestion:
    """Add training results (of the named document, if any) and the measured share of steps that loss scaling skips."""
    training = resolved.training if named is None else named
    if not training.findings and named is None:
        return resolved
    from mpplan.api.safety import with_skipped_steps

    measured = with_skipped_steps(resolved.question, resolved.measured, training.findings, resolved.parameters)
    return replace(resolved, measured=measured, training=training)


def _network(name: str | None) -> MeasuredNetwork | None:
    if name is None:
        return None
    from mpplan.api.network import read_network

    return read_network(name)


def _with_network(resolved: ResolvedQuestion, network: MeasuredNetwork | None) -> ResolvedQuestion:
    """Add measured network terms: from the file that was named for the network, else from the records."""
    if network is None and not resolved.networks:
        return resolved
    from mpplan.api.network import recorded_networks, with_network

    clusters = resolved.question.clusters
    if network is not None:
        networks = {cluster.gpu.id: network for cluster in clusters}
    else:
        networks = recorded_networks(resolved.networks, named=resolved.named)
    own = with_network(resolved.question, resolved.measured, networks, resolved.parameters)
    return replace(resolved, measured=own.measured, notices=(*resolved.notices, *own.warnings))


def _network_warnings(resolved: ResolvedQuestion, answer: Answer) -> tuple[Message, ...]:
    """Warn about the communication of the plans that the measured network does not cover."""
    if not resolved.measured:
        return ()
    from mpplan.api.network import internode_warnings

    asked = resolved.question.policy.precision
    return internode_warnings(resolved.question, resolved.measured, (p for p in answer.plans if p.precision == asked))


def _calibration(name: str | None) -> ReadCalibration | None:
    if name is None:
        return None
    from planner.calibration.document import read_calibration
    from planner.rates.parameters import shipped_parameters
    from planner.records.home import user_path

    return read_calibration(user_path(name), shipped_parameters())


def _with_calibration(answer: Answer, question: Question, calibration: ReadCalibration | None) -> Answer:
    """Add to the answer what its reader must know about the calibration behind it."""
    if calibration is None:
        return answer
    facts = replace(calibration.facts, learned=_learned_here(question, calibration))
    gpus, policy = [cluster.gpu.id for cluster in question.clusters], question.policy
    nodes = max((plan.nodes for plan in answer.plans if plan.precision == policy.precision), default=1)
    notices = calibration.notices(question.recipe(policy, question.clusters[0]), gpus, nodes, __version__)
    return replace(answer, warnings=(*answer.warnings, *notices), calibration=facts)


def _learned_here(question: Question, calibration: ReadCalibration) -> tuple[LearnedFact, ...]:
    """Return the learned facts, without those about GPUs and models that do not occur in the answer."""
    from planner.calibration.spreads import BY_PART
    from planner.rates.ladder import part_label

    parameters = calibration.parameters
    recipes = [(cluster, question.recipe(question.policy, cluster)) for cluster in question.clusters]
    part_terms = {f"{name}.{part_label(parameters, name, *case)}" for name in BY_PART for case in recipes}
    return tuple(
        fact
        for term, fact in zip(calibration.learned_terms, calibration.facts.learned, strict=True)
        if term in part_terms or term.partition(".")[0] not in BY_PART
    )


def _ask(inputs: dict[str, Given]) -> Ask:
    """Return the question as it would be typed; None counts as not given.

    Raises:
        UsageError: a name is not the name of an input, or a value could not follow its flag.
    """
    values = {find_input(name): value for name, value in inputs.items()}
    return Ask(texts={item.name: text_of(item, value) for item, value in values.items() if value is not None})

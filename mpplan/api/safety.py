"""What training showed about the precisions of an answer, from the named document or from the user's records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mpplan.api.record_shelf import RecordShelf
from mpplan.ui.documents import read_numerics
from planner.answer.training_shown import TrainingShown
from planner.errors import InputFileError, Message, UsageError
from planner.measured.skipped_steps import skipped_step_terms
from planner.measured.training import PrecisionFinding, precision_findings
from planner.planning.case import Measured
from planner.question.question import Question
from planner.question.resolve_images import policy_of
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Parameters
from planner.rates.terms import Term
from planner.records.store import StoredRecord, gpu_of
from planner.records.summary import RecordSummary
from planner.safety.document import findings_of, tasks_shown
from planner.safety.training import NO_TRAINING, Training
from planner.training.precision import EXTRA_PRECISIONS


def named_training(name: str) -> Training:
    """Read the training results in a document printed by `mpplan numerics --json`.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is not such a document.
    """
    path, document = read_numerics(name)
    shown = tasks_shown(document, path.name)
    if not shown:
        raise InputFileError(
            f"{path}: tasks: expected at least one trained task, found none",
            hint="give `mpplan numerics` a longer --budget",
        )
    return Training(findings=findings_of(document, path.name), shown=shown)


def with_trained_precision(question: Question, shown: Sequence[TrainingShown]) -> tuple[Question, tuple[Message, ...]]:
    """Add to the question the precision of the document's policies and schedules, which otherwise would have no time.

    Args:
        question: resolved.
        shown: the tasks of the named document.

    Returns:
        The question and notices about the added rows; unchanged if the precision is already present or no GPU supports
        it.
    """
    compared = {policy.precision for policy in question.policies}
    usual = policy_of(question.model) if question.framework is None else question.framework.policy
    notices = []
    points = ((task.source, point.precision) for task in shown for point in task.mixtures)
    for source, precision in dict.fromkeys(points):
        if precision in compared or precision not in EXTRA_PRECISIONS:
            continue
        policy = usual(precision)
        if all(question.why_unable(policy, cluster.gpu) is not None for cluster in question.clusters):
            continue
        question = replace(question, policies=(*question.policies, policy))
        notices.append(Message.of("warning.trained_precision", precision=precision.upper(), file=source))
    return question, tuple(notices)


def recorded_training(shelf: RecordShelf, gpus: Sequence[str]) -> Training:
    """Return the newest record of training results: on one of these GPUs, else on another device, which is then named.

    Records that the user did not name and that cannot be read are skipped.
    """
    records = [row for row in shelf.listed if row.facts.numerics_only and not row.shipped and not row.facts.problem]
    for summary in sorted(records, key=lambda row: _rank(row, gpus), reverse=True):
        try:
            record = shelf.read(summary)
        except UsageError:
            continue
        findings = _findings(record)
        if findings:
            return Training(findings=findings)
    return NO_TRAINING


def _rank(record: RecordSummary, gpus: Sequence[str]) -> tuple[bool, bool]:
    """Sort key of a record; a higher rank beats a newer date. The sort is stable, so ties keep the newest first."""
    return record.gpu in gpus, record.facts.device_kind == "cuda"


def _findings(record: StoredRecord) -> tuple[PrecisionFinding, ...]:
    points = record.file.measurements
    gpu = gpu_of(points[-1]) if points else None
    date = (record.date or "")[:10] or None
    return tuple(replace(row, gpu=gpu, source=f"record {record.name}", date=date) for row in precision_findings(points))


def with_skipped_steps(
    question: Question,
    measured: Measured,
    findings: Iterable[PrecisionFinding],
    parameters: Parameters | None = None,
) -> Measured:
    """Add the share of steps that loss scaling skips to the measured terms, for every precision that scales its loss.

    Args:
        question: resolved.
        measured: terms from records by GPU id, policy id and name.
        findings: from records and documents.
        parameters: of a calibration; None: the shipped ones.
    """
    at_hand = tuple(findings)
    if not at_hand:
        return measured
    together: dict[str, Mapping[str, Mapping[str, Term]]] = dict(measured)
    for cluster in question.clusters:
        by_policy = dict(together.get(cluster.gpu.id, {}))
        for policy in question.policies_on(cluster.gpu):
            if not policy.loss_scaling:
                continue
            base = resolve_rates(cluster, question.recipe(policy, cluster), None, parameters).terms
            own = skipped_step_terms(at_hand, policy, question.stack, base)
            if own:
                by_policy[policy.id] = {**by_policy.get(policy.id, {}), **own}
        if by_policy:
            together[cluster.gpu.id] = by_policy
    return together

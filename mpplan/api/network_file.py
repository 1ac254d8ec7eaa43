"""The user's own nccl-tests output behind an answer: read once, and fitted for every GPU of the question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.errors import Message
from planner.imported.collectives import collective_runs
from planner.measured.network.runs import CollectiveRun, read_nccl_tests
from planner.measured.network.terms import network_terms
from planner.planning.estimate import Measured
from planner.question.question import Question
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Parameters
from planner.rates.terms import Term
from planner.records.home import user_path
from planner.records.jsonl import read_measurements
from planner.records.store import RECORD_SUFFIXES
from planner.training.policies import why_unsupported


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFile:
    """What a file of nccl-tests' output holds."""

    name: str
    """Of the file, without its folder."""
    runs: tuple[CollectiveRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WithNetwork:
    """Measured terms with those of a network file, and what a reader must know of these."""

    measured: Measured
    warnings: tuple[Message, ...]


def read_network(name: str) -> NetworkFile:
    """Read the file that the user named: what nccl-tests printed, or a record that it was imported into.

    Raises:
        UsageError: it cannot be read.
        InputFileError: it is not what nccl-tests prints, or of a run that is damaged, cut off or wrong.
    """
    path = user_path(name)
    if path.name.endswith(RECORD_SUFFIXES):
        return NetworkFile(name=path.name, runs=collective_runs(read_measurements(path).latest(), path.name))
    return NetworkFile(name=path.name, runs=read_nccl_tests(path))


def with_network(
    question: Question, measured: Measured, network: NetworkFile, parameters: Parameters | None = None
) -> WithNetwork:
    """Add the terms of a network file to those of records, for every precision of the question.

    Args:
        question: resolved.
        measured: terms from records by GPU id, policy id and name.
        network: the file.
        parameters: those of a calibration, for what the file leaves open; None: the shipped ones.
    """
    together: dict[str, Mapping[str, Mapping[str, Term]]] = dict(measured)
    warnings: list[Message] = []
    for cluster in question.clusters:
        policies = [policy for policy in question.policies if why_unsupported(policy, cluster.gpu) is None]
        if not policies:
            continue
        # No term of the network differs by precision: one fit serves all of them.
        base = resolve_rates(cluster, question.recipe(policies[0], cluster), None, parameters)
        own = network_terms(network.runs, network.name, cluster, base)
        recorded = measured.get(cluster.gpu.id, {})
        together[cluster.gpu.id] = {policy.id: {**recorded.get(policy.id, {}), **own.terms} for policy in policies}
        warnings += own.warnings
    return WithNetwork(measured=together, warnings=tuple(dict.fromkeys(warnings)))

"""The user's measured collectives behind an answer: from the file named for the network, else from GPU records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from planner.answer.plan import Plan
from planner.errors import InputFileError, Message
from planner.lazy import dataclass
from planner.measured.network.recorded import collective_runs
from planner.measured.network.runs import CollectiveRun, read_nccl_tests
from planner.measured.network.terms import BETWEEN, NetworkSource, network_terms
from planner.planning.case import Measured
from planner.question.inputs import NETWORK
from planner.question.question import Question
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Parameters
from planner.rates.terms import Term
from planner.records.home import user_path
from planner.records.jsonl import read_measurements
from planner.records.store import RECORD_SUFFIXES, StoredRecord

NOT_GIVEN = ("default", "catalogue")
"""Sources of the network rate other than the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredNetwork:
    """The measurements of a network in a file or a record."""

    source: NetworkSource
    runs: tuple[CollectiveRun, ...]
    named: bool
    """Whether the user named it and must therefore be told where it has no effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithNetwork:
    """Measured terms including those of the network, and warnings about the network terms."""

    measured: Measured
    warnings: tuple[Message, ...]


def read_network(name: str) -> MeasuredNetwork:
    """Read the file that the user named: output of nccl-tests, or a record.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is not output of nccl-tests; or the run is damaged, truncated or wrong; or it is a record
            without collectives between GPUs.
    """
    path = user_path(name)
    if path.name.endswith(RECORD_SUFFIXES):
        runs = collective_runs(read_measurements(path).latest(), path.name)
    else:
        runs = read_nccl_tests(path)
    return MeasuredNetwork(source=NetworkSource.file(path.name), runs=runs, named=True)


def recorded_networks(records: Mapping[str, StoredRecord], *, named: bool) -> dict[str, MeasuredNetwork]:
    """Return the network measurements in records, by GPU id; records with a single message size are skipped.

    Args:
        records: by GPU id.
        named: whether the user named the records.
    """
    networks = {}
    for gpu, record in records.items():
        try:
            runs = collective_runs(record.file.latest(), record.name)
        except InputFileError:
            continue
        source = NetworkSource(name=record.name, origin=_origin(record), kind="record", date=record.date)
        networks[gpu] = MeasuredNetwork(source=source, runs=runs, named=named)
    return networks


def _origin(record: StoredRecord) -> str:
    """Return who measured the record, and its name."""
    tools = dict.fromkeys(point.imported.tool for point in record.file.measurements)
    return f"{', '.join(tool or 'mpplan probe' for tool in tools)}, record {record.name}"


def with_network(
    question: Question,
    measured: Measured,
    networks: Mapping[str, MeasuredNetwork],
    parameters: Parameters | None = None,
) -> WithNetwork:
    """Add the terms of measured networks to those of records, for every precision of the question.

    Args:
        question: resolved.
        measured: terms from records by GPU id, policy id and name.
        networks: by GPU id.
        parameters: of a calibration, for what the runs do not determine; None: the shipped ones.
    """
    together: dict[str, Mapping[str, Mapping[str, Term]]] = dict(measured)
    warnings: list[Message] = []
    for cluster in question.clusters:
        network = networks.get(cluster.gpu.id)
        policies = question.policies_on(cluster.gpu)
        if network is None or not policies:
            continue
        # No term of the network differs by precision: one fit serves all of them.
        base = resolve_rates(cluster, question.recipe(policies[0], cluster), None, parameters)
        own = network_terms(network.runs, network.source, cluster, base)
        recorded = measured.get(cluster.gpu.id, {})
        together[cluster.gpu.id] = {policy.id: {**recorded.get(policy.id, {}), **own.terms} for policy in policies}
        if own.terms or network.named:
            warnings += own.warnings
        if "nic_bytes_per_s" in own.terms and question.inputs[NETWORK.name].source not in NOT_GIVEN:
            warnings.append(Message.of("warning.network_rate_unused", file=network.source.name))
    return WithNetwork(measured=together, warnings=tuple(dict.fromkeys(warnings)))


def internode_warnings(question: Question, measured: Measured, plans: Iterable[Plan]) -> tuple[Message, ...]:
    """Warn about plans that communicate between nodes although the measurements cover only one node.

    Args:
        question: resolved.
        measured: terms by GPU id, policy id and name.
        plans: the plans of the answer.
    """
    domains = {c.gpu.id: max(c.nvlink_domain, c.gpus_per_node) for c in question.clusters}
    messages = []
    for plan in plans:
        terms = measured.get(plan.gpu, {}).get(plan.policy, {})
        inside = terms.get("nvlink_bytes_per_s") or terms.get("nvlink_latency_s")
        apart = any(name in terms for name in BETWEEN)  # the runs' own warnings then cover this
        if not plan.fits or inside is None or apart or plan.gpus <= domains[plan.gpu]:
            continue
        if inside.evidence.id.startswith("network_"):
            file = inside.evidence.source
            messages.append(Message.of("warning.network_inside_alone", gpu=plan.gpu, file=file, planned=plan.nodes))
    return tuple({message.values: message for message in messages}.values())

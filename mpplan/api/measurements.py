"""Choose the measurement records behind an answer: the named ones, else those of the store and the package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from mpplan.api.record_shelf import SHOWN_ASIDE, RecordShelf
from planner.errors import InputFileError, Message, UsageError
from planner.hardware.gpu import Gpu
from planner.lazy import dataclass
from planner.measured.device import measured_rates
from planner.measured.own_device import gpu_from_record
from planner.measured.terms import measured_terms
from planner.question.cost_inputs import RECORDS
from planner.question.question import Question
from planner.question.resolve import OwnDevices
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Parameters
from planner.rates.terms import Term
from planner.records.check import time_against
from planner.records.home import CPU_LOCAL, record_path
from planner.records.measurement import SEVERAL_RANKS
from planner.records.store import StoredRecord, fleet_size, must_be_of_gpu
from planner.records.summary import RecordSummary, resuming
from probes.device.device import cpu_name

USED = ("warning.own_record", "warning.fleet_record", "warning.imported_record", "warning.shipped_record")
"""Keys of the notices that only say which record was used."""
DOUBTFUL_RATIO = 1.25
"""Ratio of the times in two records of a GPU beyond which one of them is doubtful."""


def named_records(name: str, gpus: Sequence[str], shelf: RecordShelf | None = None) -> tuple[StoredRecord, ...]:
    """Return the records of these GPUs: the named file itself, or the newest trustworthy records per GPU of a folder.

    Records of training alone are not returned, because they give no rates (see `mpplan.api.safety`).

    Args:
        name: the file or folder.
        gpus: catalogue ids.
        shelf: the listed records of `name`, if they were listed already.

    Raises:
        UsageError: the file or folder does not exist, or the folder has no trustworthy record of any of the GPUs.
        InputFileError: no line of the file can be used, or the record is of another GPU.
    """
    own = RecordShelf(name) if shelf is None else shelf
    if record_path(name).is_dir():
        chosen = [record for gpu in gpus for record in (own.newest(gpu), own.newest_network(gpu)) if record is not None]
        if not chosen and own.of_training_alone:
            return ()
        if not chosen:
            raise UsageError(
                f"{RECORDS.flag}: no trustworthy record of {' or '.join(gpus)} in `{name}`",
                hint=f"`mpplan check FILE` says what is wrong with one; leave out {RECORDS.flag} for your own store",
            )
        return tuple({record.path: record for record in chosen}.values())
    record = own.named_file()
    if record.facts.numerics_only:
        return ()  # the record covers precisions on any device, and no rates
    must_be_of_gpu(record, gpus[0] if len(gpus) == 1 else None)
    if record.gpu not in gpus:
        raise InputFileError(
            f"{name}:1: device_name: expected a record of {' or '.join(gpus)}, found `{record.device_name}`",
            hint=f"pass a record of one of them, or leave out {RECORDS.flag}",
        )
    _must_be_of_use(record, name)
    return (record,)


def _must_be_of_use(record: StoredRecord, name: str) -> None:
    """Raise if a record gives no rates, because it holds only training, or ranks without collectives.

    Raises:
        InputFileError: the record gives no rates.
    """
    kinds = {point.kind for point in record.file.measurements}
    if record.facts.collectives or not kinds <= {"training", "numerics", *SEVERAL_RANKS}:
        return
    measured = " and ".join(sorted(kinds))
    raise InputFileError(
        f"{name}:1: kind: expected kernels or collectives between GPUs, found only {measured}",
        hint="for training, give `mpplan calibrate` the rows that `mpplan records import --runs` writes; for several "
        "ranks, also measure collectives with `mpplan probe --ranks`",
    )


def damage(records: Iterable[StoredRecord]) -> tuple[str, ...]:
    """Return `file:line: key: what` for each line that could not be used; only the first if there are very many."""
    return tuple(problem.describe(str(record.path)) for record in records for problem in record.file.damage)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRecords:
    """The records behind an answer, by GPU id."""

    records: dict[str, StoredRecord]
    """Records of single-GPU measurements."""
    networks: dict[str, StoredRecord] = field(default_factory=dict)
    """Records of collectives between GPUs, often different from `records`."""
    newer_incomplete: dict[str, RecordSummary] = field(default_factory=dict)
    """Newer single-GPU records that are not used, because they lack measurements of the older record."""
    ahead: tuple[RecordSummary, ...] = ()
    """Records dated after today."""
    named: bool = True
    """Whether the user named them, as a file or a folder."""
    before: dict[str, StoredRecord] = field(default_factory=dict)
    """For each GPU, the record that preceded the one in use."""

    @property
    def all(self) -> tuple[StoredRecord, ...]:
        """All records, each once."""
        return tuple({record.path: record for record in (*self.records.values(), *self.networks.values())}.values())

    @property
    def notices(self) -> tuple[Message, ...]:
        """Notices about the records: which were used, which of their lines could not be, and doubts about them."""
        used = tuple(
            Message.of(
                _notice(record),
                gpu=gpu,
                record=record.name,
                points=record.verdict.points,
                date=str(record.date)[:10],
                **_members(record),
            )
            for gpu, record in self.records.items()
        )
        damaged = tuple(
            Message.of("warning.record_damaged", record=record.name, lines=record.file.unused_lines)
            for record in self.all
            if record.file.unused_lines
        )
        doubtful = tuple(
            Message.of("warning.record_untrusted", record=record.name)
            for record in self.all
            if not record.verdict.trustworthy
        )
        incomplete = (_incomplete(self.records[gpu], newer) for gpu, newer in self.newer_incomplete.items())
        changes = (_speed_change(self.records[gpu], earlier) for gpu, earlier in self.before.items())
        speed_changes = (message for message in changes if message is not None)
        return (*used, *self._of_another_cpu(), *incomplete, *speed_changes, *_ahead(self.ahead), *damaged, *doubtful)

    def _of_another_cpu(self) -> list[Message]:
        """Warn if the record of this machine's CPU, which the user did not name, is of another CPU model."""
        record = self.records.get(CPU_LOCAL)
        if record is None or self.named or record.device_name in (None, cpu_name()):
            return []
        return [Message.of("warning.record_other_cpu", record=record.name, device=str(record.device_name))]


def _incomplete(used: StoredRecord, newer: RecordSummary) -> Message:
    """Report that a newer record is not used, and what it lacks."""
    lacking = newer.facts.lacks(used.facts)
    return Message.of(
        "warning.record_part", record=newer.name, name=used.name, lacking=lacking, command=resuming(newer.facts)
    )


def _speed_change(used: StoredRecord, earlier: StoredRecord) -> Message | None:
    """Warn if two records of the same kind of device show different speeds; None if they agree."""
    first, second = used.file.latest(), earlier.file.latest()
    alike = first[-1].device.threads == second[-1].device.threads
    against = time_against(first, second) if alike else None
    if against is None or 1.0 / DOUBTFUL_RATIO < against[0] < DOUBTFUL_RATIO:
        return None
    ratio, points = against
    return Message.of(
        "warning.record_slower" if ratio > 1.0 else "warning.record_faster",
        record=used.name, name=earlier.name, date=str(earlier.date)[:10], points=points,
        change_ratio=ratio - 1.0 if ratio > 1.0 else 1.0 - ratio,
    )  # fmt: skip


def _ahead(records: Sequence[RecordSummary]) -> list[Message]:
    """Warn about records dated after today, which count as the oldest."""
    shown = records[:SHOWN_ASIDE]
    named = tuple(Message.of("record.ahead", record=record.name, date=str(record.facts.day)) for record in shown)
    return [Message.of("warning.records_ahead", records=named)] if named else []


def _notice(record: StoredRecord) -> str:
    """Return the key of the message that a record was used."""
    if record.shipped:
        return "warning.shipped_record"
    if any(point.imported.tool is not None for point in record.file.measurements):
        return "warning.imported_record"
    return "warning.fleet_record" if _members(record) else "warning.own_record"


def _members(record: StoredRecord) -> dict[str, int]:
    """Return the number of GPUs in a fleet's record, as a message value."""
    size = fleet_size(record.file.measurements)
    return {"members": size} if size and not record.shipped else {}


def chosen_records(shelf: RecordShelf, gpus: Sequence[str]) -> ChosenRecords:
    """For each GPU, choose the named record, else the newest trustworthy records of the store and the package.

    Raises:
        UsageError, InputFileError: as `named_records`.
    """
    if shelf.named is not None and not record_path(shelf.named).is_dir():
        named = named_records(shelf.named, gpus, shelf)
        if not named:
            return ChosenRecords(records={})
        (record,) = named
        facts, gpu = record.facts, str(record.gpu)
        kernels = facts.kernels or not facts.collectives
        return ChosenRecords(
            records={gpu: record} if kernels else {}, networks={gpu: record} if facts.collectives else {}
        )
    if shelf.named is not None:
        named_records(shelf.named, gpus, shelf)
    records = {gpu: shelf.newest(gpu) for gpu in gpus}
    networks = {gpu: shelf.newest_network(gpu) for gpu in gpus}
    newer_incomplete = {
        gpu: newer
        for gpu, record in records.items()
        if record is not None and (newer := shelf.newer_part(gpu)) is not None and newer.facts.lacks(record.facts)
    }
    return ChosenRecords(
        newer_incomplete=newer_incomplete,
        ahead=shelf.ahead(gpus),
        named=shelf.named is not None,
        before={
            gpu: earlier
            for gpu, record in records.items()
            if record is not None and (earlier := shelf.before(record)) is not None
        },
        records={gpu: record for gpu, record in records.items() if record is not None},
        networks={gpu: record for gpu, record in networks.items() if record is not None},
    )


def recorded_gpus(shelf: RecordShelf) -> frozenset[str | None]:
    """Return the GPUs for which `chosen_records` finds a record: that of the named file, else every trustworthy one."""
    if shelf.named is not None and not record_path(shelf.named).is_dir():
        return frozenset({shelf.named_file().gpu})
    gpus = {record.gpu for record in shelf.listed if record.gpu is not None}
    return frozenset(gpu for gpu in gpus if shelf.newest(gpu) or shelf.newest_network(gpu))


def own_devices(shelf: RecordShelf) -> OwnDevices:
    """Return the default GPU according to this machine's records, and its CPU as a catalogue row."""
    own = [record for record in shelf.listed if not record.shipped and record.facts.imported is None]
    gpu = next((record.gpu for record in own if record.gpu not in (None, CPU_LOCAL) and record.facts.trustworthy), None)

    def local() -> Gpu | None:
        record = shelf.newest(CPU_LOCAL) or _of_any_trust(shelf, own)
        return None if record is None else gpu_from_record(record.file.latest())

    return OwnDevices(gpu=gpu, local=local)


def _of_any_trust(shelf: RecordShelf, own: Iterable[RecordSummary]) -> StoredRecord | None:
    """Return a record of the CPU from the records that the user named, trustworthy or not."""
    of_cpu = (record for record in own if record.gpu == CPU_LOCAL and record.facts.may_hold_rates)
    summary = next(of_cpu, None) if shelf.named is not None else None
    return None if summary is None else shelf.read(summary)


def measured_for(
    question: Question, chosen: ChosenRecords, parameters: Parameters | None = None
) -> dict[str, dict[str, dict[str, Term]]]:
    """Return measured terms by GPU id, policy id and name of the term, for every precision of the question.

    Args:
        question: resolved.
        chosen: the records.
        parameters: of a calibration, for terms that no record measured; None: the shipped ones.
    """
    terms: dict[str, dict[str, dict[str, Term]]] = {}
    for cluster in question.clusters:
        record = chosen.records.get(cluster.gpu.id)
        if record is None:
            continue
        rates = measured_rates(record.file.latest())
        by_policy = terms.setdefault(cluster.gpu.id, {})
        for policy in question.policies_on(cluster.gpu):
            recipe = question.recipe(policy, cluster)
            base = resolve_rates(cluster, recipe, None, parameters).terms
            by_policy[policy.id] = measured_terms(rates, recipe, base, shipped=record.shipped)
    return terms

"""The records behind runs that happened: those that an estimate for the same GPUs would take, and their terms."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from mpplan.api.measurements import USED, chosen_records, damage
from mpplan.api.network import MeasuredNetwork, recorded_networks
from mpplan.api.record_shelf import RecordShelf
from planner.calibration.document import LearnedRecord, ReadCalibration
from planner.errors import Message
from planner.files import read_bytes
from planner.lazy import dataclass
from planner.measured.device import measured_rates
from planner.measured.network.terms import network_terms
from planner.measured.rates import MeasuredRates
from planner.measured.terms import measured_terms
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Parameters
from planner.rates.terms import Term
from planner.records.home import any_records
from planner.records.store import StoredRecord
from planner.validation.setup import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecords:
    """What was measured of the GPUs of some runs, by GPU id."""

    used: tuple[LearnedRecord, ...] = ()
    rates: Mapping[str, tuple[MeasuredRates, bool]]
    """Of a GPU by itself, and whether the record came with the package."""
    networks: Mapping[str, MeasuredNetwork]
    notices: tuple[Message, ...] = ()
    """What was used, and what a reader must know of it."""
    damage: tuple[str, ...] = ()
    """`file:line: key: what` of each line that could not be used."""

    def terms(self, prepared: Prepared, parameters: Parameters | None = None) -> dict[str, Term]:
        """The terms of a run that were measured, as a plan on its GPU takes them; empty without a record of it.

        Args:
            prepared: the run, set up.
            parameters: for what no record measured; None: the shipped ones.
        """
        cluster, recipe = prepared.cluster, prepared.recipe
        own, network = self.rates.get(cluster.gpu.id), self.networks.get(cluster.gpu.id)
        if own is None and network is None:
            return {}
        base = resolve_rates(cluster, recipe, None, parameters)
        terms = {} if own is None else measured_terms(own[0], recipe, base.terms, shipped=own[1])
        if network is not None:
            terms |= network_terms(network.runs, network.source, cluster, base).terms
        return terms


NO_RUN_RECORDS = RunRecords(rates={}, networks={})


def run_records(named: str | None, runs: Iterable[object]) -> RunRecords:
    """The user's records that `mpplan estimate` would take for the GPUs of some runs.

    Args:
        named: the file or folder that the user named; None: the store.
        runs: set up; what could not be set up is passed over.

    Raises:
        UsageError, InputFileError: what was named cannot be used for any of these GPUs.
    """
    gpus = list(dict.fromkeys(run.cluster.gpu.id for run in runs if isinstance(run, Prepared)))
    if not gpus or (named is None and not any_records()):
        return NO_RUN_RECORDS
    shelf = RecordShelf(named, ships=False)  # runs of other years ran on other software than the record that ships
    chosen = chosen_records(shelf, gpus)
    return RunRecords(
        used=learned_records(chosen.records, chosen.networks),
        rates={gpu: (measured_rates(record.file.latest()), record.shipped) for gpu, record in chosen.records.items()},
        networks=recorded_networks(chosen.networks, named=named is not None),
        notices=(
            *(_taken(gpu, record) for gpu, record in {**chosen.networks, **chosen.records}.items()),
            *(notice for notice in chosen.notices if notice.key not in USED),
            *shelf.notices,
        ),
        damage=damage(chosen.all) if named is not None else (),
    )


def _taken(gpu: str, record: StoredRecord) -> Message:
    return Message.of("warning.rates_of_record", gpu=gpu, record=record.name, date=str(record.date)[:10])


def learned_records(*by_gpu: Mapping[str, StoredRecord]) -> tuple[LearnedRecord, ...]:
    """Records as a calibration names them, each once."""
    entries = (
        LearnedRecord(gpu=gpu, name=record.name, digest=hashlib.sha256(read_bytes(record.path)).hexdigest()[:16])
        for records in by_gpu
        for gpu, record in records.items()
    )
    return tuple(dict.fromkeys(entries))


def told_twice(
    calibration: ReadCalibration, used: Sequence[LearnedRecord], gpus: Collection[str]
) -> tuple[Message, ...]:
    """What is wrong where a plan rests on other records of a calibration's GPUs than the calibration was learned with.

    Args:
        calibration: as read back.
        used: records that the plan rests on.
        gpus: of the plan.
    """
    known = {record.digest for record in calibration.records}
    taken = {record.digest for record in used}
    touched = set(gpus) & set(calibration.facts.gpus)
    new = tuple(record for record in used if record.gpu in touched and record.digest not in known)
    lost = tuple(record for record in calibration.records if record.gpu in touched and record.digest not in taken)
    messages = []
    if new:
        messages.append(_message("warning.calibration_without_record", calibration, new))
    elif lost:
        messages.append(_message("warning.calibration_record_gone", calibration, lost))
    return tuple(messages)


def _message(key: str, calibration: ReadCalibration, records: Sequence[LearnedRecord]) -> Message:
    return Message.of(
        key, name=calibration.facts.name, source=calibration.facts.source,
        names=tuple(dict.fromkeys(record.name for record in records)),
        gpus=tuple(dict.fromkeys(record.gpu for record in records)),
    )  # fmt: skip

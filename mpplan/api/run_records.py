"""The records that an estimate for the same GPUs would use, applied to runs that happened."""

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
    """Measurements of the GPUs of some runs, by GPU id."""

    used: tuple[LearnedRecord, ...] = ()
    rates: Mapping[str, tuple[MeasuredRates, bool]]
    """Rates of a single GPU, and whether the record came with the package."""
    networks: Mapping[str, MeasuredNetwork]
    notices: tuple[Message, ...] = ()
    """Which records were used, and what a reader must know about them."""
    damage: tuple[str, ...] = ()
    """Each line that could not be used, as `file:line: key: what`."""

    def terms(self, prepared: Prepared, parameters: Parameters | None = None) -> dict[str, Term]:
        """Return the measured terms of a run as a plan on its GPU uses them; empty without a record of the GPU.

        Args:
            prepared: the run, set up.
            parameters: for terms that no record measured; None: the shipped ones.
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
    """Return the user's records that `mpplan estimate` would use for the GPUs of these runs.

    Args:
        named: the file or folder that the user named; None: the store.
        runs: runs after set-up; a run that could not be set up is ignored.

    Raises:
        UsageError, InputFileError: the named records cannot be used for any of these GPUs.
    """
    gpus = list(dict.fromkeys(run.cluster.gpu.id for run in runs if isinstance(run, Prepared)))
    if not gpus or (named is None and not any_records()):
        return NO_RUN_RECORDS
    shelf = RecordShelf(named, gpus=())  # past runs ran on other software than the shipped record
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
    """Return the records as a calibration names them, each once."""
    entries = (
        LearnedRecord(gpu=gpu, name=record.name, digest=hashlib.sha256(read_bytes(record.path)).hexdigest()[:16])
        for records in by_gpu
        for gpu, record in records.items()
    )
    return tuple(dict.fromkeys(entries))


def record_mismatches(
    calibration: ReadCalibration, used: Sequence[LearnedRecord], gpus: Collection[str]
) -> tuple[Message, ...]:
    """Warn if a plan uses other records of a calibration's GPUs than those with which the calibration was learned.

    Args:
        calibration: as read back.
        used: records that the plan rests on.
        gpus: GPUs of the plan.
    """
    learned_digests = {record.digest for record in calibration.records}
    used_digests = {record.digest for record in used}
    touched = set(gpus) & set(calibration.facts.gpus)
    new = tuple(record for record in used if record.gpu in touched and record.digest not in learned_digests)
    lost = tuple(
        record for record in calibration.records if record.gpu in touched and record.digest not in used_digests
    )
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

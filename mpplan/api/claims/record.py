"""The user's own evidence for claims: measurements of `mpplan claims --measure` and training of `mpplan numerics`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import CannotMeasureError, InputFileError, MpplanError

if TYPE_CHECKING:
    from planner.claims.evidence.trained import Trained
    from planner.records.store import StoredRecord
    from probes.session.listener import Listener

READ_BY = {
    "end-to-end": ("c01", "c05", "c06", "c07", "c08", "c10", "c11", "c12", "c13", "c18", "c19", "c23"),
    "gemm": ("c09", "c11"),
    "optimizer": ("c32",),
}
"""For each workload, the claims that read its points (`planner/claims/decided`)."""
BUDGET_S = 240.0
"""Default time limit in seconds: about the duration of the whole suite on two cores."""


def claims_dir() -> Path:
    """Return the folder of these records. Plans must not rest on them, because they hold few kernels.

    Raises:
        UsageError: no data folder can be determined.
    """
    from planner.records.home import data_dir

    return data_dir() / "claims"


def workloads_for(claims: Iterable[str]) -> tuple[str, ...]:
    """Return the workloads whose points the given claims read, in the order in which they are measured.

    Raises:
        CannotMeasureError: none of the claims reads a measurement.
    """
    from probes.record.options import CLAIMS_WORKLOADS

    ids = set(claims)
    read = tuple(name for name in CLAIMS_WORKLOADS if ids & set(READ_BY[name]))
    if not read:
        measurable = sorted({claim for ids_read in READ_BY.values() for claim in ids_read})
        raise CannotMeasureError(
            f"no measurement says anything about {', '.join(sorted(ids))}",
            hint=f"leave out --measure; these claims can be measured: {', '.join(measurable)}",
        )
    return read


def measure_claims(
    device: str, budget_s: float, listener: Listener, workloads: tuple[str, ...] = ()
) -> tuple[str, tuple[str, ...]]:
    """Measure in a separate process; return the path of the record and the groups for which no time was left.

    Args:
        workloads: from `workloads_for`; empty: all.
        device: `gpu` or `cpu`.
        budget_s: time limit in seconds.
        listener: receives the events of the measurement.

    Raises:
        CannotMeasureError: PyTorch is missing, the device is not there, or nothing was measured.
    """
    from importlib.util import find_spec

    from probes.process.client import run_in_process
    from probes.record.options import CLAIMS_SUITE, CLAIMS_WORKLOADS, Options

    if find_spec("torch") is None:
        raise CannotMeasureError("PyTorch is not installed, and the probes need it", hint="pip install 'mpplan[probe]'")
    options = Options(
        suite=CLAIMS_SUITE, device="cpu" if device == "cpu" else "cuda", workloads=workloads or CLAIMS_WORKLOADS,
        budget_s=budget_s, store=str(claims_dir()),
    )  # fmt: skip
    ended = run_in_process(options, listener)
    if ended.path is None:
        raise CannotMeasureError("nothing was measured", hint="run it again with a longer `--budget`")
    return ended.path, ended.left_out


def newest_claims_record() -> StoredRecord | None:
    """Return the newest usable record of `mpplan claims --measure`, or None."""
    from planner.records.home import has_data_dir
    from planner.records.store import list_records, open_record

    if not has_data_dir() or not claims_dir().is_dir():
        return None
    usable = [
        summary for summary in list_records(claims_dir()) if summary.facts.problem is None and not summary.shipped
    ]
    return open_record(usable[0].path) if usable else None


def named_training(name: str) -> Trained:
    """Read the training results in a document printed by `mpplan numerics --json`.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is not such a document, or it holds no training.
    """
    from mpplan.ui.documents import read_numerics
    from planner.claims.evidence.trained import trained_of

    path, document = read_numerics(name)
    trained = trained_of(document, path.name)
    if not (trained.flushing or trained.scaling or trained.pairs):
        raise InputFileError(
            f"{path}: tasks: expected training in FP16 or BF16, found none",
            hint="give `mpplan numerics` a longer --budget, or `--precision fp16,bf16`",
        )
    return trained


def newest_training() -> Trained | None:
    """Return the user's newest run of `mpplan numerics` with a finding, or None if no such run can be read.

    The run is read from the parts beside its record, which hold data for which the record has no columns.
    """
    from planner.records.home import any_records
    from planner.records.store import list_records

    if not any_records():
        return None
    own = [
        summary for summary in list_records()
        if not summary.shipped and summary.facts.problem is None and summary.facts.numerics_only
    ]  # fmt: skip
    for summary in own:
        trained = _recorded(Path(summary.path))
        if trained is not None:
            return trained
    return None


def _recorded(record: Path) -> Trained | None:
    """Read the parts beside a record; return None if they cannot be read, since the user did not ask for them."""
    from mpplan.ui.schema import check_schema
    from planner.claims.evidence.trained import trained_of
    from planner.safety.document import NUMERICS_SCHEMA
    from probes.numerics.session.document import HEAD, numerics_document
    from probes.numerics.session.parts import parts_path, read_parts

    beside = parts_path(record)
    try:
        parts = read_parts(beside) if beside.exists() else {}
        if HEAD not in parts:
            return None
        document = numerics_document(parts, str(record))
        check_schema(document, NUMERICS_SCHEMA, str(beside))
    except (MpplanError, OSError, KeyError):
        return None
    trained = trained_of(document, f"record {record.stem}")
    return trained if trained.flushing and trained.scaling and trained.pairs else None

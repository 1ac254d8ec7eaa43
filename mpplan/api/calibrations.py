"""From a file of the user's runs to a calibration: checks on what was typed, then learning from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mpplan.version import __version__
from planner.errors import InputFileError
from planner.units import HOUR_S, MINUTE_S

if TYPE_CHECKING:
    from mpplan.api.run_records import RunRecords
    from planner.calibration.learn import Calibration
    from planner.calibration.linear import Observation
    from planner.calibration.own_runs import OwnRow
    from planner.rates.parameters import Parameters

FAR_RATIO = 4.0
"""A run this much faster than predicted cannot be true: predictions already lie near what a GPU can do."""
HOPELESS_RATIO = 30.0
"""A run this much slower cannot be true either: the worst published layouts are 15 times slower than predicted."""
ABOUT = 1.6
"""A slip of units explains a ratio if the two differ by less than this factor."""
RATES = ("tokens_per_s_per_gpu", "samples_per_s", "tflops_per_gpu", "mfu")
"""Metrics of which more is faster."""
CHECK = "check the value, its unit and the configuration; leave the row out if it describes something else"
SHOWN = 5
"""Rows or names listed in one message."""


def calibration_of(
    rows: Sequence[Mapping[str, str]], *, source: str, records: str | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Learn from a file of runs.

    Args:
        rows: text by column name.
        source: name of the file.
        records: file or folder of measurement records of the runs' GPUs; None: those that a plan takes by itself.

    Returns:
        The document `mpplan.calibration/1`, worded, and warnings for people.

    Raises:
        InputFileError: no row can teach, or one of them cannot be true.
        UsageError: there are no such records.
    """
    from mpplan.api.document import worded
    from mpplan.api.run_records import run_records
    from planner.calibration.document import to_calibration_document
    from planner.calibration.learn import learn
    from planner.rates.parameters import shipped_parameters
    from reports.text.messages import word

    shipped = shipped_parameters()
    observations, warnings = observed(rows, source)
    recorded = run_records(records, (observation.prepared for observation in observations))
    observations = [replace(o, measured=recorded.terms(o.prepared, shipped)) for o in observations]
    warnings += [*(word(notice) for notice in recorded.notices), *(f"not used: {line}" for line in recorded.damage)]
    warnings += _check(observations, source)
    learned = learn(observations, shipped, source)
    calibration = replace(learned, rows=_as_validated(learned, observations, shipped, recorded))
    document = worded(to_calibration_document(calibration, source=source, version=__version__, records=recorded.used))
    warnings += [f"{row['id']}: {row['conflict']}" for row in document["rows"] if row["conflict"]][:SHOWN]
    bounded = [entry["label"] for entry in document["learned"] if entry["bounded"]]
    if bounded:
        far = "your runs differ from most teams by more than three standard deviations; limited to three"
        warnings.append(f"{', '.join(bounded)}: {far}")
    return document, warnings


def _as_validated(
    learned: Calibration, observations: Sequence[Observation], shipped: Parameters, recorded: RunRecords
) -> tuple[OwnRow, ...]:
    """The rows with the errors that `mpplan validate` shows of them, without the calibration and with it."""
    from planner.calibration.linear import drawn_residuals
    from planner.calibration.own_runs import restated

    after = [replace(o, measured=recorded.terms(o.prepared, learned.parameters)) for o in observations]
    return restated(learned.rows, drawn_residuals(observations, shipped), drawn_residuals(after, learned.parameters))


def observed(rows: Sequence[Mapping[str, str]], source: str) -> tuple[list[Observation], list[str]]:
    """The rows that can be learned from, and one warning that names the others.

    Raises:
        InputFileError: there are none, or the file holds the runs of several teams (lineages).
    """
    from planner.calibration.linear import observe
    from planner.validation.runs import Rejected, parse_result, parse_run
    from planner.validation.setup import Prepared, prepare
    from reports.text.messages import word

    lineages = {str(row.get("lineage") or "").strip() for row in rows} - {""}
    if len(lineages) > 1:
        raise InputFileError(
            f"{source}: lineage: expected the runs of one team, found {len(lineages)}: "
            f"{', '.join(sorted(lineages)[:SHOWN])}",
            hint="pass one lineage; `mpplan validate FILE --learn 3` learns each of them apart",
        )
    observations: list[Observation] = []
    reasons: dict[str, list[str]] = {}
    prepared = prepare([parse_run(cells, line=number + 2) for number, cells in enumerate(rows)])
    for number, (cells, item) in enumerate(zip(rows, prepared, strict=True)):
        result = parse_result(cells, line=number + 2)
        observation = observe(item, result, "")
        if observation is not None:
            observations.append(observation)
            continue
        if isinstance(item, Rejected):
            reason = word(item.reason)
        elif isinstance(result, Rejected):
            reason = word(result.reason)
        else:
            reason = item.run.flag if isinstance(item, Prepared) and item.run.flag else "value: no number"
        reasons.setdefault(reason, []).append(item.id if isinstance(item, Rejected) else item.run.id)
    if not observations:
        raise InputFileError(
            f"{source}: no run can be learned from: {_unused(reasons, most=1)}",
            hint="`mpplan calibrate --template` says what each column holds",
        )
    return observations, [f"not learned from: {_unused(reasons, most=SHOWN)}"] if reasons else []


def _unused(reasons: Mapping[str, Sequence[str]], most: int) -> str:
    """Rows that cannot teach, by the reason that they have in common; the others are counted.

    Args:
        reasons: ids of rows by reason.
        most: reasons, and rows of each, that are named.
    """
    told = [f"{_named(ids, most)}: {reason}" for reason, ids in list(reasons.items())[:most]]
    left = sum(len(ids) for ids in list(reasons.values())[most:])
    return "; ".join(told) + (f" (and {_rows(left)} more)" if left else "")


def _named(ids: Sequence[str], most: int) -> str:
    left = len(ids) - most
    return ", ".join(ids[:most]) + (f" and {_rows(left)} more" if left > 0 else "")


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def _check(observations: Sequence[Observation], source: str) -> list[str]:
    """Refuse values beyond the hardware, and those that no software explains: a slip of units, the total of a cluster.

    A run that is merely much slower than predicted may have a bad layout: it is used, with a warning.

    Raises:
        InputFileError: names the row and what would explain it.
    """
    from planner.validation.possible import why_impossible
    from planner.validation.predict import predict_prepared, run_rates
    from reports.text.messages import word

    slow = []
    for observation in observations:
        run = observation.run
        rates = run_rates(observation.prepared, None, observation.measured)
        ratio = observation.value / predict_prepared(observation.prepared, rates=rates).mid
        cause = _cause(run.metric, ratio, run.n_gpus or 1)
        impossible = why_impossible(observation.prepared, observation.value)
        if impossible is not None:
            raise InputFileError(f"{source}: {run.id}: {word(impossible)}", hint=cause or CHECK)
        if 1.0 / FAR_RATIO < ratio < FAR_RATIO:
            continue
        verb = "can do" if run.metric in RATES else "takes"
        times = f"{ratio:,.0f} times" if ratio >= FAR_RATIO else f"1/{1.0 / ratio:,.0f} of"
        what = f"{run.id}: value: {observation.value:g} {run.metric} is {times} what this configuration {verb}"
        faster = ratio > 1.0 if run.metric in RATES else ratio < 1.0
        if cause or faster or not 1.0 / HOPELESS_RATIO < ratio < HOPELESS_RATIO:
            raise InputFileError(f"{source}: {what}", hint=cause or CHECK)
        slow.append(what)
    if not slow:
        return []
    more = f" (and {_rows(len(slow) - SHOWN)} more)" if len(slow) > SHOWN else ""
    check = "check it; it is given" if len(slow) == 1 else "check them; they are given"
    return [f"{'; '.join(slow[:SHOWN])}{more}: {check} little weight"]


def _cause(metric: str, ratio: float, gpus: int) -> str | None:
    """The slip of units that would explain a value so many times the predicted one; None where none known does."""
    causes = {"is this the cluster's rate? give that of one GPU": float(gpus), "is it in thousands?": 1e-3}
    if metric in ("step_time_s", "time_to_train_min"):
        unit = "seconds" if metric == "step_time_s" else "minutes"
        causes = {
            f"is it in milliseconds? give {unit}": 1e3,
            "is it in seconds?": MINUTE_S,
            "is it in hours?": MINUTE_S / HOUR_S,
        }
    if metric == "peak_mem_gib":
        causes = {"is it in MiB? give GiB": 1024.0, "is it of all GPUs together?": float(gpus)}
    if metric == "samples_per_s":
        causes = {"is it of one GPU? give that of all of them": 1.0 / gpus}
    if metric in ("mfu",):
        causes = {"is it in percent? give a share below 1": 100.0}
    if metric == "tflops_per_gpu":
        causes = {"is it of the whole cluster? give that of one GPU": float(gpus)}
    for words, factor in causes.items():
        if factor > 0 and abs(np.log(ratio / factor)) < np.log(ABOUT) and abs(np.log(factor)) > np.log(FAR_RATIO) / 2:
            return words
    return None

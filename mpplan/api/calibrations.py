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
    from planner.calibration.linear import Observation

FAR_RATIO = 4.0
"""A run this much faster than predicted cannot be true: predictions already lie near what a GPU can do."""
HOPELESS_RATIO = 30.0
"""A run this much slower cannot be true either: the worst published layouts are 15 times slower than predicted."""
ABOUT = 1.6
"""A slip of units explains a ratio if the two differ by less than this factor."""
RATES = ("tokens_per_s_per_gpu", "samples_per_s", "tflops_per_gpu", "mfu")
"""Metrics of which more is faster."""
CHECK = "check the value, its unit and the configuration; leave the row out if it is of something else"
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
    calibration = learn(observations, shipped, source)
    document = worded(to_calibration_document(calibration, source=source, version=__version__, records=recorded.used))
    warnings += [f"{row['id']}: {row['conflict']}" for row in document["rows"] if row["conflict"]][:SHOWN]
    warnings += [
        f"{entry['label']}: your runs lie more than three standard deviations from most teams; kept at three"
        for entry in document["learned"]
        if entry["bounded"]
    ]
    return document, warnings


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
    observations, reasons = [], []
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
        reasons.append(f"{item.id if isinstance(item, Rejected) else item.run.id}: {reason}")
    if not observations:
        raise InputFileError(
            f"{source}: no run can be learned from: {reasons[0]}",
            hint="`mpplan calibrate --template` says what each column holds",
        )
    more = f" (and {len(reasons) - SHOWN} rows more)" if len(reasons) > SHOWN else ""
    return observations, [f"not learned from: {'; '.join(reasons[:SHOWN])}{more}"] if reasons else []


def _check(observations: Sequence[Observation], source: str) -> list[str]:
    """Refuse values beyond the hardware, and those that no software explains: a slip of units, the total of a cluster.

    A run that is merely much slower than predicted may have a bad layout: it is used, with a warning.

    Raises:
        InputFileError: names the row and what would explain it.
    """
    from planner.validation.possible import why_impossible
    from planner.validation.predict import predict_prepared, run_rates
    from reports.text.messages import word

    warnings = []
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
        warnings.append(f"{what}: check it; it is given little weight")
    return warnings


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

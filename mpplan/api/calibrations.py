"""Build a calibration from a file of the user's runs: check the rows, then learn from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mpplan.api.run_values import odd_values, odd_words
from mpplan.version import __version__
from planner.errors import InputFileError

if TYPE_CHECKING:
    from mpplan.api.run_records import RunRecords
    from planner.calibration.learn import Calibration
    from planner.calibration.linear import Observation
    from planner.rates.parameters import Parameters
    from planner.rates.terms import Term

SHOWN = 5
"""Maximum number of rows or names listed in one message."""
SHOWN_WORDS = 12
"""Maximum number of unknown words that are named; the rest are counted."""


def calibration_of(
    rows: Sequence[Mapping[str, str]], *, source: str, records: str | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Learn from a file of runs.

    Args:
        rows: text by column name.
        source: name of the file.
        records: file or folder of measurement records of the runs' GPUs; None: the records that a plan uses by default.

    Returns:
        The worded document `mpplan.calibration/1`, and warnings for people.

    Raises:
        InputFileError: no row can be learned from, or a row cannot be true.
        UsageError: the named records do not exist.
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
    observations = _with_records(observations, recorded, shipped)
    warnings += [*(word(notice) for notice in recorded.notices), *(f"not used: {line}" for line in recorded.damage)]
    odd = odd_values(observations, source)
    learned = learn(observations, shipped, source)
    warnings += odd_words(odd, learned.rows)
    calibration = _as_validated(learned, observations, shipped, recorded)
    document = worded(to_calibration_document(calibration, source=source, version=__version__, records=recorded.used))
    warnings += _conflicts(document["rows"])
    bounded = list(dict.fromkeys(entry["label"] for entry in document["learned"] if entry["bounded"]))
    if bounded:
        far = "your runs differ from most teams by more than three standard deviations; limited to three"
        warnings.append(f"{', '.join(bounded)}: {far}")
    return document, warnings


def _conflicts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the first rows that contradict others; add the metric where several rows have the same id."""
    often = Counter(row["id"] for row in rows)
    conflicting = [row for row in rows if row["conflict"]]
    lines = [
        f"{row['id']}{'' if often[row['id']] == 1 else ' (' + row['metric'] + ')'}: {row['conflict']}"
        for row in conflicting[:SHOWN]
    ]
    left = len(conflicting) - SHOWN
    more = "1 more row contradicts others" if left == 1 else f"{left:,} more rows contradict others"
    return [*lines, more] if left > 0 else lines


def _as_validated(
    learned: Calibration, observations: Sequence[Observation], shipped: Parameters, recorded: RunRecords
) -> Calibration:
    """Replace errors and widths by those that `mpplan validate` shows for the rows, without and with the calibration.

    Learning judges widths to first order. It thus misses limits (a GPU draws no more than its power limit) and what no
    run teaches, like the time that failures of a whole run take.
    """
    from planner.calibration.linear import drawn
    from planner.calibration.own_runs import restated, totals, width_ratios

    before = drawn(observations, shipped)
    after = drawn(_with_records(observations, recorded, learned.parameters), learned.parameters)
    return replace(
        learned,
        rows=restated(learned.rows, before.residual, after.residual),
        totals=totals(observations, before.residual, after.residual),
        width_ratio=width_ratios(observations, after.width_ratio / before.width_ratio),
    )


def _with_records(
    observations: Sequence[Observation], recorded: RunRecords, parameters: Parameters
) -> list[Observation]:
    """Add to the rows the measured terms of their GPUs; runs that differ only in labels share them."""
    from planner.validation.runs import unlabelled

    terms: dict[object, Mapping[str, Term]] = {}
    result = []
    for o in observations:
        key = unlabelled(o.run)
        if key not in terms:
            terms[key] = recorded.terms(o.prepared, parameters)
        result.append(replace(o, measured=terms[key]))
    return result


def observed(rows: Sequence[Mapping[str, str]], source: str) -> tuple[list[Observation], list[str]]:
    """Return the rows that can be learned from, and warnings, one of which names the unusable rows.

    Raises:
        InputFileError: no row is usable, or the file holds the runs of several teams (lineages).
    """
    from planner.calibration.linear import observe
    from planner.validation.physical_limits import why_no_such_batch, why_uneven_batch
    from planner.validation.runs import Rejected, parse_result, parse_run
    from planner.validation.setup import Prepared, prepare
    from reports.text.messages import word

    lineages = {str(row.get("lineage") or "").strip() for row in rows} - {""}
    if len(lineages) > 1:
        raise InputFileError(
            f"{source}: lineage: expected the runs of one team, found {len(lineages)}: "
            f"{', '.join(sorted(lineages)[:SHOWN])}",
            hint="pass the runs of one lineage; `mpplan validate FILE --learn 3` learns each lineage separately",
        )
    observations: list[Observation] = []
    reasons: dict[str, list[str]] = {}
    uneven: dict[str, list[str]] = {}
    prepared = prepare([parse_run(cells, line=number + 2) for number, cells in enumerate(rows)])
    for number, (cells, item) in enumerate(zip(rows, prepared, strict=True)):
        result = parse_result(cells, line=number + 2)
        observation = observe(item, result, "")
        no_batch = None if observation is None else why_no_such_batch(observation.prepared)
        if observation is not None and no_batch is None:
            observations.append(observation)
            odd_batch = why_uneven_batch(observation.prepared)
            if odd_batch is not None:
                uneven.setdefault(word(odd_batch), []).append(observation.run.id)
            continue
        if no_batch is not None:
            reason = word(no_batch)
        elif isinstance(item, Rejected):
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
    warnings = [f"not learned from: {_unused(reasons, most=SHOWN)}"] if reasons else []
    odd_batches = [_unused(uneven, most=SHOWN)] if uneven else []
    return observations, [*unknown_words_told(rows), *warnings, *odd_batches, *_unsaid_meter(observations)]


def _unsaid_meter(observations: Sequence[Observation]) -> list[str]:
    """Warn about rows of energy that leave open where it was metered: GPUs' meters show about half of a building's."""
    from planner.validation.machine import FACILITY_PUE

    energy = [o.run for o in observations if o.run.metric == "energy_mwh" and not o.run.energy_scope]
    if not energy:
        return []
    pues = sorted({run.pue or FACILITY_PUE for run in energy})
    taken = f"taken as metered for the whole building, with a PUE of {', '.join(f'{pue:g}' for pue in pues)}"
    return [
        f"{_named([run.id for run in energy], SHOWN)}: energy_scope: blank, {taken}; give gpu for the GPUs' own meters"
    ]


def unknown_words_told(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return warnings about unknown words, which count as blank, with their rows; the rest are counted."""
    from planner.validation.columns import unknown_words
    from reports.text.messages import word

    unknown = list(unknown_words(rows).items())
    lines = [f"{_named(ids, SHOWN)}: {word(reason)}" for reason, ids in unknown[:SHOWN_WORDS]]
    left = len(unknown) - SHOWN_WORDS
    return [*lines, f"{left} more words are not known: treated as blank"] if left > 0 else lines


def _unused(reasons: Mapping[str, Sequence[str]], most: int) -> str:
    """Name the rows that cannot be learned from, grouped by reason; the rest are counted.

    Args:
        reasons: ids of rows by reason.
        most: maximum number of reasons, and of rows per reason, that are named.
    """
    groups = [f"{_named(ids, most)}: {reason}" for reason, ids in list(reasons.items())[:most]]
    left = sum(len(ids) for ids in list(reasons.values())[most:])
    return "; ".join(groups) + (f" (and {_rows(left)} more)" if left else "")


def _named(ids: Sequence[str], most: int) -> str:
    left = len(ids) - most
    return ", ".join(ids[:most]) + (f" and {_rows(left)} more" if left > 0 else "")


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"

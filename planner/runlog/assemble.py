"""Assembly of one run from the events of a log: whose steps count, where it restarted, and how long its steps took."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.runlog.collect import COLUMNS, FIGURES, Collector, Gathered
from planner.runlog.log import Closing, Floats, Marked, PartTime, RunLog, Steps, Whole

SHORTEST_BAR_S = 10.0
"""Least interval between states of a progress bar. Bars show whole seconds, so over ten seconds a step time is accurate
to a tenth."""
BAR_INTERVALS = 200
"""Most intervals into which a long run with a progress bar is divided."""
FASTEST_JUMP = 2.0
"""Steps from 0 to the first state of a bar that were this many times as fast as later ones were not done by this start.
"""
OFTEN, SHORT = 0.05, 3.0
"""Lines of several ranks are interleaved if step numbers decrease in more than this share of the lines, and typically
after this number of lines or fewer."""

TOGETHER_RATIO = 0.5
"""Share of the time of its steps after which a late line may follow another, if they were not written together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The lines about steps that count."""

    framework: str
    gathered: Gathered
    kind: str
    """`lines`, `bar` or `timers`."""


def choose(collector: Collector, joining: frozenset[str]) -> Chosen | None:
    """Choose whose steps count, assuming that at most one framework leads the log; None if there are no steps.

    Args:
        collector: events of the log.
        joining: frameworks whose lines appear in the logs of other frameworks.
    """
    leading = [name for name in collector.numbered if name not in joining]
    unnumbered = [name for name in collector.unnumbered if name not in joining]
    joined = [name for name in collector.numbered if name in joining]
    framework = (leading or unnumbered or [""])[0]
    bar = collector.bar
    if leading and (bar is None or bar.framework != framework or not _timeless(collector.numbered[framework])):
        return Chosen(framework=framework, gathered=collector.numbered[framework], kind="lines")
    if bar is not None and (framework or not joined):
        label = framework or (bar.framework if bar.epoch is not None or bar.framework not in joining else "")
        return Chosen(framework=label, gathered=bar.steps, kind="bar")
    if joined:
        return Chosen(framework=framework or joined[0], gathered=collector.numbered[joined[0]], kind="lines")
    for name, gathered in collector.unnumbered.items():
        if not np.all(np.isnan(gathered.column("duration_s"))):
            counted = Gathered(line=gathered.line, columns=gathered.columns, first_line=gathered.first_line)
            counted.number.extend(range(1, len(gathered) + 1))
            return Chosen(framework=framework or name, gathered=counted, kind="timers")
    if unnumbered:
        return Chosen(framework=framework, gathered=collector.unnumbered[framework], kind="lines")
    return None


def _timeless(gathered: Gathered) -> bool:
    """Return whether lines have neither durations nor times, so that a progress bar beside them tells more."""
    return all(np.all(np.isnan(gathered.column(name))) for name in ("duration_s", "end_s"))


def assemble(name: str, collector: Collector, chosen: Chosen, *, lines: int, cut: bool) -> RunLog:
    """Assemble the run from the collected events.

    Args:
        name: name of the file.
        collector: events of the log.
        chosen: the steps that count.
        lines: number of lines in the file.
        cut: whether the last line is cut off.
    """
    notes: list[str] = []
    table = _table(chosen.gathered)
    table, disordered = (table, False) if chosen.kind == "bar" else _by_time(table)
    table, interleaved = _in_order(table)
    table = _without_late_times(table)
    disordered |= interleaved
    if disordered:
        notes.append("interleaved")
    restarted = np.diff(table["number"]) <= 0
    if chosen.kind == "lines":
        restarted |= _started_again(collector, table)
    if chosen.kind == "bar":  # a new bar restarts its seconds
        restarted |= np.diff(table["end_s"]) < 0
    if not np.any(table["number"]):  # lines without numbers show no restarts
        restarted[:] = False
    attempt = np.concatenate(([0], np.cumsum(restarted))).astype(np.int64)
    if chosen.kind == "bar":
        table, attempt = _spaced(*_without_resumed(table, attempt))
    steps, source = _timed(table, attempt, chosen.kind, _begins(collector, table["line"]))
    totals = chosen.gathered.totals
    stated = collector.facts.get("steps")
    last_step = totals[-1][1] if totals else None
    if chosen.kind == "bar" and (bar := collector.bar) is not None and bar.epoch is None:
        last_step = bar.of
    total = collector.total
    return RunLog(
        name=name,
        framework=chosen.framework,
        steps=steps,
        last_step=last_step if last_step is not None else int(stated) if isinstance(stated, float) else None,
        facts=collector.facts,
        parts=_parts(collector),
        marks=_marks(collector, steps),
        closing=None if total is None else Closing(runtime_s=total.runtime_s, steps=total.steps),
        first_s=None if collector.span_s is None else collector.span_s[0],
        final_s=None if collector.span_s is None else collector.span_s[1],
        durations_from=source,
        lines=lines,
        understood=collector.understood,
        dropped=collector.dropped,
        cut=cut,
        ended=any(between.mark.kind == "end" and not _goes_on(table, between.line) for between in collector.marks),
        zoned=collector.zoned,
        notes=tuple(notes),
    )


def _table(gathered: Gathered) -> dict[str, Floats]:
    """Convert the columns, step numbers and line numbers to arrays."""
    table: dict[str, Floats] = {name: gathered.column(name) for name in COLUMNS}
    table["number"] = np.array(gathered.number, dtype=np.float64)
    table["line"] = np.array(gathered.line, dtype=np.float64)
    return table


def _started_again(collector: Collector, table: dict[str, Floats]) -> npt.NDArray[np.bool_]:
    """Return whether the program started again after each line but the last, by its own words, `[line - 1]`.

    These are a line at each start, or one that gives the step of the checkpoint that was loaded.

    The step numbers of a run that saved a checkpoint as it stopped do not go back. All ranks may report a start, some
    of them after the first step; its number then shows that it is no other start.
    """
    number = table["number"]
    again = np.zeros(max(len(number) - 1, 0), dtype=np.bool_)
    for between, after in zip(collector.marks, _followed_by(collector, table["line"]), strict=True):
        step = between.mark.after_step
        if 0 < after < len(number) and (step is not None or between.mark.kind == "start"):
            again[after - 1] |= step is None or step >= number[after - 1]
    return again


def _begins(collector: Collector, line: Floats) -> Floats:
    """Return the step from which training went on before each line, NaN where the log does not say it, `[line]`."""
    begins = np.full(len(line), np.nan)
    for between, after in zip(collector.marks, _followed_by(collector, line), strict=True):
        if between.mark.after_step is not None and after < len(line):
            begins[after] = between.mark.after_step
    return begins


def _without_late_times(table: dict[str, Floats]) -> dict[str, Floats]:
    """Drop the times of lines that were written together with the next one, some steps after their own."""
    late, end = table["late"] > 0, table["end_s"]
    if np.sum(late) < 2:
        return table
    worked = table["duration_s"][1:] * np.diff(table["number"])
    with np.errstate(invalid="ignore"):
        apart = np.diff(end) >= TOGETHER_RATIO * worked
    together = late[1:] & late[:-1] & ~apart
    return table | {"end_s": np.where(np.append(together, False), np.nan, end)}


def _rows(table: dict[str, Floats], indices: Whole) -> dict[str, Floats]:
    return {name: column[indices] for name, column in table.items()}


def _by_time(table: dict[str, Floats]) -> tuple[dict[str, Floats], bool]:
    """Sort the lines by time if step numbers and clock go back together, and say whether they did.

    No restart turns back the clock: these are the files of several ranks or jobs one after another, or a table of one
    metric after another.
    """
    end = table["end_s"]
    if not np.any((np.diff(table["number"]) < 0) & (np.diff(end) < 0)) or np.any(np.isnan(end)):
        return table, False
    return _rows(table, np.argsort(end, kind="stable")), True


def _repeats(number: Floats) -> npt.NDArray[np.bool_]:
    """Return whether a line repeats the step of an earlier one that is near, as ranks that write one file do, `[line]`.

    If several ranks write each step, one of them may be late by a step.
    """
    ends = np.flatnonzero(np.diff(number, append=np.nan) != 0)
    writers = int(np.median(np.diff(ends, prepend=-1)))
    order = np.argsort(number, kind="stable")
    near = (np.diff(number[order]) == 0) & (np.diff(order) <= (2 * writers if writers > 1 else 1))
    repeats = np.zeros(len(number), dtype=np.bool_)
    repeats[order[1:][near]] = True
    return repeats


def _merged(table: dict[str, Floats], repeats: npt.NDArray[np.bool_]) -> dict[str, Floats]:
    """Drop lines that repeat a step; the line before them takes the values that it lacks from them.

    DeepSpeed's pipeline engine, for one, logs the step and the time of day in one line, its duration in the next.
    """
    if not np.any(repeats):
        return table
    first, follows = np.flatnonzero(~repeats), np.flatnonzero(repeats)
    before = np.cumsum(~repeats)[follows] - 1
    same = table["number"][first[before]] == table["number"][follows]
    follows, before = follows[same], before[same]
    merged = _rows(table, first)
    for name, column in table.items():
        fills = np.isnan(merged[name][before]) & ~np.isnan(column[follows])
        merged[name][before[fills][::-1]] = column[follows[fills]][::-1]  # of several values, the first
    return merged


def _in_order(table: dict[str, Floats]) -> tuple[dict[str, Floats], bool]:
    """Drop lines that repeat a step, and sort the lines if several ranks are interleaved; say whether they were."""
    number = table["number"]
    if len(number) < 2 or not np.any(number):
        return table, False
    table = _merged(table, _repeats(number))
    decreases = np.flatnonzero(np.diff(table["number"]) < 0)
    if len(decreases) > max(SHORT, OFTEN * len(table["number"])):
        runs = np.diff(np.concatenate(([-1], decreases, [len(table["number"]) - 1])))
        if np.median(runs) <= SHORT:
            _, first = np.unique(table["number"], return_index=True)
            return _rows(table, first), True
    return table, False


def _without_resumed(table: dict[str, Floats], attempt: Whole) -> tuple[dict[str, Floats], Whole]:
    """Drop the start of the first bar if it jumped from 0 to where an earlier log of the run ended.

    The steps of the jump, at the pace of those after it, would have taken `SHORTEST_BAR_S` longer than the bar ran.
    """
    number, elapsed = table["number"], table["end_s"]
    last = int(np.flatnonzero(attempt == attempt[0])[-1])
    if number[0] != 0 or last < 2 or number[last] <= number[1]:
        return table, attempt
    pace_s = (elapsed[last] - elapsed[1]) / (number[last] - number[1])
    if pace_s * number[1] - elapsed[1] < SHORTEST_BAR_S or pace_s * number[1] < FASTEST_JUMP * elapsed[1]:
        return table, attempt
    return _rows(table, np.arange(1, len(number))), attempt[1:]


def _spaced(table: dict[str, Floats], attempt: Whole) -> tuple[dict[str, Floats], Whole]:
    """Keep states of a progress bar that are far enough apart to give the time of a step."""
    elapsed, number = table["end_s"], table["number"]
    interval_s = max(SHORTEST_BAR_S, float(np.nanmax(elapsed)) / BAR_INTERVALS)
    kept: list[int] = []
    for attempt_number in range(int(attempt[-1]) + 1):
        rows = np.flatnonzero(attempt == attempt_number)
        last = None
        for row in rows:
            if last is None or elapsed[row] - elapsed[last] >= interval_s:
                kept.append(int(row))
                last = row
        if len(rows) and kept[-1] != rows[-1] and number[rows[-1]] > number[kept[-1]]:
            has_previous = len(kept) > 1 and attempt[kept[-2]] == attempt_number
            if has_previous:  # the last interval is short: merge it with the previous one
                kept.pop()
            kept.append(int(rows[-1]))
    chosen = np.array(kept, dtype=np.int64)
    return _rows(table, chosen), attempt[chosen] - attempt[chosen[0]] if len(chosen) else attempt


def _timed(table: dict[str, Floats], attempt: Whole, kind: str, begins: Floats) -> tuple[Steps, str]:
    """Steps of each line with their durations, as printed or from the clock, and the source of the durations."""
    number, duration = table["number"], table["duration_s"]
    count = np.full(len(number), np.nan)
    same = np.diff(attempt) == 0
    count[1:][same] = np.diff(number)[same]
    usual = float(np.nanmedian(count)) if np.any(~np.isnan(count)) else 1.0
    first = np.flatnonzero(np.isnan(count))
    by_clock = np.full(len(number), np.nan)
    elapsed = np.diff(table["end_s"])[same]
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = elapsed / np.diff(number)[same]
    by_clock[1:][same] = np.where((seconds > 0) & np.isfinite(seconds), seconds, np.nan)
    share = np.mean(~np.isnan(duration)) if len(duration) else 0.0
    printed = share > 0.5 or (share > 0 and bool(np.all(np.isnan(by_clock))))
    source = "timers" if kind == "timers" else "printed" if printed else "bar" if kind == "bar" else "clock"
    if source in ("bar", "clock"):
        duration = by_clock
    if source == "bar":  # the first state of a bar is its start
        count[first] = 0.0
    else:
        new = np.diff(number, prepend=0.0)  # a start that goes on after the last line repeats none of its steps
        most = np.where(new > 0, new, np.maximum(number, 1.0))
        own = (number - begins)[first]
        count[first] = np.where(own > 0, own, np.minimum(max(usual, 1.0), most[first]))
    if not np.any(~np.isnan(duration)):
        source = ""
    steps = Steps(
        number=number.astype(np.int64), count=count, duration_s=duration, attempt=attempt,
        end_s=np.full(len(number), np.nan) if kind == "bar" else table["end_s"], line=table["line"].astype(np.int64),
        **{name: table[name] for name in FIGURES if name != "duration_s"},
    )  # fmt: skip
    return steps, source


def _parts(collector: Collector) -> dict[str, PartTime]:
    """Mean times by part, from the mean of each timer over its lines, less the timers that are nested in it."""
    sums: dict[str, list[float]] = {}
    means = {key: (least / lines, most / lines) for key, (least, most, lines) in collector.parts.items()}
    part_of = {timer: name for name, timer, _ in means}
    for (name, _, inside), ends in means.items():
        sums.setdefault(name, [0.0, 0.0])
        for number, value in enumerate(ends):
            sums[name][number] += value
            if inside in part_of:
                sums.setdefault(part_of[inside], [0.0, 0.0])[number] -= value
    return {
        name: PartTime(least_s=max(least, 0.0), most_s=max(most, least, 0.0)) for name, (least, most) in sums.items()
    }


def _followed_by(collector: Collector, line: Floats | Whole) -> list[int]:
    """Return the index of the line of steps that follows each mark in the file; their number if none does.

    Args:
        collector: events of the log.
        line: number of the line in the file, `[line]`, in any order.
    """
    order = np.argsort(line, kind="stable")
    places = np.searchsorted(line[order], [between.line for between in collector.marks])
    return [int(order[place]) if place < len(order) else len(order) for place in places]


def _goes_on(table: dict[str, Floats], ended_line: int) -> bool:
    """Return whether steps follow an end of training, as when a run is made longer."""
    later = table["line"] > ended_line
    return bool(np.any(later)) and float(np.max(table["number"][later])) > float(
        np.max(table["number"][~later], initial=0.0)
    )


def _marks(collector: Collector, steps: Steps) -> tuple[Marked, ...]:
    """Place the marks before the line of steps that follows them, since dropped lines have shifted the indices."""
    return tuple(
        Marked(kind=between.mark.kind, before=before, duration_s=between.mark.duration_s)
        for between, before in zip(collector.marks, _followed_by(collector, steps.line), strict=True)
    )


def restarts(steps: Steps) -> list[int]:
    """Indices of the first line after each restart of the program."""
    return (np.flatnonzero(np.diff(steps.attempt)) + 1).tolist()

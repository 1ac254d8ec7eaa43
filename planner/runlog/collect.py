"""Collection of a log's events by framework, in columns, since a log may have millions of lines."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import field, replace
from math import isnan

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.runlog.columns import Block
from planner.runlog.events import Detail, Event, Fact, Mark, Part, Progress, Step, Total
from planner.runlog.formats.base import LogFormat
from planner.runlog.lines import LogLine
from planner.runlog.moments import Moment

Floats = npt.NDArray[np.float64]

NAN = float("nan")
FIGURES = ("duration_s", "sequences", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu_ratio", "data_s")
"""Figures of a line about steps, NaN where it has none."""
COLUMNS = (*FIGURES, "end_s", "late")
"""Figures of a line about steps, when it was written, and 1 if that may have been some steps later."""
ABSENT = dict.fromkeys(COLUMNS, NAN) | {"late": 0.0}
"""What a column has for a line without a value."""
FARTHEST_BEHIND = 3
"""Most steps by which the progress bar of a rank is behind that of another."""
MOST_LINES = 20_000_000
"""Most lines about steps that are read, so that they take at most some 3 GB of memory (`benchmarks.log_table`)."""
FARTHEST_LATE = 64
"""Most lines about steps among which a late line looks for its place."""


class TooLongError(Exception):
    """A log has more than `MOST_LINES` lines about steps; its argument is the number of the line."""


@dataclass(slots=True, kw_only=True)
class Gathered:
    """The lines about steps of one framework."""

    number: array[int] = field(default_factory=lambda: array("q"))
    line: array[int] = field(default_factory=lambda: array("q"))
    columns: dict[str, array[float]] = field(default_factory=dict)
    """Those of `COLUMNS` that any line has."""
    totals: list[tuple[int, int]] = field(default_factory=list)
    """Index of a line of steps and the run's length in it, for each change of the length."""
    first_line: int = 0
    latest: int = 0
    """Index of the line that was added last."""

    def __len__(self) -> int:
        return len(self.number)

    def add(self, line: int, step: Step, number: int) -> None:
        """Add a line.

        Raises:
            TooLongError: there are `MOST_LINES` already.
        """
        if len(self.number) >= MOST_LINES:
            raise TooLongError(line)
        self.first_line = self.first_line or line
        if step.of is not None and (not self.totals or self.totals[-1][1] != step.of):
            self.totals.append((len(self.number), step.of))
        self.latest = len(self.number)
        if step.late and self.number and number < self.number[-1]:
            self.latest = self._place(number)
        in_order = self.latest == len(self.number)
        self.number.insert(self.latest, number)
        self.line.insert(self.latest, line)
        if step.end is not None and in_order:  # the time of a line that was put before others is not that of its step
            self._put("end_s", step.end.seconds)
        if step.late:
            self._put("late", 1.0)
        for name in FIGURES:
            value = getattr(step, name)
            if value is not None:
                self._put(name, value)
        for name, column in self.columns.items():
            if len(column) < len(self.number):
                column.insert(self.latest, ABSENT[name])

    def _put(self, name: str, value: float) -> None:
        """Put a figure of the line added last into its column."""
        column = self.columns.get(name)
        if column is None:
            column = self.columns[name] = array("d", [ABSENT[name]]) * (len(self.number) - 1)
        column.insert(self.latest, value)

    def column(self, name: str) -> Floats:
        """Return a column as an array, `[line]`, without a copy; a column that no line has takes no memory."""
        column = self.columns.get(name)
        return np.broadcast_to(ABSENT[name], len(self.number)) if column is None else np.frombuffer(column)

    def add_rows(self, first_line: int, block: Block) -> None:
        """Add consecutive rows of a table.

        Raises:
            TooLongError: there would be more than `MOST_LINES`.
        """
        rows, before = len(block.rows), len(self.number)
        if before + rows > MOST_LINES:
            raise TooLongError(first_line + int(block.rows[MOST_LINES - before]))
        self.first_line = self.first_line or first_line + int(block.rows[0])
        number = np.zeros(rows, dtype=np.int64) if block.number is None else block.number
        self.number.frombytes(number.tobytes())
        self.line.frombytes((first_line + block.rows).astype(np.int64).tobytes())
        for name in {*self.columns, *block.figures}:
            if name not in self.columns:
                self.columns[name] = array("d", [ABSENT[name]]) * before
            values = block.figures.get(name)
            cells = np.full(rows, ABSENT[name]) if values is None else values
            self.columns[name].frombytes(cells.tobytes())

    def _place(self, number: int) -> int:
        """Return the index at which a late line fills a gap between numbers; the end if there is no gap for it."""
        place = len(self.number)
        for index in range(place - 1, max(place - 1 - FARTHEST_LATE, -1), -1):
            if self.number[index] == number or self.number[index] > self.number[min(index + 1, place - 1)]:
                return place
            if self.number[index] < number:
                return index + 1
        return 0 if self.number[0] == number + 1 else place

    def fill(self, figures: Step) -> None:
        """Fill figures that the line added last does not have."""
        for name in FIGURES:
            value = getattr(figures, name)
            if value is None:
                continue
            if name not in self.columns:
                self.columns[name] = array("d", [NAN]) * len(self.number)
            if isnan(self.columns[name][self.latest]):
                self.columns[name][self.latest] = value


@dataclass(slots=True, kw_only=True)
class Bar:
    """A progress bar as lines about steps, with its elapsed time in `end_s`; bars of successive epochs are joined."""

    of: int
    steps: Gathered = field(default_factory=Gathered)
    last: tuple[int, float] = (0, 0.0)
    """Last step and elapsed time."""
    epoch: int | None = None
    base: tuple[int, float] = (0, 0.0)
    """Last step and elapsed time of the previous epoch."""
    framework: str = ""
    """Framework that has bars of this kind."""

    def add(self, line: int, bar: Progress) -> None:
        """Add a state of the bar. The first state is kept and, of the later ones, the last state of each second."""
        if bar.number > bar.of:
            return  # a damaged line
        if bar.epoch is not None and bar.epoch != self.epoch:
            again = self.epoch is not None and bar.epoch < self.epoch
            if again and bar.number == bar.of:
                return  # another rank has yet to finish its bar
            self.base = (bar.epoch * bar.of, 0.0) if again else self.last if bar.epoch and len(self.steps) else (0, 0.0)
            self.epoch = bar.epoch
        number = self.base[0] + bar.number if bar.overall is None else bar.overall
        state = number, self.base[1] + bar.elapsed_s
        if len(self.steps) and (bar.number == 0 or state == self.last):
            return  # a new bar shows none of the steps so far
        behind = self.last[0] - state[0]
        if len(self.steps) and 0 < behind <= FARTHEST_BEHIND and state[1] >= self.last[1]:
            return  # another rank's bar; a restart begins at 0 seconds
        if len(self.steps) > 1 and state[0] > self.last[0] and 0.0 <= state[1] - self.steps.columns["end_s"][-1] < 1.0:
            self.steps.number[-1], self.steps.line[-1] = state[0], line
        else:
            self.steps.add(line, replace(bar.rates, end=Moment(state[1], zoned=False)), state[0])
        self.last = state


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """A mark with its position in the log."""

    mark: Mark
    by: dict[str, int]
    """Number of lines of steps before it, by framework."""
    line: int


@dataclass(slots=True, kw_only=True)
class Collector:
    """Events of a log so far."""

    numbered: dict[str, Gathered] = field(default_factory=dict)
    unnumbered: dict[str, Gathered] = field(default_factory=dict)
    bars: dict[tuple[bool, int], Bar] = field(default_factory=dict)
    """Progress bars by whether they count epochs and by length, since data sets and evaluations have bars, too."""
    parts: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    """Sum of the least times, sum of the most times, and number of lines, by part, timer and its enclosing timer."""
    facts: dict[str, str | float] = field(default_factory=dict)
    changed: dict[str, tuple[int, str | float, str | float]] = field(default_factory=dict)
    """Facts that the log states twice with different values: the line, the earlier and the later value."""
    marks: list[Between] = field(default_factory=list)
    total: Total | None = None
    ended_line: int | None = None
    rank: int | None = None
    """Rank whose lines about steps count: the first that writes one."""
    bar_rank: int | None = None
    """Rank whose progress bars count in a log without lines about steps."""
    spans: dict[bool, tuple[float, float]] = field(default_factory=dict)
    """Earliest and latest time of any line, by whether the times have a time zone."""
    ends: dict[bool, int] = field(default_factory=dict)
    """Number of lines about steps with a time, by whether the times have a time zone."""
    dropped: int = 0
    understood: int = 0
    first_understood: int = 0
    last_understood: int = 0

    def see(self, moment: Moment | None) -> None:
        """Update the earliest and the latest time of any line."""
        if moment is None:
            return
        first, final = self.spans.get(moment.zoned, (moment.seconds, moment.seconds))
        self.spans[moment.zoned] = min(first, moment.seconds), max(final, moment.seconds)

    @property
    def zoned(self) -> bool:
        """Whether the times that count have a time zone; False without times.

        A container platform may put a time in UTC before lines with local times. Only those of the steps count: the
        difference of the two is no duration.
        """
        spans, ends = self.spans, self.ends
        return max(spans, key=lambda zoned: (ends.get(zoned, 0), spans[zoned][1] - spans[zoned][0]), default=False)

    @property
    def span_s(self) -> tuple[float, float] | None:
        """Earliest and latest time of any line, in seconds since 1970; None if no line has a time."""
        return self.spans.get(self.zoned)

    def add(self, form: LogFormat, line: LogLine, events: Iterator[Event], stamp: Moment | None) -> None:
        """Add the events that one format finds in a line.

        Raises:
            DamagedError: raised by `events`.
        """
        for number, event in enumerate(events):
            if number == 0 and line.number != self.last_understood:
                self.understood += 1
                self.last_understood = line.number
                self.first_understood = self.first_understood or line.number
            if isinstance(event, Step):
                self._step(form.name, line, event, stamp)
            elif isinstance(event, Detail):
                self._detail(form.name, line, event.figures)
            elif isinstance(event, Progress):
                self._bar(form.name, line, event)
            elif isinstance(event, Part):
                self._part(event)
            elif isinstance(event, Fact):
                self._fact(line, event)
            elif isinstance(event, Mark):
                self._mark(line, event)
            else:
                self.total = event

    def _step(self, name: str, line: LogLine, step: Step, stamp: Moment | None) -> None:
        if line.rank is not None:
            self.rank = line.rank if self.rank is None else self.rank
            if line.rank != self.rank:
                self.dropped += 1
                return
        if step.end is None and stamp is not None:
            step = _stamped(step, stamp)
        self.see(step.end)
        if step.end is not None:
            self.ends[step.end.zoned] = self.ends.get(step.end.zoned, 0) + 1
        if step.number is None:
            self.unnumbered.setdefault(name, Gathered()).add(line.number, step, 0)
        else:
            self.numbered.setdefault(name, Gathered()).add(line.number, step, step.number)
        self._memory(step)

    def add_rows(self, name: str, first_line: int, block: Block) -> None:
        """Add the steps of consecutive rows of a table.

        Args:
            name: name under which tables are collected.
            first_line: number of the line of the first row.
            block: the steps.
        """
        rows = len(block.rows)
        if not rows:
            return
        self.understood += rows
        self.first_understood = self.first_understood or first_line + int(block.rows[0])
        self.last_understood = first_line + int(block.rows[-1])
        end = block.figures.get("end_s")
        if end is not None:
            for seconds in (float(np.min(end)), float(np.max(end))):
                self.see(Moment(seconds, zoned=block.zoned))
            self.ends[block.zoned] = self.ends.get(block.zoned, 0) + rows
        tables = self.unnumbered if block.number is None else self.numbered
        tables.setdefault(name, Gathered()).add_rows(first_line, block)
        self._memory(Step(memory_gib=block.memory_gib))

    def _detail(self, name: str, line: LogLine, figures: Step) -> None:
        if line.rank is None or line.rank == self.rank:
            if (gathered := self.numbered.get(name)) is not None:
                gathered.fill(figures)
            self._memory(figures)

    def _memory(self, step: Step) -> None:
        if step.memory_gib is not None:
            self.facts["peak_mem_gib"] = max(step.memory_gib, float(self.facts.get("peak_mem_gib", 0.0)))

    def _bar(self, name: str, line: LogLine, bar: Progress) -> None:
        self.bar_rank = line.rank if self.bar_rank is None else self.bar_rank
        rank = self.bar_rank if self.rank is None else self.rank
        if line.rank is None or line.rank == rank:
            key = (bar.epoch is not None, bar.of)
            self.bars.setdefault(key, Bar(of=bar.of, framework=name)).add(line.number, bar)

    @property
    def bar(self) -> Bar | None:
        """Progress bar of training: one with epochs, else the longest-running one; None if it has only one state."""
        longest = sorted(self.bars.items(), key=lambda entry: (entry[0][0], entry[1].last[::-1]))
        return longest[-1][1] if longest and len(longest[-1][1].steps) > 1 else None

    def _part(self, part: Part) -> None:
        sums = self.parts.setdefault((part.name, part.timer, part.inside), [0.0, 0.0, 0.0])
        for number, value in enumerate((part.least_s, part.most_s, 1.0)):
            sums[number] += value

    def _fact(self, line: LogLine, fact: Fact) -> None:
        before = self.facts.get(fact.key)
        if before is not None and before != fact.value and fact.key in SETTLED:
            self.changed.setdefault(fact.key, (line.number, before, fact.value))
            return
        if fact.key == "peak_mem_gib" and isinstance(before, float) and isinstance(fact.value, float):
            self.facts[fact.key] = max(before, fact.value)
            return
        self.facts[fact.key] = fact.value

    def _mark(self, line: LogLine, mark: Mark) -> None:
        """Add a mark once per kind between two lines of steps: all ranks may log it, and a save logs begin and end."""
        by = {name: len(gathered) for name, gathered in self.numbered.items()}
        by[""] = sum(len(gathered) for gathered in self.unnumbered.values())
        if mark.kind == "end" and self.ended_line is None:
            self.ended_line = line.number
        for earlier in reversed(self.marks):
            if earlier.by != by:
                break
            if earlier.mark.kind == mark.kind:
                return
        self.marks.append(Between(mark=mark, by=by, line=line.number))


SETTLED = ("n_gpus", "seq_len", "n_layers", "hidden", "n_heads", "vocab", "params_total", "tokens_per_step")
"""Facts that are constant in one run; if one changes, another run begins."""


def _stamped(step: Step, stamp: Moment) -> Step:
    return replace(step, end=stamp)

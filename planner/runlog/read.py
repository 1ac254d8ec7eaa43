"""Streaming reader for the log of one run: `read_log`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import BinaryIO

from planner.errors import InputFileError
from planner.runlog.assemble import Chosen, assemble, choose, restarts
from planner.runlog.collect import MOST_LINES, Collector, TooLongError
from planner.runlog.columns import Columns, blocks_of
from planner.runlog.events import DamagedError, Event
from planner.runlog.formats import LOG_FORMATS
from planner.runlog.formats.base import LogFormat
from planner.runlog.formats.hugging_face import HUGGING_FACE, state_events
from planner.runlog.formats.table import columns_without_time, is_table, row_steps
from planner.runlog.json_columns import JsonColumns
from planner.runlog.lines import LARGEST_DOCUMENT, LONGEST_LINE, LogLine, lines_of, log_texts, stamp_of
from planner.runlog.log import RunLog
from planner.runlog.moments import Moment
from planner.text import shortened

JOINING = frozenset(form.name for form in LOG_FORMATS if form.joins)
SHOWN_DAMAGED = 5
"""Number of damaged lines that are reported by line number."""
FEWEST_MIXED = 2
"""Number of lines of steps from which on a second framework counts as present."""
STATE = '"log_history"'
"""What a `trainer_state.json` on one line has, and a row of a table has not."""
TABLE = LogFormat(name="", marks=(), read=lambda _: iter(()))


def read_log(file: BinaryIO, name: str) -> RunLog:
    """Read the run that a log describes.

    Args:
        file: file opened at its beginning; text or a gzip archive of text, of any size.
        name: name of the file, for errors.

    Raises:
        InputFileError: the file is not text, not a known log, a log of several runs or frameworks, or one of more than
            `MOST_LINES` lines about steps. The message says which lines were understood.
    """
    try:
        return _read(file, name)
    except TooLongError as error:
        raise InputFileError(
            f"{name}:{error.args[0]}: expected at most {MOST_LINES:,} lines about steps, found more",
            hint="pass a part of the log, or a table with a row for every tenth step",
        ) from None


def _read(file: BinaryIO, name: str) -> RunLog:
    texts = log_texts(file, name)
    opening_text = next(texts, "")
    lines = lines_of(chain([opening_text], texts))
    columns = _columns(opening_text)
    if columns is not None:
        return _Reading(name, columns[0]).run_table(columns[1], chain([opening_text], texts))
    first = next(lines, None)
    if first is None:
        raise InputFileError(f"{name}:1: expected a log of training, found nothing", hint=_known())
    opening = first.text.lstrip()
    if opening == "{" or (opening.startswith("{") and STATE in opening):
        return _state(name, chain([first], lines))
    first = replace(first, text=first.text[:LONGEST_LINE])
    reading = _Reading(name, opening if is_table(opening) else None)
    reading.timeless = columns_without_time(opening)
    return reading.run(chain([first], lines))


def _columns(opening: str) -> tuple[str, Columns | JsonColumns] | None:
    """Return the first line of a table of steps that can be read in columns, and its columns."""
    header, end, _ = opening.partition("\n")
    header = header.removesuffix("\r")
    if not end or len(header) > LONGEST_LINE or header != header.lstrip() or not is_table(header):
        return None
    is_json = header.startswith("{")
    if is_json and STATE in header:
        return None
    columns = JsonColumns.of(header) if is_json else Columns.of(header)
    return None if columns is None else (header, columns)


class _Reading:
    """State of a log while it is read."""

    def __init__(self, name: str, header: str | None) -> None:
        self.name = name
        self.header = header
        """First line of a table of steps; None for a log that is not a table."""
        self.timeless: tuple[str, ...] = ()
        """Columns of a table of steps without times."""
        self.collector = Collector()
        self.readers = [(form, form.read if form.begin is None else form.begin()) for form in LOG_FORMATS]
        self.damaged: list[int] = []
        self.damaged_count = 0
        self.last = 0
        self.cut = False

    def run(self, lines: Iterator[LogLine]) -> RunLog:
        """Read all lines and return the run."""
        for line in lines:
            stamp = None if self.header is not None else stamp_of(line.text)
            self.collector.see(stamp)
            damaged = self.damaged_count
            if self.header is not None:
                self._table_row(line)
            else:
                self._log_line(line, stamp)
            self.last = line.number
            if not line.whole and (self.damaged_count > damaged or self.collector.last_understood != line.number):
                self.cut = True
        return self.finished()

    def run_table(self, columns: Columns | JsonColumns, texts: Iterator[str]) -> RunLog:
        """Read the rows of a table in blocks, and those of other blocks one by one.

        Args:
            columns: columns of its header.
            texts: the whole table, in pieces.
        """
        number, partial = 1, ""
        for text in texts:
            whole, end, partial = (partial + text).rpartition("\n")
            for lines in blocks_of(whole.replace("\r\n", "\n")) if end else ():
                self._rows(columns, lines, number)
                number += len(lines)
            if len(partial) > LONGEST_LINE:
                break
        return self.run(lines_of(chain([partial], texts), number))

    def _rows(self, columns: Columns | JsonColumns, lines: list[str], number: int) -> None:
        """Read consecutive lines of a table, of which the first has this number."""
        skipped = 1 if number == 1 and isinstance(columns, Columns) else 0  # the header
        block = None if len(lines) == skipped else columns.read(lines[skipped:])
        self.last = number + len(lines) - 1
        if block is not None:
            self.collector.add_rows(TABLE.name, number + skipped, block)
            return
        for line in lines_of([text + "\n" for text in lines], number):
            self._table_row(line)
            self.last = line.number

    def _log_line(self, line: LogLine, stamp: Moment | None) -> None:
        text = line.text
        for form, read in self.readers:
            for mark in form.marks:
                if mark in text:
                    self._add(form, line, read(text), stamp)
                    break

    def _table_row(self, line: LogLine) -> None:
        assert self.header is not None
        if line.number > 1 or self.header.startswith("{"):
            self._add(TABLE, line, row_steps(self.header, line.text), None)

    def _add(self, form: LogFormat, line: LogLine, events: Iterator[Event], stamp: Moment | None) -> None:
        try:
            self.collector.add(form, line, events, stamp)
        except DamagedError:
            self.damaged_count += 1
            if len(self.damaged) < SHOWN_DAMAGED:
                self.damaged.append(line.number)

    def finished(self) -> RunLog:
        """Return the run after all lines were read."""
        _check_one_framework(self.name, self.collector)
        chosen = choose(self.collector, JOINING)
        if chosen is None or not len(chosen.gathered):
            raise _nothing(self)
        log = assemble(self.name, self.collector, chosen, lines=self.last, cut=self.cut)
        _check_one_run(log, self.collector, chosen)
        return replace(log, damaged=tuple(self.damaged), damaged_count=self.damaged_count)


def _state(name: str, lines: Iterator[LogLine]) -> RunLog:
    """Read a `trainer_state.json`, which is a single document."""
    pieces, size = [], 0
    for line in lines:
        pieces.append(line.text)
        size += len(line.text)
        if size > LARGEST_DOCUMENT:
            raise InputFileError(f"{name}: expected a trainer_state.json of at most 64 MiB", hint=_known())
    reading = _Reading(name, None)
    reading.last = len(pieces)
    reading.collector.understood = reading.last - 1  # a document is understood as a whole or not at all
    try:
        reading.collector.add(HUGGING_FACE, LogLine(number=1, text=""), state_events("\n".join(pieces)), None)
    except (ValueError, RecursionError):
        raise InputFileError(
            f"{name}:1: expected a log of training or a trainer_state.json, found another document", hint=_known()
        ) from None
    return reading.finished()


def _known() -> str:
    names = [form.name for form in LOG_FORMATS if form.name not in ("arguments",)]
    return f"known are logs of {', '.join(names)}, a trainer_state.json, and tables with `step_time_s` or `timestamp`"


def _nothing(reading: _Reading) -> InputFileError:
    collector = reading.collector
    if reading.timeless and not collector.understood:
        columns = shortened(", ".join(reading.timeless))
        return InputFileError(
            f"{reading.name}:1: expected the time of each step, found a table with the columns {columns}",
            hint="add a column `step_time_s` or `timestamp`; the `run.history()` of W&B has `_timestamp`",
        )
    understood = f"understood {collector.understood:,} of {reading.last:,} lines"
    if collector.understood:
        understood += f", the first of them line {collector.first_understood}, and none about a step"
    if reading.damaged:
        understood += f"; damaged are lines {', '.join(map(str, reading.damaged))}"
    place = reading.damaged[0] if reading.damaged else 1
    return InputFileError(f"{reading.name}:{place}: expected a log of training, {understood}", hint=_known())


def _check_one_framework(name: str, collector: Collector) -> None:
    tables = {**collector.unnumbered, **collector.numbered}
    leading = {key: len(value) for key, value in tables.items() if key not in JOINING and len(value) >= FEWEST_MIXED}
    if len(leading) < 2:
        return
    by_first_line = sorted(leading, key=lambda key: tables[key].first_line)
    frameworks = " and ".join(
        f"{key} ({leading[key]:,} lines from line {tables[key].first_line} on)" for key in by_first_line
    )
    raise InputFileError(
        f"{name}:{tables[by_first_line[1]].first_line}: expected steps of one framework, understood {frameworks}",
        hint="split the file into one log for each run",
    )


def _check_one_run(log: RunLog, collector: Collector, chosen: Chosen) -> None:
    """Check that the log is of one run, with one length and model, which does not start again after its end."""
    hint = "cut the file there, and compare each run alone"
    if collector.changed:
        key, (line, before, after) = next(iter(collector.changed.items()))
        raise InputFileError(
            f"{log.name}:{line}: {key}: expected one run, found {_plain(before)} before and {_plain(after)} here; "
            f"understood {chosen.framework or 'steps'} from line {chosen.gathered.first_line} on",
            hint=hint,
        )
    totals = chosen.gathered.totals
    if len({of for _, of in totals}) > 1:
        index, of = next(entry for entry in totals if entry[1] != totals[0][1])
        line = chosen.gathered.line[index]
        raise InputFileError(
            f"{log.name}:{line}: expected one run, found one of {totals[0][1]:,} steps before and one of {of:,} here; "
            f"understood {chosen.framework or 'steps'} from line {chosen.gathered.first_line} on",
            hint=hint,
        )
    ended, number = collector.ended_line, log.steps.number
    for index in restarts(log.steps):
        line = int(log.steps.line[index])
        if ended is not None and line > ended and number[index] <= number[index - 1]:
            raise InputFileError(
                f"{log.name}:{line}: expected one run, found one that ended in line {ended} and another that begins; "
                f"understood {chosen.framework or 'steps'} from line {chosen.gathered.first_line} on",
                hint=hint,
            )


def _plain(value: str | float) -> str:
    return f"{value:,.10g}" if isinstance(value, float) else value

"""What is wrong with the lines of a record file: the first in detail, the others as a number."""

from __future__ import annotations

from dataclasses import field

from planner.lazy import dataclass

KEPT = 1000
"""Problems of lines that are kept in detail, of those not used and of those used all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordProblem:
    """Something wrong with one line of a record file."""

    line: int
    """Counted from 1; 0 where it concerns the whole file."""
    key: str | None
    what: str
    """What was expected and what was found."""
    used: bool = False
    """True where the line is used all the same (a contended point)."""

    def said_of(self, name: str) -> str:
        """The problem as `file:line: key: what`."""
        where = f"{name}:{self.line}" if self.line else name
        return f"{where}: {self.key}: {self.what}" if self.key else f"{where}: {self.what}"


@dataclass(frozen=True, slots=True)
class Problems:
    """The problems of one file as they are found: a file of millions of bad lines has millions."""

    kept: list[RecordProblem] = field(default_factory=list)
    """The first `KEPT` of each sort, in the order in which they were found."""
    counts: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    """Lines with a problem, by whether they are used all the same."""

    def add(self, line: int, what: str, key: str | None = None, *, used: bool = False) -> None:
        """Note the problem of a line."""
        self.take(RecordProblem(line=line, key=key, what=what, used=used))

    def take(self, problem: RecordProblem) -> None:
        """Note a problem."""
        if problem.line:
            self.counts[problem.used] += 1
        if not problem.line or self.counts[problem.used] <= KEPT:
            self.kept.append(problem)

    @property
    def left_out(self) -> int:
        """Lines that are not used and whose problem is not kept."""
        return max(self.counts[False] - KEPT, 0)

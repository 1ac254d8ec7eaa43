"""Problems with the lines of a record file: the first ones in detail, the others as a number."""

from __future__ import annotations

from dataclasses import field

from planner.lazy import dataclass

KEPT = 1000
"""Number of problems kept in detail, for unused lines and for lines used nonetheless, each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordProblem:
    """Something wrong with one line of a record file."""

    line: int
    """Line number from 1; 0 if the problem concerns the whole file."""
    key: str | None
    what: str
    """Description: what was expected and what was found."""
    used: bool = False
    """True if the line is used nonetheless (a contended point)."""

    def describe(self, name: str) -> str:
        """Format the problem as `file:line: key: what`."""
        location = f"{name}:{self.line}" if self.line else name
        return f"{location}: {self.key}: {self.what}" if self.key else f"{location}: {self.what}"


@dataclass(frozen=True, slots=True)
class Problems:
    """Bounded collection of the problems of one file, which may have millions of bad lines."""

    kept: list[RecordProblem] = field(default_factory=list)
    """The first `KEPT` problems of unused and of used lines, in the order in which they were found."""
    counts: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    """Number of lines with a problem, by whether they are used nonetheless."""

    def add(self, line: int, what: str, key: str | None = None, *, used: bool = False) -> None:
        """Record the problem of a line."""
        self.take(RecordProblem(line=line, key=key, what=what, used=used))

    def take(self, problem: RecordProblem) -> None:
        """Record a problem."""
        if problem.line:
            self.counts[problem.used] += 1
        if not problem.line or self.counts[problem.used] <= KEPT:
            self.kept.append(problem)

    @property
    def left_out(self) -> int:
        """Number of unused lines whose problem is not kept."""
        return max(self.counts[False] - KEPT, 0)

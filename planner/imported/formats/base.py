"""The interface of a format: how a file of a tool is recognised, and how it is read."""

from __future__ import annotations

from collections.abc import Callable

from planner.imported.reading import Beside, Reading
from planner.imported.source import SourceFile
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFormat:
    """The files of one tool."""

    name: str
    """As `--as` takes it, and as a record names the tool."""
    what: str
    """The files in a few words."""
    gives: str
    """What a plan gets from them, in one sentence without a full stop."""
    takes_steps: bool
    """Whether a log of steps beside the file is of use."""
    recognises: Callable[[str], bool]
    """Whether the first characters of a file are of this format; says no to anything rather than fail."""
    read: Callable[[SourceFile, Beside], Reading]
    """Raises `InputFileError` where the file is damaged or holds nothing of use, `UsageError` where something beside
    it is missing."""

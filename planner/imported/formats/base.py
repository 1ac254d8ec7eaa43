"""Interface of a format: how a file of a tool is recognised, and how it is read."""

from __future__ import annotations

from collections.abc import Callable

from planner.imported.reading import ImportContext, Reading
from planner.imported.source import SourceFile
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFormat:
    """The files of one tool."""

    name: str
    """Name for `--as`, and of the tool in a record."""
    what: str
    """Short description of the files."""
    gives: str
    """Use of the files for a plan, in one sentence without a full stop."""
    takes_steps: bool
    """Whether a log of steps beside the file is of use."""
    recognises: Callable[[str], bool]
    """Whether the first characters of a file are of this format. It never raises: the answer is no if in doubt."""
    read: Callable[[SourceFile, ImportContext], Reading]
    """Reads a file. It raises `InputFileError` if the file is damaged or holds nothing of use, and `UsageError` if
    something is missing beside it."""

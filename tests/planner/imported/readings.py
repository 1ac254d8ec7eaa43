"""Samples of other tools' files, read."""

from __future__ import annotations

from pathlib import Path

from planner.imported.formats import format_of
from planner.imported.reading import ImportContext, Reading, Training
from planner.imported.source import SourceFile, read_source
from planner.imported.steps import read_steps

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> SourceFile:
    """A sample by its name."""
    return read_source(SAMPLES / name)


def text_file(text: str, name: str = "file.txt") -> SourceFile:
    """A file of this text."""
    return SourceFile(name=name, content=text.encode())


def context_of(steps: str | None = None, utc_offset_s: float | None = None, **training: object) -> ImportContext:
    """What a user gives beside a file; `steps` is the name of a sample."""
    log = None if steps is None else read_steps(sample(steps))
    return ImportContext(training=Training(**training), steps=log, utc_offset_s=utc_offset_s)  # type: ignore[arg-type]


def reading(source: SourceFile, context: ImportContext | None = None, form: str | None = None) -> Reading:
    """A file in the format that its content shows, or that is named."""
    return format_of(source, form).read(source, context or ImportContext())

"""Flags that several commands share, so that they read and behave the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

JsonFlag = Annotated[bool, typer.Option("--json", help="Print the answer as a JSON document on stdout.")]
QuietFlag = Annotated[bool, typer.Option("--quiet", "-q", help="No notes, warnings or progress on stderr.")]
StrictFlag = Annotated[bool, typer.Option("--strict", help="Exit 5 when something is missing, 6 when unstable.")]
OutputOption = Annotated[
    str | None, typer.Option("--output", "-o", metavar="PATH", help="Write to this file; `-` is stdout.")
]

"""`mpplan doctor`: what this machine can measure, and what to install or permit for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from json import dumps
from typing import TYPE_CHECKING

import typer

from mpplan.ui import options

if TYPE_CHECKING:
    from probes.session.doctor import Finding

SCHEMA = "mpplan.doctor/1"


def doctor(json: options.JsonFlag = False) -> None:
    """Say what this machine can measure, and what to install or permit for the rest."""
    from probes.session.doctor import examine

    found = examine()
    if json:
        typer.echo(dumps({"schema": SCHEMA, "findings": [asdict(one) for one in found]}, indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(_text(found)))


def _text(found: Sequence[Finding]) -> list[str]:
    lines: list[str] = []
    for device, findings in groupby(found, key=lambda one: one.device):
        lines.append(device or "this machine")
        group = list(findings)
        width = max(len(one.what) for one in group)
        for one in group:
            lines.append(f"  {'✓' if one.ok else '✗'} {one.what.ljust(width)}  {one.detail}")
            if one.fix:
                lines.append(f"    {' ' * width}  → {one.fix}")
    return lines

"""`mpplan doctor`: what this machine can measure, and what to install or permit for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from json import dumps
from typing import TYPE_CHECKING

import typer

from mpplan.ui import options
from mpplan.ui.listing import wrapped

if TYPE_CHECKING:
    from probes.session.doctor import DoctorFinding

SCHEMA = "mpplan.doctor/1"


def doctor(json: options.JsonFlag = False) -> None:
    """Say what this machine can measure, and what to install or permit for the rest."""
    from probes.session.doctor import examine

    findings = examine()
    if json:
        typer.echo(
            dumps(
                {"schema": SCHEMA, "findings": [asdict(finding) for finding in findings]}, indent=2, ensure_ascii=False
            )
        )
    else:
        typer.echo("\n".join(_text(findings)))


def _text(findings: Sequence[DoctorFinding]) -> list[str]:
    lines: list[str] = []
    for device, of_device in groupby(findings, key=lambda finding: finding.device):
        lines.append(wrapped(device or "This machine", 2))
        group = list(of_device)
        width = max(len(finding.what) for finding in group)
        for finding in group:
            lines.append(
                wrapped(f"  {'✓' if finding.ok else '✗'} {finding.what.ljust(width)}  {finding.detail}", width + 6)
            )
            if finding.fix:
                lines.append(wrapped(f"    {' ' * width}  → {finding.fix}", width + 8))
    return lines

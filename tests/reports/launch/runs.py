"""A plan as a framework gets it, for the tests of single frameworks."""

from __future__ import annotations

from typing import Any

import yaml

from reports.launch import find_framework
from reports.launch.framework import LaunchFile, render
from reports.launch.planned_run import PlannedRun, planned_run
from tests.reports.launch.grid import document_of


def run_of(name: str, precision: str | None = None) -> PlannedRun:
    """The plan of a name of the grid."""
    return planned_run(document_of(name), precision=precision, gpu=None, view="plans")


def file_of(framework: str, name: str, precision: str | None = None) -> LaunchFile:
    """What a framework makes of it."""
    return render(find_framework(framework), run_of(name, precision))


def yaml_of(framework: str, name: str, precision: str | None = None) -> dict[str, Any]:
    """The same, read as YAML."""
    document: dict[str, Any] = yaml.safe_load(file_of(framework, name, precision).text)
    return document

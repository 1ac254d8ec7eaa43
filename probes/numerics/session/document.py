"""Assemble the answer of a run, `mpplan.numerics/1`, from its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probes.numerics.session.agreement import held_to

Plain = dict[str, Any]

NUMERICS_SCHEMA = "mpplan.numerics/1"
SECTIONS = ("loss_scaling", "histograms", "parity", "sensitivity", "policy", "schedule")
"""Sections that are answered for each task, in the order of measurement."""
HEAD, ENDED = "head", "ended"
"""Keys of the parts that hold the request and the end of the run."""


def task_key(task: str) -> str:
    """Return the key of the part that describes a task."""
    return f"task/{task}"


def result_key(task: str, section: str) -> str:
    """Return the key of the part that holds a section's answer about a task."""
    return f"result/{task}/{section}"


def answered(parts: Mapping[str, Plain], task: str, section: str) -> Plain | None:
    """Return a section's answer about a task; None if there is none or the section failed."""
    row = parts.get(result_key(task, section))
    return None if row is None or "failed" in row else row


def numerics_document(parts: Mapping[str, Plain], record: str | None) -> Plain:
    """Return the answer as far as it goes; a section that is missing for a task is named in `cut_short`.

    Args:
        parts: the parts by key.
        record: path of the record, shown to the reader.
    """
    head = parts[HEAD]
    cut = [f"{package}" for package in head["left_out"]]
    document: Plain = {
        "schema": NUMERICS_SCHEMA,
        **{name: head[name] for name in ("mpplan", "device", "device_name", "size", "metric", "margin", "software")},
        "record": record,
        "precisions": head["precisions"],
        "tasks": [parts[task_key(task)] for task in head["tasks"] if task_key(task) in parts],
    }
    for section in SECTIONS:
        rows = []
        for task in head["tasks"]:
            row = parts.get(result_key(task, section))
            if row is None or "failed" in row:
                why = "not reached" if row is None else row["failed"]
                cut.append(f"{task}: {section.replace('_', ' ')}: {why}")
                continue
            if section == "policy":
                row = held_to(row, *(answered(parts, task, beside) for beside in ("parity", "schedule")))
            rows.append({"task": task, **row})
            cut += [f"{task}: {section.replace('_', ' ')}: {what}" for what in row["cut_short"]]
        document[section] = rows
    ended = parts.get(ENDED, {})
    return {**document, "cut_short": cut, "complete": not cut, "wall_s": ended.get("wall_s")}

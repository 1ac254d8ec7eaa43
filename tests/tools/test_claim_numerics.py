"""What is kept of a document of `mpplan numerics` for the claims."""

from __future__ import annotations

import json

from planner.claims.evidence.trained import FILE, trained_of
from tools.claim_numerics import FLAGS, cpu_name, part_of, whole


def test_the_shipped_file_is_what_is_kept_of_itself_and_of_a_larger_document():
    shipped = json.loads(FILE.read_text(encoding="utf-8"))
    larger = shipped | {"sensitivity": [{"task": "x"}], "parity": [p | {"null": {}} for p in shipped["parity"]]}

    assert part_of(larger, shipped["recorded"]) == shipped
    assert trained_of(part_of(larger, {}), "d") == trained_of(shipped, "d")


def test_the_shipped_file_was_recorded_by_the_command_of_the_tool():
    recorded = json.loads(FILE.read_text(encoding="utf-8"))["recorded"]

    assert recorded["command"].split()[1:] == list(FLAGS)
    assert recorded["cpu"]
    assert recorded["date"]
    assert recorded["seeds"]
    assert recorded["emulated"] is False


def test_a_run_that_lacks_a_precision_or_a_task_is_not_whole():
    shipped = json.loads(FILE.read_text(encoding="utf-8"))
    document = shipped | {"tasks": [{"id": part["task"]} for part in shipped["histograms"]]}
    (first, *others) = shipped["parity"]
    less = first | {"pairs": [pair for pair in first["pairs"] if pair["precision"] == "bf16"]}

    assert whole(document)
    assert not whole(document | {"parity": [less, *others]})
    assert not whole(document | {"histograms": shipped["histograms"][:1]})


def test_a_cpu_has_a_name():
    assert cpu_name()

"""Every hint of a refusal leads somewhere: its flags make a plan without the fault, or it names who takes the plan."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from mpplan import estimate
from mpplan.api.document import to_document
from planner.errors import NoPlanError, UsageError
from reports.launch import FRAMEWORKS, Framework, launch_file
from reports.launch.framework import refusal_of
from reports.launch.planned_run import PlannedRun, planned_run
from tests.reports.launch.grid import GRID, documents

TRAINERS = tuple(framework for framework in FRAMEWORKS if framework.trains)
FLAGS = re.compile(r"(without )?`((?:--(?!launch)[^`]+?))`(?! that)")
"""Flags of a hint as they are to be typed; a flag whose value is the reader's to choose is none of them."""


def refusals() -> Iterator[tuple[str, Framework, str, PlannedRun, str]]:
    """Plan's name, framework, precision, plan and hint of each refusal of the grid."""
    for name, document in documents():
        for precision in [plan["precision"] for plan in document["plans"] if plan["fits"]]:
            run = planned_run(document, precision=precision, gpu=None, view="plans")
            for framework in TRAINERS:
                if refusal_of(framework, run) is None:
                    continue
                with pytest.raises(UsageError) as refused:
                    launch_file(document, framework.name, precision=precision)
                yield name, framework, precision, run, str(refused.value.hint)


def test_a_framework_that_a_hint_names_takes_the_plan_and_no_other_does() -> None:
    for name, framework, precision, run, hint in refusals():
        able = {other.name for other in TRAINERS if refusal_of(other, run) is None}

        assert set(re.findall(r"`--launch (\w+)`", hint)) == able, (name, framework.name, precision, hint)
        assert ("no other framework takes it as it is" in hint) is not able, hint


BESIDE = {"precision": ("policy",), "method": ("lora_rank", "lora_targets", "single_quant"), "pp": ("vp",)}
"""Flags that mean nothing beside another value of these, which `estimate` says."""


def asked_anew(name: str, precision: str, flags: str, *, dropped: bool) -> dict[str, Any]:
    """The question of a plan with the flags of a hint, or without them."""
    question: dict[str, Any] = {"precision": precision} | GRID[name]
    if question["precision"] != precision:  # a plan beside the asked one has the usual policy of its precision
        question.pop("policy", None)
        question["precision"] = precision
    for flag in flags.split("--")[1:]:
        key, value = (*flag.split(), True)[:2]
        key = key.replace("-", "_")
        if dropped:
            del question[key]
            continue
        question[key] = value
        if key == "policy":
            question["precision"] = str(value).split("-", maxsplit=1)[0]
        for other in BESIDE.get(key, ()):
            question.pop(other, None)
    return question


def test_a_plan_by_the_flags_of_a_hint_is_not_refused_for_the_same_reason() -> None:
    hints: set[tuple[str, str, str]] = set()
    tried: set[tuple[str, str, str]] = set()
    for name, framework, precision, run, hint in refusals():
        refusal = refusal_of(framework, run)
        assert refusal is not None
        for without, flags in FLAGS.findall(refusal.hint):
            case = (framework.name, refusal.what, flags)
            if name not in GRID:  # a layout that no search proposes
                continue
            hints.add(case)
            if case in tried:
                continue
            question = asked_anew(name, precision, flags, dropped=bool(without))
            try:
                document = to_document(estimate(**question))
            except NoPlanError:  # which says what it lacks: other plans show where the hint leads
                continue
            again = planned_run(
                json.loads(json.dumps(document)), precision=question["precision"], gpu=None, view="plans"
            )
            tried.add(case)

            assert not refusal.applies(again), (name, framework.name, hint)
    assert tried == hints
    assert len(tried) > 40

"""The lines that name a plan, and what a refusal says: its flags make a plan without the fault, or it names who can."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from mpplan.api.answer import estimate_briefly
from mpplan.api.document import to_document
from planner.errors import NoPlanError, UsageError
from reports.launch import FRAMEWORKS, Framework, find_framework, launch_file
from reports.launch.framework import head, refusal_of, render, samples_of
from reports.launch.planned_run import PlannedRun, planned_run
from tests.reports.launch.grid import GRID, answer, documents
from tests.reports.launch.runs import file_of, run_of


def test_the_head_names_model_precision_gpus_layout_length_and_program() -> None:
    lines = head(find_framework("megatron"), run_of("pipeline"))

    assert lines[0].startswith("llama-3.1-70b, pretrain, bf16 (policy bf16), 64 x h100-sxm5-80gb on 8 nodes")
    assert "tp 4, pp 4, vp 1" in lines[1]
    assert "steps of" in lines[2]
    assert "mpplan.estimate/2" in lines[3]
    assert lines[4] == "Start: bash FILE.sh"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vit", "images of 384 x 384 pixels"),
        ("sft-padded", "sequences of up to 2,048 tokens (400 on average)"),
        ("dpo-packed", "pairs of sequences of 2,048 tokens"),
        ("dense", "sequences of 8,192 tokens"),
    ],
)
def test_a_step_is_made_of_samples(name, words) -> None:
    assert samples_of(run_of(name)) == words


@pytest.mark.parametrize(("name", "unit"), [("bert", "minutes"), ("vit", "hours"), ("dense-512", "days")])
def test_a_duration_is_worded_as_in_reports(name, unit) -> None:
    assert re.search(rf"; predicted to take [\d,.]+ {unit} \([\d,.]+–[\d,.]+\)$", head(FRAMEWORKS[0], run_of(name))[2])


def test_the_power_limit_is_in_the_head_and_left_to_who_runs_the_machines() -> None:
    for framework in FRAMEWORKS:
        if framework.name != "megatron":
            made = file_of(framework.name, "power-limit")

            assert "8 x h100-sxm5-80gb at 500 W on 1 node" in made.text
            assert any("nvidia-smi -pl" in note for note in made.notes)
    assert not any("nvidia-smi" in note for note in file_of("skypilot", "dense").notes)


def test_no_name_can_end_a_comment() -> None:
    document = json.loads(answer("dense"))
    document["model"]["name"] = "a\nrm -rf /\x85b\u2028c"

    for line in head(find_framework("skypilot"), planned_run(document, precision=None, gpu=None, view="plans")):
        assert line.isprintable()


def test_a_refusal_says_what_to_ask_for_instead() -> None:
    with pytest.raises(UsageError, match=r"axolotl 0\.19\.0 cannot run this plan: it has no pipeline") as refused:
        render(find_framework("axolotl"), run_of("pipeline"))

    assert refused.value.exit_code == 2
    assert "`--pp 1`" in str(refused.value.hint)


def test_what_is_left_out_is_a_note_and_a_comment() -> None:
    made = file_of("megatron", "bf16-fsdp")

    assert any("2 bytes per parameter" in note for note in made.notes)
    assert [note for note in made.notes if f"# - {note}" not in made.text] == []


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


@pytest.mark.parametrize("most", [12, pytest.param(1000, marks=pytest.mark.long)], ids=["some", "all"])
def test_a_plan_by_the_flags_of_a_hint_is_not_refused_for_the_same_reason(most: int) -> None:
    hints: set[tuple[str, str, str]] = set()
    tried: set[tuple[str, str, str]] = set()
    for name, framework, precision, run, hint in refusals():
        refusal = refusal_of(framework, run)
        assert refusal is not None
        for without, flags in FLAGS.findall(refusal.hint):
            case = (framework.name, refusal.what, flags)
            if name not in GRID:  # a layout that no search proposes
                continue
            if case in tried or len(tried) == most:
                continue
            hints.add(case)
            question = asked_anew(name, precision, flags, dropped=bool(without))
            try:
                document = to_document(estimate_briefly(**question))
            except NoPlanError:  # which says what it lacks: other plans show where the hint leads
                continue
            replanned = planned_run(
                json.loads(json.dumps(document)), precision=question["precision"], gpu=None, view="plans"
            )
            tried.add(case)

            assert not refusal.applies(replanned), (name, framework.name, hint)
    assert tried == hints
    assert len(tried) >= min(most, 40)


def test_a_last_node_that_is_part_full_is_refused_where_as_many_processes_start_on_each() -> None:
    able = {framework.name: refusal_of(framework, run_of("uneven-nodes")) is None for framework in FRAMEWORKS}

    assert not any(able[name] for name in ("megatron", "accelerate", "skypilot"))
    assert able["deepspeed"]


@pytest.mark.parametrize(
    "framework", [framework for framework in FRAMEWORKS if framework.trains], ids=lambda framework: framework.name
)
def test_every_framework_takes_modules_of_multi_token_prediction_or_names_them(framework: Framework) -> None:
    takes = any("multi-token prediction" in taken.what for taken in framework.takes)
    leaves_out = any(rule.what.startswith("multi-token prediction") for rule in framework.leaves_out)

    assert takes != leaves_out

"""The lines that name a plan, and what a refusal says."""

from __future__ import annotations

import json
import re

import pytest

from planner.errors import UsageError
from reports.launch import FRAMEWORKS, find_framework
from reports.launch.framework import head, render, samples_of
from reports.launch.planned_run import planned_run
from tests.reports.launch.grid import answer
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

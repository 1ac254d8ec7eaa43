"""The flags made from the declared inputs: sections of the help, sources, and what a shell is offered."""

from __future__ import annotations

import pytest

from mpplan.ui.question_flags import ask_from
from planner.question.input import InputGroup


def test_the_help_of_estimate_has_the_sections_in_order(run):
    text = run("estimate", "--help").out
    places = [text.index(f"\n{section}:\n") for section in (*InputGroup, "Output", "Limits")]

    assert places == sorted(places)


def test_a_flag_shows_what_to_put_after_it(run):
    assert "  --deadline TIME " in run("estimate", "--help").out


def test_only_given_flags_are_part_of_the_question_with_their_source():
    values = {"params": "70B", "gpus": "8", "embodied": False, "precision": None, "json": True}
    ask = ask_from(values, {"params": "flag", "gpus": "environment", "json": "flag"})

    assert ask.texts == {"params": "70B", "gpus": "8"}
    assert ask.sources == {"params": "flag", "gpus": "environment"}


@pytest.mark.parametrize(("value", "text"), [(True, "yes"), (False, "no")])
def test_a_switch_is_a_yes_or_a_no_where_it_was_given(value, text):
    assert ask_from({"embodied": value}, {"embodied": "file"}).texts == {"embodied": text}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("mpplan estimate --gpu b200", "b200-sxm-180gb"),
        ("mpplan estimate --gpu h200-sxm-141gb,b200", "h200-sxm-141gb,b200-sxm-180gb"),
        ("mpplan estimate --precision fp1", "fp16"),
        ("mpplan estimate --model mixtral-8x7", "mixtral-8x7b"),
        ("mpplan estimate --policy bf16-f", "bf16-fsdp"),
        ("mpplan estimate --optimizer adamw-8", "adamw-8bit"),
        ("mpplan estimate --method ql", "qlora"),
        ("mpplan estimate --act-ckpt sel", "selective"),
        ("mpplan estimate --network ib-n", "ib-ndr"),
        ("mpplan est", "estimate"),
        ("mpplan explain plan.json carbon-m", "carbon-market"),
        ("mpplan explain plan.json cost --gpu b200", "b200-sxm-180gb"),
        ("mpplan export plan.json --launch torch", "torchtitan"),
        ("mpplan export plan.json --format fo", "focus"),
        ("mpplan export plan.json --view same-d", "same-deadline"),
        ("mpplan prices show b200", "b200-sxm-180gb"),
        ("mpplan prices show p00", "p001"),
        ("mpplan prices list --commitment sp", "spot"),
        ("mpplan gpus b200", "b200-sxm-180gb"),
        ("mpplan models mixtral-8x7", "mixtral-8x7b"),
    ],
)
def test_a_shell_is_offered_the_declared_names_and_those_of_the_catalogues(shell, words, offered):
    count = str(len(words.split()) - 1)
    result = shell(_MPPLAN_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=count)

    assert offered in result.out.split()

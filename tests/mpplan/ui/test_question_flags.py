"""The flags of a question: sections in the help, every flag with a word about it."""

from __future__ import annotations

import pytest

from mpplan.ui import question_flags as flags


def test_the_help_of_estimate_has_the_sections_in_order(run):
    text = run("estimate", "--help").out
    sections = (flags.MODEL, flags.TRAINING, flags.MACHINES, flags.LAYOUT, flags.MONEY, flags.EVIDENCE, flags.OUTPUT)
    places = [text.index(f"\n{section}:\n") for section in (*sections, flags.LIMITS)]

    assert places == sorted(places)


def test_a_flag_shows_what_to_put_after_it(run):
    assert "  --deadline TIME " in run("estimate", "--help").out


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("mpplan estimate --gpu b200", "b200-sxm-180gb"),
        ("mpplan estimate --gpu h200-sxm-141gb,b200", "h200-sxm-141gb,b200-sxm-180gb"),
        ("mpplan estimate --precision fp1", "fp16"),
        ("mpplan estimate --model mixtral-8x7", "mixtral-8x7b"),
        ("mpplan estimate --policy bf16-f", "bf16-fsdp"),
        ("mpplan estimate --optimizer adamw-8", "adamw-8bit"),
        ("mpplan est", "estimate"),
    ],
)
def test_a_shell_is_offered_names_of_the_catalogues(shell, words, offered):
    count = str(len(words.split()) - 1)
    result = shell(_MPPLAN_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=count)

    assert offered in result.out.split()

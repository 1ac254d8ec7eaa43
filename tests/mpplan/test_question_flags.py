"""The flags of a question: sections in the help, every flag with a word about it."""

from __future__ import annotations

from mpplan import question_flags as flags


def test_the_help_of_estimate_has_the_sections_in_order(run):
    text = run("estimate", "--help").out
    sections = (flags.MODEL, flags.TRAINING, flags.MACHINES, flags.LAYOUT, flags.MONEY, flags.EVIDENCE, flags.OUTPUT)
    places = [text.index(f"\n{section}:\n") for section in (*sections, flags.LIMITS)]

    assert places == sorted(places)


def test_a_flag_shows_what_to_put_after_it(run):
    assert "  --deadline TIME " in run("estimate", "--help").out

"""Text of others becomes one line of characters that print."""

from __future__ import annotations

import re
import sys
from collections import Counter
from unicodedata import category

import pytest

from mpplan.ui.sink import visible
from planner.text import UNSAFE, one_line, shortened
from reports.text.clean import clean


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (" as  it is ", "as  it is"),
        ("x\ry\nz", "x y z"),
        ("\x1b[31mred\x07", "[31mred"),
        ("half \ud800 a pair", "half a pair"),
        ("价格", "价格"),
    ],
)
def test_line_ends_and_control_characters_become_blanks(text, line):
    assert one_line(text) == line
    assert one_line(line) == line


def test_what_is_unsafe_is_all_that_controls_ends_or_turns_a_line_and_no_letter():
    unsafe = {chr(code) for code in range(sys.maxunicode + 1) if re.fullmatch(f"[{UNSAFE}]", chr(code))}

    by_category = Counter(map(category, unsafe))
    assert by_category == {"Cc": 65, "Cs": 2048, "Zl": 1, "Zp": 1, "Cf": 12}  # of Cf the 12 marks of direction (UAX 9)
    assert not any(letter.isprintable() for letter in unsafe)


@pytest.mark.parametrize("cleaned", [one_line, clean, visible], ids=lambda cleaner: cleaner.__module__)
def test_no_cleaner_lets_an_unsafe_character_through(cleaned):
    for code in (*range(0x250), *range(0x600, 0x620), *range(0x2000, 0x2080), 0xD800, 0xDFFF):
        text = cleaned(f"a{chr(code)}b")
        assert re.sub(r"[\n\t]", "", text) == re.sub(f"[{UNSAFE}]", "", text), hex(code)


def test_the_cleaners_differ_in_what_becomes_of_such_a_character():
    text = "gpt\u202e-2\x1b[0m\u200d"

    assert one_line(text) == "gpt -2 [0m"
    assert clean(text) == "gpt-2 [0m\u200d"
    assert visible(text) == "gpt\\u202e-2\\u001b[0m\u200d"


def test_a_long_text_ends_in_an_ellipsis():
    assert shortened("x" * 80) == "x" * 80
    assert shortened("x" * 81) == "x" * 79 + "…"
    assert shortened("x" * 1_000_000, 4) == "xxx…"

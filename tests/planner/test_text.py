"""Text of others becomes one line of characters that print."""

from __future__ import annotations

import pytest

from planner.text import one_line, shortened


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


def test_a_long_text_ends_in_an_ellipsis():
    assert shortened("x" * 80) == "x" * 80
    assert shortened("x" * 81) == "x" * 79 + "…"
    assert shortened("x" * 1_000_000, 4) == "xxx…"

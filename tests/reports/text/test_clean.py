from __future__ import annotations

import pytest

from reports.text.clean import clean, clean_tree, web_address


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("\x1b[31mred\x1b[0m", "[31mred [0m"),
        ("evil\u202etxt.exe", "eviltxt.exe"),
        ("\u2066isolated\u2069", "isolated"),
        ("lone \ud800 surrogate", "lone surrogate"),
        ("  spaces   folded ", "spaces folded"),
        ("模型 α 😀", "模型 α 😀"),
        (None, ""),
        (7, "7"),
    ],
)
def test_what_could_reorder_or_control_a_line_is_gone(dirty, expected):
    assert clean(dirty) == expected


def test_every_string_of_a_tree_is_cleaned_and_other_values_pass():
    tree = {"a\u202e": ["x\n", 1, None, True, {"b": "\u200fy"}]}

    assert clean_tree(tree) == {"a": ["x", 1, None, True, {"b": "y"}]}


@pytest.mark.parametrize("address", ["https://example.org/a?b=1#c", "http://example.org"])
def test_a_whole_web_address_is_a_link(address):
    assert web_address(address) == address


@pytest.mark.parametrize(
    "text",
    [
        "javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "https://user:secret@example.org",
        'https://example.org/"onmouseover="alert(1)',
        "https://example.org and more",
        "//example.org",
        "https://[broken",
        "see example.org",
    ],
)
def test_anything_else_is_no_link(text):
    assert web_address(text) is None

"""Settings as text, and read back."""

from __future__ import annotations

import json
import tomllib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reports.launch.forms import ABOUT_KEY, comment, to_json, to_toml, to_yaml

NAMES = st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1, max_size=8)
PRINTABLE = st.text(max_size=20).filter(str.isprintable)
VALUES = st.one_of(st.booleans(), st.integers(-(2**40), 2**40), PRINTABLE, st.lists(PRINTABLE, min_size=1, max_size=3))
KEYS = NAMES.filter(lambda name: name not in ("y", "n", "no", "on", "off", "yes", "true", "false", "null"))


@given(st.dictionaries(KEYS, st.one_of(VALUES, st.dictionaries(KEYS, VALUES, min_size=1)), min_size=1))
def test_yaml_reads_back(settings):
    assert yaml.safe_load(to_yaml(settings, ("about",))) == settings


@given(st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES), min_size=1))
def test_toml_reads_back(settings):
    assert tomllib.loads(to_toml(settings, ("about",))) == settings


@given(st.dictionaries(NAMES, VALUES))
def test_json_reads_back_and_names_the_plan_first(settings):
    read = json.loads(to_json(settings, ("one", "", "two")))

    assert read.pop(ABOUT_KEY) == ["one", "two"]
    assert read == settings


def test_items_that_are_sections_and_texts_of_several_lines_are_yaml_too():
    settings = {"datasets": [{"path": "./data", "type": "alpaca"}], "run": "a\n  b: c\n\nd\n"}

    assert yaml.safe_load(to_yaml(settings, ())) == settings


def test_a_comment_has_a_mark_on_every_line():
    assert comment(("a", "", "b")) == "# a\n#\n# b\n"


def test_toml_has_tables_only():
    with pytest.raises(TypeError, match="a is no table"):
        to_toml({"a": 1}, ())

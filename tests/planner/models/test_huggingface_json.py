"""Typed access to a config file: the first spelling counts, and every complaint names file, key and expectation."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError
from planner.models.huggingface_json import ConfigJson, parse_config


def config(**values: object) -> ConfigJson:
    return ConfigJson("config.json", values)


def test_the_first_spelling_that_has_a_value_counts() -> None:
    assert config(n_embd=768, hidden_size=None).count("hidden_size", "n_embd") == 768


def test_what_is_missing_or_null_is_absent() -> None:
    config_json = config(a=None)

    assert config_json.opt_count("a") is None
    assert config_json.flag("a", True)
    assert config_json.text("a") is None
    assert (config_json.texts("a"), config_json.whole_numbers("b")) == ((), ())
    assert config_json.inner("c").values == {}


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda cfg: cfg.count("layers"), "layers: expected a whole number of at least 1, found `0`"),
        (lambda cfg: cfg.count("none"), "none: expected a whole number of at least 1, but it is missing"),
        (lambda cfg: cfg.count("yes"), "yes: expected a whole number of at least 1, found `true`"),
        (lambda cfg: cfg.count("huge"), "huge: expected a whole number"),
        (lambda cfg: cfg.flag("layers", False), "layers: expected true or false"),
        (lambda cfg: cfg.text("layers"), "layers: expected text"),
        (lambda cfg: cfg.texts("mixed"), "mixed: expected a list of strings"),
        (lambda cfg: cfg.whole_numbers("mixed"), "mixed: expected a list of whole numbers"),
        (lambda cfg: cfg.inner("layers"), "layers: expected an object"),
    ],
)
def test_a_wrong_value_names_the_file_the_key_and_what_was_expected(ask, words) -> None:
    with pytest.raises(InputFileError) as caught:
        ask(config(layers=0, yes=True, huge=10**12, mixed=["a", 1]))

    assert caught.value.message.startswith(f"config.json: {words}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1', "the file ends in the middle"),
        ('{"hidden_si', "the file ends in the middle"),
        ('{"a" 1}', "not JSON"),
        ("[1]", "expected a JSON object, found list"),
        ("[" * 100_000, "expected a JSON object of a model's shape"),
    ],
)
def test_a_damaged_file_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputFileError) as caught:
        parse_config(text, "c.json")

    assert words in caught.value.message

"""The question as typed, and what a reader notes of it."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from planner.question.asked import Ask, InputValue, Reader
from planner.question.cost_inputs import POWER_CAP, SEED
from planner.question.inputs import DEADLINE, GPUS, METHOD, SEQ_LEN


def test_a_name_that_no_input_has_is_refused_with_near_ones():
    with pytest.raises(UsageError, match="unknown input `precison`") as caught:
        Ask(texts={"precison": "fp8"})

    assert "`precision`" in caught.value.hint


def test_a_text_is_stripped_and_comes_from_the_flag_unless_another_source_is_given():
    ask = Ask(texts={"gpus": " 8 ", "seed": "1"}, sources={"seed": "environment"})

    assert (ask.text(GPUS), ask.source(GPUS)) == ("8", "flag")
    assert (ask.text(SEED), ask.source(SEED)) == ("1", "environment")
    assert (ask.text(METHOD), ask.source(METHOD)) == (None, "default")


def test_a_value_is_noted_with_its_source_and_what_was_not_typed_is_not():
    read = Reader(Ask(texts={"gpus": "8"}, sources={"gpus": "file"}))

    assert (read.value(GPUS), read.value(SEQ_LEN)) == (8, None)
    assert read.inputs == {"gpus": InputValue(value=8, source="file")}


def test_a_default_is_read_like_a_typed_text():
    read = Reader(Ask(texts={}))

    assert read.value_or_default(METHOD) == "pretrain"
    assert read.inputs == {"method": InputValue(value="pretrain", source="default")}


def test_values_with_a_unit_in_their_text_are_noted_as_typed():
    read = Reader(Ask(texts={"deadline": "2w", "power_cap": "2MW"}))

    assert (read.value(DEADLINE), read.value(POWER_CAP)) == (14 * 86400.0, 2e6)
    assert [entry.value for entry in read.inputs.values()] == ["2w", "2MW"]


def test_a_later_note_replaces_the_value_and_keeps_its_place():
    read = Reader(Ask(texts={"gpus": "8"}))
    read.value(GPUS)
    read.note(SEED, 0)
    read.note(GPUS, 16, "derived", "why")

    assert list(read.inputs.items()) == [
        ("gpus", InputValue(value=16, source="derived", note="why")),
        ("seed", InputValue(value=0, source="default")),
    ]


@pytest.mark.parametrize(
    ("source", "named"),
    [("flag", "--gpus: "), ("file", "gpus in the configuration file: "), ("environment", "gpus in the environment: ")],
)
def test_a_value_that_cannot_be_read_is_blamed_on_where_it_stands(source, named):
    with pytest.raises(UsageError) as caught:
        Reader(Ask(texts={"gpus": "many"}, sources={"gpus": source})).value(GPUS)

    assert str(caught.value.message).startswith(named)


@pytest.mark.parametrize(("source", "hint"), [("flag", "for example --gpus 8"), ("file", "for example 8")])
def test_an_example_names_the_flag_only_where_it_was_typed(source, hint):
    with pytest.raises(UsageError) as caught:
        Reader(Ask(texts={"gpus": "16.5"}, sources={"gpus": source})).value(GPUS)

    assert caught.value.hint == hint

"""The question as typed, and what a reader notes of it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from planner.errors import UsageError
from planner.question.asked import Ask, InputValue, Reader, text_of
from planner.question.cost_inputs import AS_OF, EMBODIED, POWER_CAP, PRICE, QUOTE, SEED
from planner.question.inputs import DEADLINE, GPU, GPUS, INPUTS, METHOD, PRECISION, SEQ_LEN
from planner.question.parsers import parse_text


class Named(str, Enum):  # noqa: UP042 - `str` of a member is its name here, unlike that of a `StrEnum`
    LOW = "bf16"


class Silent:
    def __str__(self) -> str:
        raise KeyError


def test_a_name_that_no_input_has_is_refused_with_near_ones():
    with pytest.raises(UsageError, match="unknown input `precison`") as caught:
        Ask(texts={"precison": "fp8"})

    assert caught.value.hint == "did you mean `precision`, `region`? `help(mpplan.estimate)` lists them all"


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


TEXTS = [item for item in INPUTS if item.parse is parse_text]


@pytest.mark.parametrize("text", ["", "  "])
@pytest.mark.parametrize("item", TEXTS, ids=lambda item: item.name)
def test_a_name_or_a_file_that_is_empty_is_refused_by_the_name_of_its_input(item, text):
    with pytest.raises(UsageError, match=rf"^{item.flag}: no .* given$"):
        Ask(texts={item.name: text})


@pytest.mark.parametrize("value", ["", [], ["", ""], ()])
def test_no_gpu_is_not_the_default_gpu(value):
    with pytest.raises(UsageError, match=r"^--gpu: no name given$") as caught:
        Ask(texts={"gpu": text_of(GPU, value)})

    assert caught.value.hint == "`mpplan gpus` lists the catalogue"


def test_what_is_empty_in_a_file_is_blamed_on_it():
    with pytest.raises(UsageError, match=r"^own in the configuration file: no file given$"):
        Ask(texts={"own": ""}, sources={"own": "file"})


@pytest.mark.parametrize(("source", "hint"), [("flag", "for example --gpus 8"), ("file", "for example 8")])
def test_an_example_names_the_flag_only_where_it_was_typed(source, hint):
    with pytest.raises(UsageError) as caught:
        Reader(Ask(texts={"gpus": "16.5"}, sources={"gpus": source})).value(GPUS)

    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("item", "value", "text"),
    [
        (GPUS, np.array(8), "8"),
        (GPUS, np.int64(8), "8"),
        (GPUS, -8, "-8"),
        (EMBODIED, np.bool_(True), "yes"),
        (EMBODIED, False, "no"),
        (PRICE, Decimal("2.10"), "2.10"),
        (PRICE, Fraction(5, 2), "2.5"),
        (PRICE, 2.0, "2"),
        (AS_OF, date(2026, 11, 20), "2026-11-20"),
        (AS_OF, datetime(2026, 11, 20, 3, tzinfo=UTC), "2026-11-20"),
        (AS_OF, np.datetime64("2026-11-20"), "2026-11-20"),
        (AS_OF, np.datetime64("2026-11-20T01", "ns"), "2026-11-20"),
        (AS_OF, pd.Timestamp("2026-11-20"), "2026-11-20"),
        (PRECISION, Named.LOW, "bf16"),
        (PRECISION, np.str_("bf16"), "bf16"),
        (QUOTE, Path("quote.toml"), "quote.toml"),
        (GPU, ["h100", np.str_("a100")], "h100,a100"),
        (GPU, (name for name in ("h100", "a100")), "h100,a100"),
    ],
)
def test_a_value_of_python_is_what_one_would_write_after_the_flag(item, value, text):
    written = text_of(item, value)

    assert written == text
    assert type(written) is str


@pytest.mark.parametrize(
    ("item", "value", "message"),
    [
        (GPUS, [8, 16], "gpus takes one value, not several"),
        (GPUS, np.array([8]), "gpus takes one value, not several"),
        (GPUS, True, "gpus: `True` is neither text nor a number"),
        (GPUS, 1j, "gpus: `1j` is neither text nor a number"),
        pytest.param(GPUS, 10**5000, "gpus: a value of class int is neither text nor a number", id="many digits"),
        pytest.param(GPUS, Silent(), "gpus: a value of class Silent is neither text nor a number", id="no text"),
        (GPU, {"h100": 8}, "gpu: `{'h100': 8}` is neither text nor a number"),
        (GPU, ["h100", True], "gpu: `['h100', True]` is neither text nor a number"),
        (PRECISION, b"bf16", "precision: bytes are not text"),
    ],
)
def test_a_value_that_could_not_follow_the_flag_is_refused(item, value, message):
    with pytest.raises(UsageError) as caught:
        text_of(item, value)

    assert caught.value.message == message
    assert caught.value.hint

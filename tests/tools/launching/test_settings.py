"""Settings read from the types and arguments of a parser."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Literal

import pytest

from tools.launching.settings import READERS, argument, sections, setting_of


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Inner:
    size: int = 1
    kind: Literal["a", "b"] | None = None


@dataclass
class Outer:
    inner: Inner = field(default_factory=Inner)
    names: list[str] | str = ""


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, {"types": ["int"]}),
        (float | None, {"types": ["float", "null"]}),
        (list[str] | str, {"types": ["list", "str"]}),
        (Literal["x", "y"], {"types": ["str"], "choices": ["x", "y"]}),
        (Literal["auto"] | bool | None, {"types": ["bool", "null", "str"], "choices": ["auto"]}),
        (Literal["auto"] | str, {"types": ["str"]}),
        (Colour, {"types": ["str"], "choices": ["red", "blue"]}),
        (Annotated[int, "of anything"], {"types": ["int"]}),
        (dict[str, int], {"types": ["dict"]}),
        (Inner | None, {"types": ["dict", "null"]}),
        (object, {"types": ["any"]}),
    ],
)
def test_an_annotation_is_types_and_choices(annotation, expected):
    assert setting_of(annotation) == expected


def test_sections_are_joined_by_points():
    assert dict(sections(Outer)) == {
        "inner": {"types": ["dict"]},
        "inner.size": {"types": ["int"]},
        "inner.kind": {"types": ["null", "str"], "choices": ["a", "b"]},
        "names": {"types": ["list", "str"]},
    }


def test_an_argument_takes_none_one_or_several_values():
    parser = argparse.ArgumentParser()
    flag = parser.add_argument("--flag", action="store_true")
    single = parser.add_argument("--one", type=int, choices=(1, 2))
    several = parser.add_argument("--several", nargs="+")

    assert argument(flag) == {"types": ["str"], "values": 0}
    assert argument(single) == {"types": ["int"], "values": 1, "choices": [1, 2]}
    assert argument(several) == {"types": ["str"], "values": "+"}


def test_every_framework_has_a_reader():
    from reports.launch import FRAMEWORKS

    assert sorted(READERS) == sorted(framework.name for framework in FRAMEWORKS)

"""Dataclasses that compile when they are used are, to whoever uses them, those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from planner import lazy

ROOT = Path(__file__).parents[2]
Decorator = Callable[..., Any]


def classes(decorate: Decorator, **options: Any) -> tuple[Any, Any]:
    """A class with every kind of field, and one that inherits from it."""

    @decorate(frozen=True, slots=True, kw_only=True, **options)
    class Row:
        """Of a table."""

        name: str
        value: float = 1.5
        notes: list[str] = field(default_factory=list, compare=False)
        secret: str = field(default="s", repr=False)
        kind: str = field(init=False, default="row")

        def __post_init__(self) -> None:
            if self.value < 0:
                raise ValueError("below zero")

    @decorate(frozen=True, slots=True, kw_only=True, **options)
    class Wide(Row):
        """Of a wide table."""

        width: int

    return Row, Wide


LAZY = classes(lazy.dataclass)
STANDARD = classes(dataclasses.dataclass)


@lazy.dataclass(frozen=True, slots=True)
class Point:
    """A class that pickle finds."""

    x: float
    y: float = 0.0


@pytest.mark.parametrize(
    "values",
    [{"name": "a"}, {"name": "a", "value": 2.0, "notes": ["n"], "secret": "t"}],
    ids=["by default", "all given"],
)
def test_values_and_words_are_those_of_the_standard_one(values: dict[str, Any]) -> None:
    ours, theirs = LAZY[0](**values), STANDARD[0](**values)

    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert repr(ours) == repr(theirs)
    assert [f.name for f in dataclasses.fields(ours)] == [f.name for f in dataclasses.fields(theirs)]
    assert dataclasses.is_dataclass(ours)
    assert hash(ours) == hash(theirs)


def test_a_subclass_has_the_fields_of_both() -> None:
    ours, theirs = LAZY[1](name="a", width=3), STANDARD[1](name="a", width=3)

    assert repr(ours) == repr(theirs)
    assert ours != LAZY[0](name="a")
    assert isinstance(ours, LAZY[0])


def test_each_object_has_a_list_of_its_own() -> None:
    first, second = LAZY[0](name="a"), LAZY[0](name="b")
    first.notes.append("n")

    assert second.notes == []


def test_equality_and_hash_leave_out_what_is_not_compared() -> None:
    first, second = LAZY[0](name="a", notes=["n"]), LAZY[0](name="a")

    assert first == second
    assert hash(first) == hash(second)
    assert first != LAZY[0](name="b")
    assert first != "a"


@pytest.mark.parametrize(
    ("values", "error"),
    [({}, TypeError), ({"name": "a", "nothing": 1}, TypeError), ({"name": "a", "value": -1.0}, ValueError)],
    ids=["one is missing", "one too many", "refused by the class"],
)
def test_wrong_values_are_refused_as_there(values: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error) as ours:
        LAZY[0](**values)
    with pytest.raises(error) as theirs:
        STANDARD[0](**values)

    assert str(ours.value).replace("classes.<locals>.", "") == str(theirs.value).replace("classes.<locals>.", "")


def test_names_are_required_where_the_class_says_so() -> None:
    with pytest.raises(TypeError, match="positional"):
        LAZY[0]("a")

    assert Point(1.0, 2.0) == Point(x=1.0, y=2.0)


def test_nothing_is_set_or_deleted() -> None:
    row = LAZY[0](name="a")

    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        row.name = "b"
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'name'"):
        del row.name
    with pytest.raises(FrozenInstanceError):
        row.other = 1
    assert not hasattr(row, "__dict__")


def test_copies_are_equal_and_replacing_makes_another() -> None:
    point = Point(1.0, 2.0)

    assert pickle.loads(pickle.dumps(point)) == point
    assert copy.deepcopy(point) == copy.copy(point) == point
    assert dataclasses.replace(point, y=3.0) == Point(1.0, 3.0)
    assert point == Point(1.0, 2.0)


def test_the_signature_is_the_standard_ones() -> None:
    assert str(inspect.signature(LAZY[1])) == str(inspect.signature(STANDARD[1])).replace(" -> None", "")


def test_methods_that_a_class_has_stay() -> None:
    @lazy.dataclass(frozen=True, slots=True, kw_only=True)
    class Own:
        """Has its own."""

        x: int

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "own"

        def __hash__(self) -> int:
            return 7

    assert (Own(x=1) == Own(x=2), repr(Own(x=1)), hash(Own(x=1))) == (True, "own", 7)


def test_without_equality_objects_are_compared_by_identity() -> None:
    first, second = (classes(lazy.dataclass, eq=False)[0](name="a") for _ in range(2))

    assert first != second
    assert len({first, second}) == 2


def test_a_class_that_can_change_is_the_standard_one() -> None:
    @lazy.dataclass(slots=True)
    class Open:
        """Can change."""

        x: int = 1

    instance = Open()
    instance.x = 2

    assert instance == Open(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(instance)


def test_a_class_with_an_attribute_of_its_own_is_the_standard_one() -> None:
    @lazy.dataclass(frozen=True, slots=True, kw_only=True)
    class Counted:
        """Has an attribute that is no field."""

        x: int
        unit: ClassVar[str] = "m"

    assert [f.name for f in dataclasses.fields(Counted)] == ["x"]
    assert Counted(x=1).unit == "m"


def test_fields_are_created_when_they_are_first_asked_for() -> None:
    row, wide = classes(lazy.dataclass)

    assert not isinstance(vars(wide)["__dataclass_fields__"], dict)
    wide(name="a", width=3)
    assert not isinstance(vars(wide)["__dataclass_fields__"], dict)
    assert [f.name for f in dataclasses.fields(wide)] == ["name", "value", "notes", "secret", "kind", "width"]
    assert [f.type for f in dataclasses.fields(wide)] == [f.type for f in dataclasses.fields(STANDARD[1])]
    assert vars(wide)["__dataclass_fields__"] is wide.__dataclass_fields__
    assert wide.__match_args__ == row.__match_args__ == ()


def test_threads_that_ask_first_at_the_same_time_get_the_same_fields() -> None:
    interval_s, start = sys.getswitchinterval(), threading.Barrier(8)

    def defaults(decorated: Any) -> list[Any]:
        start.wait()
        return [(each.name, each.default, each.default_factory) for each in dataclasses.fields(decorated)]

    sys.setswitchinterval(1e-6)  # threads take turns within one completion
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(50):
                row, _ = classes(lazy.dataclass)
                answers = list(pool.map(defaults, [row] * 8))
                assert [answer for answer in answers if answer != answers[0]] == []
                assert row(name="a").notes == []
    finally:
        sys.setswitchinterval(interval_s)


@pytest.mark.parametrize("number", [1, lazy.FEW, lazy.FEW + 1, 3 * lazy.FEW])
def test_an_object_is_the_same_whether_its_class_is_compiled_yet_or_not(number: int) -> None:
    row, _ = classes(lazy.dataclass)
    instances = [row(name="a", notes=[str(n)]) for n in range(number)]

    assert repr(instances[-1]) == repr(STANDARD[0](name="a", notes=[str(number - 1)]))
    assert ("_lazy_init" in row.__init__.__code__.co_qualname) == (number <= lazy.FEW)
    with pytest.raises(ValueError, match="below zero"):
        row(name="a", value=-1.0)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'name'"):
        row()


def test_the_import_of_the_planner_compiles_none_of_its_classes() -> None:
    program = (
        "import gc; import mpplan.api.answer;"
        "inits = [c.__init__ for c in gc.get_objects() if isinstance(c, type) and '__dataclass_fields__' in vars(c)"
        " and c.__module__.startswith('planner.') and hasattr(c.__init__, '__code__')];"
        "print(sum('_lazy_init' in init.__code__.co_qualname for init in inits), len(inits))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    waiting, total = map(int, done.stdout.split())

    assert total > 30
    assert waiting > 0.9 * total

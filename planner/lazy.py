"""Frozen dataclasses whose methods and fields are made when they are first needed: those of most classes never are.

A drop-in for `dataclasses.dataclass`: fields, `replace`, `asdict`, `fields`, pickling and equality are the same. The
standard one compiles six methods of every class at import, a good tenth of what a short command takes
(`make startup`; docs/decisions/0024-dataclasses-compile-when-used.md). Type checkers see the standard one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from inspect import Parameter, Signature
from operator import attrgetter
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """Make a class a dataclass; see `dataclasses.dataclass`.

        Args:
            cls: the class; None: a decorator is returned.
            **options: of the standard one. Methods of frozen classes without an order are made when they are first
                called; any other class is handed to the standard one.
        """
        if not options.get("frozen") or any(options.get(name) for name in NOT_LAZY) or not options.get("init", True):
            return dataclasses.dataclass(cls, **options)
        return (lambda of: _made(of, options)) if cls is None else _made(cls, options)


__all__ = ["dataclass"]
NOT_LAZY = ("order", "unsafe_hash", "weakref_slot")
"""Options of which there are too few classes to be worth a way of their own."""


def _made(cls: type, options: dict[str, Any]) -> type:
    """A class with its slots, and with fields and methods that are made when they are needed."""
    own = set(vars(cls))
    compares, shows = options.get("eq", True), options.get("repr", True)
    asked = options | {"init": False, "repr": False, "eq": False, "frozen": False}
    made: Any = _with_slots(cls, asked) if _is_plain(cls, options) else dataclasses.dataclass(**asked)(cls)
    made.__init__ = _made_at_first("__init__", made, _init)
    made.__signature__ = _SignatureOfFields()
    made.__setattr__, made.__delattr__ = _set, _delete
    if options.get("slots"):
        made.__getstate__, made.__setstate__ = _state, _restore
    if shows and "__repr__" not in own:
        made.__repr__ = _shown
    if compares and "__eq__" not in own:
        made.__eq__ = _made_at_first("__eq__", made, _eq)
    if compares and ("__hash__" not in own or (vars(cls)["__hash__"] is None and "__eq__" in own)):
        made.__hash__ = _made_at_first("__hash__", made, _hash)
    return made  # type: ignore[no-any-return]


def _is_plain(cls: type, options: dict[str, Any]) -> bool:
    """Whether a class with slots inherits no fields, has words of its own, and every name with a type is a field."""
    types = vars(cls).get("__annotations__", {}).values()
    alone = cls.__bases__ == (object,) and "__slots__" not in vars(cls) and bool(cls.__doc__)
    return alone and bool(options.get("slots")) and not any(word in of for of in types for word in NO_FIELDS)


NO_FIELDS = ("ClassVar", "InitVar", "KW_ONLY")
"""What the standard library reads in a type that makes its name no field, or another kind of one."""


def _with_slots(cls: type, asked: dict[str, Any]) -> type:
    """A plain class with slots, as the standard one makes it, whose fields are made when they are asked for."""
    body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    names = tuple(body.get("__annotations__", {}))
    defaults = {name: body.pop(name) for name in names if name in body}
    made: Any = type(cls)(cls.__name__, cls.__bases__, body | {"__slots__": names})
    made.__qualname__ = cls.__qualname__
    for name in KEPT:
        setattr(made, name, _Kept(name, defaults, asked | {"slots": False}))
    return made  # type: ignore[no-any-return]


KEPT = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
"""What the standard library keeps of the fields of a class."""


class _Kept:
    """One of them; all are made when one is first asked for, by the standard library for a class of the same fields."""

    def __init__(self, name: str, defaults: dict[str, Any], asked: dict[str, Any]) -> None:
        self.name, self.defaults, self.asked = name, defaults, asked

    def __get__(self, _instance: object, cls: Any) -> Any:
        owner = next(of for of in cls.__mro__ if vars(of).get(self.name) is self)
        body = {"__annotations__": owner.__annotations__, "__doc__": owner.__doc__, "__module__": owner.__module__}
        twin: Any = dataclasses.dataclass(**self.asked)(type(owner.__name__, (), body | self.defaults))
        for name in KEPT:
            setattr(owner, name, vars(twin)[name])
        return vars(twin)[self.name]


def _described(cls: Any) -> list[Field[Any]]:
    """The fields of a class as far as its methods need them: without making those that the standard library keeps."""
    kept = vars(cls).get(KEPT[0])
    if not isinstance(kept, _Kept):
        return list(fields(cls))
    described: list[Field[Any]] = []
    for name in cls.__slots__:
        default = kept.defaults.get(name, MISSING)
        one: Any = default if isinstance(default, Field) else dataclasses.field(default=default)
        one.name = name
        if one.kw_only is MISSING:
            one.kw_only = bool(kept.asked.get("kw_only"))
        described.append(one)
    return described


def _made_at_first(name: str, cls: Any, make: Callable[[Any], Callable[..., Any]]) -> Callable[..., Any]:
    """A method that puts another, made for the class, in its place when it is first called."""

    def first(self: Any, /, *given: Any, **named: Any) -> Any:
        method = make(cls)
        method.__name__, method.__qualname__, method.__module__ = name, f"{cls.__qualname__}.{name}", cls.__module__
        setattr(cls, name, method)
        return method(self, *given, **named)

    first.__name__, first.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return first


def _init(cls: Any) -> Callable[..., Any]:
    """A method that puts each value that is given in its place; what is left out is made from its default.

    Nothing is compiled: a loop over the slots is about as fast as a line for each, and there at once.
    """
    every = {field.name: field for field in _described(cls)}
    taken = {name: _setter(cls, name) for name, field in every.items() if field.init}
    by_place = [name for name in taken if not every[name].kw_only]
    defaults = {name: make for name, field in every.items() if (make := _default_maker(field)) is not None}
    fixed = [(_setter(cls, name), make) for name, make in defaults.items() if name not in taken]
    left_out = [(name, make) for name, make in defaults.items() if name in taken]
    finish = getattr(cls, "__post_init__", None)

    def completed(given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        placed = dict(zip(by_place, given, strict=False))
        if len(given) > len(by_place) or not placed.keys().isdisjoint(named):
            _refuse(cls, given, named)
        values = placed | named
        values |= {name: make() for name, make in left_out if name not in values}
        if values.keys() != taken.keys():
            _refuse(cls, given, named)
        return values

    def method(self: Any, /, *given: Any, **named: Any) -> None:
        values = completed(given, named) if given or len(named) != len(taken) else named
        try:
            for name, value in values.items():
                taken[name](self, value)
        except KeyError:
            _refuse(cls, given, named)
        for put, make in fixed:
            put(self, make())
        if finish is not None:
            finish(self)

    return method


def _setter(cls: Any, name: str) -> Callable[[Any, Any], None]:
    """Puts a value in the place of a frozen object: in its slot, where it has one."""
    slot = getattr(cls, name, None)
    if isinstance(slot, MemberDescriptorType):
        return slot.__set__
    return lambda self, value: object.__setattr__(self, name, value)


def _default_maker(field: Field[Any]) -> Callable[[], Any] | None:
    """What gives the value of a field that is left out; None where it must be given."""
    if field.default_factory is not MISSING:
        return field.default_factory
    default = field.default
    return None if default is MISSING else lambda: default


def _refuse(cls: Any, given: tuple[Any, ...], named: dict[str, Any]) -> NoReturn:
    """Raise the error of the standard one for wrong values: that of a function with such arguments."""
    own: dict[str, Any] = {}
    words: dict[bool, list[str]] = {False: ["self"], True: []}
    for field in fields(cls):
        if field.init:
            words[bool(field.kw_only)].append(field.name + ("" if _default_maker(field) is None else "=None"))
    exec(f"def __init__({', '.join([*words[False], *(['*', *words[True]] if words[True] else [])])}): pass", own)
    own["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    own["__init__"](None, *given, **named)
    raise AssertionError("values were refused that fit")


def _eq(cls: Any) -> Callable[..., Any]:
    values = _values([field.name for field in _described(cls) if field.compare])

    def method(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return method


def _hash(cls: Any) -> Callable[..., Any]:
    hashed = (field for field in _described(cls) if (field.compare if field.hash is None else field.hash))
    values = _values([field.name for field in hashed])

    def method(self: Any) -> int:
        return hash(values(self))

    return method


def _values(names: list[str]) -> Callable[[Any], Any]:
    """The values of some fields, as a tuple, as the standard one compares and hashes them."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda of: tuple(getattr(of, name) for name in names)


def _shown(self: Any) -> str:
    values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({values})"


def _set(_self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


class _SignatureOfFields:
    """What `inspect.signature` and `help` say of the class."""

    def __get__(self, _instance: object, cls: Any) -> Signature:
        by_place, by_name = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
        taken = sorted((field for field in fields(cls) if field.init), key=lambda field: bool(field.kw_only))
        return Signature(
            [
                Parameter(
                    field.name,
                    by_name if field.kw_only else by_place,
                    default=_default(field),
                    annotation=field.type,
                )
                for field in taken
            ]
        )


def _default(field: Field[Any]) -> Any:
    """As the standard one shows it."""
    if field.default is not MISSING:
        return field.default
    return Parameter.empty if field.default_factory is MISSING else FACTORY


class _Factory:
    """The default of a field that is made anew for each object."""

    def __repr__(self) -> str:
        return "<factory>"


FACTORY = _Factory()

"""Checks of the values that a plugin returns.

The runtime of components stops the whole instance at a value of another type, without its place.
Every value is therefore checked before it is returned. For each type a function is generated that
only finds out whether the value fits, because this happens in every call; the place of a value
that does not fit is searched afterwards.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from ._numbers import IntRange, Real
from .error import Error

#: Checks a value: raises `Misfit` if it may not fit.
Check = Callable[[object], None]


class Misfit(Exception):
    """A value that may not fit its type."""


def expect(check: Check, hint: Any, value: object, name: str) -> None:
    """Checks a returned value.

    Raises:
        Error: code `wrong-value`, with the place of the value and what it should be.
    """
    try:
        check(value)
    except Misfit:
        for place, expected, found in misfits(hint, value, ""):
            raise wrong_value(name, place, expected, found) from None


def wrong_value(name: str, place: str, expected: str, found: object) -> Error:
    """Returns the error about a returned value. `name` is the method, `place` a path in its value."""
    message = f"{place or name}: expected {expected}, got {shown(found)}"
    if found is None and not place:
        message += "; did you forget `return`?"
    return Error("wrong-value", message)


def shown(value: object) -> str:
    """Returns a value as a message shows it, at most 80 characters."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a broken __repr__ of the plugin
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def misfits(hint: Any, value: object, place: str) -> Iterator[tuple[str, str, object]]:
    """Yields the parts of a value that do not fit: place, expected type, value."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        yield from _number_misfits(arguments[1], value, place)
    elif origin in (Union, UnionType):
        yield from _union_misfits(arguments, value, place)
    elif origin is list:
        if not isinstance(value, list):
            yield place, "a list", value
            return
        for index, element in enumerate(value):
            yield from misfits(arguments[0], element, f"{place}[{index}]")
    elif origin is tuple:
        if not isinstance(value, tuple) or len(value) != len(arguments):
            yield place, f"a tuple of {len(arguments)}", value
            return
        for index, (argument, element) in enumerate(zip(arguments, value)):
            yield from misfits(argument, element, f"{place}[{index}]")
    elif dataclasses.is_dataclass(hint):
        yield from _record_misfits(hint, value, place)
    elif hint is str:
        if not isinstance(value, str):
            yield place, "a string", value
        elif not is_text(value):
            yield place, "text that can be encoded as UTF-8 (it has lone surrogates)", value
    elif hint is float:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            yield place, "a number", value
    elif not isinstance(value, hint):
        yield place, _noun(hint), value


def _number_misfits(
    allowed: IntRange | Real, value: object, place: str
) -> Iterator[tuple[str, str, object]]:
    expected = allowed.describe()
    if isinstance(value, bool):
        yield place, expected, value
    elif isinstance(allowed, IntRange):
        if not isinstance(value, int) or not allowed.low <= value <= allowed.high:
            if allowed.unit and isinstance(value, float):
                expected += " (seconds() and milliseconds() return one)"
            yield place, expected, value
    elif (
        not isinstance(value, (int, float))
        or not math.isfinite(value)
        or (allowed.positive and value <= 0)
    ):
        yield place, expected, value


def _union_misfits(
    options: tuple[Any, ...], value: object, place: str
) -> Iterator[tuple[str, str, object]]:
    if NoneType in options:
        if value is None:
            return
        options = tuple(option for option in options if option is not NoneType)
    if len(options) == 1:
        yield from misfits(options[0], value, place)
        return
    for option in options:
        if isinstance(value, option):
            yield from misfits(option, value, place)
            return
    names = ", ".join(option.__name__ for option in options)
    yield place, f"one of {names}", value


def _record_misfits(cls: Any, value: object, place: str) -> Iterator[tuple[str, str, object]]:
    if not isinstance(value, cls):
        yield place, _noun(cls), value
        return
    dot = f"{place}." if place else ""
    for name, hint in _fields(cls):
        yield from misfits(hint, getattr(value, name), f"{dot}{name}")


def _noun(cls: type) -> str:
    name = {bool: "True or False", bytes: "bytes"}.get(cls, cls.__name__)
    if issubclass(cls, Enum):
        return f"a {cls.__name__} ({', '.join(f'{cls.__name__}.{case.name}' for case in cls)})"
    return name if cls in (bool, bytes) else f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def is_text(value: str) -> bool:
    """True if a string has no lone surrogates, so that it can be encoded as UTF-8."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fields(cls: type) -> list[tuple[str, Any]]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return [(field.name, hints[field.name]) for field in dataclasses.fields(cls)]


_checks: dict[type, Check] = {}


def check_of(hint: Any) -> Check:
    """Returns the check of a type."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _record(hint)
    source = _Source()
    source.emit(hint, "v", 1)
    return source.build(f"check {hint}")


def _record(cls: type) -> Check:
    if cls in _checks:
        return _checks[cls]
    # Types may contain themselves.
    _checks[cls] = lambda value: _checks[cls](value)
    source = _Source()
    source.line(1, f"if v.__class__ is not {source.name(cls)}: raise Misfit")
    for name, hint in _fields(cls):
        source.line(1, f"x = v.{name}")
        source.emit(hint, "x", 1)
    _checks[cls] = source.build(f"check {cls.__name__}")
    return _checks[cls]


class _Source:
    """The source of a check."""

    def __init__(self) -> None:
        self.lines = ["def check(v):"]
        self.names: dict[str, Any] = {"Misfit": Misfit, "is_text": is_text, "isfinite": math.isfinite}

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def name(self, value: object) -> str:
        name = f"n{len(self.names)}"
        self.names[name] = value
        return name

    def build(self, title: str) -> Check:
        if len(self.lines) == 1:
            self.line(1, "pass")
        exec(compile("\n".join(self.lines), f"<{title}>", "exec"), self.names)  # noqa: S102
        check: Check = self.names["check"]
        return check

    def emit(self, hint: Any, var: str, depth: int) -> None:
        """Adds the check of one variable."""
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            self._number(arguments[1], var, depth)
        elif origin in (Union, UnionType):
            self._union(arguments, var, depth)
        elif origin is list:
            element = f"e{depth}"
            self.line(depth, f"if {var}.__class__ is not list: raise Misfit")
            self.line(depth, f"for {element} in {var}:")
            self.emit(arguments[0], element, depth + 1)
        elif origin is tuple:
            self.line(
                depth,
                f"if {var}.__class__ is not tuple or len({var}) != {len(arguments)}: raise Misfit",
            )
            element = f"t{depth}"
            for index, argument in enumerate(arguments):
                self.line(depth, f"{element} = {var}[{index}]")
                self.emit(argument, element, depth)
        elif dataclasses.is_dataclass(hint) and isinstance(hint, type):
            self.line(depth, f"{self.name(_record(hint))}({var})")
        elif hint is str:
            self.line(
                depth,
                f"if {var}.__class__ is not str or not ({var}.isascii() or is_text({var})): "
                "raise Misfit",
            )
        else:
            self.line(depth, f"if {var}.__class__ is not {self.name(hint)}: raise Misfit")

    def _number(self, allowed: IntRange | Real, var: str, depth: int) -> None:
        if isinstance(allowed, IntRange):
            condition = f"{var}.__class__ is not int or not {allowed.low} <= {var} <= {allowed.high}"
        else:
            condition = f"{var}.__class__ is not float or not isfinite({var})"
            if allowed.positive:
                condition += f" or {var} <= 0"
        self.line(depth, f"if {condition}: raise Misfit")

    def _union(self, options: tuple[Any, ...], var: str, depth: int) -> None:
        if NoneType in options:
            self.line(depth, f"if {var} is not None:")
            depth += 1
            options = tuple(option for option in options if option is not NoneType)
        if len(options) == 1:
            self.emit(options[0], var, depth)
            return
        checks = self.name({option: _record(option) for option in options})
        case = f"c{depth}"
        self.line(depth, f"{case} = {checks}.get({var}.__class__)")
        self.line(depth, f"if {case} is None: raise Misfit")
        self.line(depth, f"{case}({var})")

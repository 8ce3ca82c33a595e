"""Configurations: JSON values as the plugin's own dataclasses, and the schema made of these.

A configuration is a dataclass. Its annotations state the types, `Annotated` adds a range and a
description:

    @dataclass
    class Config:
        plan_tokens: Annotated[int, Range(1, 100_000), "Tokens of the task."] = 200
        lengths: Annotated[list[Fixed | Uniform], "The length of each turn."] = field(...)

Supported: `bool`, `int`, `float`, `str`, `list[T]`, `dict[str, T]`, `Literal`, `T | None`, enums
(by value), other dataclasses, `Any`, and unions of dataclasses that each have a member
`type: Literal["..."]`, which selects one. A `ValueError` or an `Error` of `__post_init__` refuses a
value.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin

from .error import Error

C = TypeVar("C")

_MISSING = dataclasses.MISSING


@dataclasses.dataclass
class NoConfig:
    """The configuration of a plugin without keys."""


class Range(NamedTuple):
    """The smallest and the largest allowed number; None sets no limit."""

    low: float | None = None
    high: float | None = None


class Member(NamedTuple):
    """A key of a configuration."""

    name: str
    type: Any
    range: Range | None
    description: str | None
    default: Any
    default_factory: Any

    def is_required(self) -> bool:
        """True if the key has no default."""
        return self.default is _MISSING and self.default_factory is _MISSING


def from_json(cls: type[C], text: str) -> C:
    """Returns JSON text as a dataclass.

    Raises:
        Error: code `config`, with the JSON pointer of the value that does not fit.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Error.config("", f"the configuration is not JSON: {error}") from None
    return decode(cls, {} if value is None else value)


def decode(cls: type[C], value: object) -> C:
    """Returns a JSON value as a dataclass; errors as of `from_json`."""
    try:
        return cast(C, _decode(cls, None, value))
    except Error as error:
        # The root is a place, too.
        raise Error(error.code, error.message, error.hint, error.path or "") from None


@lru_cache(maxsize=None)
def members(cls: type) -> tuple[Member, ...]:
    """Returns the keys of a dataclass."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return tuple(
        Member(field.name, *_annotation(hints[field.name]), field.default, field.default_factory)
        for field in dataclasses.fields(cls)
        if field.init
    )


def _annotation(hint: Any) -> tuple[Any, Range | None, str | None]:
    """Splits an annotation into type, range and description."""
    if get_origin(hint) is not Annotated:
        return hint, None, None
    inner, *extras = get_args(hint)
    allowed = next((extra for extra in extras if isinstance(extra, Range)), None)
    description = next((extra for extra in extras if isinstance(extra, str)), None)
    return inner, allowed, description


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name that a typing error may have been meant for.

    At most a third of the letters differ.
    """
    best = min(known, key=lambda candidate: _distance(name, candidate), default=None)
    if best is None or _distance(name, best) * 3 > max(len(best), len(name)) + 1:
        return None
    return best


def _distance(a: str, b: str) -> int:
    """Returns the number of insertions, deletions, changes and swaps between two names."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        before, last, row = row, before, [i]
        for j, right in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (left != right))
            if i > 1 and j > 1 and left == b[j - 2] and a[i - 2] == right:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]


def describe(value: object) -> str:
    """Returns a value as a message shows it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            return "an object"
        case list():
            return "a list"
        case str():
            return f'the text "{value}"' if len(value) <= 60 else f'the text "{value[:60]}…"'
        case _:
            return repr(value)


def _refuse(expected: str, value: object) -> Error:
    return Error.config("", f"expected {expected}, found {describe(value)}")


def _decode(hint: Any, allowed: Range | None, value: object) -> object:
    """Returns a value as the type of an annotation."""
    if hint is Any or hint is object:
        return value
    if dataclasses.is_dataclass(hint):
        return _dataclass(cast(type, hint), value)
    origin = get_origin(hint)
    if origin is Annotated:
        inner, inner_range, _ = _annotation(hint)
        return _decode(inner, inner_range or allowed, value)
    if origin in (Union, types.UnionType):
        return _union(get_args(hint), allowed, value)
    if origin is Literal:
        return _one_of(get_args(hint), value)
    if origin is list or hint is list:
        return _list((get_args(hint) or (Any,))[0], value)
    if origin is dict or hint is dict:
        return _dict((get_args(hint) or (str, Any))[1], value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(_one_of([case.value for case in hint], value))
    return _scalar(hint, allowed, value)


def _scalar(hint: Any, allowed: Range | None, value: object) -> object:
    low, high = allowed or (None, None)
    if hint is bool:
        if isinstance(value, bool):
            return value
        raise _refuse("true or false", value)
    if hint is str:
        if isinstance(value, str):
            return value
        raise _refuse("a text", value)
    number: Any = value
    if hint is int and isinstance(number, float) and number.is_integer():
        number = int(number)  # JSON does not distinguish 1 and 1.0.
    if hint is float and isinstance(number, int) and not isinstance(number, bool):
        number = float(number)
    is_number = isinstance(number, hint) and not isinstance(number, bool)
    if not is_number or (isinstance(number, float) and not math.isfinite(number)):
        raise _refuse(_number(hint, low, high), value)
    if (low is not None and number < low) or (high is not None and number > high):
        raise _refuse(_number(hint, low, high), value)
    return number


def _number(hint: Any, low: float | None, high: float | None) -> str:
    noun = "an integer" if hint is int else "a number"
    match low, high:
        case None, None:
            return noun
        case _, None:
            return f"{noun} of at least {low}"
        case None, _:
            return f"{noun} of at most {high}"
        case _:
            return f"{noun} from {low} to {high}"


def _one_of(known: Iterable[Any], value: object) -> object:
    values = list(known)
    for candidate in values:
        if candidate == value and isinstance(candidate, type(value)):
            return candidate
    error = _refuse("one of " + ", ".join(json.dumps(known) for known in values), value)
    if isinstance(value, str):
        best = nearest(value, [known for known in values if isinstance(known, str)])
        error.hint = f"did you mean `{best}`?" if best else None
    raise error


def _list(item: Any, value: object) -> list[object]:
    if not isinstance(value, list):
        raise _refuse("a list", value)
    return [_below(place, item, None, element) for place, element in enumerate(value)]


def _dict(item: Any, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise _refuse("an object", value)
    return {key: _below(key, item, None, element) for key, element in value.items()}


def _below(key: str | int, hint: Any, allowed: Range | None, value: object) -> object:
    try:
        return _decode(hint, allowed, value)
    except Error as error:
        raise error.below(key) from None


def _union(options: tuple[Any, ...], allowed: Range | None, value: object) -> object:
    if type(None) in options:
        if value is None:
            return None
        options = tuple(option for option in options if option is not type(None))
    if len(options) == 1:
        return _decode(options[0], allowed, value)
    tags = {tag: option for option in options if (tag := tag_of(option)) is not None}
    if len(tags) == len(options):
        return _tagged(tags, value)
    for option in options:
        try:
            return _decode(option, allowed, value)
        except Error:
            continue
    raise _refuse("one of several types", value)


def tag_of(cls: Any) -> str | None:
    """Returns the value of `type` that selects a dataclass in a union."""
    if not dataclasses.is_dataclass(cls):
        return None
    for member in members(cast(type, cls)):
        if member.name == "type" and get_origin(member.type) is Literal:
            return cast(str, get_args(member.type)[0])
    return None


def _tagged(tags: dict[str, Any], value: object) -> object:
    names = ", ".join(f"`{tag}`" for tag in tags)
    if not isinstance(value, dict):
        raise _refuse(f"an object whose `type` is one of {names}", value)
    if "type" not in value:
        raise Error.config("", f"the key `type` is missing; it is one of {names}")
    tag = _below("type", Literal.__getitem__(tuple(tags)), None, value["type"])
    return _dataclass(tags[cast(str, tag)], value)


def _dataclass(cls: type, value: object) -> object:
    if not isinstance(value, dict):
        raise _refuse("an object", value)
    known = {member.name: member for member in members(cls)}
    for key in value:
        if key not in known:
            raise _unknown(key, known)
    arguments: dict[str, object] = {}
    for name, member in known.items():
        if name in value:
            arguments[name] = _below(name, member.type, member.range, value[name])
        elif member.is_required():
            raise Error.config("", f"the key `{name}` is missing")
    try:
        return cls(**arguments)
    except ValueError as error:
        raise Error.config("", str(error)) from None


def _unknown(key: str, known: Iterable[str]) -> Error:
    names = list(known)
    listed = ", ".join(f"`{name}`" for name in names)
    here = f"known here: {listed}" if names else "none is known here"
    best = nearest(key, names)
    hint = f"did you mean `{best}`?" if best else None
    return Error.config("", f"unknown key `{key}`; {here}", hint).below(key)

"""The JSON schema of a configuration, made of its dataclass."""

from __future__ import annotations

import dataclasses
import inspect
import types
from enum import Enum
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from .config import Member, Range, members

Json = dict[str, Any]


def schema(cls: type) -> Json:
    """Returns the JSON schema (draft 2020-12) of a configuration.

    Raises:
        TypeError: an annotation that a configuration cannot have.
    """
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_object(cls)}


def _object(cls: type) -> Json:
    result: Json = {"title": cls.__name__, "type": "object"}
    text = inspect.cleandoc(cls.__doc__ or "")
    # `dataclass` writes the signature where there is no docstring.
    if text and not text.startswith(f"{cls.__name__}("):
        result["description"] = " ".join(text.split("\n\n")[0].split())
    keys = members(cls)
    result["properties"] = {member.name: _member(cls, member) for member in keys}
    required = [member.name for member in keys if member.is_required()]
    if required:
        result["required"] = required
    result["additionalProperties"] = False
    return result


def _member(cls: type, member: Member) -> Json:
    result = _type(f"{cls.__name__}.{member.name}", member.type, member.range)
    if member.description:
        result["description"] = member.description
    if not member.is_required():
        default = member.default
        if default is dataclasses.MISSING:
            default = member.default_factory()
        result["default"] = _plain(default)
    return result


def _plain(value: object) -> object:
    """Returns a default as JSON."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, dict):
        return {key: _plain(element) for key, element in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {member.name: _plain(getattr(value, member.name)) for member in members(type(value))}
    return value


_SCALARS = {bool: "boolean", int: "integer", float: "number", str: "string"}


def _type(place: str, hint: Any, allowed: Range | None) -> Json:
    if hint is Any or hint is object:
        return {}
    if dataclasses.is_dataclass(hint):
        return _object(cast(type, hint))
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        inner_range = next((extra for extra in arguments[1:] if isinstance(extra, Range)), allowed)
        return _type(place, arguments[0], inner_range)
    if origin in (Union, types.UnionType):
        return _union(place, arguments, allowed)
    if origin is Literal:
        return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
    if origin is list or hint is list:
        return {"type": "array", "items": _type(place, (arguments or (Any,))[0], None)}
    if origin is dict or hint is dict:
        values = _type(place, (arguments or (str, Any))[1], None)
        return {"type": "object", "additionalProperties": values}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [case.value for case in hint]}
    if hint not in _SCALARS:
        raise TypeError(
            f"{place}: a configuration cannot have the type {hint!r}; the documentation of "
            "veeksha.config lists those that it can have"
        )
    result: Json = {"type": _SCALARS[hint]}
    if allowed and allowed.low is not None:
        result["minimum"] = allowed.low
    if allowed and allowed.high is not None:
        result["maximum"] = allowed.high
    return result


def _union(place: str, options: tuple[Any, ...], allowed: Range | None) -> Json:
    schemas = [_type(place, option, allowed) for option in options if option is not type(None)]
    if type(None) in options:
        schemas.append({"type": "null"})
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

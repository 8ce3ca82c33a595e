"""The base of all kinds of plugins, and their registration."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args, get_origin

from .config import NoConfig

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    C = DefaultTypeVar("C", default=NoConfig)
else:
    C = TypeVar("C")

P = TypeVar("P", bound="type[Plugin[Any]]")


class Plugin(Generic[C]):
    """A plugin of one kind. `C` is the dataclass of its configuration; without one it has no keys.

    The host opens several instances, each with the same configuration.
    """

    #: The name of the kind.
    kind: ClassVar[str] = ""

    def __init__(self, config: C) -> None:
        #: The configuration.
        self.config: C = config

    def setup(self) -> None:
        """Prepares the instance; `self.config` is set. By default it does nothing."""


#: The plugins of this component, by kind.
registered: dict[str, type[Plugin[Any]]] = {}


def plugin(cls: P) -> P:
    """Registers a class as the plugin of its kind: the decorator `@plugin`."""
    if not (isinstance(cls, type) and issubclass(cls, Plugin) and cls.kind):
        raise TypeError(
            f"@plugin: {getattr(cls, '__name__', cls)} is not a plugin; derive it from one of "
            "SessionGenerator, Agent, ArrivalProcess, TraceFlavor, EndpointCodec, Metric, "
            "RequestCheck and SloCheck"
        )
    other = registered.get(cls.kind)
    if other is not None and other.__name__ != cls.__name__:
        raise TypeError(
            f"@plugin: {cls.__name__} and {other.__name__} are both of the kind {cls.kind}; "
            "a component has at most one plugin of each kind"
        )
    for name in getattr(cls, "required", ()):
        if getattr(cls, name) is getattr(_kind_of(cls), name):
            raise TypeError(f"@plugin: {cls.__name__} has no method `{name}`")
    registered[cls.kind] = cls
    return cls


def _kind_of(cls: type[Plugin[Any]]) -> type[Plugin[Any]]:
    """Returns the base class that is the kind of a plugin."""
    return next(base for base in reversed(cls.__mro__) if base.__dict__.get("kind"))


def parameter(cls: type[Plugin[Any]], place: int) -> Any:
    """Returns the type that a plugin's class gives to a type parameter of its kind, if any."""
    for base in cls.__mro__:
        for generic in getattr(base, "__orig_bases__", ()):
            origin = get_origin(generic)
            if isinstance(origin, type) and issubclass(origin, Plugin):
                arguments = get_args(generic)
                if place < len(arguments) and not isinstance(arguments[place], typing.TypeVar):
                    return arguments[place]
    return None


def config_type(cls: type[Plugin[Any]]) -> type[Any]:
    """Returns the dataclass of a plugin's configuration."""
    found: type[Any] = parameter(cls, 0) or NoConfig
    return found

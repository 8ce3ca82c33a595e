"""Plugins that plan whole sessions in advance."""

from __future__ import annotations

from typing import Any, ClassVar, Union

from .draws import Random
from .graph import Guarantees, Request, Session
from ._plugin import C, Plugin


class SessionGenerator(Plugin[C]):
    """Plans sessions in advance.

    Session `index` must depend on (configuration, seed, index) and on nothing else: the host asks
    for sessions in any order, from several instances, and may ask for one twice.
    """

    kind: ClassVar[str] = "session-generator"
    required: ClassVar[tuple[str, ...]] = ("session",)

    def guarantees(self) -> Guarantees:
        """Returns the properties that all sessions share. By default nothing is guaranteed."""
        return Guarantees()

    def length(self) -> int | None:
        """Returns the number of sessions; None for an endless workload."""
        return None

    def session(self, index: int, random: Random) -> Session | Request:
        """Returns session `index`; a request alone is a session of it."""
        raise NotImplementedError


def whole(session: Union[Session, Request, Any]) -> Any:
    """Returns a session; a request alone is a session of it."""
    return Session([session]) if isinstance(session, Request) else session

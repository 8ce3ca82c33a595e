"""Plugins that decide when sessions arrive."""

from __future__ import annotations

from typing import ClassVar

from .draws import Random
from ._plugin import C, Plugin


class ArrivalProcess(Plugin[C]):
    """Decides when the sessions of open-loop traffic arrive.

    The arrivals must depend on (configuration, seed) and on the arrivals before, and on nothing
    else: the host opens a second process before a run and compares the first arrivals of both.
    """

    kind: ClassVar[str] = "arrival-process"
    required: ClassVar[tuple[str, ...]] = ("next",)

    def next(self, session: int, random: Random) -> int | None:
        """Returns the arrival of the next session, in nanoseconds since the start of the run.

        It is not earlier than the one before. None ends the process, and with it the run.
        """
        raise NotImplementedError

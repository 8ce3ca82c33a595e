"""Lines for the user's log.

`print` and the module `logging` go there as well: `print` with the level `info`, what is written to
standard error with `warn`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import Enum


class Level(Enum):
    """The severity of a line."""

    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3


def _to_stderr(level: Level, message: str) -> None:
    sys.stderr.write(f"{level.name}: {message}\n")


_write: Callable[[Level, str], None] = _to_stderr


def set_host_log(write_line: Callable[[Level, str], None]) -> None:
    """Sets the log of the host; outside a component lines go to standard error."""
    global _write
    _write = write_line


def write(level: Level, message: str) -> None:
    """Writes one line; lone surrogates, which a log cannot contain, are replaced."""
    line = message if isinstance(message, str) else str(message)
    if not line.isascii():
        line = line.encode("utf-8", "replace").decode()
    _write(level, line)


def debug(message: str) -> None:
    """Writes a line of the level `debug`."""
    write(Level.DEBUG, message)


def info(message: str) -> None:
    """Writes a line of the level `info`."""
    write(Level.INFO, message)


def warn(message: str) -> None:
    """Writes a line of the level `warn`."""
    write(Level.WARN, message)


def error(message: str) -> None:
    """Writes a line of the level `error`."""
    write(Level.ERROR, message)

"""What plugins do not have, and what there is instead.

A plugin runs without clock, randomness, environment, files, network and threads: the same
configuration and seed give the same sessions everywhere. The functions of the standard library
raise `SandboxError`, which names the replacement, instead of returning constants that look right.
"""

from __future__ import annotations

import builtins
import datetime
import io
import linecache
import logging
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from . import log

#: The standard library. Its own calls are not refused: `logging` reads the clock for each record.
#: (`os` is a frozen module, whose file is elsewhere.)
_LIBRARY = os.path.dirname(os.path.abspath(linecache.__file__)) + os.sep

_RANDOM = "use the `random` that the plugin is given, or `self.random` of an agent: Random.stream"
_CLOCK = "the results of a plugin must not depend on the time; responses and requests have times"
_FILES = (
    "grant the file to the plugin in the scenario and read it with veeksha.blobs, or put its "
    "content into a module"
)
_ENVIRONMENT = "pass the value in the configuration of the scenario"
_NETWORK = "the host sends the requests; return them"
_THREADS = "the host calls several instances of the plugin in parallel"

_live = False


class SandboxError(Exception):
    """A plugin asked for something that it does not have."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


SandboxError.__module__ = "veeksha"


def is_live() -> bool:
    """True in the host, False while the component is built."""
    return _live


def go_live() -> None:
    """Notes that the host calls the component."""
    global _live
    _live = True


def hint_of(error: BaseException) -> str | None:
    """Returns the remedy for an exception of the standard library that the sandbox causes."""
    if isinstance(error, SandboxError):
        return error.hint
    if isinstance(error, ImportError):
        return (
            "modules are loaded while the component is built: import them at the top of a file, "
            "not inside a function"
        )
    if isinstance(error, OSError):
        return f"plugins have no files and no network in the sandbox; {_FILES}"
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return f"plugins have no threads in the sandbox; {_THREADS}"
    return None


def _called_by_library() -> bool:
    """True if the caller of a replaced function is the standard library."""
    frame = sys._getframe(2)
    return frame.f_code.co_filename.startswith((_LIBRARY, "<frozen"))


def _refusing(what: str, hint: str, original: Callable[..., Any] | None) -> Callable[..., Any]:
    """Returns a function that raises `SandboxError`, except for calls of the standard library."""

    def refuse(*arguments: Any, **named: Any) -> Any:
        if original is not None and _called_by_library():
            return original(*arguments, **named)
        raise SandboxError(f"{what}: plugins have no {_noun(hint)} in the sandbox", hint)

    refuse.__name__ = refuse.__qualname__ = what.rpartition(".")[2]
    return refuse


def _noun(hint: str) -> str:
    return {
        _RANDOM: "randomness",
        _CLOCK: "clock",
        _FILES: "files",
        _ENVIRONMENT: "environment variables",
        _NETWORK: "network",
        _THREADS: "threads",
    }[hint]


def _replace(module: Any, names: str, hint: str, *, library: bool = True) -> None:
    for name in names.split():
        original = getattr(module, name, None)
        if original is not None:
            what = f"{module.__name__}.{name}".removeprefix("builtins.").removeprefix("_")
            setattr(module, name, _refusing(what, hint, original if library else None))


def _only_when_live(module: Any, name: str, what: str, hint: str) -> None:
    """Refuses a function in the host; while the component is built, a plugin may read its files."""
    original = getattr(module, name)
    refuse = _refusing(what, hint, None)

    def checked(*arguments: Any, **named: Any) -> Any:
        if _live and not _called_by_library():
            refuse()
        return original(*arguments, **named)

    setattr(module, name, checked)


def install() -> None:
    """Replaces the functions of the standard library that cannot work in a plugin."""
    _random()
    _clock()
    _only_when_live(builtins, "open", "open", _FILES)
    # `pathlib` and others call `io.open`, so it refuses for itself only.
    _only_when_live(io, "open", "io.open", _FILES)
    for name in ("listdir", "scandir", "stat", "mkdir", "remove"):
        _only_when_live(os, name, f"os.{name}", _FILES)
    _environment()
    _replace(
        socket, "create_connection getaddrinfo gethostbyname socketpair", _NETWORK, library=False
    )
    _refuse_instances(socket, "socket", _NETWORK)
    setattr(threading.Thread, "start", _refusing("threading.Thread.start", _THREADS, None))
    _output()


def _random() -> None:
    seeded = random.Random

    class SeededRandom(seeded):  # type: ignore[misc,valid-type]
        """The generator of the standard library, which needs a seed in a plugin."""

        def __init__(self, *arguments: Any) -> None:
            if not arguments or arguments[0] is None:
                raise SandboxError(
                    "random.Random: plugins have no randomness in the sandbox, so a generator "
                    "needs a seed",
                    _RANDOM,
                )
            super().__init__(*arguments)

    names = [name for name in random.__all__ if name[0].islower() and name != "seed"]
    _replace(random, " ".join(names), _RANDOM, library=False)
    setattr(random, "Random", SeededRandom)
    # `secrets` makes one when it is imported; only its use is refused.
    for name in ("random", "getrandbits", "randbytes"):
        setattr(random.SystemRandom, name, _refusing(f"random.SystemRandom.{name}", _RANDOM, None))
    _replace(os, "urandom getrandom", _RANDOM, library=False)


def _clock() -> None:
    _replace(
        time,
        "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time "
        "process_time_ns thread_time thread_time_ns clock_gettime clock_gettime_ns sleep "
        "localtime gmtime ctime",
        _CLOCK,
    )

    class Instances(type):
        """Accepts instances of the original class in `isinstance`."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, cls.__mro__[1])

    def clockless(original: Any, names: tuple[str, ...]) -> Any:
        qualified = f"datetime.{original.__name__}"
        members = {
            name: classmethod(_ignoring_class(_refusing(f"{qualified}.{name}", _CLOCK, None)))
            for name in names
        }
        return Instances(original.__name__, (original,), {**members, "__module__": "datetime"})

    datetime.datetime = clockless(datetime.datetime, ("now", "utcnow", "today"))  # type: ignore[misc]
    datetime.date = clockless(datetime.date, ("today",))  # type: ignore[misc]


def _ignoring_class(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _cls, *arguments, **named: function(*arguments, **named)


def _environment() -> None:
    original = os.environ.__class__.__getitem__

    def item(environment: Any, key: Any) -> Any:
        if _live and not _library_asks():
            raise SandboxError(
                f"os.environ[{key!r}]: plugins have no environment variables in the sandbox",
                _ENVIRONMENT,
            )
        return original(environment, key)

    os.environ.__class__.__getitem__ = item  # type: ignore[method-assign]


def _library_asks() -> bool:
    """True if the standard library reads a variable for itself, not for a call of `os.getenv`."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith("<frozen") or frame.f_code.co_name in (
        "get",
        "getenv",
        "__contains__",
    ):
        if frame.f_back is None:
            return True
        frame = frame.f_back
    return frame.f_code.co_filename.startswith(_LIBRARY)


def _refuse_instances(module: Any, name: str, hint: str) -> None:
    """Refuses new instances of a class, which other classes may be derived from."""
    what = f"{module.__name__}.{name}"
    refuse = _refusing(what, hint, None)
    getattr(module, name).__init__ = lambda _self, *_arguments, **_named: refuse()


class _Lines(io.TextIOBase):
    """A text stream whose lines go to the log of the host, or, in a build, to the original."""

    def __init__(self, level: log.Level, original: Any) -> None:
        super().__init__()
        self.level = level
        self.original = original
        self.rest = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not _live:
            return int(self.original.write(text))
        *whole, self.rest = (self.rest + text).split("\n")
        for line in whole:
            log.write(self.level, line)
        return len(text)

    def flush(self) -> None:
        if not _live:
            self.original.flush()

    def finish(self) -> None:
        """Writes a line that has no end yet."""
        if self.rest:
            rest, self.rest = self.rest, ""
            log.write(self.level, rest)


_streams: list[_Lines] = []


def flush_output() -> None:
    """Writes what the plugin printed without a line end."""
    for stream in _streams:
        if stream.rest:
            stream.finish()


class _LogHandler(logging.Handler):
    """Passes the records of `logging` to the log of the host."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            level = log.Level.ERROR
        elif record.levelno >= logging.WARNING:
            level = log.Level.WARN
        else:
            level = log.Level.INFO if record.levelno >= logging.INFO else log.Level.DEBUG
        for line in _lines_of(self.format(record)):
            log.write(level, line)


def _lines_of(text: str) -> Iterator[str]:
    yield from text.split("\n")


def _output() -> None:
    sys.stdout = _Lines(log.Level.INFO, sys.stdout)
    sys.stderr = _Lines(log.Level.WARN, sys.stderr)
    _streams[:] = [sys.stdout, sys.stderr]
    handler = _LogHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)

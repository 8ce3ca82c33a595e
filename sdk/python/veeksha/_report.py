"""Exceptions of a plugin as errors of the contract."""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from types import CodeType, TracebackType

from . import _sandbox, log
from .error import Error

_SDK = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: The folder of the plugin's modules in the component, and its name in messages.
_root = ""
_shown_root = ""


def set_root(folder: str, shown: str) -> None:
    """Sets the folder of the plugin's modules, and its name in messages."""
    global _root, _shown_root
    _root = folder.rstrip(os.sep) + os.sep
    _shown_root = shown
    _keep_sources()


def _keep_sources() -> None:
    """Keeps the source lines of the plugin's modules, whose files do not exist in the host."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and file.startswith(_root):
            lines = linecache.getlines(file)
            # Without a time of modification an entry is never checked against the file.
            linecache.cache[file] = (len(lines), None, lines, file)


def shown_file(file: str) -> str:
    """Returns the path of a module as its author knows it."""
    if _root and file.startswith(_root):
        return _shown_root + file[len(_root) :]
    return file


def place_of(code: CodeType, line: int | None) -> str:
    """Returns a line of the plugin: `src/plugin.py:12, in answered`."""
    return f"{shown_file(code.co_filename)}:{line or code.co_firstlineno}, in {code.co_name}"


def _author_place(trace: TracebackType | None) -> str | None:
    """Returns the last line of the plugin in a traceback."""
    place = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if _root and code.co_filename.startswith(_root):
            place = place_of(code, trace.tb_lineno)
        trace = trace.tb_next
    return place


def report(error: BaseException, returned_at: str | None) -> Error:
    """Returns an exception as an error of the contract.

    The traceback of an unexpected one is written to the log. `returned_at` is the line that
    returned a wrong value.
    """
    place = _author_place(error.__traceback__)
    if isinstance(error, Error):
        if error.code != "wrong-value" and error.hint is not None:
            return error
        where = place or (returned_at if error.code == "wrong-value" else None)
        if error.code == "wrong-value" and where:
            error.hint = f"at {where}"
        return error
    remedy = _sandbox.hint_of(error)
    hint = "; ".join(part for part in (f"at {place}" if place else None, remedy) if part)
    for line in traceback_lines(error):
        log.error(line)
    name = type(error).__name__
    text = str(error) or name
    message = text if isinstance(error, _sandbox.SandboxError) else f"{name}: {text}"
    code = "sandbox" if remedy else "exception"
    return Error(code, _one_line(message), _one_line(hint) or None)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    line = line if len(line) <= 1000 else f"{line[:1000]}…"
    return line.encode("utf-8", "replace").decode()


def traceback_lines(error: BaseException) -> list[str]:
    """Returns the traceback of an exception as lines, without the frames of this package."""
    if isinstance(error, MemoryError):
        return ["MemoryError"]
    try:
        trace: traceback.TracebackException | None = traceback.TracebackException.from_exception(
            error, limit=-40
        )
        lines: list[str] = []
        chain = []
        while trace is not None:
            chain.append(trace)
            trace = trace.__cause__ or (None if trace.__suppress_context__ else trace.__context__)
        for part in reversed(chain):
            lines.append("Traceback (most recent call last):")
            for frame in part.stack:
                if frame.filename.startswith((_SDK, "<frozen")) or frame.name == "import_module":
                    continue
                file = shown_file(frame.filename)
                lines.append(f'  File "{file}", line {frame.lineno}, in {frame.name}')
                if frame.line:
                    lines.append(f"    {frame.line}")
            lines.extend(line.rstrip("\n") for line in part.format_exception_only())
        text = "\n".join(lines)
        return (text.replace(_root, _shown_root) if _root else text).split("\n")
    except Exception as second:  # noqa: BLE001 - an exception whose text raises
        return [f"{type(error).__name__}; its traceback cannot be shown: {type(second).__name__}"]

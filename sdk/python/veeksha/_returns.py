"""The line of the `return` statement that returned a wrong value.

Returns of the plugin's methods are observed with `sys.monitoring` (Python 3.12), which costs about
a microsecond a call; a traceback has no line for a value that was returned.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any

from ._report import place_of

_last: tuple[CodeType, int] | None = None


def _note(code: CodeType, offset: int, _value: object) -> None:
    global _last
    _last = (code, offset)


def watch(cls: type) -> None:
    """Observes the returns of a class's methods."""
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:
        return
    tool = monitoring.PROFILER_ID
    if monitoring.get_tool(tool) is None:
        monitoring.use_tool_id(tool, "veeksha")
        monitoring.register_callback(tool, monitoring.events.PY_RETURN, _note)
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] in ("veeksha", "builtins", "typing"):
            continue
        for member in vars(base).values():
            code = getattr(getattr(member, "__func__", member), "__code__", None)
            if code is not None:
                monitoring.set_local_events(tool, code, monitoring.events.PY_RETURN)


def last_return(name: str) -> str | None:
    """Returns the line at which the method of this name returned last."""
    if _last is None or _last[0].co_name != name:
        return None
    code, offset = _last
    for begin, end, line in code.co_lines():
        if begin <= offset < end:
            return place_of(code, line)
    return None

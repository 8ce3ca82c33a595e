"""The target's tokenizer. A component that imports this module imports the host's `tokens`."""

from __future__ import annotations

from typing import Any, cast

_host: Any = None


def set_host(module: Any) -> None:
    """Sets the host's functions."""
    global _host
    _host = module


def _tokens() -> Any:
    if _host is None:
        raise RuntimeError(
            "veeksha.tokens: outside the host there is no tokenizer; in a plugin, import "
            "veeksha.tokens at the top of a file, so that the build includes it"
        )
    return _host


def count(text: str) -> int:
    """Returns the number of tokens in a text of at most 1 MiB, without special tokens."""
    return cast(int, _tokens().count(text))


def encode(text: str) -> list[int]:
    """Returns the token ids of a text of at most 1 MiB, without special tokens."""
    return cast("list[int]", _tokens().encode(text))


def vocabulary() -> int:
    """Returns the size of the vocabulary."""
    return cast(int, _tokens().vocabulary())

"""Files that the user granted to the plugin, by name; read-only.

A component that imports this module imports the host's `blobs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

_LARGEST_READ = 4 << 20

_host: Any = None


def set_host(module: Any) -> None:
    """Sets the host's functions."""
    global _host
    _host = module


class Blob:
    """An open file."""

    def __init__(self, name: str) -> None:
        """Opens a granted file.

        Raises:
            Error: the file is not granted, or cannot be read.
        """
        if _host is None:
            raise RuntimeError(
                "veeksha.blobs: outside the host there are no granted files; in a plugin, import "
                "veeksha.blobs at the top of a file, so that the build includes it"
            )
        self.name = name
        self._blob = _checked(_host.Blob.open, name)

    def size(self) -> int:
        """Returns its size in bytes."""
        return cast(int, self._blob.size())

    def read(self, offset: int, length: int) -> bytes:
        """Returns up to `length` bytes from `offset`; fewer only at the end of the file."""
        parts: list[bytes] = []
        while length > 0:
            part = cast(bytes, _checked(self._blob.read, offset, min(length, _LARGEST_READ)))
            if not part:
                break
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return b"".join(parts)

    def __enter__(self) -> Blob:
        return self

    def __exit__(self, *error: object) -> None:
        self._blob.__exit__(*error)


def _checked(function: Any, *arguments: object) -> Any:
    """Calls a function of the host; its error becomes the exception `Error`."""
    try:
        return function(*arguments)
    except Exception as error:
        if hasattr(error, "value"):  # componentize_py_types.Err
            raise error.value from None
        raise


def read(name: str) -> bytes:
    """Returns the bytes of a granted file."""
    with Blob(name) as blob:
        return blob.read(0, blob.size())


def text(name: str) -> str:
    """Returns the text of a granted file, which is UTF-8."""
    return read(name).decode()


def lines(name: str) -> Iterator[str]:
    """Yields the lines of a granted file, which is UTF-8, without line ends."""
    rest = b""
    with Blob(name) as blob:
        for offset in range(0, blob.size(), _LARGEST_READ):
            *whole, rest = (rest + blob.read(offset, _LARGEST_READ)).split(b"\n")
            for line in whole:
                yield line.removesuffix(b"\r").decode()
    if rest:
        yield rest.decode()

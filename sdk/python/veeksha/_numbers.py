"""The ranges of the contract's numbers, as annotations that the checks of returned values read."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias


class IntRange(NamedTuple):
    """The range of an integer, and how a message describes it."""

    low: int
    high: int
    unit: str = ""

    def describe(self) -> str:
        """Returns the range as a message states it."""
        return f"an integer{self.unit} from {self.low} to {self.high}"


class Real(NamedTuple):
    """A number that may have a fraction."""

    positive: bool = False
    allow_nan: bool = False

    def describe(self) -> str:
        """Returns the range as a message states it."""
        return "a positive, finite number" if self.positive else "a finite number"


U16: TypeAlias = Annotated[int, IntRange(0, 0xFFFF)]
U32: TypeAlias = Annotated[int, IntRange(0, 0xFFFF_FFFF)]
U64: TypeAlias = Annotated[int, IntRange(0, 0xFFFF_FFFF_FFFF_FFFF)]

#: Nanoseconds relative to the start of the run, or a duration. `seconds` and `milliseconds` make
#: one of a number.
Nanos: TypeAlias = Annotated[int, IntRange(0, (1 << 53) - 1, " of nanoseconds")]

Finite: TypeAlias = Annotated[float, Real()]
Positive: TypeAlias = Annotated[float, Real(positive=True)]


def seconds(value: float) -> int:
    """Returns a duration of this many seconds, in nanoseconds."""
    return round(value * 1_000_000_000)


def milliseconds(value: float) -> int:
    """Returns a duration of this many milliseconds, in nanoseconds."""
    return round(value * 1_000_000)

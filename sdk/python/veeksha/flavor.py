"""Plugins that turn the rows of a recorded trace into sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar, Union

from ._numbers import U32
from .error import Error
from .graph import Guarantees, Request, Session
from .message import Segment, synthetic
from ._plugin import C, Plugin

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    R = DefaultTypeVar("R", default=dict[str, Any])
else:
    R = TypeVar("R")


class Cell(Enum):
    """The type of the cells of a column. A missing, null or (in CSV) empty cell is absent."""

    #: Text. A number is read as its digits, so that ids may be either.
    TEXT = 0
    #: A whole number, 0 or more.
    COUNT = 1
    #: A whole number of either sign.
    INTEGER = 2
    #: A finite number.
    NUMBER = 3
    #: True or false.
    TRUTH = 4
    #: A JSON array.
    ITEMS = 5
    #: A JSON object.
    MEMBERS = 6
    #: Any JSON value; in CSV, text.
    ANYTHING = 7


@dataclass(slots=True)
class Column:
    """A column that the flavor reads. Columns that it does not name never reach it."""

    name: str
    #: Further names that it may have in a file.
    aliases: list[str]
    cell: Cell
    #: True if a row without it is refused.
    required: bool

    @staticmethod
    def required_as(cell: Cell, name: str, *aliases: str) -> Column:
        """Returns a column that every row must have."""
        return Column(name, list(aliases), cell, True)

    @staticmethod
    def optional_as(cell: Cell, name: str, *aliases: str) -> Column:
        """Returns a column that a row may have."""
        return Column(name, list(aliases), cell, False)


@dataclass(slots=True)
class Tree:
    """The columns that link rows to a tree: the id of a row, and that of the row it continues."""

    id: str
    parent: str


@dataclass(slots=True)
class GroupingRow:
    """A single row is a session."""


@dataclass(slots=True)
class GroupingColumn:
    """Rows with the same value in this column are a session, anywhere in the trace."""

    value: str


@dataclass(slots=True)
class GroupingTree:
    """A root and all rows that continue it are a session."""

    value: Tree


@dataclass(slots=True)
class GroupingPools:
    """One row of each file, drawn at random for each session. Such a trace is endless."""


#: The rows that form a session.
Grouping: TypeAlias = Union[GroupingRow, GroupingColumn, GroupingTree, GroupingPools]


class TimeUnit(Enum):
    """The unit of a column of times."""

    SECONDS = 0
    MILLISECONDS = 1
    MICROSECONDS = 2
    NANOSECONDS = 3
    #: ISO 8601 or `YYYY-MM-DD hh:mm:ss.fffffff`; UTC without an offset.
    DATE_TIME = 4


@dataclass(slots=True)
class Arrival:
    """The column of the recorded arrival."""

    column: str
    unit: TimeUnit


@dataclass(slots=True)
class MostFrequent:
    """A filter that keeps only the rows with the most frequent values of a column."""

    column: str
    #: The number of values that are kept.
    count: U32


@dataclass(slots=True)
class Layout:
    """The columns and groups that the flavor reads."""

    columns: list[Column]
    #: The member that holds the array of rows, if the file is one JSON object.
    rows_in: str | None = None
    grouping: Grouping = field(default_factory=GroupingRow)
    arrival: Arrival | None = None
    keep: MostFrequent | None = None
    #: True if `warmup` returns sessions.
    warms_up: bool = False

    def grouped_by(self, column: str) -> Layout:
        """Makes one session of the rows with the same value in a column."""
        self.grouping = GroupingColumn(column)
        return self

    def tree(self, id: str, parent: str) -> Layout:
        """Makes one session of a root and the rows that continue it, by the column of a parent."""
        self.grouping = GroupingTree(Tree(id, parent))
        return self

    def arrivals(self, column: str, unit: TimeUnit) -> Layout:
        """States the column of the recorded arrivals."""
        self.arrival = Arrival(column, unit)
        return self


@dataclass(slots=True)
class Row(Generic[R]):
    """A row of the trace."""

    #: Its number in the trace, from 1.
    number: int
    #: Its recorded arrival in nanoseconds, relative to the earliest of the trace.
    at: int | None
    #: Its cells.
    cells: R

    def error(self, message: str, hint: str | None = None) -> Error:
        """Returns an error about this row: code `row`, with the number of the row."""
        return Error("row", f"row {self.number}: {message}", hint)

    def positive(self, column: str, count: int) -> int:
        """Returns a count that must be 1 or more."""
        if count == 0:
            raise self.error(
                f"`{column}` is 0; it is 1 or more",
                "`on_bad_row: skip` leaves such rows out, with all rows of their session",
            )
        return count


@dataclass(slots=True)
class Group(Generic[R]):
    """The rows of one session, in the order of the file; at least one."""

    #: Its number in the trace, from 0.
    index: int
    #: The value of the grouping column, or the id of the tree's root; else empty.
    key: str
    rows: list[Row[R]]


@dataclass(slots=True)
class Trace(Generic[R]):
    """Facts about the whole trace."""

    rows: int
    #: Groups of rows: sessions of one pass.
    groups: int
    #: The cells of the first row; None if there is none.
    first_row: R | None


class TraceFlavor(Plugin[C], Generic[C, R]):
    """Turns the rows of a trace into sessions: one session for each group of rows.

    `R` is a dataclass with a member for each column of the layout, or `dict[str, Any]`. The result
    must depend on (configuration, trace, epoch, group) and on nothing else.
    """

    kind: ClassVar[str] = "trace-flavor"
    required: ClassVar[tuple[str, ...]] = ("layout", "session")

    def guarantees(self) -> Guarantees:
        """Returns the properties that all sessions share. By default nothing is guaranteed."""
        return Guarantees()

    def layout(self) -> Layout:
        """Returns the columns and groups that it reads."""
        raise NotImplementedError

    def session(self, trace: Trace[R], epoch: int, group: Group[R]) -> Session | Request:
        """Returns the session of a group.

        `epoch` counts from 0 how often the trace has been wrapped: text that must not repeat from
        one pass to the next depends on it. The recording of a request is its `recording`.
        """
        raise NotImplementedError

    def warmup(self, trace: Trace[R], group: Group[R]) -> list[Session]:
        """Returns sessions that are sent before the run, if the layout states that it warms up."""
        return []


def blocks(
    ids: Sequence[int],
    size: int,
    tokens: int,
    *,
    seed: Callable[[int], int],
    rest: int,
    partial: bool = True,
) -> list[Segment]:
    """Returns the segments of a prompt that consists of blocks: equal ids are equal text.

    Args:
        ids: the hash ids of the blocks.
        size: the tokens of a block.
        tokens: the length of the prompt.
        seed: the seed of the text of an id.
        rest: the seed of what the ids do not cover.
        partial: True if the last id may name a partial block (Mooncake), False if only full blocks
            have ids (Weka).

    Raises:
        ValueError: more ids than blocks of the length, or a size of 0.
    """
    if size < 1:
        raise ValueError("a block has at least one token")
    most = (tokens + size - 1) // size if partial else tokens // size
    if len(ids) > most:
        raise ValueError(
            f"{len(ids)} hash ids for {tokens} tokens, which have {most} blocks of {size}; "
            "is the block size right?"
        )
    left = tokens
    segments: list[Segment] = []
    for id in ids:
        here = min(left, size)
        segments.append(synthetic(seed(id), here))
        left -= here
    if left > 0:
        segments.append(synthetic(rest, left))
    return segments


def seed_of(scope: str, numbers: Iterable[int] = ()) -> int:
    """Returns a seed that depends on a scope and some numbers, and on nothing else.

    Equal arguments give equal text in every run. It is that of the Rust SDK: FNV-1a over the
    bytes, finished as in SplitMix64.
    """
    mask = (1 << 64) - 1
    hash = 0xCBF2_9CE4_8422_2325
    eaten = [scope.encode()]
    for number in numbers:
        eaten += [b"\xff", number.to_bytes(8, "little")]
    for byte in b"".join(eaten):
        hash = ((hash ^ byte) * 0x0000_0100_0000_01B3) & mask
    hash = ((hash ^ (hash >> 30)) * 0xBF58_476D_1CE4_E5B9) & mask
    hash = ((hash ^ (hash >> 27)) * 0x94D0_49BB_1331_11EB) & mask
    return hash ^ (hash >> 31)

"""Finished requests, as metrics and checks receive them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .answer import Usage
from .graph import Trigger

#: The absent value in columns of 32 bits, and in columns of times.
_NONE = 0xFFFF_FFFF
_NEVER = (1 << 53) - 1


class Status(Enum):
    """The outcome of a request."""

    OK = 0
    FAILED = 1
    #: Cancelled by the host while it was in flight: the run ended.
    CANCELLED = 2
    #: Cancelled by its workload while it was in flight. Not a failure.
    CANCELLED_BY_CLIENT = 3


class ChunkKind(Enum):
    """The content of a chunk of an answer."""

    REASONING = 0
    CONTENT = 1
    TOOL = 2
    #: Something that this module does not know yet.
    OTHER = 3


@dataclass(slots=True)
class FailedRequest:
    """The reason why a request failed. `request` is its index in the batch."""

    request: int
    code: str
    message: str


@dataclass(slots=True)
class NewConnection:
    """The time to open a new connection for a request. `request` is its index in the batch."""

    request: int
    resolve: int | None = None
    connect: int | None = None
    tls: int | None = None


@dataclass(slots=True)
class ReplayedRequest:
    """The recording of a replayed request. `request` is its index in the batch."""

    request: int
    #: The recorded send time in nanoseconds, relative to the earliest arrival of the trace.
    at: int | None = None
    #: The recorded latency of its answer, in nanoseconds.
    latency: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None


@dataclass
class Completion:
    """One finished request. It has observations, nothing derived.

    Times are nanoseconds since the start of the run. What does not exist is None, never 0. A test
    writes the members that matter: `Completion(output_tokens=3)`.
    """

    #: The session that it belongs to, and its node in that session.
    session: int = 0
    node: int = 0
    #: Requests of its session that were known when it finished.
    session_requests: int = 1
    #: The nodes that it waited for, the awaited event of each, and the time after it.
    parents: list[int] = field(default_factory=list)
    parent_triggers: list[Trigger | int] = field(default_factory=list)
    parent_delays: list[int] = field(default_factory=list)
    #: The node whose conversation it continued.
    history_parent: int | None = None
    #: Its think time.
    wait_after_ready: int = 0
    #: The instant that the schedule asked for.
    intended_at: int = 0
    #: The time for which concurrency limits delayed it after that.
    held: int = 0
    #: The hand-over to a client thread.
    dispatched_at: int = 0
    #: The pick-up by a client thread.
    picked_up_at: int | None = None
    #: The write of its last byte to the socket.
    sent_at: int | None = None
    #: The arrival of the first byte of the answer.
    first_byte_at: int | None = None
    #: Its completion.
    completed_at: int = 0
    #: True unless it was dispatched after the end of the measured time.
    measured: bool = True
    status: Status = Status.OK
    #: `connect`, `tls`, `timeout`, `status`, `protocol`, `in_stream`, `truncated`, `cancelled`,
    #: `codec`; further ones may be added.
    error_class: str | None = None
    error_message: str | None = None
    #: The reason why generation ended, as sent by the server.
    finish_reason: str | None = None
    http_status: int | None = None
    #: The arrival of each chunk with generated content.
    chunk_at: list[int] = field(default_factory=list)
    #: Tokens in each of these chunks, where that is known.
    chunk_tokens: list[int] | None = None
    #: The content of each of these chunks.
    chunk_kinds: list[ChunkKind] = field(default_factory=list)
    #: Tokens of the new messages, as specified by the workload.
    target_prompt_tokens: int = 0
    #: Tokens of the new messages.
    prompt_tokens: int = 0
    #: Tokens of history, new messages and chat template.
    total_prompt_tokens: int = 0
    #: Tokens that the chat template added.
    template_tokens: int = 0
    #: Tokens that the workload requested.
    target_output_tokens: int | None = None
    #: Tokens generated; 0 without an answer.
    output_tokens: int = 0
    #: True if `output_tokens` is the server's count.
    output_tokens_from_usage: bool = False
    #: The server's counts.
    usage: Usage | None = None
    #: Prompt tokens that an unbounded prefix cache would have held.
    ideal_cached_tokens: int | None = None
    #: True if the connection had been used by an earlier request.
    connection_reused: bool = False
    #: True if it was sent again on a new connection.
    retried: bool = False
    #: The index of its server among the targets, in the order of the configuration.
    server: int = 0
    #: The times of name resolution, connecting and the TLS handshake, for a new connection.
    resolve: int | None = None
    connect: int | None = None
    tls: int | None = None
    #: The recording, if it was replayed from a trace.
    recorded: ReplayedRequest | None = None
    #: The labels of the request and its session; of several with one name, the last one.
    labels: dict[str, str] = field(default_factory=dict)
    #: Fields that are not members of this class, by their name in the host's documentation.
    further: dict[str, float | str] = field(default_factory=dict)

    def is_ok(self) -> bool:
        """True if it was answered."""
        return self.status is Status.OK

    def label(self, name: str) -> str | None:
        """Returns the value of a label."""
        return self.labels.get(name)


#: The fields among `further` that are texts.
_TEXTS = frozenset({"response_id", "trace_id"})


class _OfBatch:
    """A value of a request, read from a column of its batch when it is needed.

    A batch has some fifty columns, and a metric reads a few: copying all of them for each request
    would cost more than most metrics.
    """

    def __init__(self, read: Any) -> None:
        self.read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, request: Any, owner: type) -> Any:
        if request is None:
            return self
        value = self.read(request.batch, request.place)
        # The instance's own attribute takes precedence from now on: this is not a data descriptor.
        request.__dict__[self.name] = value
        return value


def _column(name: str) -> Any:
    return _OfBatch(lambda batch, i: getattr(batch, name)[i])


def _optional(name: str, absent: int = _NONE) -> Any:
    def read(batch: Any, i: int) -> int | None:
        value: int = getattr(batch, name)[i]
        return None if value == absent else value

    return _OfBatch(read)


def _part(name: str, ends: str) -> Any:
    def read(batch: Any, i: int) -> list[Any]:
        end = getattr(batch, ends)
        return list(getattr(batch, name)[end[i - 1] if i else 0 : end[i]])

    return _OfBatch(read)


def _entry(name: str, member: str) -> Any:
    def read(batch: Any, i: int) -> Any:
        for entry in getattr(batch, name):
            if entry.request == i:
                return getattr(entry, member) if member else entry
        return None

    return _OfBatch(read)


def _chunk_tokens(batch: Any, i: int) -> list[int] | None:
    if not batch.chunk_tokens_known[i]:
        return None
    return list(batch.chunk_tokens[batch.chunks_end[i - 1] if i else 0 : batch.chunks_end[i]])


_KINDS = tuple(ChunkKind)


def _chunk_kinds(batch: Any, i: int) -> list[ChunkKind]:
    kinds = batch.chunk_kinds[batch.chunks_end[i - 1] if i else 0 : batch.chunks_end[i]]
    return [_KINDS[min(kind, 3)] for kind in kinds]


_TRIGGERS = tuple(Trigger)


def _triggers(batch: Any, i: int) -> list[Trigger | int]:
    numbers = batch.parent_triggers[batch.parents_end[i - 1] if i else 0 : batch.parents_end[i]]
    return [_TRIGGERS[number] if number < len(_TRIGGERS) else number for number in numbers]


def _usage(batch: Any, i: int) -> Usage | None:
    prompt = batch.usage_prompt[i]
    if prompt == _NONE:
        return None
    cached, reasoning = batch.usage_cached[i], batch.usage_reasoning[i]
    return Usage(
        prompt,
        batch.usage_completion[i],
        None if cached == _NONE else cached,
        None if reasoning == _NONE else reasoning,
    )


def _finish_reason(batch: Any, i: int) -> str | None:
    place = batch.finish_reason[i]
    return None if place == _NONE else batch.texts[place]


def _labels(batch: Any, i: int) -> dict[str, str]:
    texts, names, values = batch.texts, batch.label_names, batch.label_values
    begin = batch.labels_end[i - 1] if i else 0
    return {texts[names[k]]: texts[values[k]] for k in range(begin, batch.labels_end[i])}


def _further(batch: Any, i: int) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for column in batch.further:
        value = column.values[i]
        if not math.isnan(value):
            found[column.name] = batch.texts[int(value)] if column.name in _TEXTS else value
    return found


class _Row(Completion):
    """A request of a batch."""

    def __init__(self, batch: Any, place: int) -> None:
        self.batch = batch
        self.place = place

    session = _column("session")
    node = _column("node")
    session_requests = _column("session_requests")
    parents = _part("parents", "parents_end")
    parent_triggers = _OfBatch(_triggers)
    parent_delays = _part("parent_delays", "parents_end")
    history_parent = _optional("history_parent")
    wait_after_ready = _column("wait_after_ready")
    intended_at = _column("intended_at")
    held = _column("held")
    dispatched_at = _column("dispatched_at")
    picked_up_at = _optional("picked_up_at", _NEVER)
    sent_at = _optional("sent_at", _NEVER)
    first_byte_at = _optional("first_byte_at", _NEVER)
    completed_at = _column("completed_at")
    measured = _column("measured")
    status = _column("status")
    error_class = _entry("failures", "code")
    error_message = _entry("failures", "message")
    finish_reason = _OfBatch(_finish_reason)
    http_status = _optional("http_status")
    chunk_at = _part("chunk_at", "chunks_end")
    chunk_tokens = _OfBatch(_chunk_tokens)
    chunk_kinds = _OfBatch(_chunk_kinds)
    target_prompt_tokens = _column("target_prompt_tokens")
    prompt_tokens = _column("prompt_tokens")
    total_prompt_tokens = _column("total_prompt_tokens")
    template_tokens = _column("template_tokens")
    target_output_tokens = _optional("target_output_tokens")
    output_tokens = _column("output_tokens")
    output_tokens_from_usage = _column("output_tokens_from_usage")
    usage = _OfBatch(_usage)
    ideal_cached_tokens = _optional("ideal_cached_tokens")
    connection_reused = _column("connection_reused")
    retried = _column("retried")
    server = _column("server")
    resolve = _entry("connections", "resolve")
    connect = _entry("connections", "connect")
    tls = _entry("connections", "tls")
    recorded = _entry("replays", "")
    labels = _OfBatch(_labels)
    further = _OfBatch(_further)

    def __repr__(self) -> str:
        return f"Completion(session={self.session}, node={self.node}, status={self.status.name})"


def rows(batch: Any) -> Iterator[Completion]:
    """Yields the requests of a batch, in order."""
    for place in range(len(batch.session)):
        yield _Row(batch, place)

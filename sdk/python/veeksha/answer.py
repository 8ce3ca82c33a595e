"""The ends of requests and tool runs, as the host reports them to an agent."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ._numbers import U16, U32, Nanos
from .message import ToolCall


@dataclass(slots=True)
class Usage:
    """Token counts that the server reported."""

    prompt: U32
    completion: U32
    cached: U32 | None = None
    reasoning: U32 | None = None


@dataclass(slots=True)
class TokenProbabilities:
    """Log-probabilities of consecutive tokens."""

    #: The natural logarithm of each token's probability.
    logarithms: list[float]
    #: True for each token that was the most probable one; empty if the server sent no alternatives.
    greedy: list[bool] = field(default_factory=list)


@dataclass(slots=True)
class LogProbabilities:
    """The log-probabilities that the server returned."""

    #: Of the prompt's tokens from the second on; empty if they were not asked for.
    prompt: TokenProbabilities
    #: Of the answer's tokens.
    answer: TokenProbabilities


@dataclass(slots=True)
class Response:
    """The model's answer to a request, or the part of it that arrived before a cancellation."""

    node: U32
    #: True if it was cancelled by the client.
    cancelled: bool = False
    text: str = ""
    reasoning: str = ""
    reasoning_signature: str | None = None
    tool_calls: list[ToolCall] = field(default_factory=list)
    #: As the server sent it: `stop`, `length`, `tool_calls`, ...
    finish_reason: str = "stop"
    usage: Usage | None = None
    #: The tokens of the answer: the server's count, or else the host's.
    output_tokens: U32 = 0
    log_probabilities: LogProbabilities | None = None
    completed_at: Nanos = 0


class ToolOutcome(Enum):
    """The outcome of a tool run."""

    SUCCEEDED = 0
    #: It failed, as the run or the failure rate of its tool wants it.
    FAILED = 1
    #: It was cancelled while it waited for a server.
    CANCELLED = 2


@dataclass(slots=True)
class ToolResult:
    """The end of a tool run."""

    node: U32
    outcome: ToolOutcome = ToolOutcome.SUCCEEDED
    #: The tokens of its result.
    tokens: U32 = 0
    #: The time for which it waited for a free server.
    waiting_time: Nanos = 0
    service_time: Nanos = 0
    completed_at: Nanos = 0


@dataclass(slots=True)
class Failure:
    """The reason why a request has no answer."""

    node: U32
    #: `connect`, `tls`, `timeout`, `status`, `protocol`, `in_stream`, `truncated`, `cancelled` or
    #: `codec`. Further ones may be added.
    code: str
    #: The HTTP status, or the code of an error inside the answer, if any.
    status: U16 | None = None
    #: The time after which the server asked for another attempt, if it did.
    retry_after: Nanos | None = None
    message: str = ""
    completed_at: Nanos = 0

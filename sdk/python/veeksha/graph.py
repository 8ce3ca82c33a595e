"""Sessions: graphs of requests and tool runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias, Union

from ._numbers import U32, Nanos
from .message import (
    Content,
    Message,
    Reasoning,
    Role,
    Segment,
    ToolCall,
    ToolChoice,
    Tools,
    segments,
)


class Trigger(Enum):
    """The event of a node that starts another one."""

    #: A request was handed over to a client thread; a server took a tool run.
    DISPATCHED = 0
    #: The first generated chunk of its answer arrived.
    FIRST_CHUNK = 1
    #: It ended: answered, failed or cancelled.
    COMPLETED = 2


@dataclass(slots=True)
class Edge:
    """A dependency on an event of another node of the session. It is met `delay` after it."""

    parent: U32
    trigger: Trigger = Trigger.COMPLETED
    delay: Nanos = 0

    @staticmethod
    def dispatched(parent: int, delay: int = 0) -> Edge:
        """Returns an edge that waits until a node is handed over to a client thread."""
        return Edge(parent, Trigger.DISPATCHED, delay)

    @staticmethod
    def first_chunk(parent: int, delay: int = 0) -> Edge:
        """Returns an edge that waits for the first generated chunk of a node's answer."""
        return Edge(parent, Trigger.FIRST_CHUNK, delay)

    @staticmethod
    def completed(parent: int, delay: int = 0) -> Edge:
        """Returns an edge that waits for the end of a node."""
        return Edge(parent, Trigger.COMPLETED, delay)


@dataclass(slots=True)
class AnswerForm:
    """The form of an answer."""

    tool_choice: ToolChoice | None = None
    #: The JSON schema that the answer must fit, as text.
    schema: str | None = None
    #: Log-probabilities of the answer's tokens, and of this many alternatives to each.
    log_probabilities: U32 | None = None
    #: True to ask for the log-probabilities of the prompt's tokens as well.
    prompt_log_probabilities: bool = False


@dataclass(slots=True)
class Output:
    """The requested answer: its length and its form."""

    #: Tokens; None leaves the length to the server.
    target_tokens: U32 | None = None
    #: True to ask for exactly that many: the end-of-sequence token is ignored.
    exact: bool = False
    #: None leaves the form to the server.
    form: AnswerForm | None = None


class HistoryMode(Enum):
    """The part of a conversation that a request sends as its history."""

    #: The requests of the conversation, each with the model's real answer.
    LIVE = 0
    #: The requests of the conversation, each with its recorded answer.
    RECORDED = 1
    #: Nothing. The edge only orders the two requests.
    FRESH = 2


@dataclass(slots=True)
class Answer:
    """The recorded answer of a request."""

    content: list[Segment]
    tool_calls: list[ToolCall] = field(default_factory=list)
    reasoning: Reasoning | None = None


@dataclass(slots=True)
class Recording:
    """The recording of a request that is replayed."""

    history: HistoryMode = HistoryMode.LIVE
    #: The recorded answer; requests with the history mode `RECORDED` continue it.
    answer: Answer | None = None
    #: The recorded send time, relative to the earliest arrival of the trace.
    at: Nanos | None = None
    #: The recorded latency of the answer.
    latency: Nanos | None = None
    #: The recorded tokens of the whole prompt.
    prompt_tokens: U32 | None = None
    #: The recorded tokens of the answer.
    output_tokens: U32 | None = None


@dataclass(slots=True)
class Cancellation:
    """The events that make the client cancel a request: whichever comes first."""

    #: Events of other nodes, or of the request itself.
    when: list[Edge] = field(default_factory=list)
    #: The number of generated chunks after which the rest of the answer is not wanted.
    after_chunks: U32 | None = None


def _join(edges: list[Edge], edge: Edge) -> None:
    """Adds an edge, in the place of one to the same event of the same node."""
    for place, known in enumerate(edges):
        if known.parent == edge.parent and known.trigger is edge.trigger:
            edges[place] = edge
            return
    edges.append(edge)


@dataclass(slots=True)
class Request:
    """A node that is a request to the model.

    The methods add to the request and return it, so that they can be chained:
    `Request(0).system("Be brief.").user("Hello.").output_at_most(64)`.
    """

    #: The name of the node within its session.
    node: U32
    #: The events that this node waits for.
    parents: list[Edge] = field(default_factory=list)
    #: The parent whose conversation this request continues.
    history_parent: U32 | None = None
    #: True to send the reasoning of the conversation's answers as well.
    keep_reasoning: bool = False
    #: Think time: the node is ready this long after its last edge was met.
    wait_after_ready: Nanos = 0
    #: The new messages of this turn, at least one.
    messages: list[Message] = field(default_factory=list)
    #: The functions that the model may call; None: those of the history parent, if any.
    tools: Tools | None = None
    output: Output = field(default_factory=Output)
    #: None: it is sent until its answer is complete.
    cancellation: Cancellation | None = None
    #: The name of the scenario's client that sends it; None for the default one.
    client: str | None = None
    #: JSON text of an object whose members are merged into the request's body.
    body: str | None = None
    #: HTTP headers of the request, by name and value.
    headers: list[tuple[str, str]] = field(default_factory=list)
    #: Labels of the request's record.
    labels: list[tuple[str, str]] = field(default_factory=list)
    #: The recording that the request replays; None for a new request.
    recording: Recording | None = None

    def message(self, message: Message) -> Request:
        """Adds a message."""
        self.messages.append(message)
        return self

    def system(self, *content: Content) -> Request:
        """Adds a system message: strings and segments, joined without separators."""
        return self.message(Message(Role.SYSTEM, _joined(content)))

    def user(self, *content: Content) -> Request:
        """Adds a user message: strings and segments, joined without separators."""
        return self.message(Message(Role.USER, _joined(content)))

    def tool(self, call_id: str, *content: Content) -> Request:
        """Adds the result of a function call of the model."""
        return self.message(Message(Role.TOOL, _joined(content), tool_call_id=call_id))

    def after(self, *nodes: int | Edge) -> Request:
        """Waits for nodes of the session: for their end, or for the event of an `Edge`.

        A later edge to the same event of a node replaces the earlier one.
        """
        for node in nodes:
            _join(self.parents, node if isinstance(node, Edge) else Edge(node))
        return self

    def history(self, node: int) -> Request:
        """Continues the conversation of a node, and waits for its end."""
        self.history_parent = node
        for edge in self.parents:
            if edge.parent == node and edge.trigger is Trigger.COMPLETED:
                return self
        self.parents.append(Edge(node))
        return self

    def wait(self, time: int) -> Request:
        """Thinks for this long once every edge is met; for a root, once the session started."""
        self.wait_after_ready = time
        return self

    def output_exactly(self, tokens: int) -> Request:
        """Asks for exactly this many tokens: the end-of-sequence token is ignored."""
        self.output.target_tokens = tokens
        self.output.exact = True
        return self

    def output_at_most(self, tokens: int) -> Request:
        """Asks for at most this many tokens."""
        self.output.target_tokens = tokens
        self.output.exact = False
        return self

    def cancel_when(self, edge: int | Edge) -> Request:
        """Cancels it at an event of another node (its end, if only a number is given)."""
        when = edge if isinstance(edge, Edge) else Edge(edge)
        self._cancellation().when.append(when)
        return self

    def cancel_after(self, time: int) -> Request:
        """Cancels it this long after it was dispatched."""
        return self.cancel_when(Edge.dispatched(self.node, time))

    def cancel_at_first_chunk(self, delay: int = 0) -> Request:
        """Cancels it this long after its first generated chunk."""
        return self.cancel_when(Edge.first_chunk(self.node, delay))

    def cancel_after_chunks(self, chunks: int) -> Request:
        """Cancels it after this number of generated chunks."""
        self._cancellation().after_chunks = chunks
        return self

    def _cancellation(self) -> Cancellation:
        if self.cancellation is None:
            self.cancellation = Cancellation()
        return self.cancellation

    def tool_choice(self, choice: ToolChoice) -> Request:
        """Restricts the functions that the answer may call."""
        self._form().tool_choice = choice
        return self

    def response_schema(self, schema: str) -> Request:
        """Asks for an answer that fits a JSON schema, given as text."""
        self._form().schema = schema
        return self

    def log_probabilities(self, alternatives: int) -> Request:
        """Asks for the log-probabilities of the answer's tokens, and of alternatives to each."""
        self._form().log_probabilities = alternatives
        return self

    def _form(self) -> AnswerForm:
        if self.output.form is None:
            self.output.form = AnswerForm()
        return self.output.form

    def header(self, name: str, value: str) -> Request:
        """Adds an HTTP header."""
        self.headers.append((name, value))
        return self

    def label(self, name: str, value: str) -> Request:
        """Adds a label to the request's record."""
        self.labels.append((name, value))
        return self


def _joined(content: tuple[Content, ...]) -> list[Segment]:
    if len(content) == 1:
        return segments(content[0])
    return [segment for piece in content for segment in segments(piece)]


@dataclass(slots=True)
class ToolRun:
    """A node that is a tool call: it waits for a free server of its tool, and takes its time.

    Without a tool it is a timer, which only takes its time.
    """

    #: The name of the node within its session; requests and tool runs share one set of names.
    node: U32
    #: The events that it waits for.
    parents: list[Edge] = field(default_factory=list)
    #: The name of a tool of the scenario; None for a timer.
    tool: str | None = None
    #: The time for which it occupies a server; None: drawn from the distribution of the tool.
    service_time: Nanos | None = None
    #: The tokens of the result; None: drawn from the distribution of the tool.
    result_tokens: U32 | None = None
    #: True if it fails; None: drawn with the failure rate of the tool.
    fails: bool | None = None
    #: Labels of the run's record.
    labels: list[tuple[str, str]] = field(default_factory=list)

    @staticmethod
    def timer(node: int, time: int) -> ToolRun:
        """Returns a timer, which ends after this time."""
        return ToolRun(node, service_time=time or None)

    def after(self, *nodes: int | Edge) -> ToolRun:
        """Waits for nodes of the session: for their end, or for the event of an `Edge`."""
        for node in nodes:
            _join(self.parents, node if isinstance(node, Edge) else Edge(node))
        return self

    def label(self, name: str, value: str) -> ToolRun:
        """Adds a label to the run's record."""
        self.labels.append((name, value))
        return self


#: A node of a session.
SessionNode: TypeAlias = Union[Request, ToolRun]


@dataclass(slots=True)
class Session:
    """A whole session: a directed acyclic graph of requests and tool runs."""

    requests: list[Request]
    tool_runs: list[ToolRun] = field(default_factory=list)
    #: The recorded arrival, for traffic that replays arrivals.
    arrives_at: Nanos | None = None
    #: HTTP headers of each of its requests.
    headers: list[tuple[str, str]] = field(default_factory=list)
    #: Labels of the record of each of its requests.
    labels: list[tuple[str, str]] = field(default_factory=list)

    @staticmethod
    def of(*nodes: SessionNode) -> Session:
        """Returns a session of these requests and tool runs."""
        return Session(*split(nodes))

    def header(self, name: str, value: str) -> Session:
        """Adds an HTTP header to each of its requests."""
        self.headers.append((name, value))
        return self

    def label(self, name: str, value: str) -> Session:
        """Adds a label to the record of each of its requests."""
        self.labels.append((name, value))
        return self


def split(nodes: Iterable[SessionNode]) -> tuple[list[Request], list[ToolRun]]:
    """Returns the requests and the tool runs among nodes."""
    requests: list[Request] = []
    runs: list[ToolRun] = []
    for node in nodes:
        if isinstance(node, ToolRun):
            runs.append(node)
        else:
            # Anything else is reported, with its place, when the list is checked.
            requests.append(node)
    return requests, runs


@dataclass(slots=True)
class Guarantees:
    """Properties that all sessions of a workload share. None or False guarantees nothing."""

    #: No answer is requested with more tokens than this.
    max_output_tokens: U32 | None = None
    #: The longest chain of requests in which each waits for the one before it.
    max_depth: U32 | None = None
    #: True if no prompt begins like the prompt of another session.
    distinct_prompts: bool = False

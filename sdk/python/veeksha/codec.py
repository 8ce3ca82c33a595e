"""Plugins that add the API of an endpoint."""

from __future__ import annotations

import json as _json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, TypeAlias, Union

from ._numbers import U16, U32
from .answer import TokenProbabilities, Usage
from .error import Error
from ._plugin import C, Plugin


class Framing(Enum):
    """The division of an answer's body into events."""

    #: Server-sent events: an event is the data of one, with its lines joined by line feeds.
    EVENT_STREAM = 0
    #: An event is a line that is not empty, without its line end.
    LINES = 1
    #: The whole body is one event.
    WHOLE = 2


@dataclass(slots=True)
class Endpoint:
    """The shape of requests."""

    #: Appended to the target's address, with a `/` between: `api/chat`.
    path: str
    #: Headers of every request in addition to the host's.
    headers: list[tuple[str, str]]
    #: The request's body: the text of a JSON object in which some strings, such as `{{model}}` and
    #: `{{messages}}`, are placeholders.
    request: str
    framing: Framing

    @staticmethod
    def of(
        path: str,
        request: dict[str, Any],
        framing: Framing,
        headers: dict[str, str] | None = None,
    ) -> Endpoint:
        """Returns an endpoint whose requests are this JSON object."""
        return Endpoint(path, list((headers or {}).items()), _json.dumps(request), framing)


@dataclass(slots=True)
class ToolPiece:
    """A piece of a function call that the model asks for."""

    index: U32
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Refusal:
    """The reason why the server did not answer."""

    message: str
    code: U16 | None = None


@dataclass(slots=True)
class RolePart:
    """Nothing was generated."""


@dataclass(slots=True)
class ReasoningPart:
    """Reasoning text."""

    value: str


@dataclass(slots=True)
class ContentPart:
    """Visible text."""

    value: str


@dataclass(slots=True)
class ToolPart:
    """A piece of a function call."""

    value: ToolPiece


@dataclass(slots=True)
class FinishPart:
    """Generation ended, with the reason that the server sent."""

    value: str


@dataclass(slots=True)
class UsagePart:
    """Token counts; the last ones of an answer are used."""

    value: Usage


@dataclass(slots=True)
class SignaturePart:
    """The next piece of the server's proof that the reasoning is its own."""

    value: str


@dataclass(slots=True)
class LogProbabilitiesPart:
    """Log-probabilities of the next tokens of the answer."""

    value: TokenProbabilities


@dataclass(slots=True)
class ResponseIdPart:
    """The id that the server gave the answer; the first one of an answer is used."""

    value: str


@dataclass(slots=True)
class DonePart:
    """The end marker: later events are ignored."""


@dataclass(slots=True)
class CommentPart:
    """A keep-alive."""


@dataclass(slots=True)
class ErrorPart:
    """The request failed."""

    value: Refusal


#: A part of an event.
Part: TypeAlias = Union[
    RolePart,
    ReasoningPart,
    ContentPart,
    ToolPart,
    FinishPart,
    UsagePart,
    SignaturePart,
    LogProbabilitiesPart,
    ResponseIdPart,
    DonePart,
    CommentPart,
    ErrorPart,
]


@dataclass(slots=True)
class Parts:
    """The parts of events, one event after the other."""

    parts: list[Part] = field(default_factory=list)
    #: For each event, the number of parts that belong to it and to the events before it.
    ends: list[U32] = field(default_factory=list)

    def push(self, part: Part) -> None:
        """Adds any part."""
        self.parts.append(part)

    def role(self) -> None:
        """Nothing was generated: the role, an empty delta, an opening frame."""
        self.parts.append(RolePart())

    def reasoning(self, text: str) -> None:
        """Adds reasoning text."""
        self.parts.append(ReasoningPart(text))

    def content(self, text: str) -> None:
        """Adds visible text."""
        self.parts.append(ContentPart(text))

    def tool(self, index: int, id: str = "", name: str = "", arguments: str = "") -> None:
        """Adds a piece of the function call `index`, from 0."""
        self.parts.append(ToolPart(ToolPiece(index, id, name, arguments)))

    def finish(self, reason: str) -> None:
        """Generation ended, with the reason that the server sent: `stop`, `length`, ..."""
        self.parts.append(FinishPart(reason))

    def usage(
        self,
        prompt: int,
        completion: int,
        cached: int | None = None,
        reasoning: int | None = None,
    ) -> None:
        """Adds token counts; the last ones of an answer are used."""
        self.parts.append(UsagePart(Usage(prompt, completion, cached, reasoning)))

    def signature(self, piece: str) -> None:
        """Adds the next piece of the server's proof that the reasoning is its own."""
        self.parts.append(SignaturePart(piece))

    def log_probabilities(self, logarithms: list[float], greedy: list[bool] | None = None) -> None:
        """Adds the log-probabilities of the next tokens of the answer."""
        tokens = TokenProbabilities(logarithms, greedy or [])
        self.parts.append(LogProbabilitiesPart(tokens))

    def response_id(self, id: str) -> None:
        """Adds the id that the server gave the answer."""
        self.parts.append(ResponseIdPart(id))

    def done(self) -> None:
        """The end marker: later events are ignored."""
        self.parts.append(DonePart())

    def comment(self) -> None:
        """A keep-alive."""
        self.parts.append(CommentPart())

    def error(self, message: str, code: int | None = None) -> None:
        """The request failed, with the server's message and its code if it is a number."""
        self.parts.append(ErrorPart(Refusal(message, code)))


class EndpointCodec(Plugin[C]):
    """Adds the API of an endpoint.

    The parts of an event must depend on (configuration, event) and on nothing else, not on the
    events before it: the host calls several instances, with some events of an answer each.
    """

    kind: ClassVar[str] = "endpoint-codec"
    required: ClassVar[tuple[str, ...]] = ("endpoint", "decode")

    def endpoint(self) -> Endpoint:
        """Returns the shape of requests."""
        raise NotImplementedError

    def decode(self, event: bytes, parts: Parts) -> None:
        """Adds the parts of an event: none, one or several.

        Raise an `Error` for an event that the codec does not understand; a failure that the server
        reports is a part.
        """
        raise NotImplementedError


def json(event: bytes) -> Any:
    """Returns the JSON value of an event.

    Raises:
        Error: code `event`, if it is not JSON.
    """
    try:
        return _json.loads(event)
    except ValueError as error:
        shown = event[:80].decode("utf-8", "replace")
        raise Error("event", f"the event is not JSON: {error}: {shown}") from None

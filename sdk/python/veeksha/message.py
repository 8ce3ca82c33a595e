"""Messages and the pieces of which they consist."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias, Union

from ._numbers import U32
from .error import Error

if TYPE_CHECKING:
    from .answer import ToolResult
    from .graph import ToolRun


@dataclass(slots=True)
class Seed:
    """64 bits of seed, in two words."""

    high: U32
    low: U32

    @staticmethod
    def of(value: int | Seed) -> Seed:
        """Returns the seed of an integer from 0 to 2^64 - 1."""
        if isinstance(value, Seed):
            return value
        if value.__class__ is not int or not 0 <= value < 1 << 64:
            raise Error(
                "value",
                f"seed: expected an integer from 0 to 2^64 - 1, got {value!r}",
            )
        return Seed(value >> 32, value & 0xFFFF_FFFF)


@dataclass(slots=True)
class SyntheticText:
    """Exactly `tokens` tokens of text that depends on (seed, tokens) and the target's tokenizer."""

    seed: Seed
    tokens: U32


class MediaKind(Enum):
    """The kind of a media file."""

    IMAGE = 0
    AUDIO = 1
    VIDEO = 2


@dataclass(slots=True)
class Media:
    """A reference to a media file: the name of a granted file, or a URL."""

    kind: MediaKind
    source: str


@dataclass(slots=True)
class TextSegment:
    """Text that is sent verbatim."""

    value: str


@dataclass(slots=True)
class SyntheticSegment:
    """Text that the host generates with an exact length."""

    value: SyntheticText


@dataclass(slots=True)
class MediaSegment:
    """A media file, sent as a content block."""

    value: Media


@dataclass(slots=True)
class TokenIdsSegment:
    """Token ids of the target's vocabulary, sent as they are."""

    value: list[U32]


@dataclass(slots=True)
class ResultSegment:
    """The result of a tool run of this session: synthetic text of as many tokens as it returns."""

    value: U32


#: A piece of a message.
Segment: TypeAlias = Union[
    TextSegment, SyntheticSegment, MediaSegment, TokenIdsSegment, ResultSegment
]

#: Anything that a message can consist of: a string is text that is sent verbatim.
Content: TypeAlias = Union[str, Segment, Iterable[Union[str, Segment]]]


def text(value: str) -> Segment:
    """Returns text that is sent verbatim. Where a segment is expected, a string does as well."""
    return TextSegment(value)


def synthetic(seed: int | Seed, tokens: int) -> Segment:
    """Returns text that the host generates: exactly `tokens` tokens.

    It depends on the seed, the length and the target's tokenizer alone. Texts of one seed share
    their beginning.
    """
    return SyntheticSegment(SyntheticText(Seed.of(seed), tokens))


def image(source: str) -> Segment:
    """Returns an image: the name of a granted file, or a URL."""
    return MediaSegment(Media(MediaKind.IMAGE, source))


def audio(source: str) -> Segment:
    """Returns a sound: the name of a granted file, or a URL."""
    return MediaSegment(Media(MediaKind.AUDIO, source))


def video(source: str) -> Segment:
    """Returns a video: the name of a granted file, or a URL."""
    return MediaSegment(Media(MediaKind.VIDEO, source))


def token_ids(ids: Iterable[int]) -> Segment:
    """Returns token ids of the target's vocabulary. Such a request has no other content."""
    return TokenIdsSegment(list(ids))


def result_of(run: int | ToolRun | ToolResult) -> Segment:
    """Returns the text that a tool run of the session returns. The request must wait for its end."""
    return ResultSegment(run if isinstance(run, int) else run.node)


def segments(content: Content) -> list[Segment]:
    """Returns content as a list of segments."""
    if isinstance(content, str):
        return [TextSegment(content)]
    if isinstance(content, Iterable):
        return [TextSegment(piece) if isinstance(piece, str) else piece for piece in content]
    return [content]


class Role(Enum):
    """The author of a message."""

    SYSTEM = 0
    USER = 1
    ASSISTANT = 2
    TOOL = 3


@dataclass(slots=True)
class ToolCall:
    """A function call that the model asked for. `arguments` is JSON text, as the server sent it."""

    id: str
    name: str
    arguments: str


@dataclass(slots=True)
class Reasoning:
    """The reasoning that comes before an answer, with the server's proof that it is its own."""

    content: list[Segment]
    signature: str | None = None


@dataclass(slots=True)
class Message:
    """A message: its segments are joined without separators."""

    role: Role
    content: list[Segment]
    #: For the role `TOOL`: the call that the message answers.
    tool_call_id: str | None = None
    #: For the role `ASSISTANT`: the calls that it asks for.
    tool_calls: list[ToolCall] = field(default_factory=list)
    #: For the role `ASSISTANT`: the reasoning before its content.
    reasoning: Reasoning | None = None

    @staticmethod
    def assistant(
        content: Content = (),
        *,
        calls: Iterable[ToolCall] = (),
        reasoning: Content | None = None,
    ) -> Message:
        """Returns a message of the assistant, with the calls and the reasoning that it has."""
        thought = None if reasoning is None else Reasoning(segments(reasoning))
        return Message(
            Role.ASSISTANT, segments(content), tool_calls=list(calls), reasoning=thought
        )


@dataclass(slots=True)
class SyntheticTools:
    """Definitions of `count` generated functions, which have `tokens` tokens together."""

    seed: Seed
    count: U32
    tokens: U32


@dataclass(slots=True)
class DefinedTools:
    """JSON text of an array with one definition each: `name`, `description`, `parameters`.

    The host writes them in the form of the endpoint.
    """

    value: str


@dataclass(slots=True)
class VerbatimTools:
    """JSON text of an array, sent verbatim."""

    value: str


@dataclass(slots=True)
class GeneratedTools:
    """Definitions that the host generates with an exact length."""

    value: SyntheticTools


#: Definitions of functions that the model may call.
Tools: TypeAlias = Union[DefinedTools, VerbatimTools, GeneratedTools]


def synthetic_tools(seed: int | Seed, count: int, tokens: int) -> Tools:
    """Returns definitions of `count` functions whose JSON text has exactly `tokens` tokens."""
    return GeneratedTools(SyntheticTools(Seed.of(seed), count, tokens))


@dataclass(slots=True)
class AutomaticToolChoice:
    """The model may call any function or none."""


@dataclass(slots=True)
class NoToolChoice:
    """The model may not call a function."""


@dataclass(slots=True)
class RequiredToolChoice:
    """The model must call at least one function."""


@dataclass(slots=True)
class FunctionToolChoice:
    """The model must call this function."""

    value: str


#: The functions that the model may call in an answer.
ToolChoice: TypeAlias = Union[
    AutomaticToolChoice, NoToolChoice, RequiredToolChoice, FunctionToolChoice
]

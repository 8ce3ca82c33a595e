"""Plugins that decide a session step by step, in answer to the model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from ._numbers import U32
from .answer import Failure, Response, ToolResult
from .draws import Random
from .graph import Guarantees, Request, SessionNode, ToolRun, split
from ._plugin import C, Plugin


@dataclass(slots=True)
class Step:
    """The next step of an agent."""

    #: New requests. They may name any earlier node of the session as a parent.
    requests: list[Request] = field(default_factory=list)
    #: New tool runs, likewise.
    tool_runs: list[ToolRun] = field(default_factory=list)
    #: Nodes of this step or of earlier ones to cancel.
    cancel: list[U32] = field(default_factory=list)
    #: No further nodes will come. Until then, the end of each node is followed by a call.
    done: bool = False

    @staticmethod
    def send(*nodes: SessionNode, cancel: Iterable[int] = (), done: bool = False) -> Step:
        """Returns a step that sends requests and starts tool runs.

        With `done` no further nodes will come.
        """
        requests, runs = split(nodes)
        return Step(requests, runs, list(cancel), done)

    @staticmethod
    def wait() -> Step:
        """Returns a step that sends nothing now: other nodes are still open."""
        return Step()

    @staticmethod
    def end() -> Step:
        """Returns a step that ends the session once every node is complete."""
        return Step(done=True)


@dataclass(slots=True)
class Opening:
    """The beginning of a session."""

    step: Step
    #: HTTP headers of each request of the session.
    headers: list[tuple[str, str]] = field(default_factory=list)
    #: Labels of the record of each request of the session.
    labels: list[tuple[str, str]] = field(default_factory=list)

    def header(self, name: str, value: str) -> Opening:
        """Adds an HTTP header to each request of the session."""
        self.headers.append((name, value))
        return self

    def label(self, name: str, value: str) -> Opening:
        """Adds a label to the record of each request of the session."""
        self.labels.append((name, value))
        return self


class Agent(Plugin[C]):
    """One live session that decides its next requests from the answers.

    A session must depend on (configuration, seed, index, the ends of its nodes) and on nothing
    else. Its attributes are the state of the session; they are dropped when it is done.
    """

    kind: ClassVar[str] = "agent-generator"
    required: ClassVar[tuple[str, ...]] = ("start", "answered")

    def __init__(self, config: C, index: int, random: Random) -> None:
        super().__init__(config)
        #: The index of the session, from 0.
        self.index: int = index
        #: The random streams of the session.
        self.random: Random = random

    @classmethod
    def guarantees(cls, config: C) -> Guarantees:
        """Returns the properties that all sessions share. By default nothing is guaranteed."""
        return Guarantees()

    @classmethod
    def length(cls, config: C) -> int | None:
        """Returns the number of sessions; None for an endless workload."""
        return None

    def start(self) -> Opening | Step:
        """Returns the first step, in an `Opening` if the session has headers or labels."""
        raise NotImplementedError

    def answered(self, response: Response) -> Step:
        """Takes the answer to a request."""
        raise NotImplementedError

    def failed(self, failure: Failure) -> Step:
        """Takes the failure of a request. By default the session ends."""
        return Step.end()

    def cancelled(self, response: Response) -> Step:
        """Takes the end of a request that was cancelled. By default nothing follows from it."""
        return Step.wait()

    def tool_ended(self, ended: ToolResult) -> Step:
        """Takes the end of a tool run. By default nothing follows from it."""
        return Step.wait()

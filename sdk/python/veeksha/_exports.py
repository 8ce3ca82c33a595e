"""The resources of the contract, which call the plugin.

Every function is guarded: an exception of the plugin becomes an error of the contract and ends one
session, or one call, instead of the instance. What a function without errors returns is computed,
and checked, when its resource is opened.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Union

from . import _report, _returns, _sandbox, config
from ._numbers import U64, Nanos
from ._returned import Check, check_of, expect, wrong_value
from .agent import Agent, Opening, Step
from .checks import Results, Verdict
from .codec import Endpoint, Part, Parts
from .completion import rows
from .draws import Random
from .error import Error
from .flavor import Group, Layout, Row, Trace
from .generator import whole
from .graph import Guarantees, Session
from .metric import Definition, Sample, Samples
from ._plugin import Plugin, config_type, parameter, registered

#: Wraps an error for the runtime: `componentize_py_types.Err`, or the error itself in tests.
_wrap: Callable[[Error], BaseException] = lambda error: error


def set_error_wrapper(wrap: Callable[[Error], BaseException]) -> None:
    """Sets the exception by which the runtime recognizes an error of the contract."""
    global _wrap
    _wrap = wrap


class _Type(NamedTuple):
    """A type of returned values, and its check."""

    hint: Any
    check: Check

    def expect(self, value: Any, name: str) -> Any:
        expect(self.check, self.hint, value, name)
        return value


def _type(hint: Any) -> _Type:
    return _Type(hint, check_of(hint))


STEP = _type(Step)
OPENING = _type(Opening)
SESSION = _type(Session)
SESSIONS = _type(list[Session])
GUARANTEES = _type(Guarantees)
LENGTH = _type(Union[U64, None])
LAYOUT = _type(Layout)
ENDPOINT = _type(Endpoint)
PARTS = _type(list[Part])
DEFINITIONS = _type(list[Definition])
SAMPLES = _type(list[Sample])
VERDICTS = _type(list[Verdict])
ARRIVAL = _type(Union[Nanos, None])


def guarded(method: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Turns exceptions of a function into errors. `method` is the plugin's method that it calls."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def guard(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except BaseException as error:  # noqa: BLE001 - also SystemExit
                raise _failure(error, method) from None
            finally:
                _sandbox.flush_output()

        return guard

    return decorate


def _failure(error: BaseException, method: str) -> BaseException:
    """Returns the error of an exception."""
    try:
        return _wrap(_report.report(error, _returns.last_return(method)))
    except Exception:  # noqa: BLE001 - out of memory or stack while reporting
        return _wrap(Error("exception", type(error).__name__))


def _open(kind: str, text: str) -> tuple[type[Any], Any]:
    """Returns the plugin of a kind, and its configuration."""
    _sandbox.go_live()
    cls = registered[kind]
    return cls, config.from_json(config_type(cls), text)


def _opened(kind: str, text: str) -> Any:
    """Returns an open plugin of a kind."""
    cls, settings = _open(kind, text)
    instance = cls(settings)
    instance.setup()
    return instance


class Workload:
    """The resource of a session generator."""

    def __init__(self, instance: Any) -> None:
        self.plugin = instance
        self._guarantees = GUARANTEES.expect(instance.guarantees(), "guarantees")
        self._length = LENGTH.expect(instance.length(), "length")

    @classmethod
    @guarded("setup")
    def open(cls, text: str) -> Workload:
        return cls(_opened("session-generator", text))

    def guarantees(self) -> Guarantees:
        return self._guarantees  # type: ignore[no-any-return]

    def length(self) -> int | None:
        return self._length  # type: ignore[no-any-return]

    @guarded("session")
    def sessions(self, first: int, count: int) -> list[Session]:
        end = first + count if self._length is None else min(first + count, self._length)
        make = self.plugin.session
        return [
            SESSION.expect(whole(make(index, Random(index))), "session")
            for index in range(first, end)
        ]


class Generator:
    """The resource of an agent generator."""

    def __init__(self, cls: type[Agent[Any]], settings: Any) -> None:
        self.cls = cls
        self.config = settings
        self._guarantees = GUARANTEES.expect(cls.guarantees(settings), "guarantees")
        self._length = LENGTH.expect(cls.length(settings), "length")

    @classmethod
    @guarded("guarantees")
    def open(cls, text: str) -> Generator:
        return cls(*_open("agent-generator", text))

    def guarantees(self) -> Guarantees:
        return self._guarantees  # type: ignore[no-any-return]

    def length(self) -> int | None:
        return self._length  # type: ignore[no-any-return]

    @guarded("start")
    def start(self, index: int) -> tuple[LiveAgent, Opening]:
        agent = self.cls(self.config, index, Random(index))
        agent.setup()
        first = agent.start()
        opening = Opening(first) if isinstance(first, Step) else first
        OPENING.expect(opening, "start")
        return LiveAgent(None if opening.step.done else agent), opening


class LiveAgent:
    """The resource of a live agent.

    The runtime keeps every resource for as long as its instance lives, so the plugin's object is
    dropped as soon as the session is done: otherwise its state would stay in memory.
    """

    def __init__(self, agent: Agent[Any] | None) -> None:
        self.agent = agent

    def _step(self, name: str, event: Any) -> Step:
        agent = self.agent
        if agent is None:
            return Step(done=True)
        self.agent = None
        step: Step = STEP.expect(getattr(agent, name)(event), name)
        if not step.done:
            self.agent = agent
        return step

    @guarded("answered")
    def answered(self, response: Any) -> Step:
        return self._step("answered", response)

    @guarded("failed")
    def failed(self, failure: Any) -> Step:
        return self._step("failed", failure)

    @guarded("cancelled")
    def cancelled(self, response: Any) -> Step:
        return self._step("cancelled", response)

    @guarded("tool_ended")
    def tool_ended(self, ended: Any) -> Step:
        return self._step("tool_ended", ended)


class Process:
    """The resource of an arrival process."""

    def __init__(self, instance: Any) -> None:
        self.plugin = instance
        self.session = 0

    @classmethod
    @guarded("setup")
    def open(cls, text: str) -> Process:
        return cls(_opened("arrival-process", text))

    @guarded("next")
    def next(self, count: int) -> list[int]:
        arrivals: list[int] = []
        while len(arrivals) < count:
            arrival = self.plugin.next(self.session, Random(self.session))
            ARRIVAL.expect(arrival, "next")
            if arrival is None:
                break
            self.session += 1
            arrivals.append(arrival)
        return arrivals


class Flavor:
    """The resource of a trace flavor."""

    def __init__(self, instance: Any) -> None:
        self.plugin = instance
        self.row_type = parameter(type(instance), 1)
        self._guarantees = GUARANTEES.expect(instance.guarantees(), "guarantees")
        self._layout = LAYOUT.expect(instance.layout(), "layout")
        self._first: tuple[str, Any] = ("", None)

    @classmethod
    @guarded("layout")
    def open(cls, text: str) -> Flavor:
        return cls(_opened("trace-flavor", text))

    def guarantees(self) -> Guarantees:
        return self._guarantees  # type: ignore[no-any-return]

    def layout(self) -> Layout:
        return self._layout  # type: ignore[no-any-return]

    @guarded("session")
    def sessions(self, facts: Any, epoch: int, groups: list[Any]) -> list[Session]:
        trace = self._trace(facts)
        make = self.plugin.session
        return [
            SESSION.expect(whole(make(trace, epoch, self._group(group))), "session")
            for group in groups
        ]

    @guarded("warmup")
    def warmup(self, facts: Any, groups: list[Any]) -> list[Session]:
        trace = self._trace(facts)
        sessions: list[Session] = []
        for group in groups:
            more = self.plugin.warmup(trace, self._group(group))
            sessions += SESSIONS.expect(more, "warmup")
        return sessions

    def _trace(self, facts: Any) -> Trace[Any]:
        if self._first[0] != facts.first_row:
            self._first = (facts.first_row, self._cells(1, facts.first_row))
        return Trace(facts.rows, facts.groups, self._first[1])

    def _group(self, group: Any) -> Group[Any]:
        rows = [Row(row.number, row.at, self._cells(row.number, row.fields)) for row in group.rows]
        return Group(group.index, group.key, rows)

    def _cells(self, number: int, fields: str) -> Any:
        try:
            return config.from_json(self.row_type or dict, fields)
        except Error as error:
            place = (error.path or "").lstrip("/").replace("/", ".")
            what = f"`{place}`: {error.message}" if place else error.message
            raise Error("row", f"row {number}: {what}", error.hint) from None


class Codec:
    """The resource of an endpoint codec."""

    def __init__(self, instance: Any) -> None:
        self.plugin = instance
        self._endpoint = ENDPOINT.expect(instance.endpoint(), "endpoint")

    @classmethod
    @guarded("endpoint")
    def open(cls, text: str) -> Codec:
        return cls(_opened("endpoint-codec", text))

    def endpoint(self) -> Endpoint:
        return self._endpoint  # type: ignore[no-any-return]

    @guarded("decode")
    def decode(self, content: bytes, ends: list[int]) -> Parts:
        parts = Parts()
        begin = 0
        for end in ends:
            self.plugin.decode(content[begin:end], parts)
            parts.ends.append(len(parts.parts))
            begin = end
        PARTS.expect(parts.parts, "decode")
        return parts


class Collector:
    """The resource of a metric."""

    def __init__(self, instance: Any) -> None:
        self.plugin = instance
        self._definitions = DEFINITIONS.expect(instance.definitions(), "definitions")
        self.places = {metric.name: place for place, metric in enumerate(self._definitions)}

    @classmethod
    @guarded("definitions")
    def open(cls, text: str) -> Collector:
        return cls(_opened("metric", text))

    def definitions(self) -> list[Definition]:
        return self._definitions  # type: ignore[no-any-return]

    @guarded("observe")
    def observe(self, batch: Any) -> list[Sample]:
        samples = Samples(self.places)
        observe = self.plugin.observe
        for place, request in enumerate(rows(batch)):
            samples.current = place
            observe(request, samples)
        return SAMPLES.expect(samples.samples, "observe")  # type: ignore[no-any-return]

    @guarded("finish")
    def finish(self) -> list[Sample]:
        samples = Samples(self.places)
        self.plugin.finish(samples)
        return SAMPLES.expect(samples.samples, "finish")  # type: ignore[no-any-return]


class RequestChecker:
    """The resource of a request check."""

    def __init__(self, instance: Any) -> None:
        self.plugin = instance

    @classmethod
    @guarded("setup")
    def open(cls, text: str) -> RequestChecker:
        return cls(_opened("request-check", text))

    @guarded("is_good")
    def judge(self, batch: Any) -> list[bool]:
        is_good = self.plugin.is_good
        answers = [is_good(request) for request in rows(batch)]
        for answer in answers:
            if answer is not True and answer is not False:
                raise wrong_value("is_good", "", "True or False", answer)
        return answers


class SloChecker:
    """The resource of an SLO check."""

    def __init__(self, instance: Any) -> None:
        self.plugin = instance

    @classmethod
    @guarded("setup")
    def open(cls, text: str) -> SloChecker:
        return cls(_opened("slo-check", text))

    @guarded("check")
    def check(self, results: Any) -> list[Verdict]:
        with results:
            verdicts = self.plugin.check(Results(results))
        return VERDICTS.expect(verdicts, "check")  # type: ignore[no-any-return]


class Exported(NamedTuple):
    """A kind as the runtime looks for it."""

    #: The generated module, and the top-level module in which the runtime looks for resources.
    module: str
    #: The class with `describe`.
    protocol: str
    #: The resources.
    resources: dict[str, type]


EXPORTS: dict[str, Exported] = {
    "session-generator": Exported(
        "session_generator", "SessionGenerator", {"Workload": Workload}
    ),
    "agent-generator": Exported(
        "agent_generator", "AgentGenerator", {"Generator": Generator, "Agent": LiveAgent}
    ),
    "arrival-process": Exported("arrival_process", "ArrivalProcess", {"Process": Process}),
    "trace-flavor": Exported("trace_flavor", "TraceFlavor", {"Flavor": Flavor}),
    "endpoint-codec": Exported("endpoint_codec", "EndpointCodec", {"Codec": Codec}),
    "metric": Exported("metric", "Metric", {"Collector": Collector}),
    "request-check": Exported("request_check", "RequestCheck", {"Checker": RequestChecker}),
    "slo-check": Exported("slo_check", "SloCheck", {"Checker": SloChecker}),
}


def kinds_of(plugins: dict[str, type[Plugin[Any]]]) -> list[str]:
    """Returns the names of kinds, in the order of the contract."""
    return [kind for kind in EXPORTS if kind in plugins]

"""Plugins that judge each request, or the whole run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from ._numbers import U64, Finite, Nanos
from .completion import Completion
from ._plugin import C, Plugin


class RequestCheck(Plugin[C]):
    """Judges whether each finished request was good, as a part of goodput.

    The answer must depend on (configuration, request) and on nothing else.
    """

    kind: ClassVar[str] = "request-check"
    required: ClassVar[tuple[str, ...]] = ("is_good",)

    def is_good(self, request: Completion) -> bool:
        """Returns True if the request was good. One that failed is never good."""
        raise NotImplementedError


@dataclass(slots=True)
class Stats:
    """Statistics of a metric's samples, in the metric's unit. If `count` is 0, so are the others."""

    count: U64
    mean: float
    #: Standard deviation of the values themselves.
    std: float
    min: float
    max: float
    p50: float
    p90: float
    p95: float
    p99: float


@dataclass(slots=True)
class Window:
    """A window of the run."""

    begin: Nanos
    end: Nanos
    #: Statistics of the requests whose intended time is in the window.
    stats: Stats


Filter = Mapping[str, str]


class Results:
    """The results of a run. A filter selects the samples of requests that have all these labels.

    A test may pass its own object with these methods.
    """

    def __init__(self, host: Any) -> None:
        self._host = host

    def metrics(self) -> list[str]:
        """Returns the names of all metrics that have samples."""
        return cast("list[str]", self._host.metrics())

    def aggregate(self, name: str) -> float | None:
        """Returns an aggregate of the whole run: `error_rate`, `goodput`, ..."""
        return cast("float | None", self._host.aggregate(name))

    def stats(self, metric: str, filter: Filter | None = None) -> Stats:
        """Returns the statistics of a metric."""
        return cast(Stats, self._host.stats(metric, _pairs(filter)))

    def percentile(
        self, metric: str, percent: float, filter: Filter | None = None
    ) -> float | None:
        """Returns a percentile, from 0 to 100; None if there are no samples."""
        value = self._host.percentile(metric, float(percent), _pairs(filter))
        return cast("float | None", value)

    def windows(self, metric: str, length: int, filter: Filter | None = None) -> list[Window]:
        """Returns the statistics of a metric in windows of this length, in nanoseconds."""
        return cast("list[Window]", self._host.windows(metric, _pairs(filter), length))


def _pairs(filter: Filter | None) -> list[tuple[str, str]]:
    return list((filter or {}).items())


@dataclass(slots=True)
class Verdict:
    """The verdict on one objective."""

    #: Its name, unique among the verdicts.
    name: str
    #: True if the objective is met.
    met: bool
    #: The observed value; None if there was nothing to observe.
    observed: Finite | None
    #: The required value.
    threshold: Finite
    #: One line for the user; may be empty.
    detail: str = ""

    @staticmethod
    def at_most(
        name: str, observed: float | None, threshold: float, detail: str = ""
    ) -> Verdict:
        """Returns the verdict that a value is at most `threshold`; without a value it is not met."""
        met = observed is not None and observed <= threshold
        return Verdict(name, met, observed, threshold, detail)

    @staticmethod
    def at_least(
        name: str, observed: float | None, threshold: float, detail: str = ""
    ) -> Verdict:
        """Returns the verdict that a value is at least `threshold`; without a value it is not met."""
        met = observed is not None and observed >= threshold
        return Verdict(name, met, observed, threshold, detail)


class SloCheck(Plugin[C]):
    """Judges a run by its results. The verdicts must depend on (configuration, results) alone."""

    kind: ClassVar[str] = "slo-check"
    required: ClassVar[tuple[str, ...]] = ("check",)

    def check(self, results: Results) -> list[Verdict]:
        """Returns at least one verdict, each with a distinct name."""
        raise NotImplementedError

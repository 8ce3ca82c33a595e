"""Plugins that measure custom metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from ._numbers import U32, Finite, Positive
from .completion import Completion
from .error import Error
from ._plugin import C, Plugin


class Better(Enum):
    """The better direction of a metric."""

    HIGHER = 0
    LESS = 1
    #: The metric describes the load.
    NEITHER = 2


@dataclass(slots=True)
class Definition:
    """A metric."""

    #: `[a-z][a-z0-9_]*`, at most 64 characters, not the name of a built-in metric.
    name: str
    #: `s`, `tokens`, `1` for a ratio, ...
    unit: str
    better: Better
    #: The definition, in one line.
    summary: str


@dataclass(slots=True)
class Sample:
    """A sample of a metric."""

    #: The index of the metric in the definitions.
    metric: U32
    #: In the metric's unit.
    value: Finite
    #: The number of samples that it counts as.
    weight: Positive = 1.0
    #: The index of the request that it describes; None for a sample of the whole run.
    of: U32 | None = None


@dataclass(slots=True)
class Samples:
    """The samples of a call. A metric is named by its name or by its place in the definitions."""

    #: The places of the metrics, by name.
    metrics: dict[str, int]
    samples: list[Sample] = field(default_factory=list)
    #: The index of the current request.
    current: int | None = None

    def add(self, metric: str | int, value: float, weight: float = 1.0) -> None:
        """Adds a sample of the current request, whose labels it takes."""
        self.samples.append(Sample(self._place(metric), value, weight, self.current))

    def add_of_run(self, metric: str | int, value: float, weight: float = 1.0) -> None:
        """Adds a sample of the whole run, which belongs to no request."""
        self.samples.append(Sample(self._place(metric), value, weight))

    def _place(self, metric: str | int) -> int:
        if not isinstance(metric, str):
            return metric
        place = self.metrics.get(metric)
        if place is None:
            known = ", ".join(f"`{name}`" for name in self.metrics)
            raise Error("metric", f"`{metric}` is not defined; defined are {known}")
        return place


class Metric(Plugin[C]):
    """Measures metrics. It may keep state from one request to the next.

    The samples must not depend on the division of the requests into batches.
    """

    kind: ClassVar[str] = "metric"
    required: ClassVar[tuple[str, ...]] = ("definitions", "observe")

    def definitions(self) -> list[Definition]:
        """Returns the metrics that it measures."""
        raise NotImplementedError

    def observe(self, request: Completion, samples: Samples) -> None:
        """Adds the samples of a request. A request without a value adds none: absent is not 0."""
        raise NotImplementedError

    def finish(self, samples: Samples) -> None:
        """Adds what can only be computed at the end, with `Samples.add_of_run`."""

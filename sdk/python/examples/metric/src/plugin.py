"""The time for which answers paused."""

from dataclasses import dataclass
from typing import Annotated

from veeksha import Better, Completion, Definition, Metric, Range, Samples, plugin


@dataclass
class Config:
    """The gap that a reader notices."""

    longer_than_ms: Annotated[float, Range(0, 60_000), "A gap longer than this counts."] = 250.0


@plugin
class Stalls(Metric[Config]):
    """The gaps between two chunks of an answer that are longer than a reader notices."""

    stalled_requests = 0

    def definitions(self) -> list[Definition]:
        return [
            Definition("stalled", "s", Better.LESS, "sum of the long gaps between chunks"),
            Definition("stalled_requests", "1", Better.LESS, "requests with a long gap, in total"),
        ]

    def observe(self, request: Completion, samples: Samples) -> None:
        at = request.chunk_at
        # A request without chunks has no gaps: absent is not 0.
        if not request.is_ok() or not at:
            return
        longest = self.config.longer_than_ms * 1e6
        stalled = sum(b - a for a, b in zip(at, at[1:]) if b - a > longest)
        samples.add("stalled", stalled / 1e9)
        self.stalled_requests += stalled > 0

    def finish(self, samples: Samples) -> None:
        samples.add_of_run("stalled_requests", self.stalled_requests)

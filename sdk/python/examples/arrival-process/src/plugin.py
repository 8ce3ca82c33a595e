"""Arrivals whose rate rises and falls, like that of users over a day."""

import math
from dataclasses import dataclass
from typing import Annotated

from veeksha import ArrivalProcess, Error, Random, Range, plugin, seconds


@dataclass
class Config:
    """The rates, and the period between two peaks."""

    lowest: Annotated[float, Range(0.001, 10_000), "Sessions per second at the lowest."] = 1.0
    highest: Annotated[float, Range(0.001, 10_000), "Sessions per second at the peak."] = 5.0
    period_seconds: Annotated[float, Range(1, 1_000_000), "Seconds between two peaks."] = 60.0

    def __post_init__(self) -> None:
        if self.highest < self.lowest:
            raise Error.config("/highest", f"it is below `lowest`, which is {self.lowest}")


@plugin
class DailyWave(ArrivalProcess[Config]):
    """A Poisson process with a sinusoidal rate, by thinning (Lewis and Shedler, 1979)."""

    time = 0.0

    def next(self, session: int, random: Random) -> int | None:
        gaps = random.stream("gaps")
        while True:
            self.time += gaps.exponential() / self.config.highest
            if gaps.chance(self.rate() / self.config.highest):
                return seconds(self.time)

    def rate(self) -> float:
        """The rate at the current time; the first peak is half a period after the start."""
        wave = 0.5 - 0.5 * math.cos(math.tau * self.time / self.config.period_seconds)
        return self.config.lowest + (self.config.highest - self.config.lowest) * wave

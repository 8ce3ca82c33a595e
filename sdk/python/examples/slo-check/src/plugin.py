"""An objective that a line such as `p99(ttfc) < 500ms` cannot state: tiers in their order."""

from dataclasses import dataclass, field
from typing import Annotated

from veeksha import Error, Range, Results, SloCheck, Verdict, plugin


@dataclass
class Config:
    """The tiers, the best first."""

    tiers: Annotated[list[str], "Values of the label `tier`, the best first."] = field(
        default_factory=lambda: ["paid", "free"]
    )
    percent: Annotated[float, Range(0, 100), "The percentile that is compared."] = 90.0

    def __post_init__(self) -> None:
        if len(self.tiers) < 2:
            raise Error.config("/tiers", "an order has at least two tiers")


@plugin
class OrderedTiers(SloCheck[Config]):
    """No tier waits longer for its first chunk than the one below it."""

    def check(self, results: Results) -> list[Verdict]:
        verdicts = []
        for better, worse in zip(self.config.tiers, self.config.tiers[1:]):
            limit = self.first_chunk(results, worse)
            if limit is None:
                raise Error("no-samples", f"no request of the tier {worse} was answered")
            observed = self.first_chunk(results, better)
            verdicts.append(Verdict.at_most(f"{better} before {worse}", observed, limit))
        return verdicts

    def first_chunk(self, results: Results, tier: str) -> float | None:
        return results.percentile("ttfc", self.config.percent, {"tier": tier})

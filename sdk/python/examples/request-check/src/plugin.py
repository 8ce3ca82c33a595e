"""Good requests: whole answers, which begin quickly for those who pay."""

from dataclasses import dataclass
from typing import Annotated

from veeksha import Completion, Range, RequestCheck, milliseconds, plugin


@dataclass
class Config:
    """The objective of requests with the label `tier`."""

    tier: Annotated[str, "The value of the label `tier` that has the objective."] = "paid"
    first_chunk_ms: Annotated[float, Range(1, 600_000), "Time to its first chunk."] = 500.0


@plugin
class QuickForPaid(RequestCheck[Config]):
    """Depends on the request alone, not on other requests or their order."""

    def is_good(self, request: Completion) -> bool:
        if request.finish_reason == "length" and request.target_output_tokens is None:
            return False
        if request.label("tier") != self.config.tier:
            return True
        if not request.chunk_at:
            return False
        waited = request.chunk_at[0] - request.intended_at
        return waited <= milliseconds(self.config.first_chunk_ms)

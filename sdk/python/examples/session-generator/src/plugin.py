"""Short questions about one long document, which all sessions share."""

from dataclasses import dataclass
from typing import Annotated

from veeksha import Random, Range, Request, Session, SessionGenerator, plugin, seconds, synthetic


@dataclass
class Config:
    """The length of the document, and the number of questions about it."""

    document_tokens: Annotated[int, Range(1, 1_000_000), "Tokens of the document."] = 4_000
    questions: Annotated[int, Range(1, 100), "Questions of a session."] = 3


@plugin
class SharedDocument(SessionGenerator[Config]):
    """Sessions that ask about the same document: a prefix cache serves all but the first."""

    def session(self, index: int, random: Random) -> Session:
        lengths = random.stream("lengths")
        waits = random.stream("waits")
        requests = []
        for turn in range(self.config.questions):
            request = Request(turn).output_exactly(64)
            if turn == 0:
                request.system(synthetic(1, self.config.document_tokens))
            else:
                request.history(turn - 1).wait(seconds(waits.exponential(2.0)))
            # Each question has its own seed, so no two sessions ask the same.
            seed = 2 + index * self.config.questions + turn
            requests.append(request.user(synthetic(seed, lengths.between(20, 60))))
        return Session(requests).label("workload", "shared_document")

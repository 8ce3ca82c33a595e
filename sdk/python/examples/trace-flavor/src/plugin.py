"""Chats recorded by a gateway: one row for each turn."""

from dataclasses import dataclass

from veeksha import (
    Cell,
    Column,
    Group,
    Layout,
    NoConfig,
    Recording,
    Request,
    Session,
    TimeUnit,
    Trace,
    TraceFlavor,
    milliseconds,
    plugin,
    seed_of,
    synthetic,
)


@dataclass
class Turn:
    """A row of the trace, with a member for each column of the layout."""

    chat: str
    time: float
    input_tokens: int
    output_tokens: int
    latency_ms: float | None = None


@plugin
class GatewayLog(TraceFlavor[NoConfig, Turn]):
    """Rows with the same `chat` are the turns of one session."""

    def layout(self) -> Layout:
        columns = [
            Column.required_as(Cell.TEXT, "chat", "chat_id"),
            Column.required_as(Cell.NUMBER, "time"),
            Column.required_as(Cell.COUNT, "input_tokens"),
            Column.required_as(Cell.COUNT, "output_tokens"),
            Column.optional_as(Cell.NUMBER, "latency_ms"),
        ]
        return Layout(columns).grouped_by("chat").arrivals("time", TimeUnit.SECONDS)

    def session(self, trace: Trace[Turn], epoch: int, group: Group[Turn]) -> Session:
        requests = []
        for node, row in enumerate(group.rows):
            turn = row.cells
            tokens = row.positive("input_tokens", turn.input_tokens)
            # The epoch is in the seed: a wrapped trace does not repeat its text.
            text = synthetic(seed_of("gateway_log", [epoch, row.number]), tokens)
            request = Request(node).user(text).output_exactly(turn.output_tokens)
            if node > 0:
                request.history(node - 1)
            latency = None if turn.latency_ms is None else milliseconds(turn.latency_ms)
            request.recording = Recording(
                at=row.at, latency=latency, output_tokens=turn.output_tokens
            )
            requests.append(request)
        return Session(requests, arrives_at=group.rows[0].at)

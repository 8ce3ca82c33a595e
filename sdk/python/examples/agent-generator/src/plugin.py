"""An agent that calls tools until the model has an answer."""

from dataclasses import dataclass
from typing import Annotated

from veeksha import (
    Agent,
    Failure,
    Opening,
    Range,
    Request,
    Response,
    Step,
    ToolResult,
    ToolRun,
    milliseconds,
    plugin,
    result_of,
    synthetic,
)


@dataclass
class Config:
    """The size of the task, and the patience of the agent."""

    task_tokens: Annotated[int, Range(1, 100_000), "Tokens of the task."] = 400
    turns: Annotated[int, Range(1, 100), "Tool calls of a session at most."] = 4


@plugin
class ToolLoop(Agent[Config]):
    """Asks, runs the tool, continues with its result; its attributes are the state of a session."""

    turn = 0
    last_request = 0

    def start(self) -> Opening:
        self.limit = self.random.stream("turns").between(1, self.config.turns)
        task = synthetic(self.index, self.config.task_tokens)
        first = Request(0).system("You fix bugs. Call a tool.").user(task).output_at_most(80)
        return Opening(Step.send(first)).label("agent", "tool_loop")

    def answered(self, response: Response) -> Step:
        self.last_request = response.node
        if self.turn == self.limit:
            return Step.end()
        self.turn += 1
        # Without a service time, the run takes that of the scenario's tool.
        return Step.send(ToolRun(2 * self.turn - 1, tool="sandbox").after(response.node))

    def tool_ended(self, ended: ToolResult) -> Step:
        result = Request(2 * self.turn).history(self.last_request).after(ended.node)
        return Step.send(result.user("The tool printed:\n", result_of(ended)).output_at_most(80))

    def failed(self, failure: Failure) -> Step:
        if failure.code != "status" or self.turn == self.config.turns:
            return Step.end()
        self.turn = self.limit = self.config.turns
        wait = failure.retry_after or milliseconds(500)
        again = Request(1_000).after(failure.node).wait(wait)
        return Step.send(again.user("Summarize what you know.").output_at_most(40))

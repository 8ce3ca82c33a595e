"""An agent that plans, calls two tools at once, and combines their results."""

from dataclasses import dataclass
from typing import Annotated

from veeksha import (
    Agent,
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

PLAN, SEARCH, SANDBOX, COMBINE = range(1, 5)


@dataclass
class Config:
    """The size of the task, and the patience of the agent."""

    plan_tokens: Annotated[int, Range(1, 100_000), "Tokens of the task, at least."] = 200
    retries: Annotated[int, Range(0, 10), "Further attempts after a cut-off answer."] = 2


@plugin
class PlanAndCombine(Agent[Config]):
    """Plan, two parallel tool calls, combine; once more with twice the length if it was cut off."""

    open_tools = 2
    attempt = 1

    def start(self) -> Opening:
        task = self.config.plan_tokens + self.random.words("plan", 0, 1)[0] % 100
        plan = (
            Request(PLAN)
            .system(synthetic(1, 300))
            .user("Task:\n", synthetic(self.index, task))
            .output_at_most(120)
        )
        return Opening(Step.send(plan)).label("agent", "plan_and_combine")

    def answered(self, response: Response) -> Step:
        if response.node == PLAN:
            return Step.send(
                ToolRun(SEARCH, tool="search").after(PLAN),
                ToolRun(
                    SANDBOX, tool="sandbox", service_time=milliseconds(250), result_tokens=150
                ).after(PLAN),
            )
        if response.finish_reason == "length" and self.attempt <= self.config.retries:
            self.attempt += 1
            return self.combine()
        return Step.end()

    def cancelled(self, response: Response) -> Step:
        return Step.end()

    def tool_ended(self, ended: ToolResult) -> Step:
        self.open_tools -= 1
        return Step.wait() if self.open_tools else self.combine()

    def combine(self) -> Step:
        """The next attempt, which waits for the tools or for the attempt before."""
        node = COMBINE + self.attempt - 1
        awaited = (PLAN, SEARCH, SANDBOX) if self.attempt == 1 else (PLAN, node - 1)
        request = (
            Request(node)
            .after(*awaited)
            .history(PLAN)
            .user("Results:\n", result_of(SEARCH), result_of(SANDBOX), "\nCombine them.")
            .output_at_most(200 << (self.attempt - 1))
            .label("attempt", str(self.attempt))
        )
        return Step.send(request)

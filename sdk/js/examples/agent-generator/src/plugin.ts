/** An agent that calls tools until the model has an answer. */

import {
  Agent,
  type Failure,
  integer,
  keys,
  milliseconds,
  Opening,
  Request,
  type Response,
  resultOf,
  Step,
  synthetic,
  type ToolResult,
  ToolRun,
  type ValueOf,
} from "veeksha";

const config = keys({
  task_tokens: integer("Tokens of the task.", { min: 1, max: 100_000, default: 400 }),
  turns: integer("Tool calls of a session at most.", { min: 1, max: 100, default: 4 }),
});

/** Asks, runs the tool, continues with its result; its members are the state of a session. */
export class ToolLoop extends Agent<ValueOf<typeof config>> {
  static override readonly config = config;
  private limit = 0;
  private turn = 0;
  private lastRequest = 0;

  start(): Opening {
    this.limit = this.random.stream("turns").between(1, this.config.turns);
    const task = synthetic(this.index, this.config.task_tokens);
    const first = new Request(0).system("You fix bugs. Call a tool.").user(task).outputAtMost(80);
    return new Opening(Step.send(first)).label("agent", "tool_loop");
  }

  answered(response: Response): Step {
    this.lastRequest = response.node;
    if (this.turn === this.limit) return Step.end();
    this.turn += 1;
    // Without a service time, the run takes that of the scenario's tool.
    return Step.send(new ToolRun(2 * this.turn - 1, { tool: "sandbox" }).after(response.node));
  }

  override toolEnded(ended: ToolResult): Step {
    const result = new Request(2 * this.turn).history(this.lastRequest).after(ended.node);
    return Step.send(result.user("The tool printed:\n", resultOf(ended)).outputAtMost(80));
  }

  override failed(failure: Failure): Step {
    if (failure.code !== "status" || this.turn === this.config.turns) return Step.end();
    this.turn = this.limit = this.config.turns;
    const wait = failure.retryAfter ?? milliseconds(500);
    const again = new Request(1_000).after(failure.node).wait(wait);
    return Step.send(again.user("Summarize what you know.").outputAtMost(40));
  }
}

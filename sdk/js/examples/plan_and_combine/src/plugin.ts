/** An agent that plans, calls two tools at once, and combines their results. */

import {
  Agent,
  integer,
  keys,
  milliseconds,
  Opening,
  Request,
  type Response,
  resultOf,
  Step,
  synthetic,
  ToolRun,
  type ValueOf,
} from "veeksha";

const PLAN = 1;
const SEARCH = 2;
const SANDBOX = 3;
const COMBINE = 4;

const config = keys({
  plan_tokens: integer("Tokens of the task, at least.", { min: 1, max: 100_000, default: 200 }),
  retries: integer("Further attempts after a cut-off answer.", { min: 0, max: 10, default: 2 }),
});

/** Plan, two parallel tool calls, combine; once more with twice the length if it was cut off. */
export class PlanAndCombine extends Agent<ValueOf<typeof config>> {
  static override readonly config = config;
  private openTools = 2;
  private attempt = 1;

  start(): Opening {
    const task = this.config.plan_tokens + (this.random.words("plan", 0, 1)[0]! % 100);
    const plan = new Request(PLAN)
      .system(synthetic(1, 300))
      .user("Task:\n", synthetic(this.index, task))
      .outputAtMost(120);
    return new Opening(Step.send(plan)).label("agent", "plan_and_combine");
  }

  answered(response: Response): Step {
    if (response.node === PLAN) {
      const sandbox = { tool: "sandbox", serviceTime: milliseconds(250), resultTokens: 150 };
      return Step.send(
        new ToolRun(SEARCH, { tool: "search" }).after(PLAN),
        new ToolRun(SANDBOX, sandbox).after(PLAN),
      );
    }
    if (response.finishReason === "length" && this.attempt <= this.config.retries) {
      this.attempt += 1;
      return this.combine();
    }
    return Step.end();
  }

  override cancelled(): Step {
    return Step.end();
  }

  override toolEnded(): Step {
    this.openTools -= 1;
    return this.openTools > 0 ? Step.wait() : this.combine();
  }

  /** The next attempt, which waits for the tools or for the attempt before. */
  private combine(): Step {
    const node = COMBINE + this.attempt - 1;
    const awaited = this.attempt === 1 ? [PLAN, SEARCH, SANDBOX] : [PLAN, node - 1];
    const request = new Request(node)
      .after(...awaited)
      .history(PLAN)
      .user("Results:\n", resultOf(SEARCH), resultOf(SANDBOX), "\nCombine them.")
      .outputAtMost(200 * 2 ** (this.attempt - 1))
      .label("attempt", String(this.attempt));
    return Step.send(request);
  }
}

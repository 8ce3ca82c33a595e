/** The steps of agents. */

import type * as contract from "./contract";
import { type Request, type SessionNode, split, type ToolRun } from "./graph";

export type { Failure, Response, ToolOutcome, ToolResult, Usage } from "./contract";

/** What an agent does next. */
export class Step implements contract.Step {
  requests: Request[];
  toolRuns: ToolRun[];
  /** Nodes that are cancelled. */
  cancel: number[] = [];
  /** True if the session adds nothing after it. */
  done = false;

  private constructor(nodes: readonly SessionNode[]) {
    [this.requests, this.toolRuns] = split(nodes);
  }

  /** Returns a step that adds requests and tool runs. */
  static send(...nodes: SessionNode[]): Step {
    return new Step(nodes);
  }

  /** Returns a step that adds nothing: the agent waits for nodes that have not ended. */
  static wait(): Step {
    return new Step([]);
  }

  /** Returns the last step of a session; its nodes are still executed. */
  static end(...nodes: SessionNode[]): Step {
    const step = new Step(nodes);
    step.done = true;
    return step;
  }

  /** Cancels nodes of the session. */
  cancelling(...nodes: number[]): this {
    this.cancel.push(...nodes);
    return this;
  }
}

/** The first step of a session, with the headers and labels of all its requests. */
export class Opening implements contract.Opening {
  headers: [string, string][] = [];
  labels: [string, string][] = [];

  constructor(public step: Step) {}

  /** Adds an HTTP header to each request of the session. */
  header(name: string, value: string): this {
    this.headers.push([name, value]);
    return this;
  }

  /** Adds a label to the record of each request of the session. */
  label(name: string, value: string): this {
    this.labels.push([name, value]);
    return this;
  }
}

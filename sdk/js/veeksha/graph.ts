/** Sessions: graphs of requests and tool runs. */

import type * as contract from "./contract";
import { type Content, segments } from "./message";

export type { Edge, Guarantees, Output, Recording, Trigger } from "./contract";

type Edge = contract.Edge;
type Pair = [name: string, value: string];

/** Returns an edge that waits until a node is handed over to a client thread. */
export function dispatched(parent: number, delay = 0): Edge {
  return { parent, trigger: "dispatched", delay };
}

/** Returns an edge that waits for the first generated chunk of a node's answer. */
export function firstChunk(parent: number, delay = 0): Edge {
  return { parent, trigger: "first-chunk", delay };
}

/** Returns an edge that waits for the end of a node. */
export function completed(parent: number, delay = 0): Edge {
  return { parent, trigger: "completed", delay };
}

/** Adds an edge, in the place of one to the same event of the same node. */
function join(edges: Edge[], node: number | Edge): void {
  const edge = typeof node === "number" ? completed(node) : node;
  const place = edges.findIndex(
    (known) => known.parent === edge.parent && known.trigger === edge.trigger,
  );
  if (place < 0) edges.push(edge);
  else edges[place] = edge;
}

/**
 * A node that is a request to the model.
 *
 * The methods add to the request and return it, so that they can be chained:
 * `new Request(0).system("Be brief.").user("Hello.").outputAtMost(64)`.
 */
export class Request implements contract.Request {
  parents: Edge[] = [];
  historyParent: number | null = null;
  keepReasoning = false;
  waitAfterReady = 0;
  messages: contract.Message[] = [];
  tools: contract.Tools | null = null;
  output: contract.Output = { targetTokens: null, exact: false, form: null };
  cancellation: contract.Cancellation | null = null;
  client: string | null = null;
  body: string | null = null;
  headers: Pair[] = [];
  labels: Pair[] = [];
  recording: contract.Recording | null = null;

  /** `node` is the name of the request within its session. */
  constructor(public node: number) {}

  /** Adds a message. */
  message(message: contract.Message): this {
    this.messages.push(message);
    return this;
  }

  private add(
    role: contract.Role,
    content: readonly Content[],
    toolCallId: string | null = null,
  ): this {
    return this.message({
      role,
      content: segments(...content),
      toolCallId,
      toolCalls: [],
      reasoning: null,
    });
  }

  /** Adds a system message: strings and segments, joined without separators. */
  system(...content: Content[]): this {
    return this.add("system", content);
  }

  /** Adds a user message: strings and segments, joined without separators. */
  user(...content: Content[]): this {
    return this.add("user", content);
  }

  /** Adds the result of a function call of the model. */
  tool(callId: string, ...content: Content[]): this {
    return this.add("tool", content, callId);
  }

  /** Waits for nodes of the session: for their end, or for the event of an edge. */
  after(...nodes: (number | Edge)[]): this {
    for (const node of nodes) join(this.parents, node);
    return this;
  }

  /** Continues the conversation of a node, and waits for its end. */
  history(node: number): this {
    this.historyParent = node;
    if (!this.parents.some((edge) => edge.parent === node && edge.trigger === "completed")) {
      this.parents.push(completed(node));
    }
    return this;
  }

  /** Thinks for this long once every edge is met; for a root, once the session started. */
  wait(time: number): this {
    this.waitAfterReady = time;
    return this;
  }

  /** Asks for exactly this many tokens: the end-of-sequence token is ignored. */
  outputExactly(tokens: number): this {
    Object.assign(this.output, { targetTokens: tokens, exact: true });
    return this;
  }

  /** Asks for at most this many tokens. */
  outputAtMost(tokens: number): this {
    Object.assign(this.output, { targetTokens: tokens, exact: false });
    return this;
  }

  /** Cancels it at an event of another node (its end, if only a number is given). */
  cancelWhen(edge: number | Edge): this {
    this.cancelled().when.push(typeof edge === "number" ? completed(edge) : edge);
    return this;
  }

  /** Cancels it this long after it was dispatched. */
  cancelAfter(time: number): this {
    return this.cancelWhen(dispatched(this.node, time));
  }

  /** Cancels it this long after its first generated chunk. */
  cancelAtFirstChunk(delay = 0): this {
    return this.cancelWhen(firstChunk(this.node, delay));
  }

  /** Cancels it after this number of generated chunks. */
  cancelAfterChunks(chunks: number): this {
    this.cancelled().afterChunks = chunks;
    return this;
  }

  private cancelled(): contract.Cancellation {
    return (this.cancellation ??= { when: [], afterChunks: null });
  }

  private form(): contract.AnswerForm {
    const form = {
      toolChoice: null,
      schema: null,
      logProbabilities: null,
      promptLogProbabilities: false,
    };
    return (this.output.form ??= form);
  }

  /** Restricts the functions that the answer may call. */
  toolChoice(choice: contract.ToolChoice): this {
    this.form().toolChoice = choice;
    return this;
  }

  /** Asks for an answer that fits a JSON schema. */
  responseSchema(schema: object): this {
    this.form().schema = JSON.stringify(schema);
    return this;
  }

  /** Asks for the log-probabilities of the answer's tokens, and of alternatives to each. */
  logProbabilities(alternatives: number): this {
    this.form().logProbabilities = alternatives;
    return this;
  }

  /** Adds an HTTP header. */
  header(name: string, value: string): this {
    this.headers.push([name, value]);
    return this;
  }

  /** Adds a label to the request's record. */
  label(name: string, value: string): this {
    this.labels.push([name, value]);
    return this;
  }

  /** States what was recorded of the request that it replays. */
  recorded(recording: Partial<contract.Recording>): this {
    const nothing = {
      answer: null,
      at: null,
      latency: null,
      promptTokens: null,
      outputTokens: null,
    };
    this.recording = { history: "live", ...nothing, ...recording };
    return this;
  }
}

/** The members of a tool run that it may be made with. */
export interface ToolRunOptions {
  /** The name of a tool of the scenario; without it, the run is a timer. */
  tool?: string;
  /** The time for which it occupies a server; by default drawn from the tool's distribution. */
  serviceTime?: number;
  /** The tokens of the result; by default drawn from the tool's distribution. */
  resultTokens?: number;
  /** True if it fails; by default drawn with the tool's failure rate. */
  fails?: boolean;
}

/** A node that is a tool call: it waits for a free server of its tool, and takes its time. */
export class ToolRun implements contract.ToolRun {
  parents: Edge[] = [];
  tool: string | null;
  serviceTime: number | null;
  resultTokens: number | null;
  fails: boolean | null;
  labels: Pair[] = [];

  /** `node` is its name within its session; requests and tool runs share one set of names. */
  constructor(
    public node: number,
    options: ToolRunOptions = {},
  ) {
    this.tool = options.tool ?? null;
    this.serviceTime = options.serviceTime ?? null;
    this.resultTokens = options.resultTokens ?? null;
    this.fails = options.fails ?? null;
  }

  /** Returns a timer, which ends after this time. */
  static timer(node: number, time: number): ToolRun {
    return new ToolRun(node, time > 0 ? { serviceTime: time } : {});
  }

  /** Waits for nodes of the session: for their end, or for the event of an edge. */
  after(...nodes: (number | Edge)[]): this {
    for (const node of nodes) join(this.parents, node);
    return this;
  }

  /** Adds a label to the run's record. */
  label(name: string, value: string): this {
    this.labels.push([name, value]);
    return this;
  }
}

/** A node of a session. */
export type SessionNode = Request | ToolRun;

/** A whole session: a directed acyclic graph of requests and tool runs. */
export class Session implements contract.Session {
  requests: Request[];
  toolRuns: ToolRun[];
  /** The recorded arrival in nanoseconds, for traffic that replays arrivals. */
  arrivesAt: number | null = null;
  headers: Pair[] = [];
  labels: Pair[] = [];

  constructor(...nodes: SessionNode[]) {
    [this.requests, this.toolRuns] = split(nodes);
  }

  /** Adds an HTTP header to each of its requests. */
  header(name: string, value: string): this {
    this.headers.push([name, value]);
    return this;
  }

  /** Adds a label to the record of each of its requests. */
  label(name: string, value: string): this {
    this.labels.push([name, value]);
    return this;
  }

  /** Sets the recorded arrival. */
  arrives(time: number | null): this {
    this.arrivesAt = time;
    return this;
  }
}

/** Returns the requests and the tool runs among nodes. */
export function split(nodes: readonly SessionNode[]): [Request[], ToolRun[]] {
  // Anything else is reported, with its place, when the requests are checked.
  const isRun = (node: SessionNode): node is ToolRun => node instanceof ToolRun;
  return [nodes.filter((node): node is Request => !isRun(node)), nodes.filter(isRun)];
}

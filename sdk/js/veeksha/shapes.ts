/** What plugins return and receive besides sessions: layouts, samples, verdicts, parts. */

import type * as contract from "./contract";
import { PluginError } from "./error";

export type {
  Better,
  Cell,
  Column,
  Definition,
  Framing,
  Guarantees,
  Layout,
  Stats,
  TimeUnit,
  Window,
} from "./contract";

/** A value whose members may be left out if they can be nothing: null, false, or an empty list. */
export type Loose<T> = T extends readonly (infer I)[]
  ? Loose<I>[]
  : T extends object
    ? { [K in keyof T as CanBeNothing<T[K]> extends true ? never : K]: Loose<T[K]> } & {
        [K in keyof T as CanBeNothing<T[K]> extends true ? K : never]?: Loose<T[K]>;
      }
    : T;
type CanBeNothing<T> = null extends T
  ? true
  : [T] extends [readonly unknown[] | boolean]
    ? true
    : false;

/** An endpoint: its request is an object with placeholders such as `{{model}}`. */
export interface EndpointCodecEndpoint {
  /** The path after the target's address. */
  path: string;
  /** HTTP headers of each request. */
  headers?: [name: string, value: string][];
  /** The body of a request. A string that is a placeholder alone becomes its value. */
  request: object;
  framing: contract.Framing;
}

/** A row of a trace. */
export interface Row<R> {
  /** Its number in the file, from 0. */
  number: number;
  /** Its recorded arrival in nanoseconds; null without one. */
  at: number | null;
  /** Its fields by the names of the layout. */
  fields: R;
}

/** The rows of a session. */
export interface Group<R> {
  index: number;
  /** The value that the rows share. */
  key: string;
  rows: Row<R>[];
}

/** A whole trace. */
export interface Trace<R> {
  /** The number of rows. */
  rows: number;
  /** The number of groups. */
  groups: number;
  /** The fields of the first row. */
  firstRow: R;
}

/** Reads the fields of a row. */
export function fields<R>(number: number, text: string): R {
  try {
    return JSON.parse(text) as R;
  } catch (error) {
    throw new PluginError("row", `row ${number}: ${(error as Error).message}`);
  }
}

/** The samples of a call, by the name of their metric. */
export class Samples {
  readonly samples: contract.Sample[] = [];
  private current: number | null = null;

  constructor(private readonly places: ReadonlyMap<string, number>) {}

  /** Sets the request of the batch that further samples belong to. */
  ofRequest(place: number): this {
    this.current = place;
    return this;
  }

  /** Adds a sample of the current request. */
  add(metric: string, value: number, weight = 1): void {
    this.push(metric, value, weight, this.current);
  }

  /** Adds a sample of the run, which belongs to no request. */
  addOfRun(metric: string, value: number, weight = 1): void {
    this.push(metric, value, weight, null);
  }

  private push(metric: string, value: number, weight: number, of: number | null): void {
    const place = this.places.get(metric);
    if (place === undefined) {
      const known = [...this.places.keys()].join(", ");
      throw new PluginError("wrong-value", `the metric \`${metric}\` is not defined`, {
        hint: `defined are ${known}`,
      });
    }
    this.samples.push({ metric: place, value, weight, of });
  }
}

/** The parts of an answer's events. */
export class Parts {
  readonly parts: contract.Part[] = [];
  readonly ends: number[] = [];

  private push(part: contract.Part): void {
    this.parts.push(part);
  }

  /** The event begins a message, without content. */
  role(): void {
    this.push({ tag: "role" });
  }

  /** A piece of the model's reasoning. */
  reasoning(text: string): void {
    this.push({ tag: "reasoning", val: text });
  }

  /** A piece of the answer. */
  content(text: string): void {
    this.push({ tag: "content", val: text });
  }

  /** A piece of a function call. */
  tool(piece: Partial<contract.ToolPiece> & { index: number }): void {
    this.push({ tag: "tool", val: { id: "", name: "", arguments: "", ...piece } });
  }

  /** The reason why generation ended. */
  finish(reason: string): void {
    this.push({ tag: "finish", val: reason });
  }

  /** The server's counts. */
  usage(usage: Loose<contract.Usage>): void {
    this.push({
      tag: "usage",
      val: { cached: null, reasoning: null, ...usage } as contract.Usage,
    });
  }

  /** The proof that reasoning is the server's own. */
  signature(text: string): void {
    this.push({ tag: "signature", val: text });
  }

  /** Log-probabilities of tokens. */
  logProbabilities(tokens: contract.TokenProbabilities): void {
    this.push({ tag: "log-probabilities", val: tokens });
  }

  /** The server's name of the answer. */
  responseId(id: string): void {
    this.push({ tag: "response-id", val: id });
  }

  /** The end of the answer. */
  done(): void {
    this.push({ tag: "done" });
  }

  /** An event without meaning, such as a ping. */
  comment(): void {
    this.push({ tag: "comment" });
  }

  /** A failure that the server reports in its answer. */
  error(message: string, code: number | null = null): void {
    this.push({ tag: "error", val: { message, code } });
  }
}

/** Returns UTF-8 bytes as text. */
export function textOf(bytes: Uint8Array): string {
  // The engine has no TextDecoder.
  let escaped = "";
  for (const byte of bytes) escaped += `%${byte.toString(16).padStart(2, "0")}`;
  try {
    return decodeURIComponent(escaped);
  } catch {
    throw new PluginError("event", "the event is not UTF-8");
  }
}

/** Returns the JSON value of an event. */
export function json(event: Uint8Array): any {
  const text = textOf(event);
  try {
    return JSON.parse(text);
  } catch {
    throw new PluginError("event", `the event is not JSON: ${text.slice(0, 100)}`);
  }
}

type Labels = Record<string, string>;

interface HostResults {
  metrics(): string[];
  aggregate(name: string): number | null;
  stats(metric: string, filter: [string, string][]): contract.Stats;
  percentile(metric: string, percent: number, filter: [string, string][]): number | null;
  windows(metric: string, filter: [string, string][], length: number): contract.Window[];
  [Symbol.dispose]?(): void;
}

/** The results of a run. Labels select the requests that have all of them. */
export class Results {
  constructor(private readonly host: HostResults) {}

  /** The names of the metrics with samples. */
  get metrics(): string[] {
    return this.host.metrics();
  }

  /** Returns a value of the whole run, such as `error_rate`. */
  aggregate(name: string): number | null {
    return this.host.aggregate(name);
  }

  /** Returns count, mean, deviation and percentiles of a metric. */
  stats(metric: string, labels: Labels = {}): contract.Stats {
    return this.host.stats(metric, Object.entries(labels));
  }

  /** Returns a percentile of a metric; null without samples. */
  percentile(metric: string, percent: number, labels: Labels = {}): number | null {
    return this.host.percentile(metric, percent, Object.entries(labels));
  }

  /** Returns the statistics of consecutive windows of this length, in nanoseconds. */
  windows(metric: string, length: number, labels: Labels = {}): contract.Window[] {
    return this.host.windows(metric, Object.entries(labels), length);
  }
}

/** The result of an objective. */
export interface Verdict {
  name: string;
  met: boolean;
  /** The observed value; null if there is none. */
  observed: number | null;
  threshold: number;
  /** An explanation; may be empty. */
  detail: string;
}

/** Returns the verdict that an observed value is at most a threshold; without one it is not met. */
export function atMost(
  name: string,
  observed: number | null,
  threshold: number,
  detail = "",
): Verdict {
  return { name, met: observed !== null && observed <= threshold, observed, threshold, detail };
}

/** Returns the verdict that an observed value is at least a threshold; not met without one. */
export function atLeast(
  name: string,
  observed: number | null,
  threshold: number,
  detail = "",
): Verdict {
  return { name, met: observed !== null && observed >= threshold, observed, threshold, detail };
}

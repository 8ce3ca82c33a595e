/** The kinds of plugins: the classes that a plugin extends. */

import type { Failure, Response, ToolResult } from "./agent";
import type { Opening, Step } from "./agent";
import type { EndpointCodecEndpoint, Guarantees, Loose } from "./shapes";
import type { Definition, Group, Layout, Samples, Trace, Parts, Results, Verdict } from "./shapes";
import type { Completion } from "./completion";
import { keys, type Value } from "./config";
import type { Request, Session } from "./graph";
import { Random } from "./random";

/** The configuration of a plugin without keys. */
export type NoConfig = Record<never, never>;

/** A plugin of any kind. */
export abstract class Plugin<C = NoConfig> {
  /** The description of the configuration; by default it has no keys. */
  static readonly config: Value<any> = keys({});

  constructor(readonly config: C) {}

  /** Called once, before anything else: checks what the description of the keys cannot. */
  setup(): void {}
}

/** A workload whose sessions are known before they start. */
export abstract class SessionGenerator<C = NoConfig> extends Plugin<C> {
  static readonly kind: string = "session-generator";

  /** Returns the properties that all sessions share. */
  guarantees(): Loose<Guarantees> {
    return {};
  }

  /** Returns the number of sessions; null for an endless workload. */
  length(): number | null {
    return null;
  }

  /** Returns a session: a function of the configuration, the index and the random streams. */
  abstract session(index: number, random: Random): Session | Request;
}

/** An agent: one object for each session, which decides its next step after each answer. */
export abstract class Agent<C = NoConfig> extends Plugin<C> {
  static readonly kind: string = "agent-generator";
  readonly random: Random;

  constructor(
    config: C,
    readonly index: number,
  ) {
    super(config);
    this.random = new Random(index);
  }

  /** Returns the properties that all sessions share. */
  static guarantees(_config: any): Loose<Guarantees> {
    return {};
  }

  /** Returns the number of sessions; null for an endless workload. */
  static sessions(_config: any): number | null {
    return null;
  }

  /** Returns the first step. */
  abstract start(): Opening | Step;
  /** Returns the step after an answer. */
  abstract answered(response: Response): Step;

  /** Returns the step after a failed request; by default the session ends. */
  failed(_failure: Failure): Step | null {
    return null;
  }

  /** Returns the step after a request that the session cancelled; by default it waits. */
  cancelled(_response: Response): Step | undefined {
    return undefined;
  }

  /** Returns the step after the end of a tool run; by default it waits. */
  toolEnded(_ended: ToolResult): Step | undefined {
    return undefined;
  }
}

/** The instants at which sessions arrive. */
export abstract class ArrivalProcess<C = NoConfig> extends Plugin<C> {
  static readonly kind: string = "arrival-process";

  /** Returns the arrival of a session in nanoseconds after the start; null if none follows. */
  abstract next(session: number, random: Random): number | null;
}

/** The sessions of the rows of a trace. `R` is the type of a row's fields. */
export abstract class TraceFlavor<C = NoConfig, R = Record<string, unknown>> extends Plugin<C> {
  static readonly kind: string = "trace-flavor";

  /** Returns the properties that all sessions share. */
  guarantees(): Loose<Guarantees> {
    return {};
  }

  /** Returns the columns of the trace, and how its rows are grouped to sessions. */
  abstract layout(): Loose<Layout>;
  /** Returns the session of a group of rows. */
  abstract session(trace: Trace<R>, epoch: number, group: Group<R>): Session | Request;

  /** Returns sessions that are sent before the run, of a layout that states `warmsUp`. */
  warmup(_trace: Trace<R>, _group: Group<R>): Session[] {
    return [];
  }
}

/** The API of a server: its requests, and the events of its answers. */
export abstract class EndpointCodec<C = NoConfig> extends Plugin<C> {
  static readonly kind: string = "endpoint-codec";

  /** Returns the path, the headers and the template of requests. */
  abstract endpoint(): EndpointCodecEndpoint;
  /** Adds the parts of one event of an answer. */
  abstract decode(event: Uint8Array, parts: Parts): void;
}

/** Values of requests, or of the run. */
export abstract class Metric<C = NoConfig> extends Plugin<C> {
  static readonly kind: string = "metric";

  /** Returns the metrics. */
  abstract definitions(): Definition[];
  /** Adds the samples of a finished request. */
  abstract observe(request: Completion, samples: Samples): void;

  /** Adds the samples of the run, at its end. */
  finish(_samples: Samples): void {}
}

/** A condition that a good request meets: it defines goodput. */
export abstract class RequestCheck<C = NoConfig> extends Plugin<C> {
  static readonly kind: string = "request-check";

  /** Returns true for a good request. Depends on this request alone. */
  abstract isGood(request: Completion): boolean;
}

/** Objectives of a run, judged at its end. */
export abstract class SloCheck<C = NoConfig> extends Plugin<C> {
  static readonly kind: string = "slo-check";

  /** Returns the verdicts. */
  abstract check(results: Results): Verdict[];
}

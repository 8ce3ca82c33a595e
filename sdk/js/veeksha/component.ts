/** The resources of the contract, which call the plugin. The build exports them for its kinds. */

import "./sandbox";

import { Opening, Step } from "./agent";
import { completions } from "./completion";
import { fromJson, schemaText, type Value } from "./config";
import type * as contract from "./contract";
import { lift, lower } from "./convert";
import { Request, Session } from "./graph";
import { Random } from "./random";
import { guard } from "./report";
import { fields, type Group, Parts, Results, Samples, type Trace } from "./shapes";
import type {
  Agent,
  ArrivalProcess,
  EndpointCodec,
  Metric,
  RequestCheck,
  SessionGenerator,
  SloCheck,
  TraceFlavor,
} from "./plugins";

interface PluginClass<P> {
  readonly kind: string;
  readonly config: Value<unknown>;
  new (config: any, index?: number): P;
}

/** The name, the version and the summary of the manifest. */
export interface Facts {
  name: string;
  version: string;
  summary: string;
}

interface Exported<P> {
  readonly plugin: PluginClass<P>;
  describe(): contract.Descriptor;
}

/** Returns the class of a kind among what the plugin's module exports. */
function exported<P>(module: Record<string, unknown>, kind: string, facts: Facts): Exported<P> {
  const classes = Object.values(module).filter(
    (value) => (value as PluginClass<P>)?.kind === kind,
  ) as PluginClass<P>[];
  if (classes.length !== 1) {
    const found = classes.length === 0 ? "no class" : `${classes.length} classes`;
    throw new Error(`src/plugin: ${found} of the kind ${kind}; export one, as plugin.toml states`);
  }
  const plugin = classes[0]!;
  const configSchema = schemaText(plugin.config);
  return { plugin, describe: () => ({ ...facts, configSchema }) };
}

function opened<P extends { setup(): void }>(plugin: PluginClass<P>, config: string): P {
  const instance = new plugin(fromJson(plugin.config, config));
  instance.setup();
  return instance;
}

function guarantees(value: unknown): contract.Guarantees {
  return lower("#Guarantees", value, "guarantees");
}

function length(value: unknown): number | null {
  return lower({ option: "u64" }, value, "length");
}

/** Returns what the method `session` returned: a request alone is a session. */
function sessionOf(value: unknown): contract.Session {
  return lower("#Session", value instanceof Request ? new Session(value) : value, "session");
}

/** Returns the interface of a session generator. */
export function sessionGenerator(module: Record<string, unknown>, facts: Facts) {
  const { plugin, describe } = exported<SessionGenerator<any>>(module, "session-generator", facts);
  class Workload {
    private readonly guaranteed = guarantees(this.generator.guarantees());
    private readonly sessionCount = length(this.generator.length());

    constructor(private readonly generator: SessionGenerator<any>) {}

    static open(config: string): Workload {
      return guard(() => new Workload(opened(plugin, config)));
    }

    guarantees() {
      return this.guaranteed;
    }

    length() {
      return this.sessionCount;
    }

    sessions(first: number, count: number): contract.Session[] {
      const end = Math.min(first + (count >>> 0), this.sessionCount ?? Infinity);
      return guard(() => {
        const sessions: contract.Session[] = [];
        for (let index = first; index < end; index++) {
          sessions.push(sessionOf(this.generator.session(index, new Random(index))));
        }
        return sessions;
      });
    }
  }
  return { describe, Workload };
}

const liftResponse = lift<contract.Response>("Response");
const liftFailure = lift<contract.Failure>("Failure");
const liftToolResult = lift<contract.ToolResult>("ToolResult");

/** Returns the interface of an agent generator. */
export function agentGenerator(module: Record<string, unknown>, facts: Facts) {
  const { plugin, describe } = exported<Agent<any>>(module, "agent-generator", facts);
  const statics = plugin as unknown as {
    guarantees(config: unknown): unknown;
    sessions(config: unknown): unknown;
  };

  class LiveAgent {
    /** `agent` is dropped at the end of its session: the engine keeps the resource itself. */
    constructor(private agent: Agent<any> | null) {}

    private step(
      name: string,
      call: (agent: Agent<any>) => Step | null | undefined,
    ): contract.Step {
      const agent = this.agent;
      this.agent = null;
      return guard(() => {
        const step: contract.Step = lower("#Step", agent === null ? Step.end() : call(agent), name);
        if (!step.done) this.agent = agent;
        return step;
      });
    }

    answered(response: contract.Response) {
      return this.step("answered", (agent) => agent.answered(liftResponse(response)));
    }

    failed(failure: contract.Failure) {
      return this.step("failed", (agent) => agent.failed(liftFailure(failure)) ?? Step.end());
    }

    cancelled(response: contract.Response) {
      return this.step(
        "cancelled",
        (agent) => agent.cancelled(liftResponse(response)) ?? Step.wait(),
      );
    }

    toolEnded(ended: contract.ToolResult) {
      return this.step(
        "toolEnded",
        (agent) => agent.toolEnded(liftToolResult(ended)) ?? Step.wait(),
      );
    }
  }

  class Generator {
    private readonly guaranteed = guarantees(statics.guarantees(this.config));
    private readonly sessionCount = length(statics.sessions(this.config));

    constructor(private readonly config: unknown) {}

    static open(config: string): Generator {
      return guard(() => new Generator(fromJson(plugin.config, config)));
    }

    guarantees() {
      return this.guaranteed;
    }

    length() {
      return this.sessionCount;
    }

    start(index: number): [LiveAgent, contract.Opening] {
      return guard(() => {
        const agent = new plugin(this.config, index);
        agent.setup();
        const first = agent.start();
        const given = first instanceof Step ? new Opening(first) : first;
        const opening: contract.Opening = lower("#Opening", given, "start");
        return [new LiveAgent(opening.step.done ? null : agent), opening];
      });
    }
  }
  return { describe, Generator, Agent: LiveAgent };
}

/** Returns the interface of an arrival process. */
export function arrivalProcess(module: Record<string, unknown>, facts: Facts) {
  const { plugin, describe } = exported<ArrivalProcess<any>>(module, "arrival-process", facts);
  class Process {
    private session = 0;

    constructor(private readonly process: ArrivalProcess<any>) {}

    static open(config: string): Process {
      return guard(() => new Process(opened(plugin, config)));
    }

    next(count: number): number[] {
      return guard(() => {
        const arrivals: number[] = [];
        while (arrivals.length < count >>> 0) {
          const arrival = this.process.next(this.session, new Random(this.session));
          if (arrival === null) break;
          arrivals.push(lower("u64", arrival, "next"));
          this.session++;
        }
        return arrivals;
      });
    }
  }
  return { describe, Process };
}

/** Returns the interface of a trace flavor. */
export function traceFlavor(module: Record<string, unknown>, facts: Facts) {
  const { plugin, describe } = exported<TraceFlavor<any, any>>(module, "trace-flavor", facts);

  function traceOf(trace: contract.Facts): Trace<any> {
    return { rows: trace.rows, groups: trace.groups, firstRow: fields(0, trace.firstRow) };
  }

  function groupOf(group: contract.Group): Group<any> {
    const rows = group.rows.map((row) => ({ ...row, fields: fields(row.number, row.fields) }));
    return { index: group.index, key: group.key, rows };
  }

  class Flavor {
    private readonly guaranteed = guarantees(this.flavor.guarantees());
    private readonly columns: contract.Layout = lower("#Layout", this.flavor.layout(), "layout");

    constructor(private readonly flavor: TraceFlavor<any, any>) {}

    static open(config: string): Flavor {
      return guard(() => new Flavor(opened(plugin, config)));
    }

    guarantees() {
      return this.guaranteed;
    }

    layout() {
      return this.columns;
    }

    sessions(facts: contract.Facts, epoch: number, groups: contract.Group[]): contract.Session[] {
      return guard(() => {
        const trace = traceOf(facts);
        return groups.map((group) => sessionOf(this.flavor.session(trace, epoch, groupOf(group))));
      });
    }

    warmup(facts: contract.Facts, groups: contract.Group[]): contract.Session[] {
      return guard(() => {
        const trace = traceOf(facts);
        const sessions = groups.flatMap((group) => this.flavor.warmup(trace, groupOf(group)));
        return lower({ list: "#Session" }, sessions, "warmup");
      });
    }
  }
  return { describe, Flavor };
}

/** Returns the interface of an endpoint codec. */
export function endpointCodec(module: Record<string, unknown>, facts: Facts) {
  const { plugin, describe } = exported<EndpointCodec<any>>(module, "endpoint-codec", facts);

  function endpointOf(codec: EndpointCodec<any>): contract.Endpoint {
    const endpoint = codec.endpoint();
    return lower(
      "#Endpoint",
      { ...endpoint, request: JSON.stringify(endpoint.request) },
      "endpoint",
    );
  }

  class Codec {
    private readonly api = endpointOf(this.codec);

    constructor(private readonly codec: EndpointCodec<any>) {}

    static open(config: string): Codec {
      return guard(() => new Codec(opened(plugin, config)));
    }

    endpoint() {
      return this.api;
    }

    decode(bytes: ArrayLike<number>, ends: number[]): contract.Parts {
      return guard(() => {
        const content = Uint8Array.from(bytes);
        const parts = new Parts();
        let begin = 0;
        for (const end of ends.map((place) => place >>> 0)) {
          this.codec.decode(content.subarray(begin, end), parts);
          parts.ends.push(parts.parts.length);
          begin = end;
        }
        return lower("#Parts", parts, "decode");
      });
    }
  }
  return { describe, Codec };
}

/** Returns the interface of a metric. */
export function metric(module: Record<string, unknown>, facts: Facts) {
  const { plugin, describe } = exported<Metric<any>>(module, "metric", facts);
  class Collector {
    private readonly defined: contract.Definition[] = lower(
      { list: "#Definition" },
      this.metric.definitions(),
      "definitions",
    );
    private readonly places = new Map(this.defined.map(({ name }, place) => [name, place]));

    constructor(private readonly metric: Metric<any>) {}

    static open(config: string): Collector {
      return guard(() => new Collector(opened(plugin, config)));
    }

    definitions() {
      return this.defined;
    }

    observe(batch: contract.Batch): contract.Sample[] {
      return this.samples("observe", (samples) => {
        completions(batch).forEach((request, place) =>
          this.metric.observe(request, samples.ofRequest(place)),
        );
      });
    }

    finish(): contract.Sample[] {
      return this.samples("finish", (samples) => this.metric.finish(samples));
    }

    private samples(name: string, call: (samples: Samples) => void): contract.Sample[] {
      return guard(() => {
        const samples = new Samples(this.places);
        call(samples);
        return lower({ list: "#Sample" }, samples.samples, name);
      });
    }
  }
  return { describe, Collector };
}

/** Returns the interface of a request check. */
export function requestCheck(module: Record<string, unknown>, facts: Facts) {
  const { plugin, describe } = exported<RequestCheck<any>>(module, "request-check", facts);
  class Checker {
    constructor(private readonly requestCheck: RequestCheck<any>) {}

    static open(config: string): Checker {
      return guard(() => new Checker(opened(plugin, config)));
    }

    judge(batch: contract.Batch): boolean[] {
      return guard(() =>
        completions(batch).map((request) =>
          lower("bool", this.requestCheck.isGood(request), "isGood"),
        ),
      );
    }
  }
  return { describe, Checker };
}

/** Returns the interface of an SLO check. */
export function sloCheck(module: Record<string, unknown>, facts: Facts) {
  const { plugin, describe } = exported<SloCheck<any>>(module, "slo-check", facts);
  class Checker {
    constructor(private readonly sloCheck: SloCheck<any>) {}

    static open(config: string): Checker {
      return guard(() => new Checker(opened(plugin, config)));
    }

    check(results: ConstructorParameters<typeof Results>[0]): contract.Verdict[] {
      return guard(() => {
        try {
          return lower({ list: "#Verdict" }, this.sloCheck.check(new Results(results)), "check");
        } finally {
          results[Symbol.dispose]?.();
        }
      });
    }
  }
  return { describe, Checker };
}

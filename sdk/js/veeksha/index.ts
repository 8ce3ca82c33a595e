/** The SDK of plugins in TypeScript and JavaScript: its README is the manual. */

export {
  type Failure,
  Opening,
  type Response,
  Step,
  type ToolOutcome,
  type ToolResult,
  type Usage,
} from "./agent";
export { type ChunkKind, Completion, type Status } from "./completion";
export {
  integer,
  keys,
  list,
  map,
  number,
  optional,
  string,
  truth,
  type Value,
  type ValueOf,
} from "./config";
export { PluginError, SandboxError } from "./error";
export {
  completed,
  dispatched,
  type Edge,
  firstChunk,
  type Guarantees,
  type Recording,
  Request,
  Session,
  type SessionNode,
  ToolRun,
  type Trigger,
} from "./graph";
export {
  assistant,
  audio,
  type Content,
  image,
  type Message,
  resultOf,
  seedOf,
  type Segment,
  synthetic,
  syntheticTools,
  text,
  tokenIds,
  type ToolCall,
  type ToolChoice,
  type Tools,
  video,
} from "./message";
export { milliseconds, seconds } from "./numbers";
export {
  Agent,
  ArrivalProcess,
  EndpointCodec,
  Metric,
  type NoConfig,
  Plugin,
  RequestCheck,
  SessionGenerator,
  SloCheck,
  TraceFlavor,
} from "./plugins";
export { Draws, Random } from "./random";
export {
  atLeast,
  atMost,
  type Column,
  type Definition,
  type EndpointCodecEndpoint,
  type Group,
  json,
  type Layout,
  type Loose,
  Parts,
  Results,
  type Row,
  Samples,
  type Stats,
  textOf,
  type Trace,
  type Verdict,
} from "./shapes";

// Generated from `wit/0.2.0` by `cargo xtask codegen`; do not edit.

/** A type of the contract: a primitive, `#Name` of another type, or a composition. */
export type Type =
  | string
  | { readonly list: Type }
  | { readonly option: Type }
  | { readonly tuple: readonly Type[] }
  | { readonly record: Readonly<Record<string, Type>> }
  | { readonly variant: Readonly<Record<string, Type | null>> }
  | { readonly enum: readonly string[] };

/** The severity of a line. */
export type Level = "debug" | "info" | "warn" | "error";

/** 64 bits of seed, in two words. */
export interface Seed {
  high: number;
  low: number;
}

/**
 * Exactly `tokens` tokens of text that depends on (seed, tokens) and the target's tokenizer
 * alone. Equal values give equal text everywhere; texts of one seed and different lengths share
 * their beginning.
 */
export interface SyntheticText {
  seed: Seed;
  tokens: number;
}

/** The kind of a media file. */
export type MediaKind = "image" | "audio" | "video";

/** A reference to a blob: the name of a granted file, or a URL. */
export interface Media {
  kind: MediaKind;
  source: string;
}

/**
 * A piece of a message. The host turns it into text, with the target's tokenizer, before the
 * request is due.
 */
export type Segment =
  | { tag: "text"; val: string }
  | { tag: "synthetic"; val: SyntheticText }
  | { tag: "media"; val: Media }
  | { tag: "token-ids"; val: number[] }
  | { tag: "result-of"; val: number };

/** The author of a message. */
export type Role = "system" | "user" | "assistant" | "tool";

/** A function call that the model asked for. */
export interface ToolCall {
  id: string;
  name: string;
  /** JSON text, as the server sent it. */
  arguments: string;
}

/** The reasoning that comes before an answer. */
export interface Reasoning {
  content: Segment[];
  /**
   * The server's proof that the reasoning is its own (Anthropic: `signature`, Responses:
   * `encrypted_content`), if it sent one.
   */
  signature: string | null;
}

/** A message: its segments are joined without separators. */
export interface Message {
  role: Role;
  content: Segment[];
  /** For the role `tool`: the call that the message answers. */
  toolCallId: string | null;
  /** For the role `assistant`: the calls that it asks for. */
  toolCalls: ToolCall[];
  /** For the role `assistant`: the reasoning before its content. */
  reasoning: Reasoning | null;
}

/** Definitions of functions that are generated. */
export interface SyntheticTools {
  seed: Seed;
  /** The number of functions. */
  count: number;
  /** The tokens of all definitions together, as JSON text. */
  tokens: number;
}

/** Definitions of functions that the model may call. */
export type Tools =
  | { tag: "definitions"; val: string }
  | { tag: "verbatim"; val: string }
  | { tag: "synthetic"; val: SyntheticTools };

/** The functions that the model may call in this answer. */
export type ToolChoice =
  | { tag: "automatic" }
  | { tag: "none" }
  | { tag: "required" }
  | { tag: "function"; val: string };

/** The form of an answer. */
export interface AnswerForm {
  toolChoice: ToolChoice | null;
  /** The JSON schema that the answer must fit, as text. */
  schema: string | null;
  /** Log-probabilities of the answer's tokens, and of this many alternatives to each. */
  logProbabilities: number | null;
  /** True to ask for the log-probabilities of the prompt's tokens as well. */
  promptLogProbabilities: boolean;
}

/** The requested answer: its length and its form. */
export interface Output {
  /** Tokens; none leaves the length to the server. */
  targetTokens: number | null;
  /**
   * True to ask for exactly that many: the end-of-sequence token is ignored, and the minimum is
   * set as well as the maximum.
   */
  exact: boolean;
  /** None leaves the form to the server. */
  form: AnswerForm | null;
}

/** The part of a conversation that a request sends as its history. */
export type HistoryMode = "live" | "recorded" | "fresh";

/** The recorded answer of a request. */
export interface Answer {
  content: Segment[];
  toolCalls: ToolCall[];
  reasoning: Reasoning | null;
}

/** The recording of a request that is replayed. */
export interface Recording {
  /** The history that the request sends. */
  history: HistoryMode;
  /** The recorded answer; requests with the history mode `recorded` continue it. */
  answer: Answer | null;
  /**
   * The recorded send time, relative to the earliest arrival of the trace. Traffic that replays
   * arrivals does not send the request earlier.
   */
  at: number | null;
  /** The recorded latency of the answer. */
  latency: number | null;
  /** The recorded tokens of the whole prompt. */
  promptTokens: number | null;
  /** The recorded tokens of the answer. */
  outputTokens: number | null;
}

/** The event of a node that starts another one. */
export type Trigger = "dispatched" | "first-chunk" | "completed";

/** A dependency on an event of another node of the session. It is met `delay` after the event. */
export interface Edge {
  /** The other node; the node itself only in its `cancellation`. */
  parent: number;
  trigger: Trigger;
  delay: number;
}

/** The events that make the client cancel a request: whichever comes first. */
export interface Cancellation {
  /** Events of other nodes, or of the request itself: its own dispatch or first chunk. */
  when: Edge[];
  /** The number of generated chunks after which the rest of the answer is not wanted. */
  afterChunks: number | null;
}

/** A node that is a request to the model. */
export interface Request {
  /** The name of the node within its session. */
  node: number;
  /**
   * The events that this node waits for: each once, of nodes that exist, and without cycles. Two
   * events of one node may be among them.
   */
  parents: Edge[];
  /**
   * The parent whose conversation this request continues, with the model's real answers unless
   * `recording` sets another history mode. One of `parents`, with the trigger `completed`.
   */
  historyParent: number | null;
  /** True to send the reasoning of the conversation's answers as well, false to leave it out. */
  keepReasoning: boolean;
  /**
   * Think time: the node is ready this long after its last edge was met, or, for a root, after
   * the session started.
   */
  waitAfterReady: number;
  /** The new messages of this turn, at least one. */
  messages: Message[];
  /** None: those of the history parent, if any. */
  tools: Tools | null;
  output: Output;
  /** None: it is sent until its answer is complete. */
  cancellation: Cancellation | null;
  /** The name of the scenario's client that sends it; none for the default one. */
  client: string | null;
  /** A JSON object whose members are merged into the request's body and override the host's. */
  body: string | null;
  /**
   * HTTP headers of the request, by name and value, in addition to those of the session and of
   * the configuration; the most specific value of a name is sent. Refused: headers of the
   * connection and the length (`host`, `connection`, `transfer-encoding`, ...), those of keys
   * (`authorization`, `x-api-key`, `api-key`), a name that is used twice, and values that a
   * header cannot hold.
   */
  headers: ([string, string])[];
  /** Labels of the request's record. */
  labels: ([string, string])[];
  /** The recording that the request replays; none for a new request. */
  recording: Recording | null;
}

/**
 * A node that is a tool call: it waits for a free server of its tool, and then takes its service
 * time. Or a timer, which only takes its time.
 */
export interface ToolRun {
  /** The name of the node within its session; requests and tool runs share one set of names. */
  node: number;
  /** The events that it waits for. */
  parents: Edge[];
  /** The name of a tool of the scenario; none for a timer. */
  tool: string | null;
  /**
   * The time for which it occupies a server, without a cold start; none: drawn from the
   * distribution of the tool, or 0 for a timer.
   */
  serviceTime: number | null;
  /** The tokens of the result; none: drawn from the distribution of the tool, or 0 for a timer. */
  resultTokens: number | null;
  /** True if it fails; none: drawn with the failure rate of the tool, or false for a timer. */
  fails: boolean | null;
  /** Labels of the run's record. */
  labels: ([string, string])[];
}

/** A whole session: a directed acyclic graph of requests and tool runs. */
export interface Session {
  requests: Request[];
  toolRuns: ToolRun[];
  /** The recorded arrival, for traffic that replays arrivals. */
  arrivesAt: number | null;
  /** HTTP headers of each of its requests. */
  headers: ([string, string])[];
  /** Labels of the record of each of its requests. */
  labels: ([string, string])[];
}

/**
 * Properties that all sessions of a workload share. The host refuses objectives that such
 * sessions cannot meet and skips work that they do not need. A field that is none or false
 * guarantees nothing.
 */
export interface Guarantees {
  /** No answer is requested with more tokens than this. */
  maxOutputTokens: number | null;
  /**
   * The longest chain of requests in which each waits for the one before it; 1 if no request
   * waits for another.
   */
  maxDepth: number | null;
  /** True if no prompt begins like the prompt of another session. */
  distinctPrompts: boolean;
}

/** Token counts that the server reported. */
export interface Usage {
  prompt: number;
  completion: number;
  cached: number | null;
  reasoning: number | null;
}

/** Log-probabilities of consecutive tokens. */
export interface TokenProbabilities {
  /** The natural logarithm of each token's probability. */
  logarithms: number[];
  /**
   * True for each token that was the most probable one; empty if the server sent no
   * alternatives.
   */
  greedy: boolean[];
}

/** The log-probabilities that the server returned. */
export interface LogProbabilities {
  /** Of the prompt's tokens from the second on; empty if they were not asked for. */
  prompt: TokenProbabilities;
  /** Of the answer's tokens. */
  answer: TokenProbabilities;
}

/** The model's answer to a node, or, if it was cancelled by the client, the part that arrived. */
export interface Response {
  node: number;
  /** True if it was cancelled by the client. */
  cancelled: boolean;
  text: string;
  reasoning: string;
  reasoningSignature: string | null;
  toolCalls: ToolCall[];
  /** As the server sent it: `stop`, `length`, `tool_calls`, ... */
  finishReason: string;
  usage: Usage | null;
  /** The tokens of the answer: the server's count, or else the host's. */
  outputTokens: number;
  logProbabilities: LogProbabilities | null;
  completedAt: number;
}

/** The outcome of a tool run. */
export type ToolOutcome = "succeeded" | "failed" | "cancelled";

/** The end of a tool run. */
export interface ToolResult {
  node: number;
  outcome: ToolOutcome;
  /** The tokens of its result. */
  tokens: number;
  /** The time for which it waited for a free server. */
  waitingTime: number;
  serviceTime: number;
  completedAt: number;
}

/** The reason why a node has no answer. */
export interface Failure {
  node: number;
  /**
   * `connect`, `tls`, `timeout`, `status`, `protocol`, `in_stream`, `truncated`, `cancelled` or
   * `codec`. Further ones may be added.
   */
  code: string;
  /** The HTTP status, or the code of an error inside the answer, if any. */
  status: number | null;
  /** The time after which the server asked for another attempt (`retry-after`), if it did. */
  retryAfter: number | null;
  message: string;
  completedAt: number;
}

/** An error that the plugin returns. */
export interface Error {
  /** A short, constant name for programs. */
  code: string;
  /** One line for the user. */
  message: string;
  /** The remedy. */
  hint: string | null;
  /** The location in the plugin's configuration, as a JSON pointer (`/channels/0/type`). */
  path: string | null;
}

/** The description of a plugin. */
export interface Descriptor {
  name: string;
  version: string;
  /** A summary of one line. */
  summary: string;
  /**
   * JSON schema of the configuration that `open` takes. The host validates a configuration
   * against it first.
   */
  configSchema: string;
}

/** The next step of an agent. One that adds nothing while no node is open must be the last. */
export interface Step {
  /** New requests. They may name any earlier node of the session as a parent. */
  requests: Request[];
  /** New tool runs, likewise. */
  toolRuns: ToolRun[];
  /**
   * Nodes of this step or of earlier ones to cancel. A request in flight is cancelled, a node
   * that was not sent never will be, a tool run that waits for a server is withdrawn; one that a
   * server has taken runs to its end, and a node that has ended stays as it is.
   */
  cancel: number[];
  /** No further nodes will come. Until then, the end of each node is followed by a call. */
  done: boolean;
}

/** The beginning of a session. */
export interface Opening {
  step: Step;
  /** HTTP headers of each request of the session. */
  headers: ([string, string])[];
  /** Labels of the record of each request of the session. */
  labels: ([string, string])[];
}

/** The division of an answer's body into events. */
export type Framing = "event-stream" | "lines" | "whole";

/** The shape of requests. */
export interface Endpoint {
  /** Appended to the target's address, with a `/` between: `api/chat`. */
  path: string;
  /**
   * Headers of every request in addition to the host's (length, connection, host, the user's
   * key).
   */
  headers: ([string, string])[];
  /**
   * The request's body: the text of a JSON object in which some strings, such as `{{model}}` and
   * `{{messages}}`, are placeholders. The host's documentation lists them.
   */
  request: string;
  /** The division of answers into events. */
  framing: Framing;
}

/** A piece of a function call that the model asks for. */
export interface ToolPiece {
  /** The number of its call in the answer, from 0. */
  index: number;
  /** The call's id, in the piece that has it; else empty. */
  id: string;
  /** The function's name, in the piece that has it; else empty. */
  name: string;
  /** The next piece of the arguments' JSON text. */
  arguments: string;
}

/** The reason why the server did not answer. */
export interface Refusal {
  /** The server's message. */
  message: string;
  /** The server's code, if it is a number. */
  code: number | null;
}

/** A part of an event. */
export type Part =
  | { tag: "role" }
  | { tag: "reasoning"; val: string }
  | { tag: "content"; val: string }
  | { tag: "tool"; val: ToolPiece }
  | { tag: "finish"; val: string }
  | { tag: "usage"; val: Usage }
  | { tag: "signature"; val: string }
  | { tag: "log-probabilities"; val: TokenProbabilities }
  | { tag: "response-id"; val: string }
  | { tag: "done" }
  | { tag: "comment" }
  | { tag: "error"; val: Refusal };

/** The parts of several events, one event after the other. */
export interface Parts {
  parts: Part[];
  /**
   * For each event, the number of parts that belong to it and to the events before it. An event
   * without parts has the same number as the one before it.
   */
  ends: number[];
}

/** The outcome of a request. */
export type Status = "ok" | "failed" | "cancelled" | "cancelled-by-client";

/** The reason why a request failed. */
export interface FailedRequest {
  /** Its index in the batch. */
  request: number;
  /**
   * `connect`, `tls`, `timeout`, `status`, `protocol`, `in_stream`, `truncated`, `cancelled` or
   * `codec`. Further ones may be added.
   */
  code: string;
  /** One line. */
  message: string;
}

/** The time to open a new connection for a request. */
export interface NewConnection {
  /** Its index in the batch. */
  request: number;
  /** Name resolution. */
  resolve: number | null;
  /** Connecting. */
  connect: number | null;
  /** The TLS handshake. */
  tls: number | null;
}

/** The recording of a replayed request. */
export interface ReplayedRequest {
  /** Its index in the batch. */
  request: number;
  /** The recorded send time, relative to the earliest arrival of the trace. */
  at: number | null;
  /** The recorded latency of its answer. */
  latency: number | null;
  /** The recorded tokens of its whole prompt. */
  promptTokens: number | null;
  /** The recorded tokens of its answer. */
  outputTokens: number | null;
}

/** A column that a later version of the host adds. */
export interface FurtherColumn {
  /** The name of the field in the host's documentation. */
  name: string;
  /** One entry for each request; NaN where a value is absent. A text is its index in `texts`. */
  values: number[];
}

/**
 * Finished requests, as a table: each list is a column with one entry for each request, unless
 * stated otherwise. The columns hold observations, not derived values: a request without tokens
 * has no latency.
 *
 * An absent value is the largest number that a column may hold: 4294967295 in columns of u32,
 * 9007199254740991 (2^53 - 1) in columns of nanos.
 *
 * A table because columns of numbers are passed without conversion. With a record for each
 * request, its optional fields and its texts, a batch of 64 took 1.7 times as long.
 */
export interface Batch {
  /** The session that it belongs to. */
  session: number[];
  /** Its node in that session. */
  node: number[];
  /** Requests of its session that were known when it finished. */
  sessionRequests: number[];
  /** The node whose conversation it continued, if any. */
  historyParent: number[];
  /** Its think time. */
  waitAfterReady: number[];
  /** The instant that the schedule asked for. */
  intendedAt: number[];
  /** The time for which concurrency limits delayed it after that. */
  held: number[];
  /** The hand-over to a client thread. */
  dispatchedAt: number[];
  /** The pick-up by a client thread, if any. */
  pickedUpAt: number[];
  /** The write of its last byte to the socket, if any. */
  sentAt: number[];
  /** The arrival of the first byte of the answer, if any. */
  firstByteAt: number[];
  /** Its completion. */
  completedAt: number[];
  /** True unless it was dispatched after the end of the measured time. */
  measured: boolean[];
  status: Status[];
  /** HTTP status, if any. */
  httpStatus: number[];
  /**
   * The reason why generation ended, as sent by the server: an index in `texts`. Only of
   * answered requests.
   */
  finishReason: number[];
  /** The index of its server among the targets, in the order of the configuration. */
  server: number[];
  /** True if the connection had been used by an earlier request. */
  connectionReused: boolean[];
  /** True if it was sent again on a new connection. */
  retried: boolean[];
  /** Tokens of the new messages, as specified by the workload. */
  targetPromptTokens: number[];
  /** Tokens of the new messages. */
  promptTokens: number[];
  /** Tokens of history, new messages and chat template. */
  totalPromptTokens: number[];
  /** Tokens that the chat template added. */
  templateTokens: number[];
  /** Tokens that the workload requested, if it did. */
  targetOutputTokens: number[];
  /** Tokens generated; 0 without an answer. */
  outputTokens: number[];
  /** True if `output-tokens` is the server's count. */
  outputTokensFromUsage: boolean[];
  /** The server's count of prompt tokens, if reported. */
  usagePrompt: number[];
  /** The server's count of generated tokens, if reported. */
  usageCompletion: number[];
  /** Prompt tokens that the server found in its cache, if reported. */
  usageCached: number[];
  /** Generated tokens that were reasoning, if reported. */
  usageReasoning: number[];
  /** Prompt tokens that an unbounded prefix cache would have held, if known. */
  idealCachedTokens: number[];
  /**
   * The number of entries of each of the next three lists that belong to this request and to
   * those before it.
   */
  parentsEnd: number[];
  /** The nodes that it waited for. Tool runs may be among them; the table does not contain these. */
  parents: number[];
  /**
   * The awaited event of each of these nodes: 0 its dispatch, 1 its first chunk, 2 its end.
   * Further ones may be added.
   */
  parentTriggers: number[];
  /** The time after that event. */
  parentDelays: number[];
  /** True if the number of tokens in each of its chunks is known. */
  chunkTokensKnown: boolean[];
  /**
   * The number of entries of each of the next three lists that belong to this request and to
   * those before it: the chunks of its answer with generated content.
   */
  chunksEnd: number[];
  /** The arrival of each chunk. */
  chunkAt: number[];
  /**
   * Tokens in each chunk; a token belongs to the chunk with its last character. 0 in all chunks
   * of a request where it is not known.
   */
  chunkTokens: number[];
  /**
   * The content of each chunk: 0 reasoning, 1 visible text, 2 a piece of a function call.
   * Further kinds may be added.
   */
  chunkKinds: number[];
  /**
   * The number of entries of each of the next two lists that belong to this request and to those
   * before it: the labels of the request and of its session.
   */
  labelsEnd: number[];
  /** The name of each label: an index in `texts`. */
  labelNames: number[];
  /** The value of each label: an index in `texts`. */
  labelValues: number[];
  /** Each text once. */
  texts: string[];
  /** One entry for each request that failed or was cancelled by the host, in order. */
  failures: FailedRequest[];
  /** One entry for each request with a new connection, in order. */
  connections: NewConnection[];
  /** One entry for each replayed request, in order. */
  replays: ReplayedRequest[];
  /** Columns that are not in this interface. A plugin ignores those that it does not know. */
  further: FurtherColumn[];
}

/** The better direction of a metric. */
export type Better = "higher" | "less" | "neither";

/** A metric. */
export interface Definition {
  /** `[a-z][a-z0-9_]*`, at most 64 characters, not the name of a built-in metric. */
  name: string;
  /** `s`, `tokens`, `1` for a ratio, ... */
  unit: string;
  better: Better;
  /** The definition, in one line. */
  summary: string;
}

/** A sample of a metric. */
export interface Sample {
  /** The index of the metric in the definitions. */
  metric: number;
  /** In the metric's unit; finite. */
  value: number;
  /** The number of samples that it counts as; positive and finite, 1 for an ordinary sample. */
  weight: number;
  /**
   * The index in the batch of the request that it describes, whose labels it takes; none for a
   * sample of the whole run.
   */
  of: number | null;
}

/** Statistics of a metric's samples, in the metric's unit. If `count` is 0, so are the others. */
export interface Stats {
  count: number;
  mean: number;
  /** Standard deviation of the values themselves. */
  std: number;
  min: number;
  max: number;
  p50: number;
  p90: number;
  p95: number;
  p99: number;
}

/** A window of the run. */
export interface Window {
  begin: number;
  end: number;
  /** Statistics of the requests whose intended time is in the window. */
  stats: Stats;
}

/** The verdict on one objective. */
export interface Verdict {
  /** Its name, unique among the verdicts. */
  name: string;
  /** True if the objective is met. */
  met: boolean;
  /** The observed value; finite. None if there was nothing to observe. */
  observed: number | null;
  /** The required value; finite. */
  threshold: number;
  /** One line for the user; may be empty. */
  detail: string;
}

/** The type of the cells of a column. A cell that is missing, null or (in CSV) empty is absent. */
export type Cell = "text" | "count" | "integer" | "number" | "truth" | "items" | "members" | "anything";

/** A column that the flavor reads. Columns that it does not name never reach it. */
export interface Column {
  /** The name under which the flavor finds it in a row's fields. */
  name: string;
  /** Further names that it may have in a file. */
  aliases: string[];
  cell: Cell;
  /** True if a row without it is refused. */
  required: boolean;
}

/** The columns that link rows to a tree. */
export interface Tree {
  /** The column with the id of a row. */
  id: string;
  /**
   * The column with the id of the row that it continues. If it is absent, or the trace does not
   * have that id, the row is a root.
   */
  parent: string;
}

/** The rows that form a session. */
export type Grouping =
  | { tag: "row" }
  | { tag: "column"; val: string }
  | { tag: "tree"; val: Tree }
  | { tag: "pools" };

/** The unit of a column of times. */
export type TimeUnit = "seconds" | "milliseconds" | "microseconds" | "nanoseconds" | "date-time";

/** The column of the recorded arrival. */
export interface Arrival {
  column: string;
  unit: TimeUnit;
}

/** A filter that keeps only the rows with the most frequent values of a column. */
export interface MostFrequent {
  column: string;
  /** The number of values that are kept. */
  count: number;
}

/** The columns and groups that the flavor reads. */
export interface Layout {
  columns: Column[];
  /** The member that holds the array of rows, if the file is one JSON object. */
  rowsIn: string | null;
  grouping: Grouping;
  arrival: Arrival | null;
  keep: MostFrequent | null;
  /** True if `warmup` returns sessions. */
  warmsUp: boolean;
}

/** One row. */
export interface Row {
  /** Its number in the trace, from 1, as shown in messages to the user. */
  number: number;
  /** Its recorded arrival, relative to the earliest of the trace. */
  at: number | null;
  /** A JSON object with the columns of the layout by name; absent cells are omitted. */
  fields: string;
}

/** The rows of one session, in the order of the file. */
export interface Group {
  /** Its number in the trace, from 0. */
  index: number;
  /** The value of the grouping column, or the id of the tree's root; else empty. */
  key: string;
  rows: Row[];
}

/** Facts about the whole trace. */
export interface Facts {
  rows: number;
  groups: number;
  /** The fields of the first row. */
  firstRow: string;
}

/** The named types. */
export const TYPES: Readonly<Record<string, Type>> = {
  Level: { enum: ["debug", "info", "warn", "error"] },
  Seed: { record: { high: "u32", low: "u32" } },
  SyntheticText: { record: { seed: "#Seed", tokens: "u32" } },
  MediaKind: { enum: ["image", "audio", "video"] },
  Media: { record: { kind: "#MediaKind", source: "string" } },
  Segment: { variant: { text: "string", synthetic: "#SyntheticText", media: "#Media", "token-ids": { list: "u32" }, "result-of": "u32" } },
  Role: { enum: ["system", "user", "assistant", "tool"] },
  ToolCall: { record: { id: "string", name: "string", arguments: "string" } },
  Reasoning: { record: { content: { list: "#Segment" }, signature: { option: "string" } } },
  Message: { record: { role: "#Role", content: { list: "#Segment" }, toolCallId: { option: "string" }, toolCalls: { list: "#ToolCall" }, reasoning: { option: "#Reasoning" } } },
  SyntheticTools: { record: { seed: "#Seed", count: "u32", tokens: "u32" } },
  Tools: { variant: { definitions: "string", verbatim: "string", synthetic: "#SyntheticTools" } },
  ToolChoice: { variant: { automatic: null, none: null, required: null, function: "string" } },
  AnswerForm: { record: { toolChoice: { option: "#ToolChoice" }, schema: { option: "string" }, logProbabilities: { option: "u32" }, promptLogProbabilities: "bool" } },
  Output: { record: { targetTokens: { option: "u32" }, exact: "bool", form: { option: "#AnswerForm" } } },
  HistoryMode: { enum: ["live", "recorded", "fresh"] },
  Answer: { record: { content: { list: "#Segment" }, toolCalls: { list: "#ToolCall" }, reasoning: { option: "#Reasoning" } } },
  Recording: { record: { history: "#HistoryMode", answer: { option: "#Answer" }, at: { option: "u64" }, latency: { option: "u64" }, promptTokens: { option: "u32" }, outputTokens: { option: "u32" } } },
  Trigger: { enum: ["dispatched", "first-chunk", "completed"] },
  Edge: { record: { parent: "u32", trigger: "#Trigger", delay: "u64" } },
  Cancellation: { record: { when: { list: "#Edge" }, afterChunks: { option: "u32" } } },
  Request: { record: { node: "u32", parents: { list: "#Edge" }, historyParent: { option: "u32" }, keepReasoning: "bool", waitAfterReady: "u64", messages: { list: "#Message" }, tools: { option: "#Tools" }, output: "#Output", cancellation: { option: "#Cancellation" }, client: { option: "string" }, body: { option: "string" }, headers: { list: { tuple: ["string", "string"] } }, labels: { list: { tuple: ["string", "string"] } }, recording: { option: "#Recording" } } },
  ToolRun: { record: { node: "u32", parents: { list: "#Edge" }, tool: { option: "string" }, serviceTime: { option: "u64" }, resultTokens: { option: "u32" }, fails: { option: "bool" }, labels: { list: { tuple: ["string", "string"] } } } },
  Session: { record: { requests: { list: "#Request" }, toolRuns: { list: "#ToolRun" }, arrivesAt: { option: "u64" }, headers: { list: { tuple: ["string", "string"] } }, labels: { list: { tuple: ["string", "string"] } } } },
  Guarantees: { record: { maxOutputTokens: { option: "u32" }, maxDepth: { option: "u32" }, distinctPrompts: "bool" } },
  Usage: { record: { prompt: "u32", completion: "u32", cached: { option: "u32" }, reasoning: { option: "u32" } } },
  TokenProbabilities: { record: { logarithms: { list: "f64" }, greedy: { list: "bool" } } },
  LogProbabilities: { record: { prompt: "#TokenProbabilities", answer: "#TokenProbabilities" } },
  Response: { record: { node: "u32", cancelled: "bool", text: "string", reasoning: "string", reasoningSignature: { option: "string" }, toolCalls: { list: "#ToolCall" }, finishReason: "string", usage: { option: "#Usage" }, outputTokens: "u32", logProbabilities: { option: "#LogProbabilities" }, completedAt: "u64" } },
  ToolOutcome: { enum: ["succeeded", "failed", "cancelled"] },
  ToolResult: { record: { node: "u32", outcome: "#ToolOutcome", tokens: "u32", waitingTime: "u64", serviceTime: "u64", completedAt: "u64" } },
  Failure: { record: { node: "u32", code: "string", status: { option: "u16" }, retryAfter: { option: "u64" }, message: "string", completedAt: "u64" } },
  Error: { record: { code: "string", message: "string", hint: { option: "string" }, path: { option: "string" } } },
  Descriptor: { record: { name: "string", version: "string", summary: "string", configSchema: "string" } },
  Step: { record: { requests: { list: "#Request" }, toolRuns: { list: "#ToolRun" }, cancel: { list: "u32" }, done: "bool" } },
  Opening: { record: { step: "#Step", headers: { list: { tuple: ["string", "string"] } }, labels: { list: { tuple: ["string", "string"] } } } },
  Framing: { enum: ["event-stream", "lines", "whole"] },
  Endpoint: { record: { path: "string", headers: { list: { tuple: ["string", "string"] } }, request: "string", framing: "#Framing" } },
  ToolPiece: { record: { index: "u32", id: "string", name: "string", arguments: "string" } },
  Refusal: { record: { message: "string", code: { option: "u16" } } },
  Part: { variant: { role: null, reasoning: "string", content: "string", tool: "#ToolPiece", finish: "string", usage: "#Usage", signature: "string", "log-probabilities": "#TokenProbabilities", "response-id": "string", done: null, comment: null, error: "#Refusal" } },
  Parts: { record: { parts: { list: "#Part" }, ends: { list: "u32" } } },
  Status: { enum: ["ok", "failed", "cancelled", "cancelled-by-client"] },
  FailedRequest: { record: { request: "u32", code: "string", message: "string" } },
  NewConnection: { record: { request: "u32", resolve: { option: "u64" }, connect: { option: "u64" }, tls: { option: "u64" } } },
  ReplayedRequest: { record: { request: "u32", at: { option: "u64" }, latency: { option: "u64" }, promptTokens: { option: "u32" }, outputTokens: { option: "u32" } } },
  FurtherColumn: { record: { name: "string", values: { list: "f64" } } },
  Batch: { record: { session: { list: "u64" }, node: { list: "u32" }, sessionRequests: { list: "u32" }, historyParent: { list: "u32" }, waitAfterReady: { list: "u64" }, intendedAt: { list: "u64" }, held: { list: "u64" }, dispatchedAt: { list: "u64" }, pickedUpAt: { list: "u64" }, sentAt: { list: "u64" }, firstByteAt: { list: "u64" }, completedAt: { list: "u64" }, measured: { list: "bool" }, status: { list: "#Status" }, httpStatus: { list: "u32" }, finishReason: { list: "u32" }, server: { list: "u32" }, connectionReused: { list: "bool" }, retried: { list: "bool" }, targetPromptTokens: { list: "u32" }, promptTokens: { list: "u32" }, totalPromptTokens: { list: "u32" }, templateTokens: { list: "u32" }, targetOutputTokens: { list: "u32" }, outputTokens: { list: "u32" }, outputTokensFromUsage: { list: "bool" }, usagePrompt: { list: "u32" }, usageCompletion: { list: "u32" }, usageCached: { list: "u32" }, usageReasoning: { list: "u32" }, idealCachedTokens: { list: "u32" }, parentsEnd: { list: "u32" }, parents: { list: "u32" }, parentTriggers: { list: "u8" }, parentDelays: { list: "u64" }, chunkTokensKnown: { list: "bool" }, chunksEnd: { list: "u32" }, chunkAt: { list: "u64" }, chunkTokens: { list: "u32" }, chunkKinds: { list: "u8" }, labelsEnd: { list: "u32" }, labelNames: { list: "u32" }, labelValues: { list: "u32" }, texts: { list: "string" }, failures: { list: "#FailedRequest" }, connections: { list: "#NewConnection" }, replays: { list: "#ReplayedRequest" }, further: { list: "#FurtherColumn" } } },
  Better: { enum: ["higher", "less", "neither"] },
  Definition: { record: { name: "string", unit: "string", better: "#Better", summary: "string" } },
  Sample: { record: { metric: "u32", value: "f64", weight: "f64", of: { option: "u32" } } },
  Stats: { record: { count: "u64", mean: "f64", std: "f64", min: "f64", max: "f64", p50: "f64", p90: "f64", p95: "f64", p99: "f64" } },
  Window: { record: { begin: "u64", end: "u64", stats: "#Stats" } },
  Verdict: { record: { name: "string", met: "bool", observed: { option: "f64" }, threshold: "f64", detail: "string" } },
  Cell: { enum: ["text", "count", "integer", "number", "truth", "items", "members", "anything"] },
  Column: { record: { name: "string", aliases: { list: "string" }, cell: "#Cell", required: "bool" } },
  Tree: { record: { id: "string", parent: "string" } },
  Grouping: { variant: { row: null, column: "string", tree: "#Tree", pools: null } },
  TimeUnit: { enum: ["seconds", "milliseconds", "microseconds", "nanoseconds", "date-time"] },
  Arrival: { record: { column: "string", unit: "#TimeUnit" } },
  MostFrequent: { record: { column: "string", count: "u32" } },
  Layout: { record: { columns: { list: "#Column" }, rowsIn: { option: "string" }, grouping: "#Grouping", arrival: { option: "#Arrival" }, keep: { option: "#MostFrequent" }, warmsUp: "bool" } },
  Row: { record: { number: "u64", at: { option: "u64" }, fields: "string" } },
  Group: { record: { index: "u64", key: "string", rows: { list: "#Row" } } },
  Facts: { record: { rows: "u64", groups: "u64", firstRow: "string" } },
};

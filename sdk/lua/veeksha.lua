---@meta veeksha
-- Annotations for the Lua language server. Generated from the scenario's JSON schema; do not edit
-- by hand. A scenario begins its table with `---@type veeksha.Scenario`.

---A piece of a message: made by `text`, `synthetic`, `tool_result`, `result_of`, `token_ids`,
---`image`, `audio` or `video`.
---@class veeksha.Piece

---Definitions of functions, made by `synthetic_tools`.
---@class veeksha.SyntheticTools

---The content of a message: verbatim text, one piece, or several pieces.
---@alias veeksha.Content string|veeksha.Piece|(string|veeksha.Piece)[]

---Verbatim text.
---@param s string
---@return veeksha.Piece
function text(s) end

---Text of exactly `tokens` tokens. Equal seeds give equal text everywhere; without a seed the text
---is unique to the session or, at the top level of the scenario, shared by all sessions.
---@param tokens integer
---@param seed? string|integer
---@return veeksha.Piece
function synthetic(tokens, seed) end

---A tool's result: a line that names the tool, followed by `tokens` tokens of synthetic text.
---@param name string
---@param tokens integer
---@param seed? string|integer
---@return veeksha.Piece
function tool_result(name, tokens, seed) end

---The result of a tool run of the session: as many tokens as the run returns. The request waits for
---the run, directly or through others.
---@param run integer|veeksha.ToolResult The number of the run's node, or what an agent got from it.
---@return veeksha.Piece
function result_of(run) end

---Token ids of the target's vocabulary, sent as they are. Only for endpoints that take prompts as
---token ids (`openai_completions`); such a request has no other content.
---@param ids integer[]
---@return veeksha.Piece
function token_ids(ids) end

---Definitions of `count` functions whose JSON text has exactly `tokens` tokens.
---@param count integer
---@param tokens integer
---@param seed? string|integer
---@return veeksha.SyntheticTools
function synthetic_tools(count, tokens, seed) end

---An image: the name of a granted file, or a URL.
---@param source string
---@return veeksha.Piece
function image(source) end

---A sound: the name of a granted file, or a URL.
---@param source string
---@return veeksha.Piece
function audio(source) end

---A video: the name of a granted file, or a URL.
---@param source string
---@return veeksha.Piece
function video(source) end

---Writes lines to the host's log.
log = {}
---@param ... any
function log.debug(...) end
---@param ... any
function log.info(...) end
---@param ... any
function log.warn(...) end
---@param ... any
function log.error(...) end

---The target's tokenizer.
tokens = {}
---Returns the number of tokens of a text. Only available within a session.
---@param s string
---@return integer
function tokens.count(s) end
---Returns the token ids of a text, which `token_ids` sends. Only available within a session.
---@param s string
---@return integer[]
function tokens.encode(s) end

---Random numbers that depend only on the run's seed and the session.
---@class veeksha.Rng
local Rng = {}
---Returns the stream of this name, from its beginning. Streams of different names are independent
---of one another, and a component draws the same words from a stream of the same name.
---@param name string
---@return veeksha.Rng
function Rng:stream(name) end
---Returns the next 32 bits, as an integer from 0 to 2^32 - 1.
---@return integer
function Rng:word() end
---Returns a number from 0 (inclusive) to 1 (exclusive).
---@return number
function Rng:unit() end
---Returns an integer from `low` to `high`, both inclusive.
---@param low integer
---@param high integer
---@return integer
function Rng:int(low, high) end
---@param mean number
---@return number
function Rng:exponential(mean) end
---@param mean number
---@param sd number
---@return number
function Rng:normal(mean, sd) end
---@param mean number
---@param cv number The standard deviation divided by the mean.
---@return number
function Rng:gamma(mean, cv) end
---Returns one element of a list.
---@generic T
---@param list T[]
---@return T
function Rng:choice(list) end

---Seconds, or text with a unit: `"350ms"`, `"1.5s"`, `"2m"`.
---@alias veeksha.Duration number|string

---@class veeksha.Message
---@field role "system"|"user"|"assistant"|"tool"
---@field content? veeksha.Content Required, except in a message of the assistant with calls.
---@field tool_call_id? string For the role `tool`: the id of the answered call.
---@field tool_calls? veeksha.ToolCall[] For the role `assistant`: the calls that it asks for.
---@field reasoning? veeksha.Content|veeksha.Reasoning For the role `assistant`: the reasoning before its content.

---The reasoning before an answer.
---@class veeksha.Reasoning
---@field content? veeksha.Content
---@field signature? string The server's proof that the reasoning is its own.

---A function that the model may call.
---@class veeksha.Tool
---@field name string
---@field description? string
---@field parameters? table<string, any> JSON schema of the arguments.

---@class veeksha.Output
---@field tokens? integer Number of requested tokens: an upper limit unless `exact`.
---@field exact? boolean True to request exactly this number, false (default) for an upper limit.

---An event of a request that another one waits for. A request that ends without a chunk triggers
---`first_chunk` at its end. A request whose conversation is continued (`history`) must be
---`completed`.
---@class veeksha.Edge
---@field node integer|veeksha.Response The request.
---@field trigger? "dispatched"|"first_chunk"|"completed" The awaited event; `completed` if absent.
---@field delay? veeksha.Duration Time after the event.

---An event that cancels a request: of another request, or, without `node`, of itself.
---@class veeksha.CancelEvent
---@field node? integer|veeksha.Response The other request; the request itself if absent.
---@field trigger? "dispatched"|"first_chunk"|"completed" The event; if absent, the end of the other request, or the dispatch of the request itself.
---@field delay? veeksha.Duration Time after the event.
---@field chunks? integer Instead of an event: the number of generated chunks after which the rest is not wanted.

---A request. At least one of `user`, `system` and `messages` is required.
---@class veeksha.Request
---@field node? integer The request's number, in a session that is made as a whole.
---@field system? veeksha.Content
---@field messages? veeksha.Message[]
---@field user? veeksha.Content
---@field history? integer|veeksha.Response The request whose conversation it continues.
---@field keep_reasoning? boolean True to send the reasoning of the conversation's answers as well.
---@field tools? veeksha.Tool[]|string|veeksha.SyntheticTools The functions that the model may call, written in the form of the endpoint; JSON text is sent verbatim. Absent: those of the conversation; an empty list: none.
---@field tool_choice? "auto"|"none"|"required"|{ name: string } The functions that the answer may call.
---@field response_schema? table<string, any>|string The JSON schema that the answer must fit.
---@field log_probabilities? integer Log-probabilities of the answer's tokens, and of this many alternatives to each.
---@field prompt_log_probabilities? boolean Log-probabilities of the prompt's tokens as well; `openai_completions` only.
---@field after? integer|veeksha.Response|veeksha.Edge|(integer|veeksha.Response|veeksha.Edge)[] Requests that must be complete first, or other events of requests.
---@field wait? veeksha.Duration Think time before the request is sent.
---@field cancel? integer|veeksha.Response|veeksha.CancelEvent|(integer|veeksha.Response|veeksha.CancelEvent)[] What cancels the request, whichever comes first.
---@field output? integer|veeksha.Output A number is an upper limit: the answer may be shorter.
---@field client? string The client that sends it, one of the scenario's `clients`; `client` if absent.
---@field body? table<string, any> Members merged into the request's body.
---@field headers? table<string, string|number|boolean> HTTP headers; they replace those of the session and of `client.headers`.
---@field labels? table<string, string|number|boolean> Carried to the request's record.
---@field history_mode? "live"|"recorded"|"fresh" The conversation that it sends: with real answers, with recorded ones, or none.
---@field answer? veeksha.Content|veeksha.Answer The recorded answer, for requests that continue this one with `history_mode = "recorded"`.
---@field at? veeksha.Duration The recorded time of sending. Traffic that replays arrivals does not send it earlier.
---@field latency? veeksha.Duration The recorded duration of its answer.
---@field prompt_tokens? integer The recorded number of prompt tokens.
---@field output_tokens? integer The recorded number of answer tokens.

---A tool call, among the requests of a session: it waits for a server of its class, one of the
---scenario's `tools`, and then takes its service time.
---@class veeksha.ToolRun: veeksha.ToolOptions
---@field tool string The name of the class.
---@field node? integer The run's number, in a session that is made as a whole.

---@class veeksha.ToolOptions
---@field after? integer|veeksha.Response|veeksha.ToolResult|veeksha.Edge|(integer|veeksha.Response|veeksha.ToolResult|veeksha.Edge)[] Nodes that must be complete first, or other events of them.
---@field time? veeksha.Duration The service time; the distribution of the class if absent.
---@field result_tokens? integer The tokens of its result; the distribution of the class if absent.
---@field fails? boolean True if it fails; the failure rate of the class if absent.
---@field labels? table<string, string|number|boolean> Carried to the run's record.

---A recorded answer.
---@class veeksha.Answer
---@field content? veeksha.Content
---@field tool_calls? veeksha.ToolCall[]
---@field reasoning? veeksha.Content|veeksha.Reasoning

---A whole session, made ahead of time.
---@class veeksha.Session
---@field requests (veeksha.Request|veeksha.ToolRun)[] Ordered by `history` and `after`.
---@field headers? table<string, string|number|boolean> HTTP headers of each request.
---@field labels? table<string, string|number|boolean> Carried to the record of each request.
---@field arrives_at? veeksha.Duration The recorded arrival, for traffic that replays arrivals.

---A row of a trace.
---@class veeksha.TraceRow
---@field number integer Its number in the trace, from 1.
---@field at? number Its recorded arrival, in seconds from the earliest of the trace.
---@field cells table<string, any> Its cells by the names of the flavor's columns.

---The rows of one session, in the order of the file.
---@class veeksha.TraceGroup
---@field index integer Its number in the trace, from 0.
---@field key string The value of the grouping column, or the id of the tree's root; else empty.
---@field rows veeksha.TraceRow[]

---Properties of the whole trace.
---@class veeksha.TraceFacts
---@field rows integer
---@field groups integer
---@field first table<string, any> The cells of the first row.

---A prompt of `tokens` tokens from hash blocks: equal ids are equal text.
---@param ids (integer|string)[]
---@param size integer
---@param tokens integer
---@param options? { last?: "partial"|"full", scope?: string, epoch?: integer, rest?: string|integer }
---@return veeksha.Piece[]
function blocks(ids, size, tokens, options) end

---@class veeksha.ToolCall
---@field id string
---@field name string
---@field arguments string|table<string, any> JSON text, as the server sent it; in a message, a table as well.

---@class veeksha.Usage
---@field prompt integer
---@field completion integer
---@field cached? integer
---@field reasoning? integer

---@class veeksha.Error
---@field code string `connect`, `tls`, `timeout`, `status`, `protocol`, `in_stream`, `truncated`, `cancelled`, `codec`, or `cancelled_by_client` if the workload cancelled the request.
---@field message string
---@field status? integer The HTTP status, if one came.
---@field retry_after? number The seconds after which the server asked for another attempt, if it did.

---The outcome of a request. If `ok` is false, `error` has the reason. The texts are empty then or,
---if `cancelled` is true, the part that had arrived.
---@class veeksha.Response
---@field ok boolean
---@field cancelled? boolean True if the workload cancelled the request.
---@field node integer
---@field text string
---@field reasoning string
---@field reasoning_signature? string The server's proof that the reasoning is its own.
---@field tool_calls veeksha.ToolCall[]
---@field log_probabilities? number[] The natural logarithm of each token's probability, if asked for.
---@field greedy? boolean[] True for each token that was the most probable one; empty without alternatives.
---@field prompt_log_probabilities? number[] The same of the prompt's tokens from the second on, if asked for.
---@field prompt_greedy? boolean[] The same as `greedy` of these tokens.
---@field finish_reason string
---@field output_tokens integer
---@field usage? veeksha.Usage
---@field completed_at number Seconds from the start of the run to its end.
---@field error? veeksha.Error

---The end of a tool run. `ok` is false if the tool failed.
---@class veeksha.ToolResult
---@field ok boolean
---@field node integer
---@field tokens integer The tokens of its result.
---@field waiting_time number Seconds for which it waited for a free server.
---@field service_time number Seconds that its server took.
---@field completed_at number Seconds from the start of the run to its end.

---A branch of `parallel` and `race` that ends after a time.
---@class veeksha.Sleep
---@field sleep veeksha.Duration

---A live session, played by an agent or by one of its subagents.
---@class veeksha.AgentSession
---@field index integer
---@field rng veeksha.Rng A subagent has a separate stream.
---@field subagent? string The place of the subagent, such as `1.2`; nil for the agent itself.
local AgentSession = {}
---Sends a request and waits for its answer.
---@param request veeksha.Request
---@return veeksha.Response
function AgentSession:request(request) end
---Runs a tool of the scenario's `tools`, and waits for its end.
---@param class string
---@param options? veeksha.ToolOptions
---@return veeksha.ToolResult
function AgentSession:tool(class, options) end
---Sends several requests, runs tools, waits for subagents and sleeps, all at once. Returns the
---response to each request, the result of each tool, the first value of each subagent, and nil for
---each sleep.
---@param ... veeksha.Request|veeksha.ToolRun|veeksha.Sleep|veeksha.AgentSession
---@return any ...
function AgentSession:parallel(...) end
---Sends several requests, runs tools, waits for subagents and sleeps, until the first of them has
---ended. Returns its response, result or first value, and its position. The others are cancelled.
---@param ... veeksha.Request|veeksha.ToolRun|veeksha.Sleep|veeksha.AgentSession
---@return any result
---@return integer index
function AgentSession:race(...) end
---Starts a subagent, which runs concurrently.
---@param run fun(sub: veeksha.AgentSession): any ...
---@return veeksha.AgentSession subagent
function AgentSession:spawn(run) end
---Waits for the end of a subagent and returns its values. Raises its error.
---@return any ...
function AgentSession:join() end
---Adds an HTTP header to each request of the session, in the place of one with this name in any
---case. To be called before the session first waits for an answer.
---@param name string
---@param value string|number|boolean
function AgentSession:header(name, value) end
---Adds a label to the record of each request of the session, in the place of one with this name. To
---be called before the session first waits for an answer.
---@param name string
---@param value string|number|boolean
function AgentSession:label(name, value) end
---Adds think time before everything that follows in this function, and in the code that joins it.
---@param time veeksha.Duration
function AgentSession:sleep(time) end

---A finished request, for metrics and checks. Times are in seconds since the start of the run. It
---is read-only, and valid only while the function that received it runs.
---@class veeksha.Completion
---@field session integer The session's number.
---@field node integer Its node in that session.
---@field session_requests integer Number of nodes of its session known when it finished.
---@field parents integer[] The nodes that it waited for.
---@field parent_triggers? string[] The awaited event of each of them; nil if each had to be complete.
---@field parent_delays? number[] The time after each of these events; nil without delays.
---@field history_parent? integer The node whose conversation it continued.
---@field wait_after_ready number Its think time.
---@field intended_at number The scheduled instant.
---@field held number Delay caused by concurrency limits.
---@field dispatched_at number When it was handed to a client thread.
---@field picked_up_at? number When a client thread picked it up.
---@field sent_at? number When its last byte was handed to the socket.
---@field first_byte_at? number When the first byte of the answer was read.
---@field completed_at number When it ended.
---@field measured boolean True if it counts: false if it was dispatched after the end of the measured time.
---@field status "ok"|"failed"|"cancelled"|"cancelled_by_client"
---@field error_class? string The kind of failure: `connect`, `tls`, `timeout`, `status`, `protocol`, `in_stream`, `truncated`, `cancelled` or `codec`.
---@field error_message? string The reason for the failure, in one line.
---@field finish_reason? string The server's reason for the end of generation.
---@field http_status? integer
---@field chunk_at number[] The arrival of each chunk with generated content.
---@field chunk_tokens? integer[] Tokens in each of these chunks; nil where unknown.
---@field chunk_kinds ("reasoning"|"content"|"tool")[] The kind of content in each of these chunks.
---@field target_prompt_tokens integer Requested tokens of the new messages.
---@field prompt_tokens integer Tokens of the new messages.
---@field total_prompt_tokens integer Tokens of history, new messages and the chat template.
---@field template_tokens integer Tokens that the chat template added.
---@field target_output_tokens? integer Requested tokens of the answer.
---@field output_tokens integer Generated tokens; 0 without an answer.
---@field output_tokens_from_usage boolean True if `output_tokens` is the server's own count.
---@field usage? veeksha.Usage The server's counts.
---@field ideal_cached_tokens? integer Tokens of its prompt that an unbounded prefix cache would contain.
---@field cache_reused_tokens? integer Prompt tokens that the server found in its prefix cache.
---@field cache_evicted_tokens? integer Prompt tokens that its server had computed, and did not find.
---@field cache_rerouted_tokens? integer Prompt tokens that only another server had computed.
---@field cache_changed_tokens? integer Prompt tokens computed before, behind another beginning.
---@field cache_new_tokens? integer The rest of the prompt tokens.
---@field response_id? string The id that the server gave the response.
---@field trace_id? string The trace id of its `traceparent`, 32 hexadecimal digits.
---@field connection_reused boolean True if the connection had carried an earlier request.
---@field retried boolean True if it was sent again on a fresh connection.
---@field server integer Index of its server among the target's servers, from 0.
---@field resolve? number Seconds of name resolution, for a new connection.
---@field connect? number Seconds of connecting, for a new connection.
---@field tls? number Seconds of the TLS handshake, for a new connection.
---@field recorded? veeksha.Recorded The facts of the trace, if it was replayed from one.
---@field labels table<string, string> The labels of the request and its session.
---@field ttfc? number Seconds from dispatch to the first chunk: the metric `ttfc`; nil where the metric has no sample.
---@field tpot? number Seconds from the first chunk to the last, divided by the output tokens after the first chunk: the metric `tpot`; nil where the metric has no sample.
---@field end_to_end_latency? number Seconds from dispatch to the last chunk; after a tool call and without streaming, to the finish event: the metric `end_to_end_latency`; nil where the metric has no sample.

---The facts of a trace about a request.
---@class veeksha.Recorded
---@field at? number When it was sent, in seconds from the earliest arrival of the trace.
---@field latency? number Seconds until its answer was complete.
---@field prompt_tokens? integer
---@field output_tokens? integer

---A sample that counts `weight` times (1 by default).
---@class veeksha.Sample
---@field value number
---@field weight? number

---The result of a metric's function: nothing, one sample, or a list of samples.
---@alias veeksha.Samples nil|number|veeksha.Sample|(number|veeksha.Sample)[]

---Labels that the request of a sample must have, all of them.
---@alias veeksha.Filter table<string, string|number|boolean>

---Statistics of a metric's samples, in its unit. If `count` is 0, the others are nil.
---@class veeksha.Stats
---@field count integer
---@field mean? number
---@field std? number The standard deviation of the values themselves.
---@field min? number
---@field max? number
---@field p50? number
---@field p90? number
---@field p95? number
---@field p99? number

---An interval of the run.
---@class veeksha.Window
---@field from number
---@field to number
---@field stats veeksha.Stats Statistics of the requests that were intended within it.

---The results of a run.
---@class veeksha.Results
local Results = {}
---Returns the names of all metrics that have samples.
---@return string[]
function Results:metrics() end
---A run metric: `error_rate`, `goodput`, `requests_per_second`, and others. Nil if there is no such
---run metric.
---@param name string
---@return number?
function Results:aggregate(name) end
---@param metric string
---@param filter? veeksha.Filter
---@return veeksha.Stats
function Results:stats(metric, filter) end
---Returns a percentile; nil without samples. An unknown metric is an error.
---@param metric string
---@param percent number From 0 to 100.
---@param filter? veeksha.Filter
---@return number?
function Results:percentile(metric, percent, filter) end
---A metric's statistics in windows of one length, from the first intended instant on.
---@param metric string
---@param filter veeksha.Filter?
---@param seconds number At least 0.1.
---@return veeksha.Window[]
function Results:windows(metric, filter, seconds) end

---The verdict of a check on one objective.
---@class veeksha.Verdict
---@field name string Unique among the verdicts.
---@field met boolean
---@field observed? number Nil if there was nothing to observe.
---@field threshold number
---@field detail? string One line for the user.

---@class veeksha.Scenario
---@field certificate? veeksha.Certificate Thresholds at which a run is not trusted.
---@field client? veeksha.Client The server and the client's connection to it. Default: `openai_chat_completions`.
---@field clients? table<string, veeksha.ClientOverrides> Other clients by name, which requests choose; missing keys default to those of `client`. The client's label of a request is its name, or `default`.
---@field description? string|nil A description for readers of the reports.
---@field endpoint? veeksha.Endpoint|nil A running server: its values replace the client's.
---@field evaluators? veeksha.Evaluator[] Metrics, checks and objectives: the built-in metrics, plugins, functions. The built-in metrics are always measured.
---@field name? string|nil The scenario's name, which reports show and the run folder's name ends with.
---@field output_dir? string The folder that runs are written to, each in a subfolder. Default: `"benchmark_output"`.
---@field runtime? veeksha.Runtime Duration, number of sessions and threads of the run.
---@field seed? integer The seed of all randomness: lengths, texts, arrivals. Two runs with the same seed send the same requests. Default: `42`.
---@field session_generator? veeksha.SessionGenerator The source of sessions. Default: `synthetic`.
---@field tags? string[] Tags for grouping and searching runs. Default: `[]`.
---@field tools? table<string, veeksha.ToolConfig> Classes of tools by name, which sessions run between their requests.
---@field trace_recorder? veeksha.TraceRecorder Contents of the trace, and the record of agents' decisions.
---@field traffic_scheduler? veeksha.Traffic The start times of sessions. Default: `rate`.

---The start times of sessions.
---@alias veeksha.Traffic veeksha.Traffic.rate|veeksha.Traffic.concurrent|veeksha.Traffic.fixed_schedule|veeksha.Traffic.arrival_process

---Open loop by a plugin: sessions arrive at the instants that it returns, regardless of the
---server's speed.
---@class veeksha.Traffic.arrival_process
---@field cancel_session_on_failure? boolean True if a failed request ends its session: its queued requests are withdrawn and counted as never sent. Default: `true`.
---@field limits? veeksha.Limits Concurrency limits.
---@field process veeksha.ArrivalPlugin The plugin that decides when sessions arrive.
---@field type "arrival_process"

---A plugin that decides when sessions arrive.
---@alias veeksha.ArrivalPlugin veeksha.ArrivalPlugin.wasm|veeksha.ArrivalPlugin.lua

---A function of this Lua scenario.
---@class veeksha.ArrivalPlugin.lua
---@field arrivals fun(rng: veeksha.Rng): fun(count: integer): (number|string)[] Opens the process: returns a function that is called again and again with a number of sessions, and returns a list of their arrivals in seconds since the start of the run. A shorter list is the end.
---@field type "lua"

---A WebAssembly component.
---@class veeksha.ArrivalPlugin.wasm
---@field config? table<string, any> Its configuration, checked against the component's schema.
---@field files? table<string, string> Files that it may read, and media that its messages may name: a map from the name to the path.
---@field grants? string[] Capabilities that it may use: `blob:read data/*.jsonl` (files below the scenario's folder) and `env:NAME`. They take effect for the component that `veeksha.lock` pins.
---@field instances? "per-worker"|"pooled"|"per-call"|nil The number of its instances. Null: as its manifest states, otherwise `per-worker`.
---@field limits? veeksha.ArrivalPlugin.wasm.limits Its limits, where they differ from `runtime.plugin_limits`.
---@field on_trap? "abort"|"restart"|"disable"|nil The consequence of a trap or an exceeded limit. Null: as its manifest states, otherwise `abort`.
---@field plugin string The component's file, relative to the scenario's folder.
---@field type "wasm"

---Its limits, where they differ from `runtime.plugin_limits`.
---@class veeksha.ArrivalPlugin.wasm.limits
---@field agents_per_instance? integer Maximum live agents in one instance. When one of them traps, the others are rebuilt.
---@field call_budget? "time"|"fuel" The measure by which a call of a component is stopped: `time`, or `fuel`, which stops it at the same instruction on every machine and costs about as much.
---@field call_deadline_seconds? number Maximum seconds per call into a plugin.
---@field call_fuel? integer Maximum fuel of one call, about one unit per instruction. With `call_budget: fuel`; the deadline is then ten times as long.
---@field compile_deadline_seconds? number Maximum seconds for the compilation of a component, which happens once: the result is cached.
---@field core_instances? integer Maximum core instances, and maximum tables, of an instance of a component.
---@field handles? integer Maximum handles (open files, streams) of an instance.
---@field log_kib_per_call? integer Maximum KiB that one call may log.
---@field log_lines_per_call? integer Maximum lines that one call may log; further ones are counted.
---@field log_lines_per_run? integer Maximum lines that a plugin may log in one run.
---@field log_mib_per_run? integer Maximum MiB that a plugin may log in one run.
---@field memory_mib? integer Maximum memory per instance, in MiB.
---@field output_mib? integer Maximum MiB that one call of a component may pass to the host.
---@field table_elements? integer Maximum elements of all tables of an instance.

---Recorded arrivals: each session starts at its recorded arrival, and none of its requests is sent
---before its recorded instant.
---@class veeksha.Traffic.fixed_schedule
---@field cancel_session_on_failure? boolean True if a failed request ends its session: its queued requests are withdrawn and counted as never sent. Default: `true`.
---@field end? number|nil Skips arrivals at or after this second of the trace. Null: none.
---@field limits? veeksha.Limits Concurrency limits.
---@field offset? number Seconds from the start of the run to the first replayed arrival. Default: `0.0`.
---@field speedup? number Factor on the recorded arrival rate: 2 is twice the rate. Think times are unchanged. Default: `1.0`.
---@field start? number|nil Skips earlier arrivals, in seconds since the first arrival of the trace. Null: none.
---@field type "fixed_schedule"

---Closed loop: a fixed number of sessions is active; a session that ends is replaced by the next.
---@class veeksha.Traffic.concurrent
---@field cancel_session_on_failure? boolean True if a failed request ends its session: its queued requests are withdrawn and counted as never sent. Default: `true`.
---@field limits? veeksha.Limits Concurrency limits.
---@field rampup_seconds? number Seconds in which the number of sessions grows from zero to the target; 0 starts all at once. Default: `10.0`.
---@field target_concurrent_sessions? integer Number of concurrent sessions. A session is active until its last request is complete, including think time. Default: `3`.
---@field type "concurrent"

---Open loop: sessions arrive at a given rate, regardless of the server's speed.
---@class veeksha.Traffic.rate
---@field cancel_session_on_failure? boolean True if a failed request ends its session: its queued requests are withdrawn and counted as never sent. Default: `true`.
---@field interval_generator? veeksha.IntervalGenerator The gaps between the starts of sessions. Default: `poisson`.
---@field limits? veeksha.Limits Concurrency limits.
---@field type? "rate"

---Concurrency limits. Delayed requests keep their scheduled instant, and the record contains the
---delay that each limit caused.
---@class veeksha.Limits
---@field requests_in_flight? integer|nil Maximum number of requests in flight. Null: no limit.
---@field requests_in_prefill? integer|nil Maximum number of requests in prefill: dispatched, without a chunk of the answer yet. Null: no limit.
---@field sessions? integer|nil Maximum number of active sessions. Null: no limit.

---Gaps between events, in seconds.
---@alias veeksha.IntervalGenerator veeksha.IntervalGenerator.fixed|veeksha.IntervalGenerator.poisson|veeksha.IntervalGenerator.gamma

---Gamma-distributed gaps: more regular than Poisson below a coefficient of variation of 1, burstier
---above it.
---@class veeksha.IntervalGenerator.gamma
---@field arrival_rate? number Events per second, on average. Default: `1.0`.
---@field cv? number The coefficient of variation of the gaps: standard deviation divided by mean. Default: `0.5`.
---@field type "gamma"

---A Poisson process: exponentially distributed gaps, not clipped.
---@class veeksha.IntervalGenerator.poisson
---@field arrival_rate? number Events per second, on average. Default: `1.0`.
---@field type? "poisson"

---Equal gaps.
---@class veeksha.IntervalGenerator.fixed
---@field interval? number The gap in seconds. Default: `1.0`.
---@field type "fixed"

---Contents of `traces/trace.jsonl`, and the record of agents' decisions.
---@class veeksha.TraceRecorder
---@field decisions? boolean True to write the decisions of agents to `decisions.jsonl` of the run, from which `session_generator: {type: replay}` sends them again. The file has the texts that agents send; false keeps them off the disk. Default: `true`.
---@field enabled? boolean True to write the trace. Default: `true`.
---@field include_content? boolean True to include the texts of prompts and answers. Default: `false`.
---@field plugin_logs? boolean True to write the log lines of plugins, with level, function and session, to `plugin_logs.jsonl` of the run. Default: `false`.

---A class of tools: servers that calls wait for, and the time that a call takes.
---@class veeksha.ToolConfig
---@field cold_start? number Seconds added to a call that finds no warm server, such as the start of a sandbox. A server is cold until its first call. Default: `0.0`.
---@field failure_rate? number The probability that a call fails. It takes its service time all the same. Default: `0.0`.
---@field keep_warm? number|nil Seconds after which an idle server is cold again. Null: never.
---@field rate_limit? string|nil The most calls that start per second, minute or hour, evenly spaced: `20/s`, `100/min`, `1000/h`. Null: no limit.
---@field result_tokens? veeksha.QuantityConfig Tokens of the result, of calls that do not state theirs; rounded. Default: `constant`.
---@field servers? integer|nil Calls that are served at once; further ones wait, first come, first served. Null: any number.
---@field time? veeksha.QuantityConfig Service time in seconds, of calls that do not state theirs. Default: `constant`.

---A distribution of a quantity that is not negative.
---@alias veeksha.QuantityConfig veeksha.QuantityConfig.constant|veeksha.QuantityConfig.uniform|veeksha.QuantityConfig.exponential|veeksha.QuantityConfig.gamma|veeksha.QuantityConfig.lognormal

---Log-normal: the mean is `median * exp(sigma^2 / 2)`.
---@class veeksha.QuantityConfig.lognormal
---@field median number The median.
---@field sigma number The standard deviation of the logarithm.
---@field type "lognormal"

---Gamma.
---@class veeksha.QuantityConfig.gamma
---@field cv number Standard deviation divided by the mean.
---@field mean number The mean.
---@field type "gamma"

---Exponential.
---@class veeksha.QuantityConfig.exponential
---@field mean number The mean.
---@field type "exponential"

---Uniform between two values.
---@class veeksha.QuantityConfig.uniform
---@field max number The largest value.
---@field min number The smallest value.
---@field type "uniform"

---Always the same value.
---@class veeksha.QuantityConfig.constant
---@field type? "constant"
---@field value number The value.

---The source of sessions.
---@alias veeksha.SessionGenerator veeksha.SessionGenerator.synthetic|veeksha.SessionGenerator.trace|veeksha.SessionGenerator.wasm|veeksha.SessionGenerator.replay|veeksha.SessionGenerator.lua

---A function of this Lua scenario: `sessions` or `agent`.
---@class veeksha.SessionGenerator.lua
---@field agent? fun(session: veeksha.AgentSession) Plays one session step by step: sends a request, waits for the answer, and continues.
---@field files? table<string, string> Images, sounds and videos that its messages may name: a map from the name to the path.
---@field guarantees? veeksha.SessionGenerator.lua.guarantees Properties that hold for all sessions. The host refuses objectives that such sessions cannot meet and skips work that they do not need.
---@field length? integer|nil Number of sessions; null if only the function ends the workload.
---@field recorded_run? string|nil The folder of a run of the same agents, relative to the scenario's folder. The run reports where the agents decide differently. Null compares with no run.
---@field sessions? fun(index: integer, rng: veeksha.Rng): veeksha.Session? Makes the whole session `index` (from 0); nil ends the workload. It must depend on its arguments alone.
---@field type "lua"

---Properties that hold for all sessions. The host refuses objectives that such sessions cannot meet
---and skips work that they do not need.
---@class veeksha.SessionGenerator.lua.guarantees
---@field distinct_prompts? boolean No prompt begins like the prompt of another session. Default: `false`.
---@field max_depth? integer The longest chain of requests in which each waits for the one before it.
---@field max_output_tokens? integer No answer is requested with more tokens than this.

---The recorded decisions of a run's agents, sent again without the agents.
---@class veeksha.SessionGenerator.replay
---@field files? table<string, string> Images, sounds and videos that its messages may name: a map from the name to the path.
---@field run string The run's folder, relative to the scenario's folder.
---@field type "replay"

---A WebAssembly component.
---@class veeksha.SessionGenerator.wasm
---@field config? table<string, any> Its configuration, checked against the component's schema.
---@field files? table<string, string> Files that it may read, and media that its messages may name: a map from the name to the path.
---@field grants? string[] Capabilities that it may use: `blob:read data/*.jsonl` (files below the scenario's folder) and `env:NAME`. They take effect for the component that `veeksha.lock` pins.
---@field instances? "per-worker"|"pooled"|"per-call"|nil The number of its instances. Null: as its manifest states, otherwise `per-worker`.
---@field limits? veeksha.SessionGenerator.wasm.limits Its limits, where they differ from `runtime.plugin_limits`.
---@field on_trap? "abort"|"restart"|"disable"|nil The consequence of a trap or an exceeded limit. Null: as its manifest states, otherwise `abort`.
---@field plugin string The component's file, relative to the scenario's folder.
---@field recorded_run? string|nil The folder of a run of the same agents, relative to the scenario's folder. The run reports where the agents decide differently. Null compares with no run.
---@field type "wasm"

---Its limits, where they differ from `runtime.plugin_limits`.
---@class veeksha.SessionGenerator.wasm.limits
---@field agents_per_instance? integer Maximum live agents in one instance. When one of them traps, the others are rebuilt.
---@field call_budget? "time"|"fuel" The measure by which a call of a component is stopped: `time`, or `fuel`, which stops it at the same instruction on every machine and costs about as much.
---@field call_deadline_seconds? number Maximum seconds per call into a plugin.
---@field call_fuel? integer Maximum fuel of one call, about one unit per instruction. With `call_budget: fuel`; the deadline is then ten times as long.
---@field compile_deadline_seconds? number Maximum seconds for the compilation of a component, which happens once: the result is cached.
---@field core_instances? integer Maximum core instances, and maximum tables, of an instance of a component.
---@field handles? integer Maximum handles (open files, streams) of an instance.
---@field log_kib_per_call? integer Maximum KiB that one call may log.
---@field log_lines_per_call? integer Maximum lines that one call may log; further ones are counted.
---@field log_lines_per_run? integer Maximum lines that a plugin may log in one run.
---@field log_mib_per_run? integer Maximum MiB that a plugin may log in one run.
---@field memory_mib? integer Maximum memory per instance, in MiB.
---@field output_mib? integer Maximum MiB that one call of a component may pass to the host.
---@field table_elements? integer Maximum elements of all tables of an instance.

---Reading and replay of a trace.
---@class veeksha.SessionGenerator.trace
---@field check? "auto"|"whole"|"rows" Extent of the check before the run starts. Default: `"auto"`.
---@field columns? table<string, string> Renamed columns: a map from the name in the file to the flavor's name.
---@field flavor? veeksha.TraceFlavor The flavor that makes sessions of its rows. Default: `timed_synthetic_session`.
---@field max_row_mib? integer Maximum row size in MiB. Default: `64`.
---@field media_folder? string|nil The folder of the images, sounds and videos that rows name, relative to the scenario's folder. Null: rows may not name any.
---@field on_bad_row? "error"|"skip" Treatment of unusable rows. Default: `"error"`.
---@field salt? "run"|"off"|integer The salt that makes synthetic text differ from that of earlier runs, so that a server's cache does not contain it. Default: `"run"`.
---@field shuffle? "never"|"wrapped"|"always" When to shuffle sessions. Traffic that replays recorded arrivals keeps their order. Default: `"wrapped"`.
---@field trace_file string The trace: a file, or a folder of files, relative to the scenario's folder. JSON Lines, JSON or CSV, optionally compressed with gzip or zstd; the format is detected from the content.
---@field type "trace"
---@field warmup? boolean True to send the flavor's warm-up requests before the run, if it has any. Default: `true`.
---@field wrap_mode? boolean|nil True to restart the trace at its end, with new text, as often as needed. Null: true, except for traffic that replays recorded arrivals.

---The flavor that makes sessions of a trace's rows.
---@alias veeksha.TraceFlavor veeksha.TraceFlavor.azure|veeksha.TraceFlavor.bailian|veeksha.TraceFlavor.burstgpt|veeksha.TraceFlavor.inputs_json|veeksha.TraceFlavor.mooncake|veeksha.TraceFlavor.multi_turn|veeksha.TraceFlavor.rag|veeksha.TraceFlavor.random_pool|veeksha.TraceFlavor.request_log|veeksha.TraceFlavor.shared_prefix|veeksha.TraceFlavor.sharegpt|veeksha.TraceFlavor.single_turn|veeksha.TraceFlavor.timed_synthetic_session|veeksha.TraceFlavor.untimed_content_multi_turn|veeksha.TraceFlavor.weka|veeksha.TraceFlavor.wildchat|veeksha.TraceFlavor.wasm|veeksha.TraceFlavor.lua

---Functions of this Lua scenario.
---@class veeksha.TraceFlavor.lua
---@field arrival? veeksha.LuaArrival|nil The column of the recorded arrival.
---@field columns table<string, "text"|"count"|"integer"|"number"|"truth"|"items"|"members"|"anything"|veeksha.TraceFlavor.lua.columns.2> The columns that it reads, and the type of each.
---@field group_by? string|nil The column that has the same value in the rows of one session. Null: each row is a session.
---@field keep? veeksha.LuaKeep|nil Keeps only rows with the most frequent values of a column.
---@field pools? boolean True if each session consists of one row of each file, drawn at random. Default: `false`.
---@field rows_in? string|nil The member that holds the rows, if the file is a single JSON object.
---@field session fun(group: veeksha.TraceGroup, trace: veeksha.TraceFacts, epoch: integer, rng: veeksha.Rng): veeksha.Session?, string? Makes the session of a group of rows, or refuses it: `return nil, "reason"`. It must depend on its arguments alone.
---@field tree? veeksha.LuaTree|nil The columns that link a row to the row that it continues; the rows of a tree are one session.
---@field type "lua"
---@field warmup? fun(group: veeksha.TraceGroup, trace: veeksha.TraceFacts): veeksha.Session? Makes a session that is sent before the run begins, from the first row or, with `keep`, from the first row of each kept value.

---The columns that link rows into trees.
---@class veeksha.LuaTree
---@field id string The column with a row's id.
---@field parent string The column with the id of the row that it continues.

---The rows that a Lua flavor keeps.
---@class veeksha.LuaKeep
---@field column string The column.
---@field count integer Number of values that are kept.

---A full description.
---@class veeksha.TraceFlavor.lua.columns.2
---@field aliases? string[] Alternative names of the column in a file. Default: `[]`.
---@field cell "text"|"count"|"integer"|"number"|"truth"|"items"|"members"|"anything" The type of its cells.
---@field required? boolean True to refuse rows without it. Default: `true`.

---The recorded arrival.
---@class veeksha.LuaArrival
---@field column string The column.
---@field unit "seconds"|"milliseconds"|"microseconds"|"nanoseconds"|"date_time" The unit of its values.

---A WebAssembly component.
---@class veeksha.TraceFlavor.wasm
---@field config? table<string, any> Its configuration, checked against the component's schema.
---@field files? table<string, string> Files that it may read, and media that its messages may name: a map from the name to the path.
---@field grants? string[] Capabilities that it may use: `blob:read data/*.jsonl` (files below the scenario's folder) and `env:NAME`. They take effect for the component that `veeksha.lock` pins.
---@field instances? "per-worker"|"pooled"|"per-call"|nil The number of its instances. Null: as its manifest states, otherwise `per-worker`.
---@field limits? veeksha.TraceFlavor.wasm.limits Its limits, where they differ from `runtime.plugin_limits`.
---@field on_trap? "abort"|"restart"|"disable"|nil The consequence of a trap or an exceeded limit. Null: as its manifest states, otherwise `abort`.
---@field plugin string The component's file, relative to the scenario's folder.
---@field type "wasm"

---Its limits, where they differ from `runtime.plugin_limits`.
---@class veeksha.TraceFlavor.wasm.limits
---@field agents_per_instance? integer Maximum live agents in one instance. When one of them traps, the others are rebuilt.
---@field call_budget? "time"|"fuel" The measure by which a call of a component is stopped: `time`, or `fuel`, which stops it at the same instruction on every machine and costs about as much.
---@field call_deadline_seconds? number Maximum seconds per call into a plugin.
---@field call_fuel? integer Maximum fuel of one call, about one unit per instruction. With `call_budget: fuel`; the deadline is then ten times as long.
---@field compile_deadline_seconds? number Maximum seconds for the compilation of a component, which happens once: the result is cached.
---@field core_instances? integer Maximum core instances, and maximum tables, of an instance of a component.
---@field handles? integer Maximum handles (open files, streams) of an instance.
---@field log_kib_per_call? integer Maximum KiB that one call may log.
---@field log_lines_per_call? integer Maximum lines that one call may log; further ones are counted.
---@field log_lines_per_run? integer Maximum lines that a plugin may log in one run.
---@field log_mib_per_run? integer Maximum MiB that a plugin may log in one run.
---@field memory_mib? integer Maximum memory per instance, in MiB.
---@field output_mib? integer Maximum MiB that one call of a component may pass to the host.
---@field table_elements? integer Maximum elements of all tables of an instance.

---The trace flavor `wildchat`.
---@class veeksha.TraceFlavor.wildchat
---@field cache_bust_tokens? integer Tokens of unique text before each conversation, so that no prefix cache knows it from an earlier pass. 0: none. Default: `0`.
---@field history? "live"|"recorded"|"fresh" The earlier conversation that a request sends: the model's real answers (live), the recorded ones (recorded), or nothing (fresh). Default: `"live"`.
---@field languages? string[] Only conversations in these languages. Empty: all. Default: `[]`.
---@field max_think_time_s? number The longest time in seconds that a person is taken to think; what was longer is cut to it. Default: `600.0`.
---@field max_turns? integer|nil Requests of a conversation at most, from its beginning. Null: all of them.
---@field models? string[] Only conversations with these models. Empty: all. Default: `[]`.
---@field output_control? "exact"|"at_most"|"free" The kind of limit on the length of an answer: exactly (exact), at most (`at_most`), or not at all (free). Default: `"exact"`.
---@field output_tokens? integer|nil Tokens asked for in every answer. Null: as many as the recorded answer has.
---@field recorded_tokens_per_s? number|nil The output tokens per second of the recorded model. With it, the time of a question that was not recorded is that of its answer without the time of writing it. Null: it is that of its answer.
---@field skip_redacted? boolean True if conversations in which personal data was replaced are left out. Default: `false`.
---@field skip_toxic? boolean True if conversations that are marked as toxic are left out. Default: `false`.
---@field timestamp_unit? "date_time"|"seconds"|"milliseconds"|"microseconds" The time format of `timestamp`, in rows and in messages. Default: `"date_time"`.
---@field type "wildchat"

---The trace flavor `weka`.
---@class veeksha.TraceFlavor.weka
---@field scope? "recorded"|"conversation"|"file" Where the ids of hash blocks mean the same. Default: `"recorded"`.
---@field subagents? "isolated"|"shared" The scope of the ids of hash blocks in a subagent. Default: `"isolated"`.
---@field type "weka"

---The trace flavor `untimed_content_multi_turn`.
---@class veeksha.TraceFlavor.untimed_content_multi_turn
---@field assistant_role_value? string The role of answers. Default: `"gpt"`.
---@field content_key? string The key of a message's content. Default: `"value"`.
---@field conversation_column? string The column with the list of messages. Default: `"conversations"`.
---@field history? "recorded"|"live"|"fresh" The earlier conversation that a later request sends. Default: `"recorded"`.
---@field keep_unanswered? boolean True if messages after the last answer are sent too; the length of their answer, the server decides. Default: `false`.
---@field role_key? string The key of a message's role. Default: `"from"`.
---@field system_role_value? string The role of instructions. Default: `"system"`.
---@field tool_role_value? string The role of results of tools. Default: `"tool"`.
---@field type "untimed_content_multi_turn"
---@field user_role_value? string The role of messages of the user. Default: `"human"`.

---The trace flavor `timed_synthetic_session`.
---@class veeksha.TraceFlavor.timed_synthetic_session
---@field corpus_file? string|nil A text file; new text is cut from it. Empty: synthetic text.
---@field history? "live"|"fresh" The earlier conversation that a later request of a session sends. Default: `"live"`.
---@field page_size? integer Tokens that every conversation begins with and no other one has: the page size of the server's prefix cache. Default: `16`.
---@field type? "timed_synthetic_session"

---The trace flavor `single_turn`.
---@class veeksha.TraceFlavor.single_turn
---@field cache_bust_tokens? integer Tokens of unique text before each prompt, so that no prefix cache knows it from an earlier pass. 0: none. Default: `0`.
---@field output_control? "exact"|"at_most"|"free" The kind of limit on the length of an answer: exactly (exact), at most (`at_most`), or not at all (free). Default: `"exact"`.
---@field output_tokens? integer|nil Tokens asked for where a row has no `output_length`. Null: the server decides there.
---@field type "single_turn"

---The trace flavor `sharegpt`.
---@class veeksha.TraceFlavor.sharegpt
---@field cache_bust_tokens? integer Tokens of unique text before each conversation, so that no prefix cache knows it from an earlier pass. 0: none. Default: `0`.
---@field history? "live"|"recorded"|"fresh" The earlier conversation that a request sends: the model's real answers (live), the recorded ones (recorded), or nothing (fresh). Default: `"live"`.
---@field max_output_tokens? integer|nil The most tokens of an answer. A conversation with a longer one is refused.
---@field max_prompt_tokens? integer|nil The most tokens of a request's own messages. A conversation with a longer one is refused. vLLM: 1024.
---@field max_total_tokens? integer|nil The most tokens of all that is sent and answered in a conversation, as far as it is replayed. vLLM: 2048.
---@field max_turns? integer|nil Requests of a conversation at most, from its beginning. Null: all of them. vLLM's benchmark sends 1.
---@field min_output_tokens? integer|nil The fewest tokens of a recorded answer; ignored with `output_tokens`. vLLM: 4, for prompts too.
---@field min_prompt_tokens? integer|nil The fewest tokens of a request's own messages. A conversation with a shorter one is refused.
---@field output_control? "exact"|"at_most"|"free" The kind of limit on the length of an answer: exactly (exact), at most (`at_most`), or not at all (free). Default: `"exact"`.
---@field output_tokens? integer|nil Tokens asked for in every answer. Null: as many as the recorded answer has.
---@field type "sharegpt"

---The trace flavor `shared_prefix`.
---@class veeksha.TraceFlavor.shared_prefix
---@field block_size? integer Tokens of the block that a hash id names. Default: `512`.
---@field corpus_file? string|nil A text file; the text of later turns is cut from it. Empty: synthetic text.
---@field history? "live"|"fresh" The earlier conversation that a later request of a session sends. Default: `"live"`.
---@field type "shared_prefix"

---The trace flavor `request_log`.
---@class veeksha.TraceFlavor.request_log
---@field history? "live"|"fresh" The earlier conversation that a later request of a session sends. Default: `"live"`.
---@field timestamp_unit? "seconds"|"milliseconds"|"microseconds"|"nanoseconds"|"date_time" The time format of the column `timestamp`. Default: `"seconds"`.
---@field type "request_log"

---The trace flavor `random_pool`.
---@class veeksha.TraceFlavor.random_pool
---@field cache_bust_tokens? integer Tokens of unique text before each prompt, so that no prefix cache knows it from an earlier pass. 0: none. Default: `0`.
---@field output_control? "exact"|"at_most"|"free" The kind of limit on the length of an answer: exactly (exact), at most (`at_most`), or not at all (free). Default: `"exact"`.
---@field output_tokens? integer|nil Tokens asked for in every answer. Null: the server decides.
---@field type "random_pool"

---The trace flavor `rag`.
---@class veeksha.TraceFlavor.rag
---@field num_documents? integer The number of documents that are kept: those with the most rows. Default: `10`.
---@field type "rag"
---@field warmup? boolean True if the first row of each kept document is sent before the run begins. Default: `true`.

---The trace flavor `multi_turn`.
---@class veeksha.TraceFlavor.multi_turn
---@field cache_bust_tokens? integer Tokens of unique text before each conversation, so that no prefix cache knows it from an earlier pass. 0: none. Default: `0`.
---@field history? "live"|"recorded"|"fresh" The earlier conversation that a request sends: the model's real answers (live), the recorded ones (recorded), or nothing (fresh). Default: `"live"`.
---@field output_control? "exact"|"at_most"|"free" The kind of limit on the length of an answer: exactly (exact), at most (`at_most`), or not at all (free). Default: `"exact"`.
---@field output_tokens? integer|nil Tokens asked for where a turn has no `output_length`. Null: as many as its recorded answer has; without one, the server decides.
---@field timestamp_origin_ms? number|nil The `timestamp` of turns at which the trace begins, in milliseconds. Null: that of the first turn in the file.
---@field type "multi_turn"

---The trace flavor `mooncake`.
---@class veeksha.TraceFlavor.mooncake
---@field block_size? integer Tokens of a hash block: 512 in Mooncake's own traces, 64 or others where Dynamo wrote them. Default: `512`.
---@field history? "fresh"|"live" The prompt of a later turn of a session. Default: `"fresh"`.
---@field type "mooncake"

---The trace flavor `inputs_json`.
---@class veeksha.TraceFlavor.inputs_json
---@field drop? string[] Members of the recorded bodies that are not sent: the host has its own. Default: `["model","stream","stream_options"]`.
---@field type "inputs_json"

---The trace flavor `burstgpt`.
---@class veeksha.TraceFlavor.burstgpt
---@field failed_output_tokens? integer|nil Tokens that a failed request (one with 0 response tokens) is sent with. Null: failed requests are left out; a session that has no others is a bad row.
---@field history? "live"|"fresh" The prompt of a later turn of a conversation. Default: `"live"`.
---@field think_time? "recorded"|"none" The wait of a later turn of a conversation after the answer to the turn before it. Default: `"recorded"`.
---@field type "burstgpt"

---The trace flavor `bailian`.
---@class veeksha.TraceFlavor.bailian
---@field block_size? integer Tokens of a hash block; the published files have 16 in their names. Default: `16`.
---@field think_time? "none"|"recorded_gap" The wait of a turn after the answer to the turn before it. Default: `"none"`.
---@field type "bailian"

---The trace flavor `azure`.
---@class veeksha.TraceFlavor.azure
---@field image_height? integer Pixels of a generated image from top to bottom. Default: `512`.
---@field image_tokens? integer Tokens that an image counts for: with `images`, a row's text has that many tokens less for each, but at least one. Default: `255`.
---@field image_width? integer Pixels of a generated image from left to right. Default: `512`.
---@field images? boolean True if the images that a row counts in `NumImages` are sent, as generated ones; otherwise all of its tokens are text. Default: `false`.
---@field type "azure"

---The synthetic session generator.
---@class veeksha.SessionGenerator.synthetic
---@field channels? veeksha.synthetic.Channel[] The content of the prompts: at most one channel of each type.
---@field inherit_history? boolean The same as `inherit_history` of the session graph.
---@field output_spec? veeksha.synthetic.OutputSpec The requested answers.
---@field session_graph? veeksha.synthetic.Graph The requests of a session and what they wait for. Default: `linear`.
---@field type? "synthetic"

---The requests of a session and what they wait for.
---@alias veeksha.synthetic.Graph veeksha.synthetic.Graph.single_request|veeksha.synthetic.Graph.linear|veeksha.synthetic.Graph.branching

---Layers of requests: each request waits for some of the requests in the layers before it.
---@class veeksha.synthetic.Graph.branching
---@field connection_dist_generator? veeksha.synthetic.Length The number of layers that an edge spans; the last layer ends it. Default: `fixed`.
---@field fan_in_generator? veeksha.synthetic.Length Parents that each request of a later layer has at least, as far as the layer before it has that many. Default: `uniform`.
---@field fan_out_generator? veeksha.synthetic.Length Edges drawn from each request to later layers; equal edges count once. Default: `uniform`.
---@field inherit_history? boolean True if a request continues the conversation of one of its parents, drawn at random. Default: true.
---@field layer_width_generator? veeksha.synthetic.Length Requests in a layer. Default: `uniform`.
---@field num_layers_generator? veeksha.synthetic.Length Layers in a session. Default: `uniform`.
---@field request_wait_generator? veeksha.synthetic.Interval Seconds between the completion of the last parent and a request. Default: `poisson`.
---@field single_root? boolean True if the first layer has one request only. Default: `true`.
---@field type "branching"

---A chain: each request waits for the one before it.
---@class veeksha.synthetic.Graph.linear
---@field inherit_history? boolean True if a request continues the conversation of the one before it. Default: true.
---@field num_request_generator? veeksha.synthetic.Length Requests in a session. Default: `uniform`.
---@field request_wait_generator? veeksha.synthetic.Interval Seconds between the completion of a request and the next one. Default: `poisson`.
---@field type "linear"

---A distribution of times, in seconds.
---@alias veeksha.synthetic.Interval veeksha.synthetic.Interval.fixed|veeksha.synthetic.Interval.poisson|veeksha.synthetic.Interval.gamma

---Gamma times with the mean 1 / `arrival_rate`.
---@class veeksha.synthetic.Interval.gamma
---@field arrival_rate? number Events per second. Default: `1.0`.
---@field cv? number The coefficient of variation: standard deviation / mean. 1 is the same as `poisson`. Default: `0.5`.
---@field type "gamma"

---Exponential times with the mean 1 / `arrival_rate`, not clipped.
---@class veeksha.synthetic.Interval.poisson
---@field arrival_rate? number Events per second. Default: `1.0`.
---@field type "poisson"

---Always the same.
---@class veeksha.synthetic.Interval.fixed
---@field interval? number The time in seconds. Default: `1.0`.
---@field type "fixed"

---One request.
---@class veeksha.synthetic.Graph.single_request
---@field type "single_request"

---The requested answers.
---@class veeksha.synthetic.OutputSpec
---@field audio? table<string, any> Not supported yet.
---@field image? table<string, any> Not supported yet.
---@field text? veeksha.synthetic.TextOutput Text.
---@field video? table<string, any> Not supported yet.

---The text asked for.
---@class veeksha.synthetic.TextOutput
---@field output_length_generator? veeksha.synthetic.Length Tokens in each answer; the server is asked for exactly that many. Default: `uniform`.

---One kind of content.
---@alias veeksha.synthetic.Channel veeksha.synthetic.Channel.text|veeksha.synthetic.Channel.image|veeksha.synthetic.Channel.audio|veeksha.synthetic.Channel.video

---Not supported yet.
---@class veeksha.synthetic.Channel.video
---@field type "video"

---Audio that the host makes, sent as content blocks after the images.
---@class veeksha.synthetic.Channel.audio
---@field num_audios? integer|veeksha.synthetic.Length Pieces of audio in each request: a number, or a distribution. Default: `1`.
---@field rate? integer Samples per second. Default: `16000`.
---@field seconds? number|veeksha.synthetic.Seconds The length of each, in seconds: a number, or a distribution. Default: `2.5`.
---@field type "audio"

---A distribution of seconds.
---@alias veeksha.synthetic.Seconds veeksha.synthetic.Seconds.fixed|veeksha.synthetic.Seconds.uniform

---Each time from `min` to `max` with the same probability, rounded to milliseconds.
---@class veeksha.synthetic.Seconds.uniform
---@field max number The longest.
---@field min number The shortest.
---@field type "uniform"

---Always the same.
---@class veeksha.synthetic.Seconds.fixed
---@field type "fixed"
---@field value number The time.

---Images that the host makes, sent as content blocks after the text.
---@class veeksha.synthetic.Channel.image
---@field format? "png" Their encoding. Default: `"png"`.
---@field height? integer|veeksha.synthetic.Length Their height in pixels: a number, or a distribution. Default: `512`.
---@field num_images? integer|veeksha.synthetic.Length Images in each request: a number, or a distribution. Default: `1`.
---@field type "image"
---@field width? integer|veeksha.synthetic.Length Their width in pixels: a number, or a distribution. Default: `512`.

---Text of exact length.
---@class veeksha.synthetic.Channel.text
---@field body_length_generator? veeksha.synthetic.Length Tokens of new content in each request. Default: `uniform`.
---@field shared_prefix_probability? number The probability that a first request begins with what is common. Default: `1.0`.
---@field shared_prefix_ratio? number The share of a first request's tokens that all sessions have in common (rounded down). Default: `0.0`.
---@field type "text"

---A distribution of whole numbers, 1 or more.
---@alias veeksha.synthetic.Length veeksha.synthetic.Length.fixed|veeksha.synthetic.Length.uniform|veeksha.synthetic.Length.fixed_stair|veeksha.synthetic.Length.zipf|veeksha.synthetic.Length.inverse_gaussian

---The inverse Gaussian (Wald) distribution, rounded to the nearest integer and at least 1. Its
---variance is mean³ / shape.
---@class veeksha.synthetic.Length.inverse_gaussian
---@field mean? number The mean. Default: `500.0`.
---@field shape? number The shape. Default: `300.0`.
---@field type "inverse_gaussian"

---The number of rank k, counted from 1, has a probability in proportion to 1 / k^theta.
---@class veeksha.synthetic.Length.zipf
---@field alpha? number Another name of `theta`.
---@field max? integer The largest. Default: `12`.
---@field min? integer The smallest. Default: `6`.
---@field scramble? boolean True if the ranks are scattered over the numbers (by the seed of the run); otherwise the smallest number has rank 1. Default: `false`.
---@field theta? number The exponent, 0 to 20. Default: 0.6.
---@field type "zipf"

---The given numbers in order, request by request through the sessions. Where sessions have no fixed
---number of requests, request j of session i is at step i + j.
---@class veeksha.synthetic.Length.fixed_stair
---@field repeat_each? integer The number of requests that get each number before the next one. Default: `1`.
---@field type "fixed_stair"
---@field values? integer[] The numbers. Default: `[8,16,32,64]`.
---@field wrap? boolean True if the first number follows the last; otherwise the last one stays. Default: `true`.

---Each number from `min` to `max` with the same probability, both ends included.
---@class veeksha.synthetic.Length.uniform
---@field max? integer The largest. Default: `12`.
---@field min? integer The smallest. Default: `6`.
---@field type "uniform"

---Always the same.
---@class veeksha.synthetic.Length.fixed
---@field type "fixed"
---@field value? integer The number. Default: `8`.

---Duration, sessions and threads of a run.
---@class veeksha.Runtime
---@field benchmark_timeout? number Seconds after which measuring ends; 0 or less for no limit. A trace that does not wrap has no limit, unless this is set. Requests dispatched earlier count. Requests continue to be sent, without counting, so that the load holds until the others are answered or the grace period is over. Default: `300.0`.
---@field client_cores? integer[] Cores that client threads are pinned to, in turn; empty leaves the choice to the system. Default: `[]`.
---@field dispatcher_cores? integer[] Cores that dispatcher threads are pinned to, in turn; empty leaves the choice to the system. Default: `[]`.
---@field max_sessions? integer Maximum number of sessions to start; -1 for no limit. A trace that does not wrap is replayed to its end, unless this is set. Default: `25`.
---@field num_client_threads? integer|nil Threads that send requests and read answers, each with a separate connection pool. Each client has as many. Null chooses by load: one per 128 concurrent sessions, or for open-loop traffic half the cores up to four; never more than the number of cores.
---@field num_completion_threads? integer Threads that pass results to the scheduler and the evaluators. Default: `2`.
---@field num_dispatcher_threads? integer Threads that dispatch requests. One suffices for more than 100,000 requests per second. Default: `1`.
---@field num_plugin_threads? integer|nil Threads that run plugins. Null chooses half the cores, at least one and at most eight.
---@field plugin_limits? veeksha.PluginLimits Resource limits of plugins.
---@field post_timeout_grace_seconds? number Seconds that requests dispatched before the timeout may take after it: -1 waits for all of them, 0 cancels them immediately. Default: `-1.0`.
---@field pregenerate_sessions? boolean True to make all sessions before the clock starts. Needs a positive `max_sessions`. Default: `false`.
---@field realtime_priority? integer|nil Real-time priority (`SCHED_FIFO`, 1 to 99) of the threads that dispatch, send and read; 0 leaves the priority unchanged. Needs permission (`veeksha-host doctor` checks it). Null uses 10 if it is permitted and the target is not the built-in simulator, whose threads need the same cores; otherwise the normal priority.
---@field spin_microseconds? number Microseconds before each arrival in which the dispatcher busy-waits: it is then about 5 us late rather than 40, and keeps a core busy for that time. 0 always sleeps. Default: `0.0`.

---Resource limits of plugins; exceeding one ends the run with an error that names the plugin.
---@class veeksha.PluginLimits
---@field agents_per_instance? integer Maximum live agents in one instance. When one of them traps, the others are rebuilt. Default: `128`.
---@field call_budget? "time"|"fuel" The measure by which a call of a component is stopped: `time`, or `fuel`, which stops it at the same instruction on every machine and costs about as much. Default: `"time"`.
---@field call_deadline_seconds? number Maximum seconds per call into a plugin. Default: `10.0`.
---@field call_fuel? integer Maximum fuel of one call, about one unit per instruction. With `call_budget: fuel`; the deadline is then ten times as long. Default: `10000000000`.
---@field compile_deadline_seconds? number Maximum seconds for the compilation of a component, which happens once: the result is cached. Default: `300.0`.
---@field core_instances? integer Maximum core instances, and maximum tables, of an instance of a component. Default: `1000`.
---@field handles? integer Maximum handles (open files, streams) of an instance. Default: `1024`.
---@field log_kib_per_call? integer Maximum KiB that one call may log. Default: `256`.
---@field log_lines_per_call? integer Maximum lines that one call may log; further ones are counted. Default: `256`.
---@field log_lines_per_run? integer Maximum lines that a plugin may log in one run. Default: `10000`.
---@field log_mib_per_run? integer Maximum MiB that a plugin may log in one run. Default: `8`.
---@field memory_mib? integer Maximum memory per instance, in MiB. Default: `256`.
---@field output_mib? integer Maximum MiB that one call of a component may pass to the host. Default: `32`.
---@field table_elements? integer Maximum elements of all tables of an instance. Default: `1048576`.

---Metrics, checks and objectives of a run.
---@alias veeksha.Evaluator veeksha.Evaluator.performance|veeksha.Evaluator.wasm|veeksha.Evaluator.lua

---Functions of this Lua scenario.
---@class veeksha.Evaluator.lua
---@field check? fun(results: veeksha.Results): veeksha.Verdict[] Checks the run's results: returns a list of verdicts, each of which can fail the run.
---@field good? fun(request: veeksha.Completion): boolean Returns true if a finished request was good: part of goodput.
---@field metrics? table<string, veeksha.LuaMetric> Metrics by name.
---@field name? string|nil Its name in messages and results; null takes its position in the list.
---@field type "lua"

---A metric of a Lua scenario.
---@class veeksha.LuaMetric
---@field better? "higher"|"less"|"neither" The direction of improvement. Default: `"neither"`.
---@field finish? fun(): veeksha.Samples Returns the samples that are only known at the end.
---@field observe fun(request: veeksha.Completion): veeksha.Samples Receives every finished request, in order of completion, and returns its samples: nil, a number, a list of numbers, or `{ value =, weight = }`.
---@field summary? string A one-line definition. Default: `""`.
---@field unit? string The unit of its values: `s` for seconds, `1` for a number or a ratio. Default: `"1"`.

---A WebAssembly component.
---@class veeksha.Evaluator.wasm
---@field config? table<string, any> Its configuration, checked against the component's schema.
---@field files? table<string, string> Files that it may read, and media that its messages may name: a map from the name to the path.
---@field grants? string[] Capabilities that it may use: `blob:read data/*.jsonl` (files below the scenario's folder) and `env:NAME`. They take effect for the component that `veeksha.lock` pins.
---@field instances? "per-worker"|"pooled"|"per-call"|nil The number of its instances. Null: as its manifest states, otherwise `per-worker`.
---@field limits? veeksha.Evaluator.wasm.limits Its limits, where they differ from `runtime.plugin_limits`.
---@field on_trap? "abort"|"restart"|"disable"|nil The consequence of a trap or an exceeded limit. Null: as its manifest states, otherwise `abort`.
---@field plugin string The component's file, relative to the scenario's folder.
---@field type "wasm"

---Its limits, where they differ from `runtime.plugin_limits`.
---@class veeksha.Evaluator.wasm.limits
---@field agents_per_instance? integer Maximum live agents in one instance. When one of them traps, the others are rebuilt.
---@field call_budget? "time"|"fuel" The measure by which a call of a component is stopped: `time`, or `fuel`, which stops it at the same instruction on every machine and costs about as much.
---@field call_deadline_seconds? number Maximum seconds per call into a plugin.
---@field call_fuel? integer Maximum fuel of one call, about one unit per instruction. With `call_budget: fuel`; the deadline is then ten times as long.
---@field compile_deadline_seconds? number Maximum seconds for the compilation of a component, which happens once: the result is cached.
---@field core_instances? integer Maximum core instances, and maximum tables, of an instance of a component.
---@field handles? integer Maximum handles (open files, streams) of an instance.
---@field log_kib_per_call? integer Maximum KiB that one call may log.
---@field log_lines_per_call? integer Maximum lines that one call may log; further ones are counted.
---@field log_lines_per_run? integer Maximum lines that a plugin may log in one run.
---@field log_mib_per_run? integer Maximum MiB that a plugin may log in one run.
---@field memory_mib? integer Maximum memory per instance, in MiB.
---@field output_mib? integer Maximum MiB that one call of a component may pass to the host.
---@field table_elements? integer Maximum elements of all tables of an instance.

---The built-in evaluator of latency and throughput.
---@class veeksha.Evaluator.performance
---@field fluidity? veeksha.FluidityDeadlines The deadlines of the fluidity index.
---@field goodput? string[] Conditions of a good request, such as `ttfc <= 500ms`: goodput is the share of all intended requests that meet all of them. By default a good request is one that meets the bounds of those `slos` that apply to requests. Default: `[]`.
---@field group_by? string[]|nil Labels by whose values results are grouped: `["tier"]` gives each metric for each tier. Null: every label with 2 to 12 values, at most four labels. Of a label with more values the most frequent ones are shown, and the others together.
---@field slice_seconds? number|nil Length of a time slice in seconds: metrics of each slice are written to `metrics/time_slices.json` and `.csv`. For a run of more than 2,000 slices the length is doubled until there are fewer. Null: the shortest of 0.125, 0.25, 0.5, 1, 2, ... with which the run has at most 60 slices.
---@field slos? (string|veeksha.SloMap)[] Objectives: a run that misses one ends with exit code 3. There are none by default (Veeksha always checks P99 ttfc <= 0.5 s and P90 tbc <= 0.05 s). An objective is a text such as `p99(ttfc) < 500ms`, `p95(tpot{tier="gold"}, window = 10s) <= 30ms`, `error_rate < 1%` or `goodput > 0.95`, or a map. Default: `[]`.
---@field stream_metrics? boolean True to show interim metrics during the run. Default: `true`.
---@field stream_metrics_interval? number Seconds between interim metrics. Default: `5.0`.
---@field target_channels? "text"[] The kinds of content that are measured. Only text is supported. Default: `["text"]`.
---@field text_channel? veeksha.TextChannel Measurement of text.
---@field type? "performance"

---Measurement of text.
---@class veeksha.TextChannel
---@field decode_window_config? veeksha.DecodeWindowConfig|nil Selection of the windows.
---@field decode_window_enabled? boolean True to measure gaps also in windows in which enough requests decode concurrently (`metrics/decode_window_metrics.json`). Default: `false`.

---Windows of the run in which gaps are measured separately.
---@class veeksha.DecodeWindowConfig
---@field anchor_to_client_pickup? boolean True if times count from the pick-up by a client thread; else from the dispatch. Default: `true`.
---@field min_active_requests? integer|"max_observed" Minimum number of decoding requests concurrently in such a window: a number, or `max_observed`. Default: `1`.
---@field require_streaming? boolean True to exclude answers that arrived in one piece. Default: `true`.
---@field selection_strategy? "longest"|"first"|"all" The windows that count. Default: `"longest"`.

---A service-level objective as a map.
---@alias veeksha.SloMap veeksha.SloMap.constant|veeksha.SloMap.expression

---An objective as text, with a name.
---@class veeksha.SloMap.expression
---@field name? string|nil Its name in results; null takes the text.
---@field objective string The objective: `p99(ttfc) < 500ms`.
---@field type "expression"

---A percentile of a metric must be at most a value (at least, for a metric where higher is better).
---@class veeksha.SloMap.constant
---@field metric veeksha.SloMetric The metric.
---@field name? string|nil Its name in results; null derives one from metric and percentile.
---@field percentile? number The percentile as a fraction: 0.99 is P99. Default: `0.99`.
---@field type? "constant"
---@field value number The worst acceptable value in the metric's unit: seconds, or tokens per second.

---A metric that an objective can bound.
---@alias veeksha.SloMetric "ttfc"|"ttfc_from_intended"|"tbc"|"tpot"|"end_to_end_latency"|"e2e_from_intended"|"normalized_end_to_end_latency"|"output_throughput"|"session_duration"|"e2e"

---The deadlines of the fluidity index: the time that a reader waits for the first token, and for
---each further one.
---@class veeksha.FluidityDeadlines
---@field decode_deadline? number Seconds until each further token is due. Default: `0.05`.
---@field prefill_deadline? number Seconds until the first token is due. Default: `0.1`.

---A running server.
---@class veeksha.Endpoint
---@field api_base string The server's address, in place of `client.api_base`.
---@field api_key? string|nil The key, in place of `client.api_key`.
---@field model? string|nil The model, in place of `client.model`.

---A client that requests choose by its name. Missing keys default to those of `client`; with
---`api_base` or `targets`, except `model`, `api_key` and headers that hold secrets, and with
---another `type`, except the keys whose default depends on it.
---@class veeksha.ClientOverrides
---@field additional_sampling_params? table<string, any>|string Members merged into the body of every request (`{"temperature": 0}`); also accepted as JSON text.
---@field address_append_value? string The path appended to `api_base` for a request.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulator. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; if that is unset too, no key is sent.
---@field balance? "round_robin"|"least_in_flight" Assignment of sessions to several servers. All requests of a session go to the same one.
---@field codec? veeksha.ComponentUse|nil For `type: wasm`: the component that implements the API.
---@field connect_timeout? number|nil Maximum time in seconds to open a connection, including the TLS handshake. Null: limited only by the request timeout. The default allows for four lost SYN packets, which Linux sends again after 1, 3, 7 and 15 seconds.
---@field connections? "pooled"|"per_session"|"never" Reuse of a connection after its request is complete.
---@field headers? table<string, string> Additional headers of every request. A value may contain `{{run.id}}`, `{{session.id}}`, `{{request.id}}`, `{{session.label.NAME}}` and `{{request.label.NAME}}`; a request without the label is sent without the header.
---@field http_version? "http1"|"http2" The HTTP version. With `http2`, requests share connections; a plain `http` server must support it without negotiation.
---@field ignore_eos? boolean|nil The value sent as `ignore_eos`: true makes a server that supports it generate to the full length; null sends none.
---@field max_tokens_param? string|nil The request member that limits the answer's length; null sends none.
---@field min_tokens_param? string|nil The request member that sets the answer's minimum length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The text appended in that case; `{tokens}` is replaced by the number.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the model that it serves.
---@field prefix_cache? veeksha.PrefixCacheKeys The servers' prefix caches, for the accounting of cached tokens. The built-in simulator's is known.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). Proxy settings of the environment are ignored.
---@field reasoning_param? string|nil The member of an assistant's message for its reasoning, in chat completions: `reasoning_content` (DeepSeek, SGLang, llama.cpp), `reasoning` (vLLM, OpenRouter); null sends none.
---@field request_timeout? number Maximum duration of a request in seconds, from the connection to the last chunk.
---@field session_headers? "dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex"|("dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex")[] The headers by which a router or a server recognizes a session, with a session id that is unique across runs: one entry, or a list. `headers` override them.
---@field source_addresses? string[]|nil Local addresses that connections start from, in turn. Each allows about 28,000 concurrent connections to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. Keys missing in an item default to those of the client.
---@field template? veeksha.Template|nil For `type: template`: the API description.
---@field tls? veeksha.Tls Trust settings for an `https` server.
---@field traceparent? boolean True to send a `traceparent` (W3C Trace Context) with each request, and to record its trace id.
---@field type? "openai_chat_completions"|"openai_completions"|"openai_responses"|"anthropic_messages"|"tgi_generate_stream"|"template"|"wasm" The server API.
---@field use_min_tokens_prompt_fallback? boolean True to ask for the answer's length in the prompt, for servers that support neither `ignore_eos` nor a minimum.

---The server and the client's connection to it.
---@alias veeksha.Client veeksha.Client.openai_chat_completions|veeksha.Client.openai_completions|veeksha.Client.openai_responses|veeksha.Client.anthropic_messages|veeksha.Client.tgi_generate_stream|veeksha.Client.template|veeksha.Client.wasm

---An API implemented by a component.
---@class veeksha.Client.wasm
---@field additional_sampling_params? table<string, any>|string Members merged into the body of every request (`{"temperature": 0}`); also accepted as JSON text.
---@field address_append_value? string The path appended to `api_base` for a request. Default: `""`.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulator. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; if that is unset too, no key is sent.
---@field apply_chat_template? boolean True to apply the model's chat template to count the tokens that it adds to a prompt; with the completions API, the templated prompt is also sent in place of the plain texts. Default: `false`.
---@field balance? "round_robin"|"least_in_flight" Assignment of sessions to several servers. All requests of a session go to the same one. Default: `"round_robin"`.
---@field chat_template? string|nil The file of the chat template. Null: the one next to the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
---@field codec veeksha.ComponentUse|nil For `type: wasm`: the component that implements the API.
---@field connect_timeout? number|nil Maximum time in seconds to open a connection, including the TLS handshake. Null: limited only by the request timeout. The default allows for four lost SYN packets, which Linux sends again after 1, 3, 7 and 15 seconds. Default: `30.0`.
---@field connections? "pooled"|"per_session"|"never" Reuse of a connection after its request is complete. Default: `"pooled"`.
---@field headers? table<string, string> Additional headers of every request. A value may contain `{{run.id}}`, `{{session.id}}`, `{{request.id}}`, `{{session.label.NAME}}` and `{{request.label.NAME}}`; a request without the label is sent without the header.
---@field http_version? "http1"|"http2" The HTTP version. With `http2`, requests share connections; a plain `http` server must support it without negotiation. Default: `"http1"`.
---@field ignore_eos? boolean|nil The value sent as `ignore_eos`: true makes a server that supports it generate to the full length; null sends none. Default: `true`.
---@field max_tokens_param? string|nil The request member that limits the answer's length; null sends none.
---@field min_tokens_param? string|nil The request member that sets the answer's minimum length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The text appended in that case; `{tokens}` is replaced by the number. Default: `"\n\nGenerate at least {tokens} tokens."`.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the model that it serves.
---@field prefix_cache? veeksha.PrefixCacheKeys The servers' prefix caches, for the accounting of cached tokens. The built-in simulator's is known.
---@field prompt_length? "content"|"wrapped" The text whose length a workload specifies. Default: `"content"`.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). Proxy settings of the environment are ignored.
---@field reasoning_param? string|nil The member of an assistant's message for its reasoning, in chat completions: `reasoning_content` (DeepSeek, SGLang, llama.cpp), `reasoning` (vLLM, OpenRouter); null sends none. Default: `"reasoning_content"`.
---@field request_timeout? number Maximum duration of a request in seconds, from the connection to the last chunk. Default: `300.0`.
---@field session_headers? "dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex"|("dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex")[] The headers by which a router or a server recognizes a session, with a session id that is unique across runs: one entry, or a list. `headers` override them. Default: `[]`.
---@field source_addresses? string[]|nil Local addresses that connections start from, in turn. Each allows about 28,000 concurrent connections to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. Keys missing in an item default to those of the client. Default: `[]`.
---@field tls? veeksha.Tls Trust settings for an `https` server.
---@field tokenizer? string|nil The tokenizer for prompts: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or `embedded` for the small one inside the program. Null takes the model's tokenizer if it is found, else the embedded one.
---@field traceparent? boolean True to send a `traceparent` (W3C Trace Context) with each request, and to record its trace id. Default: `false`.
---@field type "wasm"
---@field use_min_tokens_prompt_fallback? boolean True to ask for the answer's length in the prompt, for servers that support neither `ignore_eos` nor a minimum. Default: `false`.

---A component with its configuration and the files that it may read. The keys are the same wherever
---a scenario uses a component.
---@class veeksha.ComponentUse
---@field config? table<string, any> Its configuration, checked against the component's schema.
---@field files? table<string, string> Files that it may read, and media that its messages may name: a map from the name to the path.
---@field grants? string[] Capabilities that it may use: `blob:read data/*.jsonl` (files below the scenario's folder) and `env:NAME`. They take effect for the component that `veeksha.lock` pins.
---@field instances? "per-worker"|"pooled"|"per-call"|nil The number of its instances. Null: as its manifest states, otherwise `per-worker`.
---@field limits? veeksha.ComponentUse.limits Its limits, where they differ from `runtime.plugin_limits`.
---@field on_trap? "abort"|"restart"|"disable"|nil The consequence of a trap or an exceeded limit. Null: as its manifest states, otherwise `abort`.
---@field plugin string The component's file, relative to the scenario's folder.

---Its limits, where they differ from `runtime.plugin_limits`.
---@class veeksha.ComponentUse.limits
---@field agents_per_instance? integer Maximum live agents in one instance. When one of them traps, the others are rebuilt.
---@field call_budget? "time"|"fuel" The measure by which a call of a component is stopped: `time`, or `fuel`, which stops it at the same instruction on every machine and costs about as much.
---@field call_deadline_seconds? number Maximum seconds per call into a plugin.
---@field call_fuel? integer Maximum fuel of one call, about one unit per instruction. With `call_budget: fuel`; the deadline is then ten times as long.
---@field compile_deadline_seconds? number Maximum seconds for the compilation of a component, which happens once: the result is cached.
---@field core_instances? integer Maximum core instances, and maximum tables, of an instance of a component.
---@field handles? integer Maximum handles (open files, streams) of an instance.
---@field log_kib_per_call? integer Maximum KiB that one call may log.
---@field log_lines_per_call? integer Maximum lines that one call may log; further ones are counted.
---@field log_lines_per_run? integer Maximum lines that a plugin may log in one run.
---@field log_mib_per_run? integer Maximum MiB that a plugin may log in one run.
---@field memory_mib? integer Maximum memory per instance, in MiB.
---@field output_mib? integer Maximum MiB that one call of a component may pass to the host.
---@field table_elements? integer Maximum elements of all tables of an instance.

---An API described by the scenario: the request body, and the location of each value in an answer's
---events.
---@class veeksha.Client.template
---@field additional_sampling_params? table<string, any>|string Members merged into the body of every request (`{"temperature": 0}`); also accepted as JSON text.
---@field address_append_value? string The path appended to `api_base` for a request. Default: `""`.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulator. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; if that is unset too, no key is sent.
---@field apply_chat_template? boolean True to apply the model's chat template to count the tokens that it adds to a prompt; with the completions API, the templated prompt is also sent in place of the plain texts. Default: `false`.
---@field balance? "round_robin"|"least_in_flight" Assignment of sessions to several servers. All requests of a session go to the same one. Default: `"round_robin"`.
---@field chat_template? string|nil The file of the chat template. Null: the one next to the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
---@field connect_timeout? number|nil Maximum time in seconds to open a connection, including the TLS handshake. Null: limited only by the request timeout. The default allows for four lost SYN packets, which Linux sends again after 1, 3, 7 and 15 seconds. Default: `30.0`.
---@field connections? "pooled"|"per_session"|"never" Reuse of a connection after its request is complete. Default: `"pooled"`.
---@field headers? table<string, string> Additional headers of every request. A value may contain `{{run.id}}`, `{{session.id}}`, `{{request.id}}`, `{{session.label.NAME}}` and `{{request.label.NAME}}`; a request without the label is sent without the header.
---@field http_version? "http1"|"http2" The HTTP version. With `http2`, requests share connections; a plain `http` server must support it without negotiation. Default: `"http1"`.
---@field ignore_eos? boolean|nil The value sent as `ignore_eos`: true makes a server that supports it generate to the full length; null sends none. Default: `true`.
---@field max_tokens_param? string|nil The request member that limits the answer's length; null sends none.
---@field min_tokens_param? string|nil The request member that sets the answer's minimum length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The text appended in that case; `{tokens}` is replaced by the number. Default: `"\n\nGenerate at least {tokens} tokens."`.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the model that it serves.
---@field prefix_cache? veeksha.PrefixCacheKeys The servers' prefix caches, for the accounting of cached tokens. The built-in simulator's is known.
---@field prompt_length? "content"|"wrapped" The text whose length a workload specifies. Default: `"content"`.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). Proxy settings of the environment are ignored.
---@field reasoning_param? string|nil The member of an assistant's message for its reasoning, in chat completions: `reasoning_content` (DeepSeek, SGLang, llama.cpp), `reasoning` (vLLM, OpenRouter); null sends none. Default: `"reasoning_content"`.
---@field request_timeout? number Maximum duration of a request in seconds, from the connection to the last chunk. Default: `300.0`.
---@field session_headers? "dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex"|("dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex")[] The headers by which a router or a server recognizes a session, with a session id that is unique across runs: one entry, or a list. `headers` override them. Default: `[]`.
---@field source_addresses? string[]|nil Local addresses that connections start from, in turn. Each allows about 28,000 concurrent connections to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. Keys missing in an item default to those of the client. Default: `[]`.
---@field template veeksha.Template|nil For `type: template`: the API description.
---@field tls? veeksha.Tls Trust settings for an `https` server.
---@field tokenizer? string|nil The tokenizer for prompts: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or `embedded` for the small one inside the program. Null takes the model's tokenizer if it is found, else the embedded one.
---@field traceparent? boolean True to send a `traceparent` (W3C Trace Context) with each request, and to record its trace id. Default: `false`.
---@field type "template"
---@field use_min_tokens_prompt_fallback? boolean True to ask for the answer's length in the prompt, for servers that support neither `ignore_eos` nor a minimum. Default: `false`.

---An API description: the request body, and the location of each value in an answer's events.
---@class veeksha.Template
---@field answer veeksha.TemplateAnswer Locations of values in an event.
---@field framing? "event_stream"|"lines"|"whole" Framing of an answer's events. Default: `"event_stream"`.
---@field request table<string, any> The request's body. A text `{{prompt}}`, `{{messages}}`, `{{model}}`, `{{max_tokens}}`, `{{tools}}` and others is replaced by the request's value; a member whose text has no value is omitted.

---Locations of values in an answer's events: JSON pointers, in which `*` is every element of a
---list.
---@class veeksha.TemplateAnswer
---@field cached_tokens? string|nil Prompt tokens found in the prefix cache.
---@field done? string|nil The data of the event that ends an answer, for example `[DONE]`.
---@field error? string|nil The message of an error inside an answer.
---@field finish_reason? string|nil The reason why generation ended. An answer without it counts as truncated.
---@field output_tokens? string|nil The server's count of generated tokens.
---@field prompt_tokens? string|nil The server's count of prompt tokens.
---@field reasoning? string|nil Reasoning text.
---@field reasoning_tokens? string|nil Generated tokens that were reasoning.
---@field text? string|nil The generated text, for example `/token/text`.

---`generate_stream` of Text Generation Inference.
---@class veeksha.Client.tgi_generate_stream
---@field additional_sampling_params? table<string, any>|string Members merged into the body of every request (`{"temperature": 0}`); also accepted as JSON text.
---@field address_append_value? string The path appended to `api_base` for a request. Default: `"generate_stream"`.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulator. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; if that is unset too, no key is sent.
---@field apply_chat_template? boolean True to apply the model's chat template to count the tokens that it adds to a prompt; with the completions API, the templated prompt is also sent in place of the plain texts. Default: `false`.
---@field balance? "round_robin"|"least_in_flight" Assignment of sessions to several servers. All requests of a session go to the same one. Default: `"round_robin"`.
---@field chat_template? string|nil The file of the chat template. Null: the one next to the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
---@field connect_timeout? number|nil Maximum time in seconds to open a connection, including the TLS handshake. Null: limited only by the request timeout. The default allows for four lost SYN packets, which Linux sends again after 1, 3, 7 and 15 seconds. Default: `30.0`.
---@field connections? "pooled"|"per_session"|"never" Reuse of a connection after its request is complete. Default: `"pooled"`.
---@field headers? table<string, string> Additional headers of every request. A value may contain `{{run.id}}`, `{{session.id}}`, `{{request.id}}`, `{{session.label.NAME}}` and `{{request.label.NAME}}`; a request without the label is sent without the header.
---@field http_version? "http1"|"http2" The HTTP version. With `http2`, requests share connections; a plain `http` server must support it without negotiation. Default: `"http1"`.
---@field ignore_eos? boolean|nil The value sent as `ignore_eos`: true makes a server that supports it generate to the full length; null sends none.
---@field max_tokens_param? string|nil The request member that limits the answer's length; null sends none. Default: `"max_new_tokens"`.
---@field min_tokens_param? string|nil The request member that sets the answer's minimum length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The text appended in that case; `{tokens}` is replaced by the number. Default: `"\n\nGenerate at least {tokens} tokens."`.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the model that it serves.
---@field prefix_cache? veeksha.PrefixCacheKeys The servers' prefix caches, for the accounting of cached tokens. The built-in simulator's is known.
---@field prompt_length? "content"|"wrapped" The text whose length a workload specifies. Default: `"content"`.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). Proxy settings of the environment are ignored.
---@field reasoning_param? string|nil The member of an assistant's message for its reasoning, in chat completions: `reasoning_content` (DeepSeek, SGLang, llama.cpp), `reasoning` (vLLM, OpenRouter); null sends none. Default: `"reasoning_content"`.
---@field request_timeout? number Maximum duration of a request in seconds, from the connection to the last chunk. Default: `300.0`.
---@field session_headers? "dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex"|("dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex")[] The headers by which a router or a server recognizes a session, with a session id that is unique across runs: one entry, or a list. `headers` override them. Default: `[]`.
---@field source_addresses? string[]|nil Local addresses that connections start from, in turn. Each allows about 28,000 concurrent connections to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. Keys missing in an item default to those of the client. Default: `[]`.
---@field tls? veeksha.Tls Trust settings for an `https` server.
---@field tokenizer? string|nil The tokenizer for prompts: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or `embedded` for the small one inside the program. Null takes the model's tokenizer if it is found, else the embedded one.
---@field traceparent? boolean True to send a `traceparent` (W3C Trace Context) with each request, and to record its trace id. Default: `false`.
---@field type "tgi_generate_stream"
---@field use_min_tokens_prompt_fallback? boolean True to ask for the answer's length in the prompt, for servers that support neither `ignore_eos` nor a minimum. Default: `false`.

---Anthropic's messages, streamed.
---@class veeksha.Client.anthropic_messages
---@field additional_sampling_params? table<string, any>|string Members merged into the body of every request (`{"temperature": 0}`); also accepted as JSON text.
---@field address_append_value? string The path appended to `api_base` for a request. Default: `"messages"`.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulator. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; if that is unset too, no key is sent.
---@field apply_chat_template? boolean True to apply the model's chat template to count the tokens that it adds to a prompt; with the completions API, the templated prompt is also sent in place of the plain texts. Default: `false`.
---@field balance? "round_robin"|"least_in_flight" Assignment of sessions to several servers. All requests of a session go to the same one. Default: `"round_robin"`.
---@field chat_template? string|nil The file of the chat template. Null: the one next to the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
---@field connect_timeout? number|nil Maximum time in seconds to open a connection, including the TLS handshake. Null: limited only by the request timeout. The default allows for four lost SYN packets, which Linux sends again after 1, 3, 7 and 15 seconds. Default: `30.0`.
---@field connections? "pooled"|"per_session"|"never" Reuse of a connection after its request is complete. Default: `"pooled"`.
---@field headers? table<string, string> Additional headers of every request. A value may contain `{{run.id}}`, `{{session.id}}`, `{{request.id}}`, `{{session.label.NAME}}` and `{{request.label.NAME}}`; a request without the label is sent without the header.
---@field http_version? "http1"|"http2" The HTTP version. With `http2`, requests share connections; a plain `http` server must support it without negotiation. Default: `"http1"`.
---@field ignore_eos? boolean|nil The value sent as `ignore_eos`: true makes a server that supports it generate to the full length; null sends none.
---@field max_tokens_param? string|nil The request member that limits the answer's length; null sends none. Default: `"max_tokens"`.
---@field min_tokens_param? string|nil The request member that sets the answer's minimum length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The text appended in that case; `{tokens}` is replaced by the number. Default: `"\n\nGenerate at least {tokens} tokens."`.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the model that it serves.
---@field prefix_cache? veeksha.PrefixCacheKeys The servers' prefix caches, for the accounting of cached tokens. The built-in simulator's is known.
---@field prompt_length? "content"|"wrapped" The text whose length a workload specifies. Default: `"content"`.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). Proxy settings of the environment are ignored.
---@field reasoning_param? string|nil The member of an assistant's message for its reasoning, in chat completions: `reasoning_content` (DeepSeek, SGLang, llama.cpp), `reasoning` (vLLM, OpenRouter); null sends none. Default: `"reasoning_content"`.
---@field request_timeout? number Maximum duration of a request in seconds, from the connection to the last chunk. Default: `300.0`.
---@field session_headers? "dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex"|("dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex")[] The headers by which a router or a server recognizes a session, with a session id that is unique across runs: one entry, or a list. `headers` override them. Default: `[]`.
---@field source_addresses? string[]|nil Local addresses that connections start from, in turn. Each allows about 28,000 concurrent connections to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. Keys missing in an item default to those of the client. Default: `[]`.
---@field tls? veeksha.Tls Trust settings for an `https` server.
---@field tokenizer? string|nil The tokenizer for prompts: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or `embedded` for the small one inside the program. Null takes the model's tokenizer if it is found, else the embedded one.
---@field traceparent? boolean True to send a `traceparent` (W3C Trace Context) with each request, and to record its trace id. Default: `false`.
---@field type "anthropic_messages"
---@field use_min_tokens_prompt_fallback? boolean True to ask for the answer's length in the prompt, for servers that support neither `ignore_eos` nor a minimum. Default: `false`.

---OpenAI's responses, streamed.
---@class veeksha.Client.openai_responses
---@field additional_sampling_params? table<string, any>|string Members merged into the body of every request (`{"temperature": 0}`); also accepted as JSON text.
---@field address_append_value? string The path appended to `api_base` for a request. Default: `"responses"`.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulator. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; if that is unset too, no key is sent.
---@field apply_chat_template? boolean True to apply the model's chat template to count the tokens that it adds to a prompt; with the completions API, the templated prompt is also sent in place of the plain texts. Default: `false`.
---@field balance? "round_robin"|"least_in_flight" Assignment of sessions to several servers. All requests of a session go to the same one. Default: `"round_robin"`.
---@field chat_template? string|nil The file of the chat template. Null: the one next to the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
---@field connect_timeout? number|nil Maximum time in seconds to open a connection, including the TLS handshake. Null: limited only by the request timeout. The default allows for four lost SYN packets, which Linux sends again after 1, 3, 7 and 15 seconds. Default: `30.0`.
---@field connections? "pooled"|"per_session"|"never" Reuse of a connection after its request is complete. Default: `"pooled"`.
---@field headers? table<string, string> Additional headers of every request. A value may contain `{{run.id}}`, `{{session.id}}`, `{{request.id}}`, `{{session.label.NAME}}` and `{{request.label.NAME}}`; a request without the label is sent without the header.
---@field http_version? "http1"|"http2" The HTTP version. With `http2`, requests share connections; a plain `http` server must support it without negotiation. Default: `"http1"`.
---@field ignore_eos? boolean|nil The value sent as `ignore_eos`: true makes a server that supports it generate to the full length; null sends none. Default: `true`.
---@field max_tokens_param? string|nil The request member that limits the answer's length; null sends none. Default: `"max_output_tokens"`.
---@field min_tokens_param? string|nil The request member that sets the answer's minimum length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The text appended in that case; `{tokens}` is replaced by the number. Default: `"\n\nGenerate at least {tokens} tokens."`.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the model that it serves.
---@field prefix_cache? veeksha.PrefixCacheKeys The servers' prefix caches, for the accounting of cached tokens. The built-in simulator's is known.
---@field prompt_length? "content"|"wrapped" The text whose length a workload specifies. Default: `"content"`.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). Proxy settings of the environment are ignored.
---@field reasoning_param? string|nil The member of an assistant's message for its reasoning, in chat completions: `reasoning_content` (DeepSeek, SGLang, llama.cpp), `reasoning` (vLLM, OpenRouter); null sends none. Default: `"reasoning_content"`.
---@field request_timeout? number Maximum duration of a request in seconds, from the connection to the last chunk. Default: `300.0`.
---@field session_headers? "dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex"|("dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex")[] The headers by which a router or a server recognizes a session, with a session id that is unique across runs: one entry, or a list. `headers` override them. Default: `[]`.
---@field source_addresses? string[]|nil Local addresses that connections start from, in turn. Each allows about 28,000 concurrent connections to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. Keys missing in an item default to those of the client. Default: `[]`.
---@field tls? veeksha.Tls Trust settings for an `https` server.
---@field tokenizer? string|nil The tokenizer for prompts: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or `embedded` for the small one inside the program. Null takes the model's tokenizer if it is found, else the embedded one.
---@field traceparent? boolean True to send a `traceparent` (W3C Trace Context) with each request, and to record its trace id. Default: `false`.
---@field type "openai_responses"
---@field use_min_tokens_prompt_fallback? boolean True to ask for the answer's length in the prompt, for servers that support neither `ignore_eos` nor a minimum. Default: `false`.

---OpenAI's completions, streamed.
---@class veeksha.Client.openai_completions
---@field additional_sampling_params? table<string, any>|string Members merged into the body of every request (`{"temperature": 0}`); also accepted as JSON text.
---@field address_append_value? string The path appended to `api_base` for a request. Default: `"completions"`.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulator. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; if that is unset too, no key is sent.
---@field apply_chat_template? boolean True to apply the model's chat template to count the tokens that it adds to a prompt; with the completions API, the templated prompt is also sent in place of the plain texts. Default: `false`.
---@field balance? "round_robin"|"least_in_flight" Assignment of sessions to several servers. All requests of a session go to the same one. Default: `"round_robin"`.
---@field chat_template? string|nil The file of the chat template. Null: the one next to the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
---@field connect_timeout? number|nil Maximum time in seconds to open a connection, including the TLS handshake. Null: limited only by the request timeout. The default allows for four lost SYN packets, which Linux sends again after 1, 3, 7 and 15 seconds. Default: `30.0`.
---@field connections? "pooled"|"per_session"|"never" Reuse of a connection after its request is complete. Default: `"pooled"`.
---@field headers? table<string, string> Additional headers of every request. A value may contain `{{run.id}}`, `{{session.id}}`, `{{request.id}}`, `{{session.label.NAME}}` and `{{request.label.NAME}}`; a request without the label is sent without the header.
---@field http_version? "http1"|"http2" The HTTP version. With `http2`, requests share connections; a plain `http` server must support it without negotiation. Default: `"http1"`.
---@field ignore_eos? boolean|nil The value sent as `ignore_eos`: true makes a server that supports it generate to the full length; null sends none. Default: `true`.
---@field max_tokens_param? string|nil The request member that limits the answer's length; null sends none. Default: `"max_tokens"`.
---@field min_tokens_param? string|nil The request member that sets the answer's minimum length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The text appended in that case; `{tokens}` is replaced by the number. Default: `"\n\nGenerate at least {tokens} tokens."`.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the model that it serves.
---@field prefix_cache? veeksha.PrefixCacheKeys The servers' prefix caches, for the accounting of cached tokens. The built-in simulator's is known.
---@field prompt_length? "content"|"wrapped" The text whose length a workload specifies. Default: `"content"`.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). Proxy settings of the environment are ignored.
---@field reasoning_param? string|nil The member of an assistant's message for its reasoning, in chat completions: `reasoning_content` (DeepSeek, SGLang, llama.cpp), `reasoning` (vLLM, OpenRouter); null sends none. Default: `"reasoning_content"`.
---@field request_timeout? number Maximum duration of a request in seconds, from the connection to the last chunk. Default: `300.0`.
---@field session_headers? "dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex"|("dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex")[] The headers by which a router or a server recognizes a session, with a session id that is unique across runs: one entry, or a list. `headers` override them. Default: `[]`.
---@field source_addresses? string[]|nil Local addresses that connections start from, in turn. Each allows about 28,000 concurrent connections to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. Keys missing in an item default to those of the client. Default: `[]`.
---@field tls? veeksha.Tls Trust settings for an `https` server.
---@field tokenizer? string|nil The tokenizer for prompts: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or `embedded` for the small one inside the program. Null takes the model's tokenizer if it is found, else the embedded one.
---@field traceparent? boolean True to send a `traceparent` (W3C Trace Context) with each request, and to record its trace id. Default: `false`.
---@field type "openai_completions"
---@field use_min_tokens_prompt_fallback? boolean True to ask for the answer's length in the prompt, for servers that support neither `ignore_eos` nor a minimum. Default: `false`.

---OpenAI's chat completions, streamed.
---@class veeksha.Client.openai_chat_completions
---@field additional_sampling_params? table<string, any>|string Members merged into the body of every request (`{"temperature": 0}`); also accepted as JSON text.
---@field address_append_value? string The path appended to `api_base` for a request. Default: `"chat/completions"`.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulator. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; if that is unset too, no key is sent.
---@field apply_chat_template? boolean True to apply the model's chat template to count the tokens that it adds to a prompt; with the completions API, the templated prompt is also sent in place of the plain texts. Default: `false`.
---@field balance? "round_robin"|"least_in_flight" Assignment of sessions to several servers. All requests of a session go to the same one. Default: `"round_robin"`.
---@field chat_template? string|nil The file of the chat template. Null: the one next to the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
---@field connect_timeout? number|nil Maximum time in seconds to open a connection, including the TLS handshake. Null: limited only by the request timeout. The default allows for four lost SYN packets, which Linux sends again after 1, 3, 7 and 15 seconds. Default: `30.0`.
---@field connections? "pooled"|"per_session"|"never" Reuse of a connection after its request is complete. Default: `"pooled"`.
---@field headers? table<string, string> Additional headers of every request. A value may contain `{{run.id}}`, `{{session.id}}`, `{{request.id}}`, `{{session.label.NAME}}` and `{{request.label.NAME}}`; a request without the label is sent without the header.
---@field http_version? "http1"|"http2" The HTTP version. With `http2`, requests share connections; a plain `http` server must support it without negotiation. Default: `"http1"`.
---@field ignore_eos? boolean|nil The value sent as `ignore_eos`: true makes a server that supports it generate to the full length; null sends none. Default: `true`.
---@field max_tokens_param? string|nil The request member that limits the answer's length; null sends none. Default: `"max_completion_tokens"`.
---@field min_tokens_param? string|nil The request member that sets the answer's minimum length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The text appended in that case; `{tokens}` is replaced by the number. Default: `"\n\nGenerate at least {tokens} tokens."`.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the model that it serves.
---@field prefix_cache? veeksha.PrefixCacheKeys The servers' prefix caches, for the accounting of cached tokens. The built-in simulator's is known.
---@field prompt_length? "content"|"wrapped" The text whose length a workload specifies. Default: `"content"`.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). Proxy settings of the environment are ignored.
---@field reasoning_param? string|nil The member of an assistant's message for its reasoning, in chat completions: `reasoning_content` (DeepSeek, SGLang, llama.cpp), `reasoning` (vLLM, OpenRouter); null sends none. Default: `"reasoning_content"`.
---@field request_timeout? number Maximum duration of a request in seconds, from the connection to the last chunk. Default: `300.0`.
---@field session_headers? "dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex"|("dynamo"|"llm-d"|"smg"|"claude-code"|"opencode"|"codex")[] The headers by which a router or a server recognizes a session, with a session id that is unique across runs: one entry, or a list. `headers` override them. Default: `[]`.
---@field source_addresses? string[]|nil Local addresses that connections start from, in turn. Each allows about 28,000 concurrent connections to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. Keys missing in an item default to those of the client. Default: `[]`.
---@field tls? veeksha.Tls Trust settings for an `https` server.
---@field tokenizer? string|nil The tokenizer for prompts: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or `embedded` for the small one inside the program. Null takes the model's tokenizer if it is found, else the embedded one.
---@field traceparent? boolean True to send a `traceparent` (W3C Trace Context) with each request, and to record its trace id. Default: `false`.
---@field type? "openai_chat_completions"
---@field use_min_tokens_prompt_fallback? boolean True to ask for the answer's length in the prompt, for servers that support neither `ignore_eos` nor a minimum. Default: `false`.

---One of several servers. Missing keys default to those of `client`.
---@class veeksha.TargetServer
---@field api_base string The server's address up to the version.
---@field api_key? string|nil The key sent to this server.
---@field headers? table<string, string> Additional headers of requests to this server, as those of `client`.
---@field proxy? string|nil The proxy for this server.
---@field tls? veeksha.Tls|nil Trust settings for this server.

---Trust settings for an `https` server.
---@class veeksha.Tls
---@field ca_file? string|nil A PEM file of certificates to trust in addition to the system's.
---@field client_certificate? string|nil A PEM file with the client's certificate, for servers that require one. Needs `client_key`.
---@field client_key? string|nil A PEM file with the certificate's private key.
---@field insecure? boolean Accepts any certificate. For tests only: the API key is unprotected. Default: `false`.

---The properties of a server's prefix cache.
---@class veeksha.PrefixCacheKeys
---@field block_tokens? integer|nil The number of tokens that the cache keeps together: the block size of vLLM (16), the page size of SGLang (1), 128 for OpenAI. Null: unknown, and taken as 1.
---@field keeps_answers? boolean True if the cache also keeps the tokens of answers, as those of vLLM, SGLang and TensorRT-LLM do. Default: `true`.
---@field omits_zero? boolean True if the server leaves out the number of cached tokens where it is 0: answers with a usage and without the number then have 0. Default: `false`.

---Thresholds at which a run is not trusted. Each metric's error, measured or estimated, is compared
---with the metric's P50.
---@class veeksha.Certificate
---@field degraded? number A run is `DEGRADED` if an error exceeds this share of a metric's P50. Default: `0.01`.
---@field invalid? number A run is `INVALID` (exit code 6) if an error exceeds this share of a metric's P50. Default: `0.05`.
---@field self_test? boolean True to measure a reference server with known timings on this machine after the run, at the run's rate; its error becomes the bound printed next to each metric. Same as the flag `--self-test`. Default: `false`.
---@field self_test_seconds? number Duration of the self-test in seconds. Default: `5.0`.
---@field simulator? veeksha.SimulatorThresholds|nil Thresholds for the built-in simulator (`sim://`), which shares this machine's cores with the client. Each applies where it is larger than `degraded` or `invalid`.

---Thresholds for runs against the built-in simulator.
---@class veeksha.SimulatorThresholds
---@field degraded number A run is `DEGRADED` if an error exceeds this share of a metric's P50.
---@field invalid number A run is `INVALID` (exit code 6) if an error exceeds this share of a metric's P50.

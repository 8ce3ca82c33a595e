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

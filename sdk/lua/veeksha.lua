---@meta veeksha
-- Annotations for the Lua language server. Generated from the scenario's JSON schema; do not edit by hand.
-- A scenario begins its table with `---@type veeksha.Scenario`.

---A piece of a message: made by `text`, `synthetic`, `tool_result`, `image`, `audio` or `video`.
---@class veeksha.Piece

---What a message can hold: verbatim text, one piece, or several in a row.
---@alias veeksha.Content string|veeksha.Piece|(string|veeksha.Piece)[]

---Verbatim text.
---@param s string
---@return veeksha.Piece
function text(s) end

---Text of exactly `tokens` tokens. Equal seeds give equal text everywhere; without a seed the text is the session's own,
---or, at the top level of the scenario, one that all sessions share.
---@param tokens integer
---@param seed? string|integer
---@return veeksha.Piece
function synthetic(tokens, seed) end

---What a tool answered: a line that names the tool, then `tokens` tokens of synthetic text.
---@param name string
---@param tokens integer
---@param seed? string|integer
---@return veeksha.Piece
function tool_result(name, tokens, seed) end

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

---Lines for the host's log.
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
---How many tokens a text has. Only within a session.
---@param s string
---@return integer
function tokens.count(s) end

---Random numbers that depend on the run's seed and the session alone.
---@class veeksha.Rng
local Rng = {}
---A number from 0 (included) to 1 (excluded).
---@return number
function Rng:unit() end
---A whole number from `low` to `high`, both included.
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
---One element of a list.
---@generic T
---@param list T[]
---@return T
function Rng:choice(list) end

---Seconds, or text with a unit: `"350ms"`, `"1.5s"`, `"2m"`.
---@alias veeksha.Duration number|string

---@class veeksha.Message
---@field role "system"|"user"|"assistant"|"tool"
---@field content veeksha.Content
---@field tool_call_id? string For the role `tool`: the call that this answers.

---@class veeksha.Output
---@field tokens? integer How many tokens are asked for.
---@field exact? boolean Whether exactly that many are asked for.

---A request. It says something: `user`, `system` or `messages`.
---@class veeksha.Request
---@field node? integer The request's number, for a session that is made as a whole.
---@field system? veeksha.Content
---@field messages? veeksha.Message[]
---@field user? veeksha.Content
---@field history? integer|veeksha.Response The request whose conversation this one continues.
---@field after? integer|veeksha.Response|(integer|veeksha.Response)[] Requests that must be complete before.
---@field wait? veeksha.Duration Think time before it is sent.
---@field output? integer|veeksha.Output
---@field body? table<string, any> Members that are merged into the request's body.
---@field labels? table<string, string|number|boolean> Carried to the request's record.
---@field history_mode? "live"|"recorded"|"fresh" What it sends of the conversation: the real answers, the recorded ones, or nothing.
---@field answer? veeksha.Content|veeksha.Answer The recorded answer, for requests that continue this one with `history_mode = "recorded"`.
---@field at? veeksha.Duration When it was sent then. Traffic that replays arrivals sends it no earlier.
---@field latency? veeksha.Duration How long its answer took then.
---@field prompt_tokens? integer Tokens of its whole prompt then.
---@field output_tokens? integer Tokens of its answer then.

---A recorded answer.
---@class veeksha.Answer
---@field content? veeksha.Content
---@field tool_calls? veeksha.ToolCall[]

---A whole session, made ahead of time.
---@class veeksha.Session
---@field requests veeksha.Request[] Each says what it comes after with `history` and `after`.
---@field labels? table<string, string|number|boolean> Carried to the record of each request.
---@field arrives_at? veeksha.Duration The recorded arrival, for traffic that replays arrivals.

---A row of a trace.
---@class veeksha.TraceRow
---@field number integer Its number in the trace, from 1.
---@field at? number Its recorded arrival, in seconds from the earliest of the trace.
---@field cells table<string, any> What stands in it, by the names of the flavor's columns.

---The rows of one session, in the order of the file.
---@class veeksha.TraceGroup
---@field index integer Its number in the trace, from 0.
---@field key string The value of the grouping column, or the id of the tree's root; else empty.
---@field rows veeksha.TraceRow[]

---What is known of the whole trace.
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
---@field arguments string JSON text, as the server sent it.

---@class veeksha.Usage
---@field prompt integer
---@field completion integer
---@field cached? integer
---@field reasoning? integer

---@class veeksha.Error
---@field code string `connect`, `tls`, `timeout`, `status`, `protocol`, `in_stream`, `truncated` or `cancelled`.
---@field message string
---@field status? integer The HTTP status, if one came.

---What came of a request. If `ok` is false, `error` says why and the texts are empty.
---@class veeksha.Response
---@field ok boolean
---@field node integer
---@field text string
---@field reasoning string
---@field tool_calls veeksha.ToolCall[]
---@field finish_reason string
---@field output_tokens integer
---@field usage? veeksha.Usage
---@field error? veeksha.Error

---A live session, played by an agent.
---@class veeksha.AgentSession
---@field index integer
---@field rng veeksha.Rng
local AgentSession = {}
---Sends a request and waits for its answer.
---@param request veeksha.Request
---@return veeksha.Response
function AgentSession:request(request) end
---Sends several requests at once and waits for all of their answers.
---@param ... veeksha.Request
---@return veeksha.Response ...
function AgentSession:parallel(...) end
---Adds think time before the next request.
---@param time veeksha.Duration
function AgentSession:sleep(time) end

---A finished request, for metrics and checks. Times are seconds since the start of the run. It can be read only while the function
---that was given it runs, and cannot be changed.
---@class veeksha.Completion
---@field session integer The session that it belongs to.
---@field node integer Its node in that session.
---@field session_requests integer Nodes of its session that were known when it finished.
---@field parents integer[] The nodes that it waited for.
---@field history_parent? integer The node whose conversation it continued.
---@field wait_after_ready number Its think time.
---@field intended_at number The instant that the schedule asked for.
---@field held number How long limits on concurrency kept it back after that.
---@field dispatched_at number It was handed to a client thread.
---@field picked_up_at? number A client thread took it up.
---@field sent_at? number Its last byte was handed to the socket.
---@field first_byte_at? number The first byte of the answer was read.
---@field completed_at number It was over.
---@field measured boolean Whether it counts: false for what was dispatched after the end of the measured time.
---@field status "ok"|"failed"|"cancelled"
---@field error_class? string Where it failed: `connect`, `tls`, `timeout`, `status`, `protocol`, `in_stream`, `truncated`, `cancelled` or `codec`.
---@field error_message? string Why it failed, in one line.
---@field finish_reason? string Why generation ended, in the server's word.
---@field http_status? integer
---@field chunk_at number[] When each chunk arrived that carried something generated.
---@field chunk_tokens? integer[] Tokens in each of these chunks; nil where it is not known.
---@field chunk_kinds ("reasoning"|"content"|"tool")[] What each of these chunks carried.
---@field target_prompt_tokens integer Tokens of the new messages that the workload asked for.
---@field prompt_tokens integer Tokens of the new messages.
---@field total_prompt_tokens integer Tokens of history and new messages, with what the chat template adds.
---@field template_tokens integer Tokens that the chat template added.
---@field target_output_tokens? integer Tokens that the workload asked the server to generate.
---@field output_tokens integer Tokens generated; 0 where nothing came.
---@field output_tokens_from_usage boolean Whether `output_tokens` is the server's own count.
---@field usage? veeksha.Usage The server's counts.
---@field ideal_cached_tokens? integer Tokens of its prompt that an unbounded prefix cache would have known.
---@field connection_reused boolean Whether the connection had carried an earlier request.
---@field retried boolean Whether it was sent again on a fresh connection.
---@field server integer Which of the target's servers it went to, from 0.
---@field resolve? number Seconds that name resolution took, for a new connection.
---@field connect? number Seconds that connecting took, for a new connection.
---@field tls? number Seconds that the TLS handshake took, for a new connection.
---@field recorded? veeksha.Recorded What the trace says of it, if it was replayed from one.
---@field labels table<string, string> The labels of the request and its session.
---@field ttfc? number `chunk_at[1] - dispatched_at`; nil where nothing was generated.
---@field tpot? number Seconds from the first chunk to the last, for each output token after the first; nil for fewer than two tokens.
---@field end_to_end_latency? number `chunk_at[#chunk_at] - dispatched_at`; nil where nothing was generated.

---What a trace says of a request.
---@class veeksha.Recorded
---@field at? number When it was sent, from the earliest arrival of the trace.
---@field latency? number How long its answer took.
---@field prompt_tokens? integer
---@field output_tokens? integer

---A sample that stands for several (`weight`, 1 if it is not given).
---@class veeksha.Sample
---@field value number
---@field weight? number

---What a metric's function returns: nothing, one sample, or a list of them.
---@alias veeksha.Samples nil|number|veeksha.Sample|(number|veeksha.Sample)[]

---Labels that a sample's request must have, all of them.
---@alias veeksha.Filter table<string, string|number|boolean>

---The samples of a metric in a few figures, in its unit. Where `count` is 0 the others are nil.
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

---A stretch of the run.
---@class veeksha.Window
---@field from number
---@field to number
---@field stats veeksha.Stats Of the samples of requests that were intended within it.

---The results of a run.
---@class veeksha.Results
local Results = {}
---The names of all metrics that have samples.
---@return string[]
function Results:metrics() end
---A figure of the whole run: `error_rate`, `goodput`, `requests_per_second`, and others. Nil if there is no such figure.
---@param name string
---@return number?
function Results:figure(name) end
---@param metric string
---@param filter? veeksha.Filter
---@return veeksha.Stats
function Results:stats(metric, filter) end
---Any percentile. Nil if there are no samples.
---@param metric string
---@param percent number From 0 to 100.
---@param filter? veeksha.Filter
---@return number?
function Results:percentile(metric, percent, filter) end
---A metric's figures in windows of one length, from the first intended instant on.
---@param metric string
---@param filter veeksha.Filter?
---@param seconds number At least 0.1.
---@return veeksha.Window[]
function Results:windows(metric, filter, seconds) end

---What a check says of one objective.
---@class veeksha.Verdict
---@field name string No two verdicts have the same.
---@field met boolean
---@field observed? number Nil where there was nothing to observe.
---@field threshold number
---@field detail? string One line for a person.

---@class veeksha.Scenario
---@field certificate? veeksha.Certificate When a run does not trust itself.
---@field client? veeksha.Client The server and the client's connection to it. Default: `openai_chat_completions`.
---@field endpoint? veeksha.Endpoint|nil A server that is already there: its values take the place of the client's.
---@field evaluators? veeksha.Evaluator[] Metrics, checks and objectives: the built-in metrics, plugins, functions. The built-in metrics are always measured.
---@field output_dir? string The folder that runs are written to, each in a folder of its own. Default: `"benchmark_output"`.
---@field runtime? veeksha.Runtime How long, how many, on how many threads.
---@field seed? integer The seed of everything random: lengths, texts, arrivals. Two runs with one seed send the same requests. Default: `42`.
---@field session_generator? veeksha.SessionGenerator The source of sessions. Default: `synthetic`.
---@field trace_recorder? veeksha.TraceRecorder What the trace holds.
---@field traffic_scheduler? veeksha.Traffic When sessions start. Default: `rate`.

---When sessions start.
---@alias veeksha.Traffic veeksha.Traffic.rate|veeksha.Traffic.concurrent|veeksha.Traffic.fixed_schedule

---Open loop by a recording: each session starts when the trace says that it came, and none of its requests is sent before the instant recorded for it.
---@class veeksha.Traffic.fixed_schedule
---@field cancel_session_on_failure? boolean Whether a failed request ends its session: what it has queued is withdrawn and counted as never sent. Default: `true`.
---@field end? number|nil Leaves out what arrived at this second of the trace or later. Null: nothing.
---@field limits? veeksha.Limits How many may be under way at a time.
---@field offset? number Seconds from the start of the run to the first arrival that is replayed. Default: `0.0`.
---@field speedup? number How much faster than recorded sessions arrive: 2 is twice the rate. Think times stay as they are. Default: `1.0`.
---@field start? number|nil Leaves out what arrived earlier, in seconds of the trace, counted from its first arrival. Null: nothing.
---@field type "fixed_schedule"

---Closed loop: a number of sessions is kept going; one that ends is followed by the next.
---@class veeksha.Traffic.concurrent
---@field cancel_session_on_failure? boolean Whether a failed request ends its session: what it has queued is withdrawn and counted as never sent. Default: `true`.
---@field limits? veeksha.Limits How many may be under way at a time.
---@field rampup_seconds? number Seconds in which the number of sessions grows from none to the target; 0 starts all at once. Default: `10.0`.
---@field target_concurrent_sessions? integer How many sessions run at a time. A session counts until its last request is done, think time included. Default: `3`.
---@field type "concurrent"

---Open loop: sessions arrive at their own pace, whether the server keeps up or not.
---@class veeksha.Traffic.rate
---@field cancel_session_on_failure? boolean Whether a failed request ends its session: what it has queued is withdrawn and counted as never sent. Default: `true`.
---@field interval_generator? veeksha.IntervalGenerator The gaps between the starts of sessions. Default: `poisson`.
---@field limits? veeksha.Limits How many may be under way at a time.
---@field type? "rate"

---How many may be under way at a time. What has to wait keeps the instant that it was meant for, and the record says how long each limit kept it.
---@class veeksha.Limits
---@field requests_in_flight? integer|nil Requests that were sent and are not answered. Null: no limit.
---@field requests_in_prefill? integer|nil Requests that were sent and of whose answer nothing has come yet. Null: no limit.
---@field sessions? integer|nil Sessions that have begun and are not over. Null: no limit.

---Gaps between events, in seconds.
---@alias veeksha.IntervalGenerator veeksha.IntervalGenerator.fixed|veeksha.IntervalGenerator.poisson|veeksha.IntervalGenerator.gamma

---Gamma-distributed gaps: more even than Poisson below a coefficient of variation of 1, more bursty above it.
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

---What `traces/trace.jsonl` holds.
---@class veeksha.TraceRecorder
---@field enabled? boolean Whether the trace is written. Default: `true`.
---@field include_content? boolean Whether it holds the texts of prompts and answers. Default: `false`.

---The source of sessions.
---@alias veeksha.SessionGenerator veeksha.SessionGenerator.synthetic|veeksha.SessionGenerator.trace|veeksha.SessionGenerator.wasm|veeksha.SessionGenerator.lua

---A function of this Lua scenario: `sessions` or `agent`.
---@class veeksha.SessionGenerator.lua
---@field agent? fun(session: veeksha.AgentSession) Plays one session step by step: sends a request, waits for the answer, and continues.
---@field files? table<string, string> Images, sounds and videos that its messages may name: a map from the name to the path.
---@field length? integer|nil Number of sessions; null if only the function ends the workload.
---@field sessions? fun(index: integer, rng: veeksha.Rng): veeksha.Session? Makes the whole session `index` (from 0); nil ends the workload. It must depend on its arguments alone.
---@field type "lua"

---A component in a file.
---@class veeksha.SessionGenerator.wasm
---@field config? table<string, any> Its configuration, checked against the component's schema.
---@field files? table<string, string> Files that it may read, and media that its messages may name: a map from the name to the path.
---@field path string The component's file, relative to the scenario's folder.
---@field type "wasm"

---How a trace is read and replayed.
---@class veeksha.SessionGenerator.trace
---@field check? "auto"|"whole"|"rows" How much is checked before the run starts. Default: `"auto"`.
---@field columns? table<string, string> Renamed columns: the name in the file, and the name that the flavor knows.
---@field flavor? veeksha.TraceFlavor The flavor that makes sessions of its rows. Default: `timed_synthetic_session`.
---@field max_row_mib? integer The longest row that is read, in MiB. Default: `64`.
---@field media_folder? string|nil The folder of the images, sounds and videos that rows name, relative to the scenario's folder. Null: rows may name none.
---@field on_bad_row? "error"|"skip" What a row that cannot be used does. Default: `"error"`.
---@field salt? "run"|"off"|integer What makes synthetic text differ from that of an earlier run, so that a server's cache does not know it. Default: `"run"`.
---@field shuffle? "never"|"wrapped"|"always" When sessions come in another order than the file's. Traffic that replays recorded arrivals keeps their order. Default: `"wrapped"`.
---@field trace_file string The trace: a file, or a folder of files, relative to the scenario's folder. JSON Lines, JSON or CSV, also compressed with gzip or zstd; the content tells which.
---@field type "trace"
---@field warmup? boolean Whether the flavor's warm-up requests are sent before the run, where it has any. Default: `true`.
---@field wrap_mode? boolean|nil Whether the trace begins again at its end, with new text, as often as it takes. Null: yes, but not for traffic that replays recorded arrivals.

---The flavor that makes sessions of a trace's rows.
---@alias veeksha.TraceFlavor veeksha.TraceFlavor.azure|veeksha.TraceFlavor.bailian|veeksha.TraceFlavor.burstgpt|veeksha.TraceFlavor.inputs_json|veeksha.TraceFlavor.mooncake|veeksha.TraceFlavor.multi_turn|veeksha.TraceFlavor.rag|veeksha.TraceFlavor.random_pool|veeksha.TraceFlavor.request_log|veeksha.TraceFlavor.shared_prefix|veeksha.TraceFlavor.sharegpt|veeksha.TraceFlavor.single_turn|veeksha.TraceFlavor.timed_synthetic_session|veeksha.TraceFlavor.untimed_content_multi_turn|veeksha.TraceFlavor.weka|veeksha.TraceFlavor.wildchat|veeksha.TraceFlavor.wasm|veeksha.TraceFlavor.lua

---Functions of this Lua scenario.
---@class veeksha.TraceFlavor.lua
---@field arrival? veeksha.LuaArrival|nil Where the recorded arrival stands.
---@field columns table<string, "text"|"count"|"integer"|"number"|"truth"|"items"|"members"|"anything"|veeksha.TraceFlavor.lua.columns.2> The columns that it reads: the name of each, and what its cells hold.
---@field group_by? string|nil The column whose value is the same in the rows of one session. Null: each row is a session.
---@field keep? veeksha.LuaKeep|nil Keeps only the rows with the most frequent values of a column.
---@field pools? boolean Whether each session is one row of each file, drawn at random. Default: `false`.
---@field rows_in? string|nil The member that holds the rows, where the file is one JSON object.
---@field session fun(group: veeksha.TraceGroup, trace: veeksha.TraceFacts, epoch: integer, rng: veeksha.Rng): veeksha.Session?, string? Makes the session of a group of rows, or refuses it: `return nil, "why"`. It must depend on its arguments alone.
---@field tree? veeksha.LuaTree|nil The columns by which rows continue one another; the rows of a tree are one session.
---@field type "lua"
---@field warmup? fun(group: veeksha.TraceGroup, trace: veeksha.TraceFacts): veeksha.Session? Makes a session that is sent before the run begins, from the first row or, with `keep`, from the first row of each kept value.

---The columns by which rows continue one another.
---@class veeksha.LuaTree
---@field id string The column with a row's own id.
---@field parent string The column with the id of the row that it continues.

---Which rows a Lua flavor keeps.
---@class veeksha.LuaKeep
---@field column string The column.
---@field count integer How many of its values are kept.

---A column in full.
---@class veeksha.TraceFlavor.lua.columns.2
---@field aliases? string[] Further names under which it may stand in a file. Default: `[]`.
---@field cell "text"|"count"|"integer"|"number"|"truth"|"items"|"members"|"anything" What its cells hold.
---@field required? boolean Whether a row without it is refused. Default: `true`.

---Where the recorded arrival stands.
---@class veeksha.LuaArrival
---@field column string The column.
---@field unit "seconds"|"milliseconds"|"microseconds"|"nanoseconds"|"date_time" How it tells time.

---A component in a file.
---@class veeksha.TraceFlavor.wasm
---@field config? table<string, any> Its configuration, checked against the component's schema.
---@field files? table<string, string> Files that it may read, and media that its messages may name: a map from the name to the path.
---@field path string The component's file, relative to the scenario's folder.
---@field type "wasm"

---The trace flavor `wildchat`.
---@class veeksha.TraceFlavor.wildchat
---@field cache_bust_tokens? integer Tokens of text of its own before each conversation, so that no prefix cache knows it from an earlier pass. 0: none. Default: `0`.
---@field history? "live"|"recorded"|"fresh" What a request sends of the conversation before it: the model's real answers (live), the recorded ones (recorded), or nothing (fresh). Default: `"live"`.
---@field languages? string[] Only conversations in these languages. Empty: all. Default: `[]`.
---@field max_think_time_s? number The longest time in seconds that a person is taken to think; what was longer is cut to it. Default: `600.0`.
---@field max_turns? integer|nil Requests of a conversation at most, from its beginning. Null: all of them.
---@field models? string[] Only conversations with these models. Empty: all. Default: `[]`.
---@field output_control? "exact"|"at_most"|"free" How the length of an answer is asked for: exactly (exact), at most (`at_most`), or not at all (free). Default: `"exact"`.
---@field output_tokens? integer|nil Tokens asked for in every answer. Null: as many as the recorded answer has.
---@field recorded_tokens_per_s? number|nil How many tokens a second the recorded model wrote. With it, the time of a question that was not recorded is that of its answer without the time of writing it. Null: it is that of its answer.
---@field skip_redacted? boolean Whether conversations in which personal data was replaced are left out. Default: `false`.
---@field skip_toxic? boolean Whether conversations that are marked as toxic are left out. Default: `false`.
---@field timestamp_unit? "date_time"|"seconds"|"milliseconds"|"microseconds" How `timestamp` tells time, in rows and in messages. Default: `"date_time"`.
---@field type "wildchat"

---The trace flavor `weka`.
---@class veeksha.TraceFlavor.weka
---@field scope? "recorded"|"conversation"|"file" Where the ids of hash blocks mean the same. Default: `"recorded"`.
---@field subagents? "isolated"|"shared" What the ids of hash blocks mean in a subagent. Default: `"isolated"`.
---@field type "weka"

---The trace flavor `untimed_content_multi_turn`.
---@class veeksha.TraceFlavor.untimed_content_multi_turn
---@field assistant_role_value? string The role of answers. Default: `"gpt"`.
---@field content_key? string The key of a message's content. Default: `"value"`.
---@field conversation_column? string The column with the list of messages. Default: `"conversations"`.
---@field history? "recorded"|"live"|"fresh" What a later request of a conversation sends of it. Default: `"recorded"`.
---@field keep_unanswered? boolean Whether messages after the last answer are sent too; how long their answer is, the server decides. Default: `false`.
---@field role_key? string The key of a message's role. Default: `"from"`.
---@field system_role_value? string The role of instructions. Default: `"system"`.
---@field tool_role_value? string The role of results of tools. Default: `"tool"`.
---@field type "untimed_content_multi_turn"
---@field user_role_value? string The role of messages of the user. Default: `"human"`.

---The trace flavor `timed_synthetic_session`.
---@class veeksha.TraceFlavor.timed_synthetic_session
---@field corpus_file? string|nil A text file; new text is cut from it. Empty: synthetic text.
---@field history? "live"|"fresh" What a later request of a session sends of the conversation. Default: `"live"`.
---@field page_size? integer Tokens that every conversation begins with and no other one has: the page size of the server's prefix cache. Default: `16`.
---@field type? "timed_synthetic_session"

---The trace flavor `single_turn`.
---@class veeksha.TraceFlavor.single_turn
---@field cache_bust_tokens? integer Tokens of text of its own before each prompt, so that no prefix cache knows it from an earlier pass. 0: none. Default: `0`.
---@field output_control? "exact"|"at_most"|"free" How the length of an answer is asked for: exactly (exact), at most (`at_most`), or not at all (free). Default: `"exact"`.
---@field output_tokens? integer|nil Tokens asked for where a row has no `output_length`. Null: the server decides there.
---@field type "single_turn"

---The trace flavor `sharegpt`.
---@class veeksha.TraceFlavor.sharegpt
---@field cache_bust_tokens? integer Tokens of text of its own before each conversation, so that no prefix cache knows it from an earlier pass. 0: none. Default: `0`.
---@field history? "live"|"recorded"|"fresh" What a request sends of the conversation before it: the model's real answers (live), the recorded ones (recorded), or nothing (fresh). Default: `"live"`.
---@field max_output_tokens? integer|nil The most tokens of an answer. A conversation with a longer one is refused.
---@field max_prompt_tokens? integer|nil The most tokens of a request's own messages. A conversation with a longer one is refused. vLLM: 1024.
---@field max_total_tokens? integer|nil The most tokens of all that is sent and answered in a conversation, as far as it is replayed. vLLM: 2048.
---@field max_turns? integer|nil Requests of a conversation at most, from its beginning. Null: all of them. vLLM's benchmark sends 1.
---@field min_output_tokens? integer|nil The fewest tokens of a recorded answer; not looked at with `output_tokens`. vLLM: 4, for prompts too.
---@field min_prompt_tokens? integer|nil The fewest tokens of a request's own messages. A conversation with a shorter one is refused.
---@field output_control? "exact"|"at_most"|"free" How the length of an answer is asked for: exactly (exact), at most (`at_most`), or not at all (free). Default: `"exact"`.
---@field output_tokens? integer|nil Tokens asked for in every answer. Null: as many as the recorded answer has.
---@field type "sharegpt"

---The trace flavor `shared_prefix`.
---@class veeksha.TraceFlavor.shared_prefix
---@field block_size? integer Tokens of the block that a hash id names. Default: `512`.
---@field corpus_file? string|nil A text file; the text of later turns is cut from it. Empty: synthetic text.
---@field history? "live"|"fresh" What a later request of a session sends of the conversation. Default: `"live"`.
---@field type "shared_prefix"

---The trace flavor `request_log`.
---@class veeksha.TraceFlavor.request_log
---@field history? "live"|"fresh" What a later request of a session sends of the conversation. Default: `"live"`.
---@field timestamp_unit? "seconds"|"milliseconds"|"microseconds"|"nanoseconds"|"date_time" How the column `timestamp` tells time. Default: `"seconds"`.
---@field type "request_log"

---The trace flavor `random_pool`.
---@class veeksha.TraceFlavor.random_pool
---@field cache_bust_tokens? integer Tokens of text of its own before each prompt, so that no prefix cache knows it from an earlier pass. 0: none. Default: `0`.
---@field output_control? "exact"|"at_most"|"free" How the length of an answer is asked for: exactly (exact), at most (`at_most`), or not at all (free). Default: `"exact"`.
---@field output_tokens? integer|nil Tokens asked for in every answer. Null: the server decides.
---@field type "random_pool"

---The trace flavor `rag`.
---@class veeksha.TraceFlavor.rag
---@field num_documents? integer How many documents are kept: those with the most rows. Default: `10`.
---@field type "rag"
---@field warmup? boolean Whether the first row of each kept document is sent before the run begins. Default: `true`.

---The trace flavor `multi_turn`.
---@class veeksha.TraceFlavor.multi_turn
---@field cache_bust_tokens? integer Tokens of text of its own before each conversation, so that no prefix cache knows it from an earlier pass. 0: none. Default: `0`.
---@field history? "live"|"recorded"|"fresh" What a request sends of the conversation before it: the model's real answers (live), the recorded ones (recorded), or nothing (fresh). Default: `"live"`.
---@field output_control? "exact"|"at_most"|"free" How the length of an answer is asked for: exactly (exact), at most (`at_most`), or not at all (free). Default: `"exact"`.
---@field output_tokens? integer|nil Tokens asked for where a turn has no `output_length`. Null: as many as its recorded answer has; without one, the server decides.
---@field timestamp_origin_ms? number|nil The `timestamp` of turns at which the trace begins, in milliseconds. Null: that of the first turn in the file.
---@field type "multi_turn"

---The trace flavor `mooncake`.
---@class veeksha.TraceFlavor.mooncake
---@field block_size? integer Tokens of a hash block: 512 in Mooncake's own traces, 64 or others where Dynamo wrote them. Default: `512`.
---@field history? "fresh"|"live" What a later turn of a session sends. Default: `"fresh"`.
---@field type "mooncake"

---The trace flavor `inputs_json`.
---@class veeksha.TraceFlavor.inputs_json
---@field drop? string[] Members of the recorded bodies that are not sent: the host has its own. Default: `["model","stream","stream_options"]`.
---@field type "inputs_json"

---The trace flavor `burstgpt`.
---@class veeksha.TraceFlavor.burstgpt
---@field failed_output_tokens? integer|nil Tokens that a failed request (one with 0 response tokens) is sent with. Null: failed requests are left out; a session that has no others is a bad row.
---@field history? "live"|"fresh" What a later turn of a conversation sends. Default: `"live"`.
---@field think_time? "recorded"|"none" How long a later turn of a conversation waits after the answer to the turn before it. Default: `"recorded"`.
---@field type "burstgpt"

---The trace flavor `bailian`.
---@class veeksha.TraceFlavor.bailian
---@field block_size? integer Tokens of a hash block; the published files have 16 in their names. Default: `16`.
---@field think_time? "none"|"recorded_gap" How long a turn waits after the answer to the turn before it. Default: `"none"`.
---@field type "bailian"

---The trace flavor `azure`.
---@class veeksha.TraceFlavor.azure
---@field image_height? integer Pixels of a generated image from top to bottom. Default: `512`.
---@field image_tokens? integer Tokens that an image counts for: with `images`, a row's text has that many tokens less for each, but at least one. Default: `255`.
---@field image_width? integer Pixels of a generated image from left to right. Default: `512`.
---@field images? boolean Whether the images that a row counts in `NumImages` are sent, as generated ones; otherwise all of its tokens are text. Default: `false`.
---@field type "azure"

---The synthetic session generator.
---@class veeksha.SessionGenerator.synthetic
---@field channels? veeksha.synthetic.Channel[] What the prompts are made of: at most one channel of each type.
---@field inherit_history? boolean The same as `inherit_history` of the session graph.
---@field output_spec? veeksha.synthetic.OutputSpec What is asked of the answers.
---@field session_graph? veeksha.synthetic.Graph The requests of a session and what they wait for. Default: `linear`.
---@field type? "synthetic"

---The requests of a session and what they wait for.
---@alias veeksha.synthetic.Graph veeksha.synthetic.Graph.single_request|veeksha.synthetic.Graph.linear|veeksha.synthetic.Graph.branching

---Layers of requests: each request waits for some of the requests in the layers before it.
---@class veeksha.synthetic.Graph.branching
---@field connection_dist_generator? veeksha.synthetic.Length How many layers further an edge leads; the last layer ends it. Default: `fixed`.
---@field fan_in_generator? veeksha.synthetic.Length Parents that each request of a later layer has at least, as far as the layer before it has that many. Default: `uniform`.
---@field fan_out_generator? veeksha.synthetic.Length Edges drawn from each request to later layers; equal edges count once. Default: `uniform`.
---@field inherit_history? boolean Whether a request continues the conversation of one of its parents, drawn at random. Default: true.
---@field layer_width_generator? veeksha.synthetic.Length Requests in a layer. Default: `uniform`.
---@field num_layers_generator? veeksha.synthetic.Length Layers in a session. Default: `uniform`.
---@field request_wait_generator? veeksha.synthetic.Interval Seconds between the completion of the last parent and a request. Default: `poisson`.
---@field single_root? boolean Whether the first layer has one request only. Default: `true`.
---@field type "branching"

---A chain: each request waits for the one before it.
---@class veeksha.synthetic.Graph.linear
---@field inherit_history? boolean Whether a request continues the conversation of the one before it. Default: true.
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

---What is asked of the answers.
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
---@field seconds? number|veeksha.synthetic.Seconds How long each is, in seconds: a number, or a distribution. Default: `2.5`.
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
---@field format? "png" How they are encoded. Default: `"png"`.
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

---The inverse Gaussian (Wald) distribution, rounded to the nearest whole number and at least 1. Its variance is mean³ / shape.
---@class veeksha.synthetic.Length.inverse_gaussian
---@field mean? number The mean. Default: `500.0`.
---@field shape? number The shape. Default: `300.0`.
---@field type "inverse_gaussian"

---The number of rank k, counted from 1, has a probability in proportion to 1 / k^theta.
---@class veeksha.synthetic.Length.zipf
---@field alpha? number Another name of `theta`.
---@field max? integer The largest. Default: `12`.
---@field min? integer The smallest. Default: `6`.
---@field scramble? boolean Whether the ranks are scattered over the numbers (by the seed of the run); otherwise the smallest number has rank 1. Default: `false`.
---@field theta? number The exponent, 0 to 20. Default: 0.6.
---@field type "zipf"

---The given numbers in order, request by request through the sessions. Where sessions have no fixed number of requests, request j of session i stands at step i + j.
---@class veeksha.synthetic.Length.fixed_stair
---@field repeat_each? integer How many requests get each number before the next one. Default: `1`.
---@field type "fixed_stair"
---@field values? integer[] The numbers. Default: `[8,16,32,64]`.
---@field wrap? boolean Whether the first number follows the last; otherwise the last one stays. Default: `true`.

---Each number from `min` to `max` with the same probability, both ends included.
---@class veeksha.synthetic.Length.uniform
---@field max? integer The largest. Default: `12`.
---@field min? integer The smallest. Default: `6`.
---@field type "uniform"

---Always the same.
---@class veeksha.synthetic.Length.fixed
---@field type "fixed"
---@field value? integer The number. Default: `8`.

---How long, how many, on how many threads.
---@class veeksha.Runtime
---@field benchmark_timeout? number Seconds after which measuring ends; 0 or less for no limit. A trace that does not wrap has none, unless this is set. What was sent before counts. Requests go on being sent, without counting, so that the load holds until the others are answered or the grace is over. Default: `300.0`.
---@field client_cores? integer[] Cores that client threads are kept on, one each in turn; empty leaves the choice to the system. Default: `[]`.
---@field dispatcher_cores? integer[] Cores that dispatcher threads are kept on, one each in turn; empty leaves the choice to the system. Default: `[]`.
---@field max_sessions? integer Sessions to start; -1 for as many as fit into the time. A trace that does not wrap is replayed to its end, unless this is set. Default: `25`.
---@field num_client_threads? integer|nil Threads that send requests and read answers, each with its own connections. Null chooses by the load: one for each 128 concurrent sessions, or for open-loop traffic half the cores up to four; never more than there are cores.
---@field num_completion_threads? integer Threads that take results to the scheduler and the evaluators. Default: `2`.
---@field num_dispatcher_threads? integer Threads that dispatch requests. One is enough beyond 100 000 requests a second. Default: `1`.
---@field num_plugin_threads? integer|nil Threads that run plugins. Null chooses: half the cores, at least one, at most eight.
---@field plugin_limits? veeksha.PluginLimits What a plugin may use.
---@field post_timeout_grace_seconds? number Seconds that requests sent before the timeout may take after it: -1 waits for all of them, 0 gives them up at once. Default: `-1.0`.
---@field pregenerate_sessions? boolean Whether all sessions are made before the clock starts. Needs a positive `max_sessions`. Default: `false`.
---@field realtime_priority? integer|nil Real-time priority (`SCHED_FIFO`, 1 to 99) of the threads that dispatch, send and read. Needs the right to set it (`veeksha-host doctor` tells); null leaves them as they are.
---@field spin_microseconds? number Microseconds before each arrival in which the dispatcher no longer sleeps but looks at the clock: it is then some 5 us late in place of 40, and keeps a core busy for as long. 0 always sleeps. Default: `0.0`.

---What a plugin may use; beyond it the run ends with an error that names the plugin.
---@class veeksha.PluginLimits
---@field call_deadline_seconds? number Seconds that one call into a plugin may take. Default: `10.0`.
---@field memory_mib? integer Memory of one instance, in MiB. Default: `256`.

---Metrics, checks and objectives of a run.
---@alias veeksha.Evaluator veeksha.Evaluator.performance|veeksha.Evaluator.fluidity|veeksha.Evaluator.wasm|veeksha.Evaluator.lua

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

---A component in a file.
---@class veeksha.Evaluator.wasm
---@field config? table<string, any> Its configuration, checked against the component's schema.
---@field files? table<string, string> Files that it may read, and media that its messages may name: a map from the name to the path.
---@field path string The component's file, relative to the scenario's folder.
---@field type "wasm"

---The metric plugin `fluidity`.
---@class veeksha.Evaluator.fluidity
---@field decode_deadline? number Seconds from the moment one token is due until the next one is; more than 0. Default: `0.05`.
---@field prefill_deadline? number Seconds from dispatch until the first token is due. Default: `0.1`.
---@field type "fluidity"

---The evaluator of latency and throughput.
---@class veeksha.Evaluator.performance
---@field fluidity? veeksha.FluidityDeadlines The deadlines of the fluidity index.
---@field goodput? string[] What a good request keeps, such as `ttfc <= 500ms`: goodput is the share of all intended requests that keep all of these. Without any, a good request is one that keeps the bounds of those `slos` that are about requests. Default: `[]`.
---@field slice_seconds? number Seconds of a time slice: the figures of each stretch of that length are written to `metrics/time_slices.json` and `.csv`. A run of more than 2,000 slices has slices of twice the length, or four times, ... Default: `10.0`.
---@field slos? (string|veeksha.SloMap)[] Objectives: a run that misses one ends with exit code 3. There are none unless you set some (Veeksha judges every run by P99 ttfc <= 0.5 s and P90 tbc <= 0.05 s, asked or not). An objective is a text such as `p99(ttfc) < 500ms`, `p95(tpot{tier="gold"}, window = 10s) <= 30ms`, `error_rate < 1%` or `goodput > 0.95`, or a map. Default: `[]`.
---@field stream_metrics? boolean Whether interim figures are shown while the run goes on. Default: `true`.
---@field stream_metrics_interval? number Seconds between interim figures. Default: `5.0`.
---@field target_channels? "text"[] The kinds of content that are measured. Text is the only one so far. Default: `["text"]`.
---@field text_channel? veeksha.TextChannel How text is measured.
---@field type? "performance"

---How text is measured.
---@class veeksha.TextChannel
---@field decode_window_config? veeksha.DecodeWindowConfig|nil Which windows.
---@field decode_window_enabled? boolean Whether gaps are also measured in windows in which enough requests decode at a time (`metrics/decode_window_metrics.json`). Default: `false`.

---In which windows of the run gaps are measured apart.
---@class veeksha.DecodeWindowConfig
---@field anchor_to_client_pickup? boolean Whether times count from the pick-up by a client; else from the dispatch. Default: `true`.
---@field min_active_requests? integer|"max_observed" How many requests decode at a time in such a window, at least: a number, or `max_observed`. Default: `1`.
---@field require_streaming? boolean Whether answers that came in one piece are left out. Default: `true`.
---@field selection_strategy? "longest"|"first"|"all" Which of the windows count. Default: `"longest"`.

---A service-level objective as a map.
---@alias veeksha.SloMap veeksha.SloMap.constant|veeksha.SloMap.expression

---An objective as text, with a name.
---@class veeksha.SloMap.expression
---@field name? string|nil A name for it in results; null takes the text.
---@field objective string The objective: `p99(ttfc) < 500ms`.
---@field type "expression"

---A percentile of a metric must be at most a value (at least, for a metric of which more is better).
---@class veeksha.SloMap.constant
---@field metric veeksha.SloMetric The metric.
---@field name? string|nil A name for it in results; null makes one of metric and percentile.
---@field percentile? number Which percentile, as a fraction: 0.99 is P99. Default: `0.99`.
---@field type? "constant"
---@field value number The worst value that is still good, in the metric's unit: seconds, or tokens per second.

---A metric that an objective can be about.
---@alias veeksha.SloMetric "ttfc"|"ttfc_from_intended"|"tbc"|"tpot"|"end_to_end_latency"|"e2e_from_intended"|"normalized_end_to_end_latency"|"output_throughput"|"session_duration"|"e2e"

---The deadlines of the fluidity index: how long a reader waits for the first token, and for each further one.
---@class veeksha.FluidityDeadlines
---@field decode_deadline? number Seconds until each further token is due. Default: `0.05`.
---@field prefill_deadline? number Seconds until the first token is due. Default: `0.1`.

---A server that is already there.
---@class veeksha.Endpoint
---@field api_base string Its address, in place of `client.api_base`.
---@field api_key? string|nil The key, in place of `client.api_key`.
---@field model? string|nil The model, in place of `client.model`.

---The server and the client's connection to it.
---@alias veeksha.Client veeksha.Client.openai_chat_completions|veeksha.Client.openai_completions|veeksha.Client.openai_responses|veeksha.Client.anthropic_messages|veeksha.Client.tgi_generate_stream|veeksha.Client.template|veeksha.Client.wasm

---An API implemented by a component.
---@class veeksha.Client.wasm
---@field additional_sampling_params? table<string, any>|string Members that are merged into the body of every request (`{"temperature": 0}`); also as JSON text.
---@field address_append_value? string What is appended to `api_base` for a request. Default: `""`.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulated engine. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; without either, none is sent.
---@field apply_chat_template? boolean Whether the model's chat template is applied to count what it adds to a prompt; with the completions interface, it is also what is sent in place of the bare texts. Default: `false`.
---@field balance? "round_robin"|"least_in_flight" Which of several servers a session goes to. All requests of a session go to the same one. Default: `"round_robin"`.
---@field chat_template? string|nil The file of the chat template. Null: the one beside the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
---@field codec veeksha.CodecFile|nil For `type: wasm`: the component that knows the interface.
---@field connect_timeout? number|nil Seconds in which a connection must be open, its TLS handshake included. Null: as long as the request may take.
---@field connections? "pooled"|"per_session"|"never" What becomes of a connection when its request is answered. Default: `"pooled"`.
---@field headers? table<string, string> Further headers of every request.
---@field http_version? "http1"|"http2" The version of HTTP. With `http2`, requests share connections; a plain `http` server must know it without being asked. Default: `"http1"`.
---@field ignore_eos? boolean|nil What is sent as `ignore_eos`: true makes a server that knows it generate to the full length; null sends none. Default: `true`.
---@field max_tokens_param? string|nil The member of the request that limits the answer's length; null sends none.
---@field min_tokens_param? string|nil The member of the request that sets the answer's least length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The words that are appended then; `{tokens}` becomes the number. Default: `"\n\nGenerate at least {tokens} tokens."`.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the one that it serves.
---@field prompt_length? "content"|"wrapped" What the length is of that a workload asks for. Default: `"content"`.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). The environment's settings are not looked at.
---@field request_timeout? number Seconds that a request may take in all, from the connection to the last chunk. Default: `300.0`.
---@field source_addresses? string[]|nil The addresses of this machine that connections start from, in turn. Each allows some 28,000 connections at a time to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. What one of them does not say is as it stands beside this list. Default: `[]`.
---@field tls? veeksha.Tls How an `https` server is trusted.
---@field tokenizer? string|nil The tokenizer that prompts are made with: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or `embedded` for the small one inside the program. Null takes the model's own where it is found, else the embedded.
---@field type "wasm"
---@field use_min_tokens_prompt_fallback? boolean Whether the prompt asks for the answer's length in words, for a server that knows neither `ignore_eos` nor a minimum. Default: `false`.

---The component that knows the interface.
---@class veeksha.CodecFile
---@field config? table<string, any> Its configuration, checked against the component's schema.
---@field files? table<string, string> Files that it may read: the name that it knows each by, and where it is.
---@field path string The component's file, relative to the scenario's folder.

---An API described by the scenario: the request body, and the location of each value in an answer's events.
---@class veeksha.Client.template
---@field additional_sampling_params? table<string, any>|string Members that are merged into the body of every request (`{"temperature": 0}`); also as JSON text.
---@field address_append_value? string What is appended to `api_base` for a request. Default: `""`.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulated engine. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; without either, none is sent.
---@field apply_chat_template? boolean Whether the model's chat template is applied to count what it adds to a prompt; with the completions interface, it is also what is sent in place of the bare texts. Default: `false`.
---@field balance? "round_robin"|"least_in_flight" Which of several servers a session goes to. All requests of a session go to the same one. Default: `"round_robin"`.
---@field chat_template? string|nil The file of the chat template. Null: the one beside the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
---@field connect_timeout? number|nil Seconds in which a connection must be open, its TLS handshake included. Null: as long as the request may take.
---@field connections? "pooled"|"per_session"|"never" What becomes of a connection when its request is answered. Default: `"pooled"`.
---@field headers? table<string, string> Further headers of every request.
---@field http_version? "http1"|"http2" The version of HTTP. With `http2`, requests share connections; a plain `http` server must know it without being asked. Default: `"http1"`.
---@field ignore_eos? boolean|nil What is sent as `ignore_eos`: true makes a server that knows it generate to the full length; null sends none. Default: `true`.
---@field max_tokens_param? string|nil The member of the request that limits the answer's length; null sends none.
---@field min_tokens_param? string|nil The member of the request that sets the answer's least length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The words that are appended then; `{tokens}` becomes the number. Default: `"\n\nGenerate at least {tokens} tokens."`.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the one that it serves.
---@field prompt_length? "content"|"wrapped" What the length is of that a workload asks for. Default: `"content"`.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). The environment's settings are not looked at.
---@field request_timeout? number Seconds that a request may take in all, from the connection to the last chunk. Default: `300.0`.
---@field source_addresses? string[]|nil The addresses of this machine that connections start from, in turn. Each allows some 28,000 connections at a time to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. What one of them does not say is as it stands beside this list. Default: `[]`.
---@field template veeksha.Template|nil For `type: template`: the interface.
---@field tls? veeksha.Tls How an `https` server is trusted.
---@field tokenizer? string|nil The tokenizer that prompts are made with: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or `embedded` for the small one inside the program. Null takes the model's own where it is found, else the embedded.
---@field type "template"
---@field use_min_tokens_prompt_fallback? boolean Whether the prompt asks for the answer's length in words, for a server that knows neither `ignore_eos` nor a minimum. Default: `false`.

---An interface in words: what a request looks like, and where in the events of an answer things stand.
---@class veeksha.Template
---@field answer veeksha.TemplateAnswer Where things stand in an event.
---@field framing? "event_stream"|"lines"|"whole" How an answer is cut into events. Default: `"event_stream"`.
---@field request table<string, any> The request's body. A text `{{prompt}}`, `{{messages}}`, `{{model}}` or `{{max_tokens}}` stands for that of the request; a member whose text has no value is left out.

---Where things stand in the events of an answer: JSON pointers, in which `*` is every element of a list.
---@class veeksha.TemplateAnswer
---@field cached_tokens? string|nil Prompt tokens that the prefix cache knew.
---@field done? string|nil The data of the event that ends an answer, for example `[DONE]`.
---@field error? string|nil The server's words when it fails inside an answer.
---@field finish_reason? string|nil Why generation ended. An answer in which this never stands is taken for cut short.
---@field output_tokens? string|nil The server's count of the tokens generated.
---@field prompt_tokens? string|nil The server's count of the prompt's tokens.
---@field reasoning? string|nil Reasoning text.
---@field reasoning_tokens? string|nil Generated tokens that were reasoning.
---@field text? string|nil The text that was generated, for example `/token/text`.

---`generate_stream` of Text Generation Inference.
---@class veeksha.Client.tgi_generate_stream
---@field additional_sampling_params? table<string, any>|string Members that are merged into the body of every request (`{"temperature": 0}`); also as JSON text.
---@field address_append_value? string What is appended to `api_base` for a request. Default: `"generate_stream"`.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulated engine. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; without either, none is sent.
---@field apply_chat_template? boolean Whether the model's chat template is applied to count what it adds to a prompt; with the completions interface, it is also what is sent in place of the bare texts. Default: `false`.
---@field balance? "round_robin"|"least_in_flight" Which of several servers a session goes to. All requests of a session go to the same one. Default: `"round_robin"`.
---@field chat_template? string|nil The file of the chat template. Null: the one beside the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
---@field connect_timeout? number|nil Seconds in which a connection must be open, its TLS handshake included. Null: as long as the request may take.
---@field connections? "pooled"|"per_session"|"never" What becomes of a connection when its request is answered. Default: `"pooled"`.
---@field headers? table<string, string> Further headers of every request.
---@field http_version? "http1"|"http2" The version of HTTP. With `http2`, requests share connections; a plain `http` server must know it without being asked. Default: `"http1"`.
---@field ignore_eos? boolean|nil What is sent as `ignore_eos`: true makes a server that knows it generate to the full length; null sends none.
---@field max_tokens_param? string|nil The member of the request that limits the answer's length; null sends none. Default: `"max_new_tokens"`.
---@field min_tokens_param? string|nil The member of the request that sets the answer's least length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The words that are appended then; `{tokens}` becomes the number. Default: `"\n\nGenerate at least {tokens} tokens."`.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the one that it serves.
---@field prompt_length? "content"|"wrapped" What the length is of that a workload asks for. Default: `"content"`.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). The environment's settings are not looked at.
---@field request_timeout? number Seconds that a request may take in all, from the connection to the last chunk. Default: `300.0`.
---@field source_addresses? string[]|nil The addresses of this machine that connections start from, in turn. Each allows some 28,000 connections at a time to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. What one of them does not say is as it stands beside this list. Default: `[]`.
---@field tls? veeksha.Tls How an `https` server is trusted.
---@field tokenizer? string|nil The tokenizer that prompts are made with: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or `embedded` for the small one inside the program. Null takes the model's own where it is found, else the embedded.
---@field type "tgi_generate_stream"
---@field use_min_tokens_prompt_fallback? boolean Whether the prompt asks for the answer's length in words, for a server that knows neither `ignore_eos` nor a minimum. Default: `false`.

---Anthropic's messages, streamed.
---@class veeksha.Client.anthropic_messages
---@field additional_sampling_params? table<string, any>|string Members that are merged into the body of every request (`{"temperature": 0}`); also as JSON text.
---@field address_append_value? string What is appended to `api_base` for a request. Default: `"messages"`.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulated engine. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; without either, none is sent.
---@field apply_chat_template? boolean Whether the model's chat template is applied to count what it adds to a prompt; with the completions interface, it is also what is sent in place of the bare texts. Default: `false`.
---@field balance? "round_robin"|"least_in_flight" Which of several servers a session goes to. All requests of a session go to the same one. Default: `"round_robin"`.
---@field chat_template? string|nil The file of the chat template. Null: the one beside the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
---@field connect_timeout? number|nil Seconds in which a connection must be open, its TLS handshake included. Null: as long as the request may take.
---@field connections? "pooled"|"per_session"|"never" What becomes of a connection when its request is answered. Default: `"pooled"`.
---@field headers? table<string, string> Further headers of every request.
---@field http_version? "http1"|"http2" The version of HTTP. With `http2`, requests share connections; a plain `http` server must know it without being asked. Default: `"http1"`.
---@field ignore_eos? boolean|nil What is sent as `ignore_eos`: true makes a server that knows it generate to the full length; null sends none.
---@field max_tokens_param? string|nil The member of the request that limits the answer's length; null sends none. Default: `"max_tokens"`.
---@field min_tokens_param? string|nil The member of the request that sets the answer's least length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The words that are appended then; `{tokens}` becomes the number. Default: `"\n\nGenerate at least {tokens} tokens."`.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the one that it serves.
---@field prompt_length? "content"|"wrapped" What the length is of that a workload asks for. Default: `"content"`.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). The environment's settings are not looked at.
---@field request_timeout? number Seconds that a request may take in all, from the connection to the last chunk. Default: `300.0`.
---@field source_addresses? string[]|nil The addresses of this machine that connections start from, in turn. Each allows some 28,000 connections at a time to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. What one of them does not say is as it stands beside this list. Default: `[]`.
---@field tls? veeksha.Tls How an `https` server is trusted.
---@field tokenizer? string|nil The tokenizer that prompts are made with: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or `embedded` for the small one inside the program. Null takes the model's own where it is found, else the embedded.
---@field type "anthropic_messages"
---@field use_min_tokens_prompt_fallback? boolean Whether the prompt asks for the answer's length in words, for a server that knows neither `ignore_eos` nor a minimum. Default: `false`.

---OpenAI's responses, streamed.
---@class veeksha.Client.openai_responses
---@field additional_sampling_params? table<string, any>|string Members that are merged into the body of every request (`{"temperature": 0}`); also as JSON text.
---@field address_append_value? string What is appended to `api_base` for a request. Default: `"responses"`.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulated engine. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; without either, none is sent.
---@field apply_chat_template? boolean Whether the model's chat template is applied to count what it adds to a prompt; with the completions interface, it is also what is sent in place of the bare texts. Default: `false`.
---@field balance? "round_robin"|"least_in_flight" Which of several servers a session goes to. All requests of a session go to the same one. Default: `"round_robin"`.
---@field chat_template? string|nil The file of the chat template. Null: the one beside the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
---@field connect_timeout? number|nil Seconds in which a connection must be open, its TLS handshake included. Null: as long as the request may take.
---@field connections? "pooled"|"per_session"|"never" What becomes of a connection when its request is answered. Default: `"pooled"`.
---@field headers? table<string, string> Further headers of every request.
---@field http_version? "http1"|"http2" The version of HTTP. With `http2`, requests share connections; a plain `http` server must know it without being asked. Default: `"http1"`.
---@field ignore_eos? boolean|nil What is sent as `ignore_eos`: true makes a server that knows it generate to the full length; null sends none. Default: `true`.
---@field max_tokens_param? string|nil The member of the request that limits the answer's length; null sends none. Default: `"max_output_tokens"`.
---@field min_tokens_param? string|nil The member of the request that sets the answer's least length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The words that are appended then; `{tokens}` becomes the number. Default: `"\n\nGenerate at least {tokens} tokens."`.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the one that it serves.
---@field prompt_length? "content"|"wrapped" What the length is of that a workload asks for. Default: `"content"`.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). The environment's settings are not looked at.
---@field request_timeout? number Seconds that a request may take in all, from the connection to the last chunk. Default: `300.0`.
---@field source_addresses? string[]|nil The addresses of this machine that connections start from, in turn. Each allows some 28,000 connections at a time to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. What one of them does not say is as it stands beside this list. Default: `[]`.
---@field tls? veeksha.Tls How an `https` server is trusted.
---@field tokenizer? string|nil The tokenizer that prompts are made with: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or `embedded` for the small one inside the program. Null takes the model's own where it is found, else the embedded.
---@field type "openai_responses"
---@field use_min_tokens_prompt_fallback? boolean Whether the prompt asks for the answer's length in words, for a server that knows neither `ignore_eos` nor a minimum. Default: `false`.

---OpenAI's completions, streamed.
---@class veeksha.Client.openai_completions
---@field additional_sampling_params? table<string, any>|string Members that are merged into the body of every request (`{"temperature": 0}`); also as JSON text.
---@field address_append_value? string What is appended to `api_base` for a request. Default: `"completions"`.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulated engine. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; without either, none is sent.
---@field apply_chat_template? boolean Whether the model's chat template is applied to count what it adds to a prompt; with the completions interface, it is also what is sent in place of the bare texts. Default: `false`.
---@field balance? "round_robin"|"least_in_flight" Which of several servers a session goes to. All requests of a session go to the same one. Default: `"round_robin"`.
---@field chat_template? string|nil The file of the chat template. Null: the one beside the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
---@field connect_timeout? number|nil Seconds in which a connection must be open, its TLS handshake included. Null: as long as the request may take.
---@field connections? "pooled"|"per_session"|"never" What becomes of a connection when its request is answered. Default: `"pooled"`.
---@field headers? table<string, string> Further headers of every request.
---@field http_version? "http1"|"http2" The version of HTTP. With `http2`, requests share connections; a plain `http` server must know it without being asked. Default: `"http1"`.
---@field ignore_eos? boolean|nil What is sent as `ignore_eos`: true makes a server that knows it generate to the full length; null sends none. Default: `true`.
---@field max_tokens_param? string|nil The member of the request that limits the answer's length; null sends none. Default: `"max_tokens"`.
---@field min_tokens_param? string|nil The member of the request that sets the answer's least length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The words that are appended then; `{tokens}` becomes the number. Default: `"\n\nGenerate at least {tokens} tokens."`.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the one that it serves.
---@field prompt_length? "content"|"wrapped" What the length is of that a workload asks for. Default: `"content"`.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). The environment's settings are not looked at.
---@field request_timeout? number Seconds that a request may take in all, from the connection to the last chunk. Default: `300.0`.
---@field source_addresses? string[]|nil The addresses of this machine that connections start from, in turn. Each allows some 28,000 connections at a time to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. What one of them does not say is as it stands beside this list. Default: `[]`.
---@field tls? veeksha.Tls How an `https` server is trusted.
---@field tokenizer? string|nil The tokenizer that prompts are made with: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or `embedded` for the small one inside the program. Null takes the model's own where it is found, else the embedded.
---@field type "openai_completions"
---@field use_min_tokens_prompt_fallback? boolean Whether the prompt asks for the answer's length in words, for a server that knows neither `ignore_eos` nor a minimum. Default: `false`.

---OpenAI's chat completions, streamed.
---@class veeksha.Client.openai_chat_completions
---@field additional_sampling_params? table<string, any>|string Members that are merged into the body of every request (`{"temperature": 0}`); also as JSON text.
---@field address_append_value? string What is appended to `api_base` for a request. Default: `"chat/completions"`.
---@field api_base? string|nil The server's address up to the version (`http://localhost:8000/v1`), or `sim://PROFILE` for the built-in simulated engine. Null takes the environment variable `OPENAI_API_BASE`.
---@field api_key? string|nil The key sent as bearer token. Null takes the environment variable `OPENAI_API_KEY`; without either, none is sent.
---@field apply_chat_template? boolean Whether the model's chat template is applied to count what it adds to a prompt; with the completions interface, it is also what is sent in place of the bare texts. Default: `false`.
---@field balance? "round_robin"|"least_in_flight" Which of several servers a session goes to. All requests of a session go to the same one. Default: `"round_robin"`.
---@field chat_template? string|nil The file of the chat template. Null: the one beside the tokenizer (`tokenizer_config.json`, `chat_template.jinja`).
---@field connect_timeout? number|nil Seconds in which a connection must be open, its TLS handshake included. Null: as long as the request may take.
---@field connections? "pooled"|"per_session"|"never" What becomes of a connection when its request is answered. Default: `"pooled"`.
---@field headers? table<string, string> Further headers of every request.
---@field http_version? "http1"|"http2" The version of HTTP. With `http2`, requests share connections; a plain `http` server must know it without being asked. Default: `"http1"`.
---@field ignore_eos? boolean|nil What is sent as `ignore_eos`: true makes a server that knows it generate to the full length; null sends none. Default: `true`.
---@field max_tokens_param? string|nil The member of the request that limits the answer's length; null sends none. Default: `"max_completion_tokens"`.
---@field min_tokens_param? string|nil The member of the request that sets the answer's least length (`min_tokens` for vLLM); null sends none.
---@field min_tokens_prompt? string The words that are appended then; `{tokens}` becomes the number. Default: `"\n\nGenerate at least {tokens} tokens."`.
---@field model? string|nil The model's name. Null asks the server (`/models`) and takes the one that it serves.
---@field prompt_length? "content"|"wrapped" What the length is of that a workload asks for. Default: `"content"`.
---@field proxy? string|nil An HTTP proxy for the timed requests (`http://user:password@proxy:3128`). The environment's settings are not looked at.
---@field request_timeout? number Seconds that a request may take in all, from the connection to the last chunk. Default: `300.0`.
---@field source_addresses? string[]|nil The addresses of this machine that connections start from, in turn. Each allows some 28,000 connections at a time to one server; null leaves the choice to the system.
---@field targets? veeksha.TargetServer[] Several servers of one model, in place of `api_base`. What one of them does not say is as it stands beside this list. Default: `[]`.
---@field tls? veeksha.Tls How an `https` server is trusted.
---@field tokenizer? string|nil The tokenizer that prompts are made with: a `tokenizer.json`, a model's folder, a name on the Hugging Face hub, or `embedded` for the small one inside the program. Null takes the model's own where it is found, else the embedded.
---@field type? "openai_chat_completions"
---@field use_min_tokens_prompt_fallback? boolean Whether the prompt asks for the answer's length in words, for a server that knows neither `ignore_eos` nor a minimum. Default: `false`.

---One of several servers. What it does not say is as it stands in `client`.
---@class veeksha.TargetServer
---@field api_base string Its address up to the version.
---@field api_key? string|nil The key sent to it.
---@field headers? table<string, string> Headers of the requests to it, besides those of all.
---@field proxy? string|nil The proxy on the way to it.
---@field tls? veeksha.Tls|nil How it is trusted.

---How an `https` server is trusted.
---@class veeksha.Tls
---@field ca_file? string|nil A PEM file of certificates that are trusted besides the system's.
---@field client_certificate? string|nil A PEM file with the certificate that this client shows, for servers that ask for one. Needs `client_key`.
---@field client_key? string|nil A PEM file with the certificate's private key.
---@field insecure? boolean Accepts any certificate. For tests only: nothing protects the key then. Default: `false`.

---When a run does not trust itself. Each metric's error, measured or estimated, is compared with the metric's own P50.
---@class veeksha.Certificate
---@field degraded? number An error of more than this share of a metric's P50 makes the run `DEGRADED`. Default: `0.01`.
---@field invalid? number An error of more than this share of a metric's P50 makes the run `INVALID`: exit code 6. Default: `0.05`.
---@field self_test? boolean Whether a twin on this machine, whose timings are known, is measured after the run at the run's own rate; its error becomes the bound printed beside each metric. The flag `--self-test` does the same. Default: `false`.
---@field self_test_seconds? number Seconds that the twin is measured. Default: `5.0`.

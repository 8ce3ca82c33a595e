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

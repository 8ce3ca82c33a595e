//! Sandboxed Luau: scenario files, session functions, agents as coroutines, metrics and checks.
//!
//! [`LuaScenario::load`] executes a scenario file and reads the table it returns, with the line of
//! each key. If the table has a function that generates sessions, [`LuaScenario::workload`] returns
//! a factory for it; [`LuaScenario::flavor`] returns one for functions that convert a trace's rows
//! to sessions. Each plugin thread opens a separate virtual machine, which executes the same text
//! again.
//!
//! **The sandbox.** A script has Luau's `string`, `table`, `math`, `utf8`, `bit32`, `buffer`,
//! `vector` and `coroutine`, without clocks, a random generator except the host's, files,
//! introspection or compilation. It runs under a deadline and a memory limit, and `require` reaches
//! only files below the scenario's folder. After loading, the globals and tables of a scenario are
//! read-only: session *i* depends only on the scenario, the run's seed and *i*. Locals outside a
//! function cannot be locked, so the first session of every machine is created twice and compared.
//!
//! **Text.** `synthetic(n)` without a seed gives unique text at each call: in a session, from the
//! seed (run, session, number of earlier segments in the session); at the top level of the
//! scenario, one text that all sessions share. `tool_result(name, n)` is the text
//! ``Result of the tool `name`:`` and a line break, followed by `n` synthetic tokens. It is part of
//! an ordinary user message, because servers accept a message of the role `tool` only after an
//! answer that called a tool.
//!
//! **Parents of agent requests.** A request follows everything that the code awaited last: its
//! parents are those nodes, and the responses in its `history` and `after`. So its intended time is
//! never before the agent could have received the responses.
//!
//! **Metrics and checks.** [`LuaScenario::evaluator`] returns the metrics and checks of a table of
//! `metrics`, `good` and `check`, in a scenario or in a separate file. A metric may keep state
//! between requests, in a machine that receives all requests in order of completion; `good` and
//! `check` depend only on their arguments.
//!
//! The API for authors is documented in `sdk/lua/README.md`.
#![forbid(unsafe_code)]

mod absent_libraries;
mod agent;
mod agent_functions;
mod agent_turn;
mod arrivals;
mod blocks;
mod budget;
mod chunk;
mod completion;
mod content;
mod duration;
mod error;
mod evaluator;
mod fault;
mod fields;
mod flavor;
mod globals;
mod host;
mod json;
mod limits;
mod log;
mod messages;
mod metrics;
mod modules;
mod opening;
mod places;
mod planned;
mod recorded;
mod request;
mod request_check;
mod response;
mod results;
mod returns;
mod rng;
mod rows;
mod samples;
mod scenario;
mod seeds;
mod segments;
mod session;
mod shape;
mod slo_check;
mod sources;
mod tokens;
mod tool_run;
mod tools;
mod value;
mod vm;
mod watch;
mod workload;

pub use error::LuaError;
pub use evaluator::LuaEvaluator;
pub use limits::{LogFunction, LuaGrants, LuaLimits, LuaTokenizer};
pub use scenario::LuaScenario;

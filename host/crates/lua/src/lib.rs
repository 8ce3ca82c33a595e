//! Sandboxed Luau: scenario files, session functions, agents as coroutines, metrics and checks.
//!
//! [`LuaScenario::load`] executes a scenario file and reads the table it returns, with the line of each key. If the table
//! holds a function that makes sessions, [`LuaScenario::workload`] gives a factory for it, and [`LuaScenario::flavor`] one
//! for functions that make sessions of a trace's rows; each plugin thread opens a virtual machine of its own, which executes
//! the same text again.
//!
//! **The sandbox.** A script has Luau's `string`, `table`, `math`, `utf8`, `bit32`, `buffer`, `vector` and `coroutine`,
//! without clocks, randomness of its own, files, introspection or compilation. It runs under a deadline and a memory
//! limit, and `require` reaches only files below the scenario's folder. Once a scenario is loaded, its globals and tables
//! are read-only: session *i* depends on the scenario, the run's seed and *i* alone. Locals outside a function cannot be
//! locked, so the first session of every machine is made twice and compared.
//!
//! **Text.** `synthetic(n)` without a seed gives text of its own wherever it is called: in a session, from the seed
//! (run, session, how many came before it in the session); at the top level of the scenario, one text that all sessions
//! share. `tool_result(name, n)` is the text ``Result of the tool `name`:`` and a line break, followed by `n` synthetic
//! tokens; it stands in an ordinary message of the user, because servers accept a message of the role `tool` only behind
//! an answer that really called a tool.
//!
//! **An agent's parents.** A request comes after everything that the code has waited for last: those nodes, and the
//! responses that it names in `history` and `after`, are its parents. So the instant at which the schedule intends a
//! request is never before the agent could have known of it.
//!
//! **Metrics and checks.** [`LuaScenario::evaluator`] gives what a table of `metrics`, `good` and `check` measures and judges, be
//! it part of a scenario or a file of its own. A metric may keep what it likes between requests, in a machine that sees all
//! requests in the order in which they ended; `good` and `check` depend on what they are given alone.
//!
//! The API for authors is documented in `sdk/lua/README.md`.
#![forbid(unsafe_code)]

mod agent;
mod agent_turn;
mod blocks;
mod budget;
mod completion;
mod duration;
mod error;
mod evaluator;
mod fault;
mod flavor;
mod globals;
mod host;
mod json;
mod limits;
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
mod rng;
mod rows;
mod samples;
mod scenario;
mod segments;
mod session;
mod shape;
mod slo_check;
mod sources;
mod tokens;
mod value;
mod vm;
mod watch;
mod workload;

pub use error::LuaError;
pub use evaluator::LuaEvaluator;
pub use limits::{CountTokens, LogSink, LuaGrants, LuaKind, LuaLimits};
pub use scenario::LuaScenario;

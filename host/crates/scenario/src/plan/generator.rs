//! Sources of sessions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::plan::component_use::ComponentUse;
use crate::plan::trace::Trace;
use crate::tree::Place;

/// A source of sessions.
#[derive(Clone, Debug, PartialEq)]
pub enum Generator {
    /// A component shipped inside the program.
    Shipped {
        /// Its name: the scenario's `type`.
        name: String,
        /// Its complete configuration: the keys next to `type`, and the defaults of its schema.
        config: Json,
    },
    /// A recorded trace.
    Trace(Box<Trace>),
    /// A component that is not shipped.
    Wasm {
        /// The component. [`crate::check_value`] checks its configuration against its schema, once
        /// that is known.
        component: ComponentUse,
        /// The run whose recorded decisions its own are compared with.
        recorded_run: Option<PathBuf>,
    },
    /// The recorded decisions of a run's agents, without the agents.
    Replay {
        /// The folder of the run as typed, relative to the scenario's folder.
        run: PathBuf,
        /// Images, sounds and videos that messages may name, and the path of each.
        files: BTreeMap<String, PathBuf>,
    },
    /// A function of the Lua scenario.
    Lua {
        /// The kind of function.
        kind: LuaKind,
        /// Number of sessions; `None` if unlimited.
        length: Option<u64>,
        /// The declared properties of all sessions.
        guarantees: LuaGuarantees,
        /// Images, sounds and videos that messages may name, and the path of each.
        files: BTreeMap<String, PathBuf>,
        /// The run whose recorded decisions those of the agent are compared with.
        recorded_run: Option<PathBuf>,
        /// The place of the function.
        place: Option<Place>,
    },
}

impl Generator {
    /// Returns the run whose recorded decisions those of the agents are compared with.
    pub fn recorded_run(&self) -> Option<&Path> {
        match self {
            Generator::Wasm { recorded_run, .. } | Generator::Lua { recorded_run, .. } => {
                recorded_run.as_deref()
            }
            Generator::Shipped { .. } | Generator::Trace(_) | Generator::Replay { .. } => None,
        }
    }
}

/// Properties that a Lua scenario declares for all sessions of its function. The default declares
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LuaGuarantees {
    /// No answer is requested with more tokens than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// The longest chain of requests in which each waits for the one before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// True if no prompt begins like the prompt of another session.
    pub distinct_prompts: bool,
}

/// The kind of a Lua scenario's generator function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LuaKind {
    /// `session_generator.sessions`: whole sessions ahead of time.
    Sessions,
    /// `session_generator.agent`: a coroutine for each session.
    Agent,
}

impl LuaKind {
    /// Returns the key of `session_generator` that holds the function.
    pub fn key(self) -> &'static str {
        match self {
            LuaKind::Sessions => "sessions",
            LuaKind::Agent => "agent",
        }
    }
}

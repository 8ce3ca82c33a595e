//! Where sessions come from.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value as Json;

use super::Trace;
use crate::Place;

/// Where sessions come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Generator {
    /// A component that is shipped inside the program.
    Shipped {
        /// Its name: the scenario's `type`.
        name: String,
        /// Its configuration, complete: what stood beside `type`, and the defaults of its schema.
        config: Json,
    },
    /// A recorded trace.
    Trace(Box<Trace>),
    /// A component in a file.
    Wasm {
        /// The file, as typed: relative to the scenario's folder.
        path: PathBuf,
        /// Its configuration as typed. [`crate::check_value`] checks it against the component's own schema, once that is
        /// known.
        config: Json,
        /// Files that it may read, by the name that it knows them by.
        files: BTreeMap<String, PathBuf>,
    },
    /// A function of the Lua scenario.
    Lua {
        /// Which kind of function.
        kind: LuaKind,
        /// How many sessions there are; `None` for no end.
        length: Option<u64>,
        /// Images, sounds and videos that its messages may name, and where each is.
        files: BTreeMap<String, PathBuf>,
        /// Where the function was written.
        place: Option<Place>,
    },
}

/// What a Lua scenario's function makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LuaKind {
    /// `session_generator.sessions`: whole sessions ahead of time.
    Sessions,
    /// `session_generator.agent`: a coroutine for each session.
    Agent,
}

impl LuaKind {
    /// The key of `session_generator` that holds the function.
    pub fn key(self) -> &'static str {
        match self {
            LuaKind::Sessions => "sessions",
            LuaKind::Agent => "agent",
        }
    }
}

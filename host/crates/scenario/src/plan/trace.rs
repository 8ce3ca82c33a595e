//! A recorded trace: where it is, how its rows are read, and the flavor that makes sessions of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::Place;

/// A recorded trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Everything but the flavor.
    pub keys: TraceKeys,
    /// What makes sessions of its rows.
    pub flavor: Flavor,
}

/// How a trace is read and replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceKeys {
    /// The trace: a file, or a folder of files, relative to the scenario's folder. JSON Lines, JSON or CSV, also compressed with
    /// gzip or zstd; the content tells which.
    #[schemars(with = "String", length(min = 1))]
    pub trace_file: PathBuf,
    /// Whether the trace begins again at its end, with new text, as often as it takes. Null: yes, but not for traffic that
    /// replays recorded arrivals.
    #[serde(default)]
    pub wrap_mode: Option<bool>,
    /// When sessions come in another order than the file's. Traffic that replays recorded arrivals keeps their order.
    #[serde(default)]
    pub shuffle: Shuffle,
    /// Renamed columns: the name in the file, and the name that the flavor knows.
    #[serde(default)]
    pub columns: BTreeMap<String, String>,
    /// What a row that cannot be used does.
    #[serde(default)]
    pub on_bad_row: OnBadRow,
    /// How much is checked before the run starts.
    #[serde(default)]
    pub check: RowCheck,
    /// The longest row that is read, in MiB.
    #[serde(default = "longest_row")]
    #[schemars(range(min = 1, max = 1024))]
    pub max_row_mib: u32,
    /// What makes synthetic text differ from that of an earlier run, so that a server's cache does not know it.
    #[serde(default)]
    pub salt: Salt,
    /// The folder of the images, sounds and videos that rows name, relative to the scenario's folder. Null: rows may name none.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub media_folder: Option<PathBuf>,
    /// Whether the flavor's warm-up requests are sent before the run, where it has any.
    #[serde(default = "yes")]
    pub warmup: bool,
}

fn longest_row() -> u32 {
    64
}

fn yes() -> bool {
    true
}

/// When the sessions of a trace come in another order than the file's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Shuffle {
    /// Never.
    Never,
    /// Each time that the trace begins again.
    #[default]
    Wrapped,
    /// Always, the first time too.
    Always,
}

/// What a row that cannot be used does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum OnBadRow {
    /// It is an error, before the run starts.
    #[default]
    Error,
    /// It is left out, with its whole session where the flavor refuses that; counted and listed.
    Skip,
}

/// How much of a trace is checked before the run starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum RowCheck {
    /// `whole` up to 256 MiB and where rows may be skipped, else `rows`.
    #[default]
    Auto,
    /// Every row, and every session by making it once.
    Whole,
    /// Every row by itself. What the flavor refuses ends the run when it gets there.
    Rows,
}

/// What makes synthetic text differ from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Salt {
    /// By name.
    Named(SaltName),
    /// A number: text is the same wherever it is the same.
    Fixed(#[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))] u64),
}

/// The salts that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum SaltName {
    /// Another one for each run; `config.yml` has its number. Shards of one run, and runs in virtual time, take it from the seed.
    Run,
    /// None: the text is the same in every run.
    Off,
}

impl Default for Salt {
    fn default() -> Self {
        Salt::Named(SaltName::Run)
    }
}

/// What makes sessions of a trace's rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Flavor {
    /// A component that is shipped inside the program.
    Shipped {
        /// Its name: the flavor's `type`.
        name: String,
        /// Its configuration, complete.
        config: Json,
    },
    /// A component in a file.
    Wasm {
        /// The file, as typed: relative to the scenario's folder.
        path: PathBuf,
        /// Its configuration as typed.
        config: Json,
        /// Files that it may read, by the name that it knows them by.
        files: BTreeMap<String, PathBuf>,
    },
    /// Functions of the Lua scenario.
    Lua {
        /// What they want of the file.
        layout: LuaLayout,
        /// Whether there is a function for warm-up sessions.
        has_warmup: bool,
        /// Where the flavor was written.
        place: Option<Place>,
    },
}

/// What a Lua flavor wants of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LuaLayout {
    /// The columns that it reads: the name of each, and what its cells hold.
    pub columns: BTreeMap<String, LuaColumn>,
    /// The column whose value is the same in the rows of one session. Null: each row is a session.
    #[serde(default)]
    pub group_by: Option<String>,
    /// The columns by which rows continue one another; the rows of a tree are one session.
    #[serde(default)]
    pub tree: Option<LuaTree>,
    /// Whether each session is one row of each file, drawn at random.
    #[serde(default)]
    pub pools: bool,
    /// Where the recorded arrival stands.
    #[serde(default)]
    pub arrival: Option<LuaArrival>,
    /// The member that holds the rows, where the file is one JSON object.
    #[serde(default)]
    pub rows_in: Option<String>,
    /// Keeps only the rows with the most frequent values of a column.
    #[serde(default)]
    pub keep: Option<LuaKeep>,
}

/// A column of a Lua flavor: what its cells hold, or that and more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum LuaColumn {
    /// A column that every row must have.
    Cell(Cell),
    /// A column in full.
    Full {
        /// What its cells hold.
        cell: Cell,
        /// Whether a row without it is refused.
        #[serde(default = "yes")]
        required: bool,
        /// Further names under which it may stand in a file.
        #[serde(default)]
        aliases: Vec<String>,
    },
}

/// What the cells of a column hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Cell {
    /// Text; a number is taken as its digits.
    Text,
    /// A whole number, 0 or more.
    Count,
    /// A whole number of either sign.
    Integer,
    /// A finite number.
    Number,
    /// True or false.
    Truth,
    /// A JSON array.
    Items,
    /// A JSON object.
    Members,
    /// Any JSON value.
    Anything,
}

/// The columns by which rows continue one another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LuaTree {
    /// The column with a row's own id.
    pub id: String,
    /// The column with the id of the row that it continues.
    pub parent: String,
}

/// Where the recorded arrival stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LuaArrival {
    /// The column.
    pub column: String,
    /// How it tells time.
    pub unit: TimeUnit,
}

/// How a column tells time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum TimeUnit {
    /// A number of seconds.
    Seconds,
    /// A number of milliseconds.
    Milliseconds,
    /// A number of microseconds.
    Microseconds,
    /// A number of nanoseconds.
    Nanoseconds,
    /// A date and a time.
    DateTime,
}

/// Which rows a Lua flavor keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LuaKeep {
    /// The column.
    pub column: String,
    /// How many of its values are kept.
    #[schemars(range(min = 1))]
    pub count: u32,
}

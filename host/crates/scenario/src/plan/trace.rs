//! A recorded trace: its files, its rows, and the flavor that makes sessions of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::plan::component_use::ComponentUse;
use crate::tree::Place;

/// A recorded trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// All keys except the flavor.
    pub keys: TraceKeys,
    /// The flavor that makes sessions of its rows.
    pub flavor: Flavor,
}

/// Reading and replay of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceKeys {
    /// The trace: a file, or a folder of files, relative to the scenario's folder. JSON Lines, JSON
    /// or CSV, optionally compressed with gzip or zstd; the format is detected from the content.
    #[schemars(with = "String", length(min = 1))]
    pub trace_file: PathBuf,
    /// True to restart the trace at its end, with new text, as often as needed. Null: true, except
    /// for traffic that replays recorded arrivals.
    #[serde(default)]
    pub wrap_mode: Option<bool>,
    /// When to shuffle sessions. Traffic that replays recorded arrivals keeps their order.
    #[serde(default)]
    pub shuffle: Shuffle,
    /// Renamed columns: a map from the name in the file to the flavor's name.
    #[serde(default)]
    pub columns: BTreeMap<String, String>,
    /// Treatment of unusable rows.
    #[serde(default)]
    pub on_bad_row: OnBadRow,
    /// Extent of the check before the run starts.
    #[serde(default)]
    pub check: RowCheck,
    /// Maximum row size in MiB.
    #[serde(default = "default_max_row_mib")]
    #[schemars(range(min = 1, max = 1024))]
    pub max_row_mib: u32,
    /// The salt that makes synthetic text differ from that of earlier runs, so that a server's
    /// cache does not contain it.
    #[serde(default)]
    pub salt: Salt,
    /// The folder of the images, sounds and videos that rows name, relative to the scenario's
    /// folder. Null: rows may not name any.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub media_folder: Option<PathBuf>,
    /// True to send the flavor's warm-up requests before the run, if it has any.
    #[serde(default = "yes")]
    pub warmup: bool,
}

fn default_max_row_mib() -> u32 {
    64
}

fn yes() -> bool {
    true
}

/// When to shuffle the sessions of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Shuffle {
    /// Never.
    Never,
    /// Each time that the trace restarts.
    #[default]
    Wrapped,
    /// Always, including the first pass.
    Always,
}

/// Treatment of unusable rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum OnBadRow {
    /// An error before the run starts.
    #[default]
    Error,
    /// The row is skipped, with its whole session if the flavor refuses it; skipped rows are
    /// counted and listed.
    Skip,
}

/// Extent of the check before the run starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum RowCheck {
    /// `whole` up to 256 MiB and if rows may be skipped, else `rows`.
    #[default]
    Auto,
    /// Every row, and every session by making it once.
    Whole,
    /// Every row by itself. A session that the flavor refuses ends the run when it is reached.
    Rows,
}

/// The salt that makes synthetic text differ from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Salt {
    /// A named salt.
    Named(SaltName),
    /// A fixed number: the same number gives the same text.
    Fixed(#[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))] u64),
}

/// Named salts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum SaltName {
    /// A different salt for each run; `config.yml` records its number. Shards of one run, and runs
    /// in virtual time, derive it from the seed.
    Run,
    /// No salt: the text is the same in every run.
    Off,
}

impl Default for Salt {
    fn default() -> Self {
        Salt::Named(SaltName::Run)
    }
}

/// The flavor that makes sessions of a trace's rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Flavor {
    /// A component shipped inside the program.
    Shipped {
        /// Its name: the flavor's `type`.
        name: String,
        /// Its configuration, complete.
        config: Json,
    },
    /// A component that is not shipped.
    Wasm(ComponentUse),
    /// Functions of the Lua scenario.
    Lua {
        /// Their requirements on the file.
        layout: LuaLayout,
        /// True if there is a function for warm-up sessions.
        has_warmup: bool,
        /// The place of the flavor.
        place: Option<Place>,
    },
}

/// A Lua flavor's requirements on the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LuaLayout {
    /// The columns that it reads, and the type of each.
    pub columns: BTreeMap<String, LuaColumn>,
    /// The column that has the same value in the rows of one session. Null: each row is a session.
    #[serde(default)]
    pub group_by: Option<String>,
    /// The columns that link a row to the row that it continues; the rows of a tree are one
    /// session.
    #[serde(default)]
    pub tree: Option<LuaTree>,
    /// True if each session consists of one row of each file, drawn at random.
    #[serde(default)]
    pub pools: bool,
    /// The column of the recorded arrival.
    #[serde(default)]
    pub arrival: Option<LuaArrival>,
    /// The member that holds the rows, if the file is a single JSON object.
    #[serde(default)]
    pub rows_in: Option<String>,
    /// Keeps only rows with the most frequent values of a column.
    #[serde(default)]
    pub keep: Option<LuaKeep>,
}

/// A column of a Lua flavor: the type of its cells, or a full description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum LuaColumn {
    /// A column that every row must have.
    Cell(Cell),
    /// A full description.
    Full {
        /// The type of its cells.
        cell: Cell,
        /// True to refuse rows without it.
        #[serde(default = "yes")]
        required: bool,
        /// Alternative names of the column in a file.
        #[serde(default)]
        aliases: Vec<String>,
    },
}

/// The type of a column's cells.
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

/// The columns that link rows into trees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LuaTree {
    /// The column with a row's id.
    pub id: String,
    /// The column with the id of the row that it continues.
    pub parent: String,
}

/// The recorded arrival.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LuaArrival {
    /// The column.
    pub column: String,
    /// The unit of its values.
    pub unit: TimeUnit,
}

/// The unit of a column of times.
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

/// The rows that a Lua flavor keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LuaKeep {
    /// The column.
    pub column: String,
    /// Number of values that are kept.
    #[schemars(range(min = 1))]
    pub count: u32,
}

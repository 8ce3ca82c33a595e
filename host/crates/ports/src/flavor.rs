//! Where the sessions of a recorded trace come from: what turns its rows into sessions.
//!
//! The types are those of the contract's interface `trace-flavor`, in the host's shape.

use veeksha_model::{Nanos, Session};

use crate::{PluginFailure, WorkloadInfo};

/// What the cells of a column hold. A cell that is absent, null or (in CSV) empty is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cell {
    /// Text. A number is taken as its digits.
    Text,
    /// A whole number, 0 or more.
    Count,
    /// A whole number of either sign.
    Integer,
    /// A finite number.
    Number,
    /// True or false.
    Truth,
    /// A JSON array, or the JSON text of one.
    Items,
    /// A JSON object, or the JSON text of one.
    Members,
    /// Any JSON value; in CSV, text.
    Anything,
}

impl Cell {
    /// The name in the contract.
    pub fn name(self) -> &'static str {
        match self {
            Cell::Text => "text",
            Cell::Count => "count",
            Cell::Integer => "integer",
            Cell::Number => "number",
            Cell::Truth => "truth",
            Cell::Items => "items",
            Cell::Members => "members",
            Cell::Anything => "anything",
        }
    }
}

/// A column that a flavor reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name under which the flavor finds it.
    pub name: String,
    /// Further names under which it may stand in a file.
    pub aliases: Vec<String>,
    /// What its cells hold.
    pub cell: Cell,
    /// Whether a row without it is refused.
    pub required: bool,
}

/// Which rows are one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Each row by itself.
    Row,
    /// Rows with the same value in this column; a row without a value is a group by itself.
    Column(String),
    /// A root and all rows that continue it, directly or not.
    Tree {
        /// The column with a row's own id.
        id: String,
        /// The column with the id of the row that it continues; absent or unknown: a root.
        parent: String,
    },
    /// One row of each file, drawn at random for each session.
    Pools,
}

/// How a column tells time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// A number of seconds.
    Seconds,
    /// A number of milliseconds.
    Milliseconds,
    /// A number of microseconds.
    Microseconds,
    /// A number of nanoseconds.
    Nanoseconds,
    /// ISO 8601 or `YYYY-MM-DD hh:mm:ss.fffffff`; without an offset it is UTC.
    DateTime,
}

/// Where the recorded arrival stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivalColumn {
    /// The column.
    pub column: String,
    /// Its unit.
    pub unit: TimeUnit,
}

/// Keeps only the rows with the most frequent values of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MostFrequent {
    /// The column.
    pub column: String,
    /// How many values are kept.
    pub count: u32,
}

/// What a flavor wants of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The columns that it reads; nothing else reaches it.
    pub columns: Vec<Column>,
    /// The member that holds the array of rows, where the file is one JSON object.
    pub rows_in: Option<String>,
    /// Which rows are one session.
    pub grouping: Grouping,
    /// Where the recorded arrival stands.
    pub arrival: Option<ArrivalColumn>,
    /// Which rows are kept.
    pub keep: Option<MostFrequent>,
    /// Whether it has warm-up sessions.
    pub warms_up: bool,
}

/// One row, checked against the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRow {
    /// Its number in the trace, from 1.
    pub number: u64,
    /// Its recorded arrival, relative to the earliest of the trace.
    pub at: Option<Nanos>,
    /// A JSON object of the layout's columns, under their own names; absent cells are left out.
    pub fields: String,
}

/// The rows of one session, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceGroup {
    /// Its number in the trace, from 0.
    pub index: u64,
    /// The value of the grouping column, or the id of the tree's root; else empty.
    pub key: String,
    /// The rows.
    pub rows: Vec<TraceRow>,
}

/// What is known of a whole trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFacts {
    /// Rows that are used.
    pub rows: u64,
    /// Groups of rows: sessions of one epoch.
    pub groups: u64,
    /// The fields of the first row.
    pub first_row: String,
}

/// Makes flavors. One factory serves all plugin threads; each thread opens an instance of its own, on that thread.
pub trait FlavorFactory: Send + Sync {
    /// What the plugin is.
    fn info(&self) -> &WorkloadInfo;

    /// Opens an instance. Called on the thread that will use it.
    fn open(&self) -> Result<Box<dyn Flavor>, PluginFailure>;
}

/// An open flavor. What it returns depends on (plugin, configuration, facts, epoch, groups) and on nothing else.
pub trait Flavor {
    /// What it wants of the file. The answer does not change while it is open.
    fn layout(&mut self) -> Result<Layout, PluginFailure>;

    /// One session for each group, in order; each has passed [`veeksha_model::check_session`]. `epoch` counts how often the
    /// trace has been wrapped.
    fn sessions(
        &mut self,
        facts: &TraceFacts,
        epoch: u64,
        groups: &[TraceGroup],
    ) -> Result<Vec<Session>, PluginFailure>;

    /// What is sent, one request after the other, before the run begins.
    fn warmup(&mut self, facts: &TraceFacts, groups: &[TraceGroup]) -> Result<Vec<Session>, PluginFailure>;
}

//! Trace flavors: plugins that turn the rows of a recorded trace into sessions.
//!
//! The types are those of the contract's interface `trace-flavor`, in the host's shape.

use veeksha_model::{Nanos, Session};

use crate::guarantees::Guarantees;
use crate::plugin_failure::PluginFailure;
use crate::workload::WorkloadInfo;

/// The type of a column's cells. A cell that is missing, null or (in CSV) empty is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellType {
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

impl CellType {
    /// The name in the contract.
    pub fn name(self) -> &'static str {
        match self {
            CellType::Text => "text",
            CellType::Count => "count",
            CellType::Integer => "integer",
            CellType::Number => "number",
            CellType::Truth => "truth",
            CellType::Items => "items",
            CellType::Members => "members",
            CellType::Anything => "anything",
        }
    }
}

/// A column that a flavor reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceColumn {
    /// The name under which the flavor finds it.
    pub name: String,
    /// Alternative column names in files.
    pub aliases: Vec<String>,
    /// The type of its cells.
    pub cell: CellType,
    /// True if a row without it is refused.
    pub required: bool,
}

/// The rule that groups rows into sessions.
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

/// The unit of a time column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampUnit {
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

/// The column with the recorded arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivalColumn {
    /// The column.
    pub column: String,
    /// The unit of its values.
    pub unit: TimestampUnit,
}

/// Keeps only the rows with the most frequent values of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MostFrequent {
    /// The column.
    pub column: String,
    /// Number of values that are kept.
    pub count: u32,
}

/// A flavor's description of the trace files that it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The columns that it reads; nothing else reaches it.
    pub columns: Vec<TraceColumn>,
    /// The member that holds the array of rows, where the file is one JSON object.
    pub rows_in: Option<String>,
    /// The rule that groups rows into sessions.
    pub grouping: Grouping,
    /// The column with the recorded arrival, if there is one.
    pub arrival: Option<ArrivalColumn>,
    /// The filter of rows, if there is one.
    pub keep: Option<MostFrequent>,
    /// True if the flavor has warm-up sessions.
    pub warms_up: bool,
}

/// One row, checked against the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRow {
    /// Row number in the trace, from 1.
    pub number: u64,
    /// Recorded arrival, relative to the earliest of the trace.
    pub at: Option<Nanos>,
    /// A JSON object of the layout's columns, under their own names; absent cells are left out.
    pub fields: String,
}

/// The rows of one session, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceGroup {
    /// Group number in the trace, from 0.
    pub index: u64,
    /// The value of the grouping column, or the id of the tree's root; else empty.
    pub key: String,
    /// The rows.
    pub rows: Vec<TraceRow>,
}

/// Facts about a whole trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFacts {
    /// Rows that are used.
    pub rows: u64,
    /// Groups of rows: sessions of one epoch.
    pub groups: u64,
    /// The fields of the first row.
    pub first_row: String,
}

/// Creates flavors. One factory serves all plugin threads; each thread opens a separate instance.
pub trait FlavorFactory: Send + Sync {
    /// Returns the plugin's name, version and permissions.
    fn info(&self) -> &WorkloadInfo;

    /// Opens an instance. Called on the thread that will use it.
    fn open(&self) -> Result<Box<dyn FlavorInstance>, PluginFailure>;

    /// Opens an instance whose log lines are dropped, for sessions that are made twice.
    fn open_silent(&self) -> Result<Box<dyn FlavorInstance>, PluginFailure> {
        self.open()
    }

    /// Returns the properties that all sessions share, as far as the plugin guarantees any.
    fn guarantees(&self) -> Result<Guarantees, PluginFailure> {
        Ok(Guarantees::default())
    }
}

/// An open flavor. What it returns depends on (plugin, configuration, facts, epoch, groups) and on
/// nothing else.
pub trait FlavorInstance {
    /// Returns the layout of the files. The result does not change while the flavor is open.
    fn layout(&mut self) -> Result<Layout, PluginFailure>;

    /// One session for each group, in order; each has passed [`veeksha_model::check_session`].
    /// `epoch` counts how often the trace has been wrapped.
    fn sessions(
        &mut self,
        facts: &TraceFacts,
        epoch: u64,
        groups: &[TraceGroup],
    ) -> Result<Vec<Session>, PluginFailure>;

    /// Returns the sessions that are sent, one request after the other, before the run begins.
    fn warmup(&mut self, facts: &TraceFacts, groups: &[TraceGroup]) -> Result<Vec<Session>, PluginFailure>;
}

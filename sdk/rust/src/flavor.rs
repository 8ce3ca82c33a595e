//! Plugins that turn the rows of a recorded trace into sessions.
//!
//! The host owns the file: it reads, checks, groups, orders and wraps the rows. A flavor says in
//! its [`Layout`] which columns it reads, and makes one session of each group of rows. Here, the
//! rows of a chat are its turns, and the prompts are hash blocks:
//!
//! ```
//! use veeksha_plugin::flavor::{
//!     Cell, Column, Group, Layout, Replay, TimeUnit, Trace, TraceFlavor, Turn, group,
//! };
//! use veeksha_plugin::{
//!     Error, LastBlock, Message, Plugin, Request, Role, Session, blocks, seed_of,
//! };
//!
//! struct Chats;
//!
//! #[derive(serde::Deserialize)]
//! struct Row {
//!     prompt: u32,
//!     answer: u32,
//!     hash_ids: Vec<u64>,
//! }
//!
//! impl Plugin for Chats {
//!     type Config = ();
//!     const NAME: &'static str = "chats";
//!     const VERSION: &'static str = "0.1.0";
//!     const SUMMARY: &'static str = "turns of chats, from hash blocks of 64 tokens";
//! }
//!
//! impl TraceFlavor for Chats {
//!     type Row = Row;
//!
//!     fn open(_config: ()) -> Result<Self, Error> {
//!         Ok(Chats)
//!     }
//!
//!     fn layout(&self) -> Layout {
//!         Layout::new([
//!             Column::required("chat", Cell::Text).or("chat_id"),
//!             Column::required("prompt", Cell::Count),
//!             Column::required("answer", Cell::Count),
//!             Column::required("hash_ids", Cell::Items),
//!             Column::required("time", Cell::Number),
//!         ])
//!         .grouped_by("chat")
//!         .arrivals("time", TimeUnit::Seconds)
//!     }
//!
//!     fn session(
//!         &self,
//!         _trace: &Trace<Row>,
//!         epoch: u64,
//!         group: &Group<Row>,
//!     ) -> Result<Replay, Error> {
//!         let (mut requests, mut turns) = (Vec::new(), Vec::new());
//!         for (node, row) in (0..).zip(&group.rows) {
//!             let cells = &row.cells;
//!             let block = |id| seed_of("chats", &[epoch, id]);
//!             let rest = seed_of("chats rest", &[epoch, row.number]);
//!             let prompt =
//!                 blocks(&cells.hash_ids, 64, cells.prompt, LastBlock::Partial, block, rest);
//!             let prompt = Message::new(Role::User, prompt.map_err(|why| row.error(why))?);
//!             requests.push(Request::new(node).message(prompt).output_exactly(cells.answer));
//!             turns.push(Turn { at: row.at, ..Turn::new(node) });
//!         }
//!         let session = Session { arrives_at: group.rows[0].at, ..Session::new(requests) };
//!         Ok(Replay::new(session, turns))
//!     }
//! }
//!
//! veeksha_plugin::export_trace_flavor!(Chats);
//!
//! // The logic runs natively, so an ordinary test can look at it:
//! let row = r#"{"prompt": 100, "answer": 20, "hash_ids": [7, 8]}"#;
//! let trace = Trace::new(1, 1, row);
//! let chat = group(0, "a", [(1, Some(0), row.to_owned())])?;
//! let replay = Chats.session(&trace, 0, &chat)?;
//! assert_eq!(replay.session.requests[0].messages[0].content.len(), 2);
//! assert_ne!(Chats.session(&trace, 1, &chat)?, replay, "another epoch, another text");
//! # Ok::<(), Error>(())
//! ```

use std::cell::OnceCell;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::bindings::trace_flavor::exports::veeksha::plugin::trace_flavor as contract;
use crate::{Error, Guarantees, Nanos, Plugin, Recording, Session, config, frame};

pub use crate::{Answer, HistoryMode};
pub use contract::{Arrival, Cell, Column, Grouping, Layout, MostFrequent, TimeUnit, Tree};

/// Turns the rows of a trace into sessions: one session for each group of rows.
///
/// What [`session`](Self::session) returns must depend on (configuration, trace, epoch, group) and
/// on nothing else: the host asks in any order, from several instances, and may ask twice.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a trace flavor",
    label = "does not implement `TraceFlavor`",
    note = "write `impl TraceFlavor for {Self} {{ .. }}`; the documentation of `TraceFlavor` has a whole one"
)]
pub trait TraceFlavor: Plugin {
    /// A row, with a field for each column of the layout; `Option` for columns that are not
    /// required. Allow unknown fields.
    type Row: DeserializeOwned;

    /// Opens the flavor.
    ///
    /// # Errors
    /// A configuration that cannot be; say where with [`Error::config`].
    fn open(config: Self::Config) -> Result<Self, Error>;

    /// Returns the properties that all sessions share. By default nothing is guaranteed.
    fn guarantees(&self) -> Guarantees {
        Guarantees::default()
    }

    /// Returns the columns and groups that it reads. [`Layout::new`] begins a layout.
    fn layout(&self) -> Layout;

    /// The session of a group. `epoch` counts how often the trace has been wrapped: text that must
    /// not repeat from one pass to the next depends on it.
    ///
    /// # Errors
    /// Rows that make no session; [`Row::error`] names the row. The user chooses whether that ends
    /// the run or skips the group.
    fn session(
        &self,
        trace: &Trace<Self::Row>,
        epoch: u64,
        group: &Group<Self::Row>,
    ) -> Result<Replay, Error>;

    /// What is sent before the run begins, for one group of the warm-up (see [`Layout`]); only if
    /// the layout says that the flavor warms up.
    ///
    /// # Errors
    /// As of [`session`](Self::session).
    fn warmup(&self, trace: &Trace<Self::Row>, group: &Group<Self::Row>) -> Result<Vec<Session>, Error> {
        let _ = (trace, group);
        Ok(Vec::new())
    }
}

/// A row of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<R> {
    /// Its number in the trace, from 1.
    pub number: u64,
    /// Its recorded arrival, relative to the earliest of the trace.
    pub at: Option<Nanos>,
    /// What stands in it.
    pub cells: R,
}

impl<R> Row<R> {
    /// An error about this row: code `row`, with the row's number before the message.
    pub fn error(&self, message: impl AsRef<str>) -> Error {
        row_error(self.number, message.as_ref())
    }

    /// A count that must be 1 or more.
    ///
    /// # Errors
    /// A count of 0, by its row and its column.
    pub fn positive(&self, column: &str, count: u32) -> Result<u32, Error> {
        if count == 0 {
            return Err(self
                .error(format!("`{column}` is 0; it is 1 or more"))
                .hint("`on_bad_row: skip` leaves such rows out, with all rows of their session"));
        }
        Ok(count)
    }
}

fn row_error(number: u64, message: &str) -> Error {
    Error::new("row", format!("row {number}: {message}"))
}

/// The rows of one session, in the order of the file; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<R> {
    /// Its number in the trace, from 0.
    pub index: u64,
    /// The value of the grouping column, or the id of the tree's root; else empty.
    pub key: String,
    /// The rows.
    pub rows: Vec<Row<R>>,
}

/// What is known of the whole trace.
pub struct Trace<R> {
    /// Rows that are used.
    pub rows: u64,
    /// Groups of rows: sessions of one pass.
    pub groups: u64,
    first: String,
    read: OnceCell<Option<R>>,
}

impl<R: DeserializeOwned> Trace<R> {
    /// A trace, for tests: the host makes the others. `first_row` is a JSON object.
    pub fn new(rows: u64, groups: u64, first_row: impl Into<String>) -> Self {
        Trace {
            rows,
            groups,
            first: first_row.into(),
            read: OnceCell::new(),
        }
    }

    /// The first row of the trace; read when it is asked for. `None` if there is none.
    pub fn first_row(&self) -> Option<&R> {
        self.read
            .get_or_init(|| serde_json::from_str(&self.first).ok())
            .as_ref()
    }
}

/// Reads the rows of a group, for the host's calls and for tests: each is its number, its arrival
/// and a JSON object.
///
/// # Errors
/// The first row that does not fit `R`, by its number.
pub fn group<R: DeserializeOwned>(
    index: u64,
    key: impl Into<String>,
    rows: impl IntoIterator<Item = (u64, Option<Nanos>, String)>,
) -> Result<Group<R>, Error> {
    let rows = rows.into_iter().map(|(number, at, fields)| {
        let cells = serde_json::from_str(&fields)
            .map_err(|error| row_error(number, &misfit::<R>(&fields, &error)))?;
        Ok(Row { number, at, cells })
    });
    Ok(Group {
        index,
        key: key.into(),
        rows: rows.collect::<Result<_, Error>>()?,
    })
}

/// Why a row does not fit its type. The reader of configurations is slower than `serde_json`, and
/// knows the place.
fn misfit<R: DeserializeOwned>(fields: &str, error: &serde_json::Error) -> String {
    match config::from_json::<R>(fields) {
        Err(Error { message, path, .. }) => match path.as_deref() {
            None | Some("") => message,
            Some(path) => format!("`{}`: {message}", path[1..].replace('/', ".")),
        },
        Ok(_) => error.to_string(),
    }
}

impl Layout {
    /// A layout of these columns in which each row is a session, without arrivals.
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        Layout {
            columns: columns.into(),
            rows_in: None,
            grouping: Grouping::Row,
            arrival: None,
            keep: None,
            warms_up: false,
        }
    }

    /// Rows with the same value in a column are one session.
    pub fn grouped_by(mut self, column: impl Into<String>) -> Self {
        self.grouping = Grouping::Column(column.into());
        self
    }

    /// A row continues the one whose id it names as its parent.
    pub fn tree(mut self, id: impl Into<String>, parent: impl Into<String>) -> Self {
        self.grouping = Grouping::Tree(Tree {
            id: id.into(),
            parent: parent.into(),
        });
        self
    }

    /// Arrivals stand in a column.
    pub fn arrivals(mut self, column: impl Into<String>, unit: TimeUnit) -> Self {
        self.arrival = Some(Arrival {
            column: column.into(),
            unit,
        });
        self
    }
}

impl Column {
    /// A column that every row must have.
    pub fn required(name: impl Into<String>, cell: Cell) -> Self {
        Column {
            required: true,
            ..Column::optional(name, cell)
        }
    }

    /// A column that a row may have.
    pub fn optional(name: impl Into<String>, cell: Cell) -> Self {
        Column {
            name: name.into(),
            aliases: Vec::new(),
            cell,
            required: false,
        }
    }

    /// Adds a name under which the column may stand in a file.
    pub fn or(mut self, alias: impl Into<String>) -> Self {
        self.aliases.push(alias.into());
        self
    }
}

/// The recording of a request in a [`Replay`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The node of the session that was recorded.
    pub node: u32,
    /// The history that the request sends.
    pub history: HistoryMode,
    /// The recorded answer; requests with [`HistoryMode::Recorded`] continue it.
    pub answer: Option<Answer>,
    /// The recorded send time, relative to the earliest arrival of the trace.
    pub at: Option<Nanos>,
    /// The recorded latency of the answer.
    pub latency: Option<Nanos>,
    /// The recorded tokens of the whole prompt.
    pub prompt_tokens: Option<u32>,
    /// The recorded tokens of the answer.
    pub output_tokens: Option<u32>,
}

impl Turn {
    /// A recording of which nothing is known; the request sends the model's real answers.
    pub fn new(node: u32) -> Self {
        Turn {
            node,
            history: HistoryMode::Live,
            answer: None,
            at: None,
            latency: None,
            prompt_tokens: None,
            output_tokens: None,
        }
    }
}

/// A session, and the recordings of its requests. A node without a turn is a new request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The session.
    pub session: Session,
    /// The recordings, in any order.
    pub turns: Vec<Turn>,
}

impl Replay {
    /// A session and its turns.
    pub fn new(session: impl Into<Session>, turns: impl Into<Vec<Turn>>) -> Self {
        Replay {
            session: session.into(),
            turns: turns.into(),
        }
    }

    /// The session as the host receives it, with each recording in its request.
    fn into_session(self) -> Result<Session, Error> {
        let Replay { mut session, turns } = self;
        for (index, turn) in turns.into_iter().enumerate() {
            let likely = session
                .requests
                .get(index)
                .filter(|request| request.node == turn.node);
            let place = match likely {
                Some(_) => Some(index),
                None => session
                    .requests
                    .iter()
                    .position(|request| request.node == turn.node),
            };
            let request = place.and_then(|place| session.requests.get_mut(place));
            let Some(request) = request.filter(|request| request.recording.is_none()) else {
                return Err(Error::new(
                    "turn",
                    format!("node {} of a turn is unknown or has two turns", turn.node),
                ));
            };
            request.recording = Some(Recording {
                history: turn.history,
                answer: turn.answer,
                at: turn.at,
                latency: turn.latency,
                prompt_tokens: turn.prompt_tokens,
                output_tokens: turn.output_tokens,
            });
        }
        Ok(session)
    }
}

/// A flavor as the contract sees it.
pub struct Exported<T>(PhantomData<T>);

/// An open flavor as the contract sees it.
pub struct Open<T>(T);

impl<T: TraceFlavor> contract::Guest for Exported<T> {
    type Flavor = Open<T>;

    frame::describe!(T);
}

impl<T: TraceFlavor> contract::GuestFlavor for Open<T> {
    fn open(config: String) -> Result<contract::Flavor, Error> {
        Ok(contract::Flavor::new(Open(frame::open(&config, T::open)?)))
    }

    fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }

    fn layout(&self) -> Layout {
        self.0.layout()
    }

    fn sessions(
        &self,
        trace: contract::Facts,
        epoch: u64,
        groups: Vec<contract::Group>,
    ) -> Result<Vec<Session>, Error> {
        let trace = Trace::new(trace.rows, trace.groups, trace.first_row);
        groups
            .into_iter()
            .map(|rows| self.0.session(&trace, epoch, &read(rows)?)?.into_session())
            .collect()
    }

    fn warmup(&self, trace: contract::Facts, groups: Vec<contract::Group>) -> Result<Vec<Session>, Error> {
        let trace = Trace::new(trace.rows, trace.groups, trace.first_row);
        let mut sessions = Vec::new();
        for rows in groups {
            sessions.extend(self.0.warmup(&trace, &read(rows)?)?);
        }
        Ok(sessions)
    }
}

fn read<R: DeserializeOwned>(rows: contract::Group) -> Result<Group<R>, Error> {
    let cells = rows.rows.into_iter().map(|row| (row.number, row.at, row.fields));
    group(rows.index, rows.key, cells)
}

/// Makes a type that is a [`TraceFlavor`] the trace flavor of this component.
///
/// The crate must be a `cdylib`. On other targets than WebAssembly nothing is exported, so that the
/// plugin's own tests run natively.
#[macro_export]
macro_rules! export_trace_flavor {
    ($flavor:ty) => {
        $crate::__export!(
            $flavor,
            $crate::flavor::TraceFlavor,
            ExportedFlavor,
            trace_flavor
        );
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Request, synthetic};

    /// Rows as turns; a row of length 0 is refused. It counts how often the trace was wrapped in
    /// the requests' seeds.
    struct Turns;

    impl Plugin for Turns {
        type Config = ();
        const NAME: &'static str = "turns";
        const VERSION: &'static str = "1";
        const SUMMARY: &'static str = "rows as turns";
    }

    impl TraceFlavor for Turns {
        type Row = Cells;

        fn open(_config: ()) -> Result<Self, Error> {
            Ok(Turns)
        }

        fn layout(&self) -> Layout {
            Layout::new([Column::required("length", Cell::Count)])
        }

        fn session(&self, trace: &Trace<Cells>, epoch: u64, group: &Group<Cells>) -> Result<Replay, Error> {
            let first = trace.first_row().map_or(0, |row| row.length);
            let request = |(node, row): (u32, &Row<Cells>)| {
                let length = row.positive("length", row.cells.length)?;
                Ok(Request::new(node).user(synthetic(epoch, first + length)))
            };
            let requests = (0..)
                .zip(&group.rows)
                .map(request)
                .collect::<Result<Vec<_>, Error>>()?;
            Ok(Replay::new(Session::new(requests), [Turn::new(0)]))
        }

        fn warmup(&self, _trace: &Trace<Cells>, group: &Group<Cells>) -> Result<Vec<Session>, Error> {
            let many = group.index as usize;
            Ok(vec![Request::new(0).user(group.key.as_str()).into(); many])
        }
    }

    fn facts(first_row: &str) -> contract::Facts {
        contract::Facts {
            rows: 9,
            groups: 3,
            first_row: first_row.into(),
        }
    }

    fn rows(index: u64, lengths: &[u32]) -> contract::Group {
        let row = |(number, length): (u64, &u32)| contract::Row {
            number,
            at: None,
            fields: format!("{{\"length\": {length}}}"),
        };
        contract::Group {
            index,
            key: format!("g{index}"),
            rows: (1..).zip(lengths).map(row).collect(),
        }
    }

    /// As the host calls it, a batch of groups at a time.
    #[test]
    fn groups_become_sessions_in_their_order() {
        let made = |first_row: &str, epoch, groups| {
            let sessions = contract::GuestFlavor::sessions(&Open(Turns), facts(first_row), epoch, groups)?;
            let content = |session: Session| {
                let requests = session.requests.into_iter();
                requests
                    .map(|mut request| request.messages.remove(0).content.remove(0))
                    .collect::<Vec<_>>()
            };
            Ok::<_, Error>(sessions.into_iter().map(content).collect::<Vec<_>>())
        };
        let two = || vec![rows(5, &[1, 2]), rows(0, &[30])];
        let text = |tokens| synthetic(4u64, tokens);
        assert_eq!(
            made(r#"{"length": 100}"#, 4, two()),
            Ok(vec![vec![text(101), text(102)], vec![text(130)]]),
            "with what the first row of the trace says"
        );
        assert_eq!(
            made("", 4, two()),
            Ok(vec![vec![text(1), text(2)], vec![text(30)]]),
            "a trace without rows"
        );
        let refused = made("", 0, vec![rows(0, &[1]), rows(1, &[1, 0])]).unwrap_err();
        assert_eq!(
            (refused.code.as_str(), refused.message.as_str()),
            ("row", "row 2: `length` is 0; it is 1 or more")
        );
    }

    #[test]
    fn turns_become_recordings_of_their_requests() {
        let session = || Session::new([Request::new(4).user("a"), Request::new(2).user("b")]);
        let turn = |node, at| Turn {
            at: Some(at),
            ..Turn::new(node)
        };
        let folded = |turns: &[Turn]| Replay::new(session(), turns).into_session();
        let at = |session: Session| {
            let requests = session.requests.into_iter();
            requests.map(|request| request.recording?.at).collect::<Vec<_>>()
        };
        assert_eq!(at(folded(&[turn(4, 1), turn(2, 2)]).unwrap()), [Some(1), Some(2)]);
        assert_eq!(at(folded(&[turn(2, 2)]).unwrap()), [None, Some(2)]);
        for wrong in [[turn(4, 1), turn(4, 1)], [turn(4, 1), turn(3, 1)]] {
            assert_eq!(folded(&wrong).unwrap_err().code, "turn");
        }
    }

    #[test]
    fn warm_up_sessions_of_all_groups_are_one_list() {
        let groups = vec![rows(2, &[1]), rows(0, &[1]), rows(1, &[1])];
        let sessions = contract::GuestFlavor::warmup(&Open(Turns), facts(""), groups).unwrap();
        let said: Vec<_> = sessions
            .iter()
            .map(|session| session.requests[0].messages[0].content[0].clone())
            .collect();
        assert_eq!(said, ["g2", "g2", "g1"].map(crate::text));
    }

    #[test]
    fn a_layout_is_written_down_shortly() {
        let layout = Layout::new([
            Column::required("id", Cell::Text).or("ID").or("key"),
            Column::optional("time", Cell::Number),
        ])
        .tree("id", "up")
        .arrivals("time", TimeUnit::Milliseconds);
        let names = &layout.columns[0];
        assert_eq!(
            (names.required, &names.aliases[..]),
            (true, &["ID".to_owned(), "key".to_owned()][..])
        );
        assert!(!layout.columns[1].required);
        assert!(
            matches!(&layout.grouping, Grouping::Tree(Tree { id, parent }) if id == "id" && parent == "up")
        );
        let column = layout.grouped_by("id");
        assert_eq!(column.grouping, Grouping::Column("id".into()));
        assert!(matches!(
            column.arrival,
            Some(Arrival {
                unit: TimeUnit::Milliseconds,
                ..
            })
        ));
        assert_eq!(
            (column.rows_in, column.keep, column.warms_up),
            (None, None, false)
        );
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Cells {
        length: u32,
        inner: Option<Vec<u32>>,
    }

    fn read(fields: &str) -> Result<Group<Cells>, Error> {
        group(0, "", [(7, None, fields.to_owned())])
    }

    #[test]
    fn a_row_that_does_not_fit_is_named_with_its_column() {
        assert_eq!(
            read(r#"{"length": 3, "other": 1}"#).unwrap().rows[0].cells.length,
            3
        );
        let refused = |fields| read(fields).unwrap_err().message;
        assert_eq!(
            refused(r#"{"length": 5000000000}"#),
            "row 7: `length`: expected a whole number from 0 to 4294967295, found integer `5000000000`"
        );
        assert_eq!(
            refused(r#"{"length": 1, "inner": [1, "x"]}"#),
            "row 7: `inner.1`: expected a whole number from 0 to 4294967295, found string \"x\""
        );
        assert_eq!(refused("{}"), "row 7: the key `length` is missing");
    }

    #[test]
    fn a_count_of_nothing_is_refused() {
        let group = read(r#"{"length": 3}"#).unwrap();
        let row = &group.rows[0];
        assert_eq!(row.positive("n", 1), Ok(1));
        assert_eq!(
            row.positive("n", 0).unwrap_err().message,
            "row 7: `n` is 0; it is 1 or more"
        );
    }
}

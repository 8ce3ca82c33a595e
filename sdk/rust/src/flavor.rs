//! Plugins that turn the rows of a recorded trace into sessions.
//!
//! The host owns the file: it reads, checks, groups, orders and wraps the rows. A flavor declares
//! in its [`Layout`] which columns it reads, and makes one session of each group of rows. Here, the
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
//! // The logic runs natively, so an ordinary test can check it:
//! let row = r#"{"prompt": 100, "answer": 20, "hash_ids": [7, 8]}"#;
//! let trace = Trace::new(1, 1, row);
//! let chat = group(0, "a", [(1, Some(0), row.to_owned())])?;
//! let replay = Chats.session(&trace, 0, &chat)?;
//! assert_eq!(replay.session.requests[0].messages[0].content.len(), 2);
//! assert_ne!(Chats.session(&trace, 1, &chat)?, replay, "another epoch, another text");
//! # Ok::<(), Error>(())
//! ```

mod cells;
mod layout;
mod replay;
mod row;

use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::bindings::trace_flavor::exports::veeksha::plugin::trace_flavor as contract;
use crate::frame;
use crate::plugin::Plugin;
use crate::types::{Error, Guarantees, Session};

pub use crate::types::{Answer, HistoryMode};
pub use contract::{Arrival, Cell, Column, Grouping, Layout, MostFrequent, TimeUnit, Tree};
pub use replay::{Replay, Turn};
pub use row::{Group, Row, Trace, group};

/// Turns the rows of a trace into sessions: one session for each group of rows.
///
/// The result of [`session`](Self::session) must depend on (configuration, trace, epoch, group) and
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
    /// An invalid configuration; give its place with [`Error::config`].
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

    /// The sessions that are sent before the run begins, for one group of the warm-up (see
    /// [`Layout`]); only if the layout declares that the flavor warms up.
    ///
    /// # Errors
    /// As of [`session`](Self::session).
    fn warmup(&self, trace: &Trace<Self::Row>, group: &Group<Self::Row>) -> Result<Vec<Session>, Error> {
        let _ = (trace, group);
        Ok(Vec::new())
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
    use crate::session::{synthetic, text};
    use crate::types::Request;

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
            "with the values of the first row"
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
    fn warm_up_sessions_of_all_groups_are_one_list() {
        let groups = vec![rows(2, &[1]), rows(0, &[1]), rows(1, &[1])];
        let sessions = contract::GuestFlavor::warmup(&Open(Turns), facts(""), groups).unwrap();
        let contents: Vec<_> = sessions
            .iter()
            .map(|session| session.requests[0].messages[0].content[0].clone())
            .collect();
        assert_eq!(contents, ["g2", "g2", "g1"].map(text));
    }

    #[derive(serde::Deserialize)]
    struct Cells {
        length: u32,
    }
}

//! What the functions of one virtual machine share with the host: the seed, the log, whose turn it is.

use std::cell::{Cell, RefCell};

use veeksha_model::Seed;
use veeksha_stats::RandomStream;

use crate::agent_turn::Turn;
use crate::limits::{CountTokens, LogSink};
use crate::segments::stream_seed;

/// The streams that seeds of synthetic text come from.
const SESSION_TEXT: &str = "lua.synthetic";
const SHARED_TEXT: &str = "lua.synthetic.shared";

/// Lines longer than this are cut.
const MAX_LINE: usize = 4_096;

/// Shared by the closures of one virtual machine.
pub(crate) struct Host {
    /// The run's seed.
    pub(crate) seed: u64,
    /// The tokenizer, if it was granted.
    pub(crate) tokens: Option<CountTokens>,
    log: LogSink,
    /// Set while something runs a second time: its lines have been written.
    pub(crate) quiet: Cell<bool>,
    /// The session that text is being made for; none while the scenario loads.
    pub(crate) session: Cell<Option<u64>>,
    /// Synthetic segments made so far, in this session or while loading.
    pub(crate) made: Cell<u64>,
    /// The agent whose coroutine runs now.
    pub(crate) turn: RefCell<Option<Turn>>,
}

impl Host {
    pub(crate) fn new(seed: u64, tokens: Option<CountTokens>, log: LogSink) -> Self {
        Host {
            seed,
            tokens,
            log,
            quiet: Cell::new(false),
            session: Cell::new(None),
            made: Cell::new(0),
            turn: RefCell::new(None),
        }
    }

    /// From here on, text belongs to `session`, of which `made` segments exist.
    pub(crate) fn enter(&self, session: u64, made: u64) {
        self.session.set(Some(session));
        self.made.set(made);
    }

    /// The seed of the next synthetic segment without one of its own. Text made while the scenario loads is the same in
    /// every session; text made in a session is the session's own.
    pub(crate) fn next_seed(&self) -> Seed {
        let index = self.made.replace(self.made.get() + 1);
        let stream = match self.session.get() {
            Some(session) => RandomStream::new(self.seed, session, SESSION_TEXT),
            None => RandomStream::new(self.seed, 0, SHARED_TEXT),
        };
        stream_seed(&stream, index)
    }

    /// Writes a line.
    pub(crate) fn write(&self, level: &str, line: &str) {
        if !self.quiet.get() {
            let end = line.char_indices().nth(MAX_LINE).map_or(line.len(), |(at, _)| at);
            (self.log)(level, &line[..end]);
        }
    }
}

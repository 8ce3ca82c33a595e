//! State shared by the host functions of one virtual machine: the seed, the log, the current turn.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use mlua::Table;
use veeksha_model::Seed;
use veeksha_stats::RandomStream;

use crate::limits::{LuaLimits, LuaTokenizer};
use crate::log::LuaLog;
use crate::rng::stream_of;

/// The random stream of seeds for synthetic text.
const SESSION_TEXT: &str = "lua.synthetic";
const SHARED_TEXT: &str = "lua.synthetic.shared";

/// State shared by the closures of one virtual machine.
pub(crate) struct LuaHost {
    /// The run's seed.
    pub(crate) seed: u64,
    /// The tokenizer, if granted.
    pub(crate) tokens: Option<LuaTokenizer>,
    /// Maximum bytes of the text of one call of a function of `tokens`.
    pub(crate) count_bytes: usize,
    pub(crate) log: LuaLog,
    /// The session that text is generated for; none while the scenario loads.
    pub(crate) session: Cell<Option<u64>>,
    /// The subagent that text is generated for; empty outside subagents.
    subagent: RefCell<Rc<str>>,
    /// The metatable of the objects that agents receive.
    pub(crate) session_methods: OnceCell<Table>,
    /// Synthetic segments created so far, in this session or subagent or while loading.
    pub(crate) made: Cell<u64>,
}

impl LuaHost {
    pub(crate) fn new(seed: u64, tokens: Option<LuaTokenizer>, log: LuaLog, limits: &LuaLimits) -> Self {
        LuaHost {
            seed,
            tokens,
            count_bytes: limits.count_bytes,
            log,
            session: Cell::new(None),
            subagent: RefCell::new(Rc::from("")),
            session_methods: OnceCell::new(),
            made: Cell::new(0),
        }
    }

    /// Switches to `session`.
    pub(crate) fn enter(&self, session: u64) {
        self.enter_subagent(session, Rc::from(""), 0);
    }

    /// Switches to a subagent of `session`, which already has `made` synthetic segments.
    pub(crate) fn enter_subagent(&self, session: u64, subagent: Rc<str>, made: u64) {
        self.session.set(Some(session));
        *self.subagent.borrow_mut() = subagent;
        self.made.set(made);
    }

    /// Returns the seed of the next synthetic segment without an explicit one. Text created while
    /// the scenario loads is shared by all sessions; text created in a session or subagent is
    /// unique to it, and does not depend on the other subagents.
    pub(crate) fn next_seed(&self) -> Seed {
        let index = self.made.replace(self.made.get() + 1);
        let stream = match self.session.get() {
            Some(session) => {
                let name = stream_of(SESSION_TEXT, &self.subagent.borrow());
                RandomStream::new(self.seed, session, &name)
            }
            None => RandomStream::new(self.seed, 0, SHARED_TEXT),
        };
        stream_seed(&stream, index)
    }
}

/// Returns words `2 i` and `2 i + 1` of a stream, as a seed.
pub(crate) fn stream_seed(stream: &RandomStream, index: u64) -> Seed {
    Seed {
        high: stream.word(2 * index),
        low: stream.word(2 * index + 1),
    }
}

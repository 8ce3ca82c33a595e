//! Deadlines: the interrupt that Luau calls at every loop iteration, call and pattern step.
//!
//! After the deadline, every further interrupt raises an error again. A `pcall` can catch one of
//! them, but the code after it triggers the next at its first call or loop, so the stack unwinds
//! completely.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use mlua::{Lua, VmState};
use veeksha_clock::RunClock;
use veeksha_model::Nanos;

/// Interrupts per reading of the clock. Small, because one iteration may do much work inside a
/// library function.
const STRIDE: u32 = 16;

/// The deadline of the running call.
pub(crate) struct CallWatch {
    clock: RunClock,
    deadline: Cell<Nanos>,
    allowed: Cell<Duration>,
    ticks: Cell<u32>,
    tripped: RefCell<Option<String>>,
}

impl CallWatch {
    pub(crate) fn new() -> Self {
        CallWatch {
            clock: RunClock::starting_now(),
            deadline: Cell::new(Nanos::MAX),
            allowed: Cell::new(Duration::ZERO),
            ticks: Cell::new(0),
            tripped: RefCell::new(None),
        }
    }

    /// Starts a call with the time limit `allowed`, and returns its beginning.
    pub(crate) fn begin(&self, allowed: Duration) -> Nanos {
        let nanos = u64::try_from(allowed.as_nanos()).unwrap_or(u64::MAX);
        let now = self.clock.now();
        self.allowed.set(allowed);
        self.deadline.set(now.saturating_add(nanos));
        *self.tripped.borrow_mut() = None;
        now
    }

    /// Returns the time since the beginning of a call.
    pub(crate) fn since(&self, begun: Nanos) -> Nanos {
        self.clock.now().saturating_sub(begun)
    }

    /// Ends the call. Returns the time limit and the stack at the deadline, if it passed.
    pub(crate) fn end(&self) -> Option<(Duration, String)> {
        self.deadline.set(Nanos::MAX);
        self.tripped
            .borrow_mut()
            .take()
            .map(|stack| (self.allowed.get(), stack))
    }

    /// Handles an interrupt.
    pub(crate) fn interrupt(&self, lua: &Lua) -> mlua::Result<VmState> {
        let ticks = self.ticks.get().wrapping_add(1);
        self.ticks.set(ticks);
        if self.tripped.borrow().is_none() && !ticks.is_multiple_of(STRIDE) {
            return Ok(VmState::Continue);
        }
        self.check(lua).map(|()| VmState::Continue)
    }

    /// Raises an error if the deadline has passed. For host functions that take long, which Luau
    /// does not interrupt.
    pub(crate) fn check(&self, lua: &Lua) -> mlua::Result<()> {
        if self.tripped.borrow().is_none() && self.clock.now() < self.deadline.get() {
            return Ok(());
        }
        // A traceback needs stack space, which may be exhausted here; a later interrupt further out
        // provides it.
        if self.tripped.borrow().as_ref().is_none_or(String::is_empty) {
            let stack = lua
                .traceback(None, 0)
                .map(|text| text.to_string_lossy())
                .unwrap_or_default();
            *self.tripped.borrow_mut() = Some(stack);
        }
        Err(mlua::Error::runtime("the time allowed for this call is over"))
    }
}

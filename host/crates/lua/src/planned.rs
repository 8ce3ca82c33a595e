//! `sessions = function(index, rng)`: whole sessions ahead of time.

use std::collections::HashSet;

use mlua::{Function, Value};
use veeksha_model::{NodeId, Session, check_session};
use veeksha_ports::{PluginFailure, SessionSource};

use crate::budget::Budget;
use crate::duration;
use crate::fault::Fault;
use crate::request::{Draft, MAX_REQUESTS, each_field, labels};
use crate::rng::Rng;
use crate::shape::{At, Shape};
use crate::vm::Vm;

const FIELDS: [&str; 3] = ["requests", "labels", "arrives_at"];

/// A session function in a virtual machine of its own.
pub(crate) struct Planned {
    pub(crate) vm: Vm,
    pub(crate) function: Function,
    /// The plugin's name in messages.
    pub(crate) plugin: String,
    /// How many sessions the scenario asked for; then where the function ended the workload.
    pub(crate) length: Option<u64>,
    /// The first session of this machine has been made twice and came out equal.
    pub(crate) proven: bool,
}

impl Planned {
    /// Session `index`; none where the workload ends.
    fn session(&self, index: u64) -> Result<Option<Session>, Fault> {
        self.vm.host.enter(index, 0);
        let seed = self.vm.host.seed;
        let value = self.vm.call(|lua| {
            let rng = lua.create_userdata(Rng::new(seed, index))?;
            self.function.call::<Value>((index as f64, rng))
        })?;
        if value.is_nil() {
            return Ok(None);
        }
        let session = read_session(&value).map_err(|shape| self.at_function(shape.to_string()))?;
        check_session(&session.requests, &HashSet::new())
            .map_err(|error| self.at_function(format!("the session cannot run: {error}")))?;
        Ok(Some(session))
    }

    /// A fault of the value that the function returned: the nearest place is the function itself.
    fn at_function(&self, message: String) -> Fault {
        let info = self.function.info();
        let mut fault = Fault::shape(message);
        fault.file = info.short_src;
        fault.line = info.line_defined.and_then(|line| u32::try_from(line).ok());
        fault
    }

    /// Makes `index` a second time: a function that counts, or keeps what it drew, is found out here.
    fn prove(&self, index: u64, first: &Option<Session>) -> Result<(), Fault> {
        self.vm.host.quiet.set(true);
        let second = self.session(index);
        self.vm.host.quiet.set(false);
        if second? == *first {
            return Ok(());
        }
        Err(self.at_function(format!(
            "session {index} came out differently when it was made again: the function must depend on `index` and `rng` \
             alone, so it must not change locals or tables outside itself"
        )))
    }

    fn failure(&self, fault: Fault, index: u64) -> PluginFailure {
        fault.into_failure(&self.plugin, "sessions", Some(format!("index = {index}")))
    }
}

impl SessionSource for Planned {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(self.length)
    }

    fn sessions(&mut self, first: u64, count: u32) -> Result<Vec<Session>, PluginFailure> {
        let mut sessions = Vec::new();
        for index in first..first.saturating_add(u64::from(count)) {
            if self.length.is_some_and(|length| index >= length) {
                break;
            }
            let session = self.session(index).map_err(|fault| self.failure(fault, index))?;
            if !self.proven {
                self.prove(index, &session)
                    .map_err(|fault| self.failure(fault, index))?;
                self.proven = true;
            }
            match session {
                Some(session) => sessions.push(session),
                None => {
                    self.length = Some(index);
                    break;
                }
            }
        }
        Ok(sessions)
    }
}

fn read_session(value: &Value) -> Result<Session, Shape> {
    let at = At::Root("");
    let root = At::Root("session");
    let Value::Table(table) = value else {
        return Err(root.expected(
            "a table: { requests = { ... } }, or nil where the workload ends",
            value,
        ));
    };
    let budget = Budget::new();
    let mut session = Session::default();
    each_field(&at, table, &FIELDS, |key, at, value| {
        match key {
            "labels" => session.labels = labels(at, value, &budget)?,
            "arrives_at" => session.arrives_at = Some(duration::nanos(at, value)?),
            _ => {
                let Value::Table(list) = value else {
                    return Err(at.expected("a list of requests", value));
                };
                let length = list.raw_len();
                if length > MAX_REQUESTS {
                    return Err(at.shape(format!("{length} requests; a session may have {MAX_REQUESTS}")));
                }
                for index in 1..=length {
                    let item: Value = list.raw_get(index).unwrap_or(Value::Nil);
                    let draft = Draft::read(&At::Index(at, index), &item, &budget)?;
                    let node = draft.node.unwrap_or(NodeId(index as u32));
                    session.requests.push(draft.finish(node, &[]));
                }
            }
        }
        Ok(())
    })
    .map_err(|mut shape| {
        if shape.path.is_empty() {
            shape.path = "session".to_owned();
        }
        shape
    })?;
    Ok(session)
}

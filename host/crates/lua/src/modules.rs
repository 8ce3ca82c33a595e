//! `require` and `include`: the scenario's other files, each executed once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use mlua::{Lua, MultiValue, Value};

use crate::chunk::{compile, freeze};
use crate::content::string;
use crate::shape::At;
use crate::sources::{LuaSource, Sources, module_key};

/// Origin of the text of a required file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModuleOrigin {
    /// Read from disk: the scenario is being loaded.
    Disk,
    /// Stored by the load: a workload is being opened.
    Kept,
}

enum ModuleEntry {
    Running,
    Done(Value),
}

/// The files of a scenario in one virtual machine.
pub(crate) struct Loader {
    sources: Sources,
    origin: ModuleOrigin,
    entries: HashMap<String, ModuleEntry>,
    /// The files being executed, outermost first, for the message about a cycle.
    path: Vec<String>,
    closed: bool,
}

impl Loader {
    pub(crate) fn new(sources: Sources, origin: ModuleOrigin) -> Self {
        Loader {
            sources,
            origin,
            entries: HashMap::new(),
            path: Vec::new(),
            closed: false,
        }
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Ends loading: files can no longer be required.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Registers the globals `require` and `include`.
    pub(crate) fn install(loader: &Rc<RefCell<Self>>, lua: &Lua) -> mlua::Result<()> {
        for name in ["require", "include"] {
            let loader = loader.clone();
            let function = lua.create_function(move |lua, file: Value| require(&loader, lua, name, &file))?;
            lua.globals().raw_set(name, function)?;
        }
        Ok(())
    }

    fn begin(&mut self, call: &str, key: &str) -> mlua::Result<LoadStep> {
        let at = At::Root(call);
        if self.closed {
            let message =
                format!("`{key}`: files can be required only while the scenario is loaded, not in a session");
            return Err(at.shape(message).into());
        }
        match self.entries.get(key) {
            Some(ModuleEntry::Done(value)) => return Ok(LoadStep::Known(value.clone())),
            Some(ModuleEntry::Running) => {
                let path = self
                    .path
                    .iter()
                    .map(String::as_str)
                    .chain([key])
                    .collect::<Vec<_>>()
                    .join(" → ");
                return Err(at.shape(format!("the files require one another: {path}")).into());
            }
            None => {}
        }
        let source = match (self.sources.module(key), self.origin) {
            (Some(source), _) => source.clone(),
            (None, ModuleOrigin::Disk) => {
                let source = self.sources.find(key).map_err(|message| at.shape(message))?;
                self.sources.keep(key.to_owned(), source.clone());
                source
            }
            (None, ModuleOrigin::Kept) => {
                let message = format!("`{key}` was not required when the scenario was loaded");
                return Err(at.shape(message).into());
            }
        };
        self.entries.insert(key.to_owned(), ModuleEntry::Running);
        self.path.push(key.to_owned());
        Ok(LoadStep::Run(source))
    }

    fn finish(&mut self, key: String, value: Value) {
        self.path.pop();
        self.entries.insert(key, ModuleEntry::Done(value));
    }

    fn abandon(&mut self, key: &str) {
        self.path.pop();
        self.entries.remove(key);
    }
}

enum LoadStep {
    Known(Value),
    Run(LuaSource),
}

fn require(loader: &Rc<RefCell<Loader>>, lua: &Lua, call: &str, file: &Value) -> mlua::Result<Value> {
    let key = module_key(call, &string(&At::Root(call), file)?)?;
    let step = loader.borrow_mut().begin(call, &key)?;
    let source = match step {
        LoadStep::Known(value) => return Ok(value),
        LoadStep::Run(source) => source,
    };
    let result = compile(lua, &source).and_then(|chunk| chunk.call::<MultiValue>(()));
    match result {
        Ok(values) => {
            let value = values.into_iter().next().unwrap_or(Value::Nil);
            if let Value::Table(table) = &value {
                freeze(table);
            }
            loader.borrow_mut().finish(key, value.clone());
            Ok(value)
        }
        Err(error) => {
            loader.borrow_mut().abandon(&key);
            Err(error)
        }
    }
}

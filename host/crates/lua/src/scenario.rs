//! Loading a scenario file, and finding its functions.

use std::path::Path;
use std::sync::{Arc, Mutex};

use veeksha_ports::{FlavorFactory, Layout, WorkloadFactory, WorkloadInfo, check_layout};
use veeksha_scenario::{Document, Node, Value};

use crate::error::LuaError;
use crate::fault::{Fault, FaultKind};
use crate::flavor::LuaFlavorFactory;
use crate::host::Host;
use crate::limits::{LuaGrants, LuaKind, LuaLimits};
use crate::modules::Origin;
use crate::opening::Opening;
use crate::places::Places;
use crate::sources::Sources;
use crate::value;
use crate::vm::Vm;
use crate::workload::LuaFactory;

/// Lines that the top level of a scenario may write.
const MAX_MESSAGES: usize = 200;

/// A scenario that was loaded: what it says, and the text of its files.
#[derive(Debug)]
pub struct LuaScenario {
    /// The table that the scenario returned, with places. Functions stand in it as [`Value::Function`].
    pub document: Document,
    /// What the top level wrote with `log.*` and `print`: level and line.
    pub messages: Vec<(String, String)>,
    root: Node,
    sources: Arc<Sources>,
    limits: LuaLimits,
}

impl LuaScenario {
    /// Executes the file at `path` in a sandbox and reads the table it returns.
    ///
    /// # Errors
    /// Every way in which a file can fail to be a scenario has its own [`LuaError`].
    pub fn load(path: &Path, limits: LuaLimits) -> Result<Self, LuaError> {
        let sources = Sources::read(path)?;
        let file = sources.main.name.to_string();
        let messages = Arc::new(Mutex::new(Vec::new()));
        let sink = messages.clone();
        let log = Arc::new(move |level: &str, line: &str| {
            if let Ok(mut messages) = sink.lock()
                && messages.len() < MAX_MESSAGES
            {
                messages.push((level.to_owned(), line.to_owned()));
            }
        });
        let failed = |fault: Fault| load_error(fault, &file);
        // The seed of a run is not known yet. What the top level makes of it (seeds of shared text) is not part of the
        // document, so any seed gives the same document.
        let vm = Vm::new(limits, Host::new(0, None, log)).map_err(failed)?;
        let (result, sources) = vm.execute(sources, Origin::Disk).map_err(failed)?;
        let mlua::Value::Table(table) = result else {
            let found = crate::shape::describe(&result);
            return Err(LuaError::NotATable { file, found });
        };
        let places = Places::scan(&sources.main.text);
        let root = value::document(&table, &places, &sources.main.name)?;
        drop(vm);
        let messages = messages
            .lock()
            .map(|mut lines| std::mem::take(&mut *lines))
            .unwrap_or_default();
        Ok(LuaScenario {
            document: Document::new(root.clone()),
            messages,
            root,
            sources: Arc::new(sources),
            limits,
        })
    }

    /// Changes the limits of workloads opened from now on: those of a scenario are known only when it has been read.
    pub fn set_limits(&mut self, limits: LuaLimits) {
        self.limits = limits;
    }

    /// BLAKE3 over the names and texts of the scenario's files, in hex.
    pub fn digest(&self) -> String {
        self.sources.digest()
    }

    /// A factory for the function at `function_path` (`session_generator.sessions`).
    ///
    /// `length` is how many sessions there are; without it the workload goes on until the function returns nil (for
    /// agents: without end).
    ///
    /// # Errors
    /// [`LuaError::NotAFunction`] if something else, or nothing, is there.
    pub fn workload(
        &self,
        function_path: &str,
        kind: LuaKind,
        length: Option<u64>,
        grants: LuaGrants,
    ) -> Result<Arc<dyn WorkloadFactory>, LuaError> {
        self.is_function(function_path)?;
        Ok(Arc::new(LuaFactory {
            info: self.info(format!("the Lua function `{function_path}`"), &grants),
            opening: self.opening(grants),
            path: function_path.to_owned(),
            kind,
            length,
        }))
    }

    /// A factory for the flavor whose functions `session` and, if it warms up, `warmup` are in the table at `place`
    /// (`session_generator.flavor`). What it wants of the file is `layout`; whether it warms up is `has_warmup`.
    ///
    /// # Errors
    /// [`LuaError::NotAFunction`] if something else, or nothing, is there; [`LuaError::Layout`] for a layout that cannot be
    /// followed.
    pub fn flavor(
        &self,
        place: &str,
        layout: Layout,
        has_warmup: bool,
        grants: LuaGrants,
    ) -> Result<Arc<dyn FlavorFactory>, LuaError> {
        let function = format!("{place}.session");
        self.is_function(&function)?;
        if has_warmup {
            self.is_function(&format!("{place}.warmup"))?;
        }
        check_layout(&layout).map_err(|error| LuaError::Layout {
            file: self.sources.main.name.to_string(),
            path: place.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Arc::new(LuaFlavorFactory {
            info: self.info(format!("the Lua function `{function}`"), &grants),
            opening: self.opening(grants),
            place: place.to_owned(),
            layout: Layout {
                warms_up: has_warmup,
                ..layout
            },
        }))
    }

    fn is_function(&self, path: &str) -> Result<(), LuaError> {
        let found = match find(&self.root, path).map(|node| &node.value) {
            Some(Value::Function) => return Ok(()),
            Some(_) => "a value of another kind",
            None => "nothing",
        };
        Err(LuaError::NotAFunction {
            file: self.sources.main.name.to_string(),
            path: path.to_owned(),
            found: found.to_owned(),
        })
    }

    fn info(&self, summary: String, grants: &LuaGrants) -> WorkloadInfo {
        let digest = self.digest();
        let mut granted = vec!["log".to_owned(), "random".to_owned()];
        if grants.tokens.is_some() {
            granted.push("tokens".to_owned());
        }
        WorkloadInfo {
            name: self.sources.title.clone(),
            // A script has no version but what it says.
            version: digest.chars().take(12).collect(),
            summary,
            engine: "lua",
            digest,
            granted,
        }
    }

    fn opening(&self, grants: LuaGrants) -> Opening {
        Opening {
            sources: self.sources.clone(),
            limits: self.limits,
            grants,
        }
    }
}

fn find<'a>(root: &'a Node, path: &str) -> Option<&'a Node> {
    path.split('.').try_fold(root, |node, step| match &node.value {
        Value::Map(entries) => entries.iter().find(|(key, _)| key == step).map(|(_, node)| node),
        Value::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
        _ => None,
    })
}

fn load_error(fault: Fault, main: &str) -> LuaError {
    let Fault {
        kind,
        message,
        file,
        line,
        frames,
    } = fault;
    match kind {
        FaultKind::Syntax => LuaError::Syntax {
            file: file.unwrap_or_else(|| main.to_owned()),
            line: line.unwrap_or(1),
            message,
        },
        FaultKind::Deadline(allowed) => LuaError::Deadline {
            file,
            line,
            allowed_ms: u64::try_from(allowed.as_millis()).unwrap_or(u64::MAX),
            frames,
        },
        FaultKind::Memory(allowed) => LuaError::Memory {
            file: main.to_owned(),
            allowed: allowed as u64,
        },
        FaultKind::Raised | FaultKind::Shape | FaultKind::Refused => {
            let file = Some(file.unwrap_or_else(|| main.to_owned()));
            LuaError::Runtime {
                file,
                line,
                message,
                frames,
            }
        }
    }
}

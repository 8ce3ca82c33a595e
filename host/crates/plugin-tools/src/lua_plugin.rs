//! A Lua file as a plugin: the functions in the table that it returns.
//!
//! The table is a plugin (`{ sessions = … }`, `{ agent = … }`, `{ arrivals = … }`, a flavor with
//! `session` and `columns`, an evaluator with `metrics`, `good` or `check`) or a scenario, whose
//! functions are at their usual places.

use std::sync::Arc;

use veeksha_app::{CommandFailure, StandaloneHost};
use veeksha_lua::{LuaGrants, LuaLimits, LuaScenario};
use veeksha_manifest::PluginKind;
use veeksha_ports::{
    ArrivalFactory, FlavorFactory, MetricFactory, RequestCheckFactory, SloCheck, WorkloadFactory,
};
use veeksha_scenario::{LuaKind, Node, Value};

use crate::plugin_file::PluginFile;

/// A function of a Lua file by its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LuaFunction {
    kind: PluginKind,
    /// The path of the function, or of the table that has it.
    path: String,
}

/// A loaded Lua file with at least one function of a plugin.
#[derive(Clone, Debug)]
pub(crate) struct LuaPlugin {
    lua: LuaScenario,
    name: String,
    functions: Vec<LuaFunction>,
}

impl LuaPlugin {
    /// Executes a Lua file and finds its functions.
    pub(crate) fn load(file: &PluginFile) -> Result<Self, CommandFailure> {
        let lua = LuaScenario::load(&file.path, LuaLimits::default()).map_err(CommandFailure::usage)?;
        let functions = functions(lua.root());
        if functions.is_empty() {
            return Err(CommandFailure::usage(format!(
                "{} returns a table without functions of a plugin",
                file.path.display()
            ))
            .hinted(
                "a plugin is a table with `sessions`, `agent`, `arrivals`, `session` and `columns`, `metrics`, \
                 `good` or `check`, or a scenario with such functions",
            ));
        }
        Ok(LuaPlugin {
            name: file.name(),
            lua,
            functions,
        })
    }

    /// Returns the kinds of its functions, each once.
    pub(crate) fn kinds(&self) -> Vec<PluginKind> {
        let has = |kind: &PluginKind| self.functions.iter().any(|function| function.kind == *kind);
        PluginKind::ALL.into_iter().filter(has).collect()
    }

    /// Returns the digest of its files, in hex.
    pub(crate) fn digest(&self) -> String {
        self.lua.digest()
    }

    fn path(&self, kind: PluginKind) -> Result<&str, CommandFailure> {
        let function = self.functions.iter().find(|function| function.kind == kind);
        function.map(|function| function.path.as_str()).ok_or_else(|| {
            CommandFailure::usage(format!(
                "the Lua file `{}` has no function of the kind {kind}",
                self.name
            ))
        })
    }

    pub(crate) fn workload(
        &self,
        kind: PluginKind,
        grants: LuaGrants,
    ) -> Result<Arc<dyn WorkloadFactory>, CommandFailure> {
        let typed = match kind {
            PluginKind::AgentGenerator => LuaKind::Agent,
            _ => LuaKind::Sessions,
        };
        let opened = self.lua.workload(self.path(kind)?, typed, None, grants);
        opened.map_err(CommandFailure::usage)
    }

    pub(crate) fn arrivals(&self, grants: LuaGrants) -> Result<Arc<dyn ArrivalFactory>, CommandFailure> {
        let path = self.path(PluginKind::ArrivalProcess)?;
        self.lua.arrivals(path, grants).map_err(CommandFailure::usage)
    }

    pub(crate) fn flavor(
        &self,
        host: &StandaloneHost,
        grants: LuaGrants,
    ) -> Result<Arc<dyn FlavorFactory>, CommandFailure> {
        let path = self.path(PluginKind::TraceFlavor)?;
        host.lua_flavor(&self.lua, path, grants)
    }

    pub(crate) fn metric(&self, grants: LuaGrants) -> Result<Arc<dyn MetricFactory>, CommandFailure> {
        let path = self.path(PluginKind::Metric)?;
        self.lua
            .metric(path, &self.name, grants)
            .map_err(CommandFailure::usage)
    }

    pub(crate) fn request_check(
        &self,
        grants: LuaGrants,
    ) -> Result<Arc<dyn RequestCheckFactory>, CommandFailure> {
        let path = self.path(PluginKind::RequestCheck)?;
        self.lua
            .request_check(path, &self.name, grants)
            .map_err(CommandFailure::usage)
    }

    pub(crate) fn slo_check(&self, grants: LuaGrants) -> Result<Arc<dyn SloCheck>, CommandFailure> {
        let path = self.path(PluginKind::SloCheck)?;
        self.lua
            .slo_check(path, &self.name, grants)
            .map_err(CommandFailure::usage)
    }
}

/// Returns the functions in a plugin's table, or in a scenario.
fn functions(root: &Node) -> Vec<LuaFunction> {
    let mut found = Vec::new();
    collect(root, "", &mut found);
    let is_evaluator = |kind: PluginKind| {
        matches!(
            kind,
            PluginKind::Metric | PluginKind::RequestCheck | PluginKind::SloCheck
        )
    };
    for place in ["session_generator", "traffic_scheduler.process"] {
        let node = root.nearest_to(place);
        if is_at(root, place) {
            collect(node, place, &mut found);
        }
    }
    let flavor = "session_generator.flavor";
    if is_at(root, flavor) {
        collect(root.nearest_to(flavor), flavor, &mut found);
    }
    if let Some(Value::List(evaluators)) = root.get("evaluators").map(|node| &node.value) {
        for (index, node) in evaluators.iter().enumerate() {
            let mut here = Vec::new();
            collect(node, &format!("evaluators.{index}"), &mut here);
            here.retain(|function| is_evaluator(function.kind));
            found.append(&mut here);
        }
    }
    found
}

/// Returns true if there is a table at a path of keys.
fn is_at(root: &Node, path: &str) -> bool {
    let mut keys = path.split('.');
    let end = keys.try_fold(root, |node, key| node.get(key));
    end.is_some_and(|node| matches!(node.value, Value::Map(_)))
}

/// Adds the functions of a table. Metrics and checks are found at the table that has them.
fn collect(node: &Node, place: &str, found: &mut Vec<LuaFunction>) {
    let below = |key: &str| match place {
        "" => key.to_owned(),
        place => format!("{place}.{key}"),
    };
    let has = |key: &str| {
        node.get(key)
            .is_some_and(|node| matches!(node.value, Value::Function))
    };
    let mut add = |kind, path: String| found.push(LuaFunction { kind, path });
    if has("sessions") {
        add(PluginKind::SessionGenerator, below("sessions"));
    }
    if has("agent") {
        add(PluginKind::AgentGenerator, below("agent"));
    }
    if has("arrivals") {
        add(PluginKind::ArrivalProcess, below("arrivals"));
    }
    if has("session") && node.get("columns").is_some() {
        add(PluginKind::TraceFlavor, place.to_owned());
    }
    if node
        .get("metrics")
        .is_some_and(|node| matches!(node.value, Value::Map(_)))
    {
        add(PluginKind::Metric, place.to_owned());
    }
    if has("good") {
        add(PluginKind::RequestCheck, place.to_owned());
    }
    if has("check") {
        add(PluginKind::SloCheck, place.to_owned());
    }
}

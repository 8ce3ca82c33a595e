//! An opened plugin: a component or a Lua file, whose kinds are used in the same way.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use veeksha_app::{CommandFailure, StandaloneHost};
use veeksha_componentize::ComponentOutline;
use veeksha_lua::LuaGrants;
use veeksha_manifest::PluginKind;
use veeksha_ports::{
    ArrivalFactory, FlavorFactory, MetricFactory, PluginFailure, RequestCheckFactory, SloCheck,
    WorkloadFactory,
};
use veeksha_wasm::{Grants, NoLog, PluginComponent, PluginEndpoint};

use crate::form::FileForm;
use crate::lua_plugin::LuaPlugin;
use crate::plugin_file::PluginFile;

/// The reason why a plugin cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The plugin failed, or refused its settings.
    Plugin(Box<PluginFailure>),
    /// The host refused the settings.
    Command(CommandFailure),
}

impl From<PluginFailure> for OpenError {
    fn from(failure: PluginFailure) -> Self {
        OpenError::Plugin(Box::new(failure))
    }
}

impl From<CommandFailure> for OpenError {
    fn from(failure: CommandFailure) -> Self {
        OpenError::Command(failure)
    }
}

impl From<OpenError> for CommandFailure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Plugin(failure) => (*failure).into(),
            OpenError::Command(failure) => failure,
        }
    }
}

/// The settings of a plugin's instances.
#[derive(Clone, Debug, Default)]
pub struct PluginSettings {
    /// The configuration: JSON text of an object. Empty for `{}`.
    pub config: String,
    /// The run's seed.
    pub seed: u64,
    /// Granted files by name.
    pub files: BTreeMap<String, PathBuf>,
    /// True to pass the configuration to the plugin although it does not fit its schema.
    pub unchecked: bool,
    /// True to drop the lines of its log.
    pub silent: bool,
}

/// A plugin that was loaded.
pub struct OpenedPlugin {
    host: StandaloneHost,
    name: String,
    code: PluginCode,
}

/// The code of a plugin.
enum PluginCode {
    Component {
        component: PluginComponent,
        kinds: Vec<PluginKind>,
    },
    Lua(Box<LuaPlugin>),
}

impl OpenedPlugin {
    /// Loads the plugin of a file. A core module is wrapped in a component first.
    ///
    /// # Errors
    /// If the file is not a plugin that this host can run.
    pub fn open(host: StandaloneHost, file: &PluginFile) -> Result<Self, CommandFailure> {
        let code = match file.form {
            FileForm::Lua => PluginCode::Lua(Box::new(LuaPlugin::load(file)?)),
            _ => PluginCode::component(&host, &file.name(), &file.component()?)?,
        };
        Ok(OpenedPlugin {
            host,
            name: file.name(),
            code,
        })
    }

    /// Returns the host that loaded it.
    pub fn host(&self) -> &StandaloneHost {
        &self.host
    }

    /// Returns its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its kinds, in the order of [`PluginKind::ALL`].
    pub fn kinds(&self) -> Vec<PluginKind> {
        match &self.code {
            PluginCode::Component { kinds, .. } => kinds.clone(),
            PluginCode::Lua(lua) => lua.kinds(),
        }
    }

    /// Returns the digest of its code, in hex.
    pub fn digest(&self) -> String {
        match &self.code {
            PluginCode::Component { component, .. } => component.digest().to_owned(),
            PluginCode::Lua(lua) => lua.digest(),
        }
    }

    /// Returns the component; `None` for a Lua file.
    pub fn component(&self) -> Option<&PluginComponent> {
        match &self.code {
            PluginCode::Component { component, .. } => Some(component),
            PluginCode::Lua(_) => None,
        }
    }

    /// Returns the kind to use: `wanted`, or the only one that it has.
    ///
    /// # Errors
    /// If it does not have that kind, or has several and none is named.
    pub fn kind(&self, wanted: Option<PluginKind>) -> Result<PluginKind, CommandFailure> {
        let kinds = self.kinds();
        let names = kinds
            .iter()
            .map(|kind| kind.name())
            .collect::<Vec<_>>()
            .join(", ");
        match (wanted, kinds.as_slice()) {
            (Some(kind), kinds) if kinds.contains(&kind) => Ok(kind),
            (Some(kind), _) => Err(CommandFailure::usage(format!(
                "the plugin `{}` is not of the kind {kind}; it has {names}",
                self.name
            ))),
            (None, [only]) => Ok(*only),
            (None, _) => Err(CommandFailure::usage(format!(
                "the plugin `{}` has several kinds: name one of {names}",
                self.name
            ))),
        }
    }

    fn grants(&self, settings: &PluginSettings) -> Grants {
        let mut grants = Grants {
            seed: settings.seed,
            ..self.host.grants(&settings.files)
        };
        if settings.silent {
            grants.log = Arc::new(NoLog);
        }
        grants
    }

    fn lua_grants(&self, settings: &PluginSettings) -> Result<LuaGrants, OpenError> {
        if !matches!(settings.config.trim(), "" | "{}" | "null") {
            return Err(CommandFailure::usage(format!(
                "the Lua file `{}` takes no configuration",
                self.name
            ))
            .into());
        }
        let mut grants = LuaGrants {
            seed: settings.seed,
            ..self.host.lua_grants()
        };
        if settings.silent {
            grants.log = Arc::new(|_, _| {});
        }
        Ok(grants)
    }

    /// Checks the configuration of a component, and returns its text.
    fn config(&self, component: &PluginComponent, settings: &PluginSettings) -> Result<String, OpenError> {
        let config = match settings.config.trim() {
            "" => "{}",
            config => config,
        };
        if !settings.unchecked {
            self.host.check_config(component, config, "config")?;
        }
        Ok(config.to_owned())
    }

    /// Returns the session or agent generator.
    ///
    /// # Errors
    /// If the plugin refuses the settings, as for all kinds.
    pub fn workload(
        &self,
        kind: PluginKind,
        settings: &PluginSettings,
    ) -> Result<Arc<dyn WorkloadFactory>, OpenError> {
        match &self.code {
            PluginCode::Component { component, .. } => {
                let config = self.config(component, settings)?;
                Ok(component.workload(config, self.grants(settings))?)
            }
            PluginCode::Lua(lua) => Ok(lua.workload(kind, self.lua_grants(settings)?)?),
        }
    }

    /// Returns the arrival process.
    ///
    /// # Errors
    /// See [`workload`](Self::workload).
    pub fn arrivals(&self, settings: &PluginSettings) -> Result<Arc<dyn ArrivalFactory>, OpenError> {
        match &self.code {
            PluginCode::Component { component, .. } => {
                let config = self.config(component, settings)?;
                Ok(component.arrivals(config, self.grants(settings))?)
            }
            PluginCode::Lua(lua) => Ok(lua.arrivals(self.lua_grants(settings)?)?),
        }
    }

    /// Returns the flavor.
    ///
    /// # Errors
    /// See [`workload`](Self::workload).
    pub fn flavor(&self, settings: &PluginSettings) -> Result<Arc<dyn FlavorFactory>, OpenError> {
        match &self.code {
            PluginCode::Component { component, .. } => {
                let config = self.config(component, settings)?;
                Ok(component.flavor(config, self.grants(settings))?)
            }
            PluginCode::Lua(lua) => Ok(lua.flavor(&self.host, self.lua_grants(settings)?)?),
        }
    }

    /// Returns the endpoint codec.
    ///
    /// # Errors
    /// See [`workload`](Self::workload).
    pub fn codec(&self, settings: &PluginSettings) -> Result<PluginEndpoint, OpenError> {
        match &self.code {
            PluginCode::Component { component, .. } => {
                let config = self.config(component, settings)?;
                Ok(component.codec(config, self.grants(settings))?)
            }
            PluginCode::Lua(_) => Err(CommandFailure::usage("a Lua file cannot be an endpoint codec").into()),
        }
    }

    /// Returns the metrics.
    ///
    /// # Errors
    /// See [`workload`](Self::workload).
    pub fn metric(&self, settings: &PluginSettings) -> Result<Arc<dyn MetricFactory>, OpenError> {
        match &self.code {
            PluginCode::Component { component, .. } => {
                let config = self.config(component, settings)?;
                Ok(component.metric(config, self.grants(settings))?)
            }
            PluginCode::Lua(lua) => Ok(lua.metric(self.lua_grants(settings)?)?),
        }
    }

    /// Returns the request check.
    ///
    /// # Errors
    /// See [`workload`](Self::workload).
    pub fn request_check(
        &self,
        settings: &PluginSettings,
    ) -> Result<Arc<dyn RequestCheckFactory>, OpenError> {
        match &self.code {
            PluginCode::Component { component, .. } => {
                let config = self.config(component, settings)?;
                Ok(component.request_check(config, self.grants(settings))?)
            }
            PluginCode::Lua(lua) => Ok(lua.request_check(self.lua_grants(settings)?)?),
        }
    }

    /// Returns the SLO check.
    ///
    /// # Errors
    /// See [`workload`](Self::workload).
    pub fn slo_check(&self, settings: &PluginSettings) -> Result<Arc<dyn SloCheck>, OpenError> {
        match &self.code {
            PluginCode::Component { component, .. } => {
                let config = self.config(component, settings)?;
                Ok(component.slo_check(config, self.grants(settings))?)
            }
            PluginCode::Lua(lua) => Ok(lua.slo_check(self.lua_grants(settings)?)?),
        }
    }
}

impl PluginCode {
    fn component(host: &StandaloneHost, name: &str, bytes: &[u8]) -> Result<Self, CommandFailure> {
        let component = host.load(name, bytes)?;
        let outline =
            ComponentOutline::read(bytes).map_err(|why| CommandFailure::new(veeksha_exit::PLUGIN, why))?;
        Ok(PluginCode::Component {
            component,
            kinds: outline.kinds(),
        })
    }
}

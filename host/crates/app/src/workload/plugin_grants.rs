//! Capabilities, instances and traps of a component: the requests of its manifest, what the
//! scenario and the command line grant, and the policies of both.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use veeksha_manifest::lock::LOCK_FILE;
use veeksha_manifest::{
    CapabilityGrants, CapabilityRequest, InstancePolicy, OnTrap, PluginManifest, section,
};
use veeksha_ports::{PluginFailure, PluginFailureKind};
use veeksha_present::terminal;
use veeksha_scenario::{ComponentUse, InstanceChoice, TrapChoice};
use veeksha_wasm::{GrantedFolder, Grants};

use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;
use crate::workload::component_source::read_lock;

/// The component that capabilities are granted to.
pub(crate) struct GrantSubject<'a> {
    /// Its name in messages and on the command line.
    pub(crate) name: &'a str,
    /// The component, whose digest the lock pins.
    pub(crate) bytes: &'a [u8],
    /// The key of the scenario that uses it.
    pub(crate) key: &'a str,
}

/// Returns the manifest that a component carries, if there is one.
///
/// # Errors
/// If it is damaged.
pub(crate) fn manifest(name: &str, bytes: &[u8]) -> Result<Option<PluginManifest>, CommandFailure> {
    let refuse = |message: String| -> CommandFailure {
        let message = format!("its manifest cannot be read: {message}");
        PluginFailure::new(name, "load", PluginFailureKind::Load, message).into()
    };
    let text = section::read(bytes).map_err(|error| refuse(error.to_string()))?;
    text.map(PluginManifest::parse)
        .transpose()
        .map_err(|error| refuse(error.to_string()))
}

/// Adds the capabilities and the policies of a component to its grants.
///
/// # Errors
/// If a grant is not a capability, or the scenario grants one to a component that the lock does not
/// pin.
pub(crate) fn apply(
    loaded: &Loaded,
    component: &ComponentUse,
    subject: &GrantSubject<'_>,
    manifest: Option<&PluginManifest>,
    grants: &mut Grants,
) -> Result<(), CommandFailure> {
    let granted = granted(loaded, component, subject)?;
    let requested = manifest.map(|manifest| manifest.requests.clone());
    let capabilities = CapabilityGrants::new(granted, requested);
    for idle in capabilities.without_request() {
        terminal::err(format!(
            "warning: the grant `{idle}` of the plugin {} has no effect: its manifest does not request it",
            subject.name
        ));
    }
    grants.environment = variables(&capabilities, subject)?;
    for value in grants.environment.values() {
        loaded.plugins.keep_secret(value);
    }
    grants.folder = GrantedFolder {
        root: loaded.folder().to_owned(),
        grants: capabilities,
        plugin: subject.name.to_owned(),
    };
    let of_manifest = manifest.and_then(|manifest| manifest.instances);
    grants.instances = component
        .instances
        .map(instances)
        .or(of_manifest)
        .unwrap_or(InstancePolicy::PerWorker);
    let of_manifest = manifest.and_then(|manifest| manifest.on_trap);
    grants.on_trap = component
        .on_trap
        .map(on_trap)
        .or(of_manifest)
        .unwrap_or(OnTrap::Abort);
    Ok(())
}

/// Returns the grants of the scenario and of the command line.
fn granted(
    loaded: &Loaded,
    component: &ComponentUse,
    subject: &GrantSubject<'_>,
) -> Result<Vec<CapabilityRequest>, CommandFailure> {
    let key = subject.key;
    let mut granted = Vec::new();
    for (index, text) in component.grants.iter().enumerate() {
        let capability = CapabilityRequest::parse(text).ok_or_else(|| {
            CommandFailure::usage(format!(
                "{key}.grants[{index}]: `{text}` is not a capability; expected {}",
                CapabilityRequest::FORMS
            ))
        })?;
        granted.push(capability);
    }
    if !granted.is_empty() {
        let grants: Vec<String> = granted.iter().map(ToString::to_string).collect();
        require_pinned(loaded, &grants, subject)?;
    }
    let of_command_line = loaded.grants.iter().filter(|grant| grant.plugin == subject.name);
    granted.extend(of_command_line.map(|grant| grant.capability.clone()));
    Ok(granted)
}

/// Refuses grants of a scenario that its lock does not have for exactly this component: the file
/// could be another one than the author of the scenario trusted.
fn require_pinned(
    loaded: &Loaded,
    grants: &[String],
    subject: &GrantSubject<'_>,
) -> Result<(), CommandFailure> {
    let GrantSubject { name, key, .. } = subject;
    let refuse = |why: String| {
        CommandFailure::usage(format!(
            "{key}.grants: {why}; grants of a scenario take effect only for the component that {LOCK_FILE} pins"
        ))
        .hinted(format!(
            "`veeksha-host plugin lock SCENARIO` pins it; --grant '{name}=CAPABILITY' grants a capability for one \
             invocation"
        ))
    };
    let lock = read_lock(loaded.folder())?.unwrap_or_default();
    let digest = format!("sha256:{:x}", Sha256::digest(subject.bytes));
    let Some(locked) = lock.plugins().iter().find(|locked| locked.digest == digest) else {
        return Err(refuse(format!(
            "the component of the plugin {name} is not pinned"
        )));
    };
    match grants.iter().find(|grant| !locked.grants.contains(grant)) {
        Some(missing) => Err(refuse(format!(
            "{LOCK_FILE} does not have the grant `{missing}` of the plugin {name}"
        ))),
        None => Ok(()),
    }
}

/// Returns the granted environment variables with their values. A variable that is not set, or not
/// text, is absent for the plugin too.
fn variables(
    capabilities: &CapabilityGrants,
    subject: &GrantSubject<'_>,
) -> Result<BTreeMap<String, String>, CommandFailure> {
    let mut variables = BTreeMap::new();
    for name in capabilities.variables() {
        match std::env::var(name) {
            Ok(value) => {
                variables.insert(name.to_owned(), value);
            }
            Err(std::env::VarError::NotPresent) => {}
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(CommandFailure::usage(format!(
                    "the environment variable {name}, which the plugin {} is granted, is not UTF-8",
                    subject.name
                )));
            }
        }
    }
    Ok(variables)
}

fn instances(choice: InstanceChoice) -> InstancePolicy {
    match choice {
        InstanceChoice::PerWorker => InstancePolicy::PerWorker,
        InstanceChoice::Pooled => InstancePolicy::Pooled,
        InstanceChoice::PerCall => InstancePolicy::PerCall,
    }
}

fn on_trap(choice: TrapChoice) -> OnTrap {
    match choice {
        TrapChoice::Abort => OnTrap::Abort,
        TrapChoice::Restart => OnTrap::Restart,
        TrapChoice::Disable => OnTrap::Disable,
    }
}

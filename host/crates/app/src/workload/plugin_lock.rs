//! Locking of the plugins that scenarios use: the library behind `plugin lock`.

use veeksha_bundle::{Bundle, TrustedKey, describe};
use veeksha_manifest::lock::{LockedPlugin, PluginLock};
use veeksha_manifest::{PluginReference, RegistryReference};
use veeksha_scenario::ComponentUse;

use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;
use crate::workload::bundle_store::BundleStore;
use crate::workload::component_source::{self, read_bundle_of};

/// Returns the bundle of a reference.
pub type FetchBundle<'f> = dyn FnMut(&RegistryReference) -> Result<Bundle, CommandFailure> + 'f;

/// The signatures that a lock accepts.
#[derive(Clone, Debug, Default)]
pub struct LockOptions {
    /// The keys whose signatures are accepted.
    pub keys: Vec<TrustedKey>,
    /// True to refuse plugins that none of the keys signed.
    pub require_signature: bool,
}

/// Returns the lock of the plugins that the scenarios of one folder use: `old` with the entries of
/// their components replaced. Bundles that `fetch` returns are stored.
///
/// # Errors
/// If a component cannot be read or fetched, or a required signature is missing.
pub fn lock_plugins(
    scenarios: &[Loaded],
    old: Option<&PluginLock>,
    options: &LockOptions,
    fetch: &mut FetchBundle<'_>,
) -> Result<PluginLock, CommandFailure> {
    let mut lock = old.cloned().unwrap_or_default();
    let mut locked_now: Vec<LockedPlugin> = Vec::new();
    for loaded in scenarios {
        for (key, component) in loaded.scenario.components() {
            let source = source(component, old, &key)?;
            let mut plugin = match locked_now.iter().find(|plugin| plugin.source == source) {
                Some(plugin) => plugin.clone(),
                None => locked(loaded, &source, &key, options, fetch)?,
            };
            plugin.grants.extend(grants(component));
            locked_now.retain(|other| other.source != source);
            locked_now.push(plugin);
        }
    }
    for plugin in locked_now {
        lock.insert(plugin);
    }
    Ok(lock)
}

/// Returns the grants that the scenario gives to a component.
fn grants(component: &ComponentUse) -> Vec<String> {
    component.grants.clone()
}

/// Returns the file or reference of a component; that of a name comes from the lock.
fn source(component: &ComponentUse, old: Option<&PluginLock>, key: &str) -> Result<String, CommandFailure> {
    let failure = |reason: String| CommandFailure::usage(format!("{key}.plugin: {reason}"));
    match PluginReference::parse(&component.plugin).map_err(|error| failure(error.to_string()))? {
        PluginReference::File(path) => Ok(path),
        PluginReference::Registry(reference) => Ok(reference.to_string()),
        PluginReference::Locked(name) => {
            let entry = old.and_then(|lock| lock.by_name(&name));
            entry.map(|entry| entry.source.clone()).ok_or_else(|| {
                failure(format!("the lock has no plugin `{name}`")).hinted(format!(
                    "name a file (`./{name}.wasm`) or a reference (`oci://HOST/{name}:1.0`)"
                ))
            })
        }
    }
}

fn locked(
    loaded: &Loaded,
    source: &str,
    key: &str,
    options: &LockOptions,
    fetch: &mut FetchBundle<'_>,
) -> Result<LockedPlugin, CommandFailure> {
    let failure = |reason: &dyn std::fmt::Display| CommandFailure::usage(format!("{key}.plugin: {reason}"));
    let (mut plugin, bundle) = match PluginReference::parse(source).map_err(|error| failure(&error))? {
        PluginReference::Registry(reference) => {
            let bundle = fetch(&reference)?;
            BundleStore::of_user()?.put(&bundle, Some(&reference))?;
            let plugin = bundle.describe(source).map_err(|error| failure(&error))?;
            (plugin, Some(bundle))
        }
        PluginReference::File(_) | PluginReference::Locked(_) => {
            let key = format!("{key}.plugin");
            let bundle = read_bundle_of(loaded.folder(), source)?;
            let (name, bytes, digest) = component_source::file(loaded.folder(), source, &key)?;
            let plugin = describe(source, &name, &bytes, digest.as_ref());
            (plugin.map_err(|error| failure(&error))?, bundle)
        }
    };
    let signer = bundle.as_ref().and_then(|bundle| bundle.signer(&options.keys));
    if options.require_signature && signer.is_none() {
        return Err(failure(&format!("no trusted key signed `{source}`"))
            .hinted("trust the key of its author: `--key FILE`"));
    }
    plugin.signed_by = signer.map(|signer| signer.key.id());
    Ok(plugin)
}

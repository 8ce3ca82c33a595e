//! The component that a scenario names: a file, a bundle, a reference to a registry, or a name in
//! the lock; and the comparison with the lock.
//!
//! Nothing here opens a connection: bundles of registries come from the store, where `plugin pull`
//! and `plugin lock` put them.

use std::path::Path;

use veeksha_bundle::{BlobDigest, Bundle, describe};
use veeksha_manifest::lock::{LOCK_FILE, LONGEST_LOCK, LockedPlugin, PluginLock};
use veeksha_manifest::{PluginReference, RegistryReference};
use veeksha_scenario::ComponentUse;

use crate::failure::CommandFailure;
use crate::scenario::source::{Loaded, read};
use crate::workload::bundle_store::{BundleStore, bundle_of, read_bundle};

/// A component that a scenario uses.
pub(crate) struct ResolvedComponent {
    /// Its name in messages and results.
    pub(crate) name: String,
    /// Its content.
    pub(crate) bytes: Vec<u8>,
}

/// Reads the lock of a folder of scenarios.
///
/// # Errors
/// If there is a lock that cannot be read.
pub fn read_lock(folder: &Path) -> Result<Option<PluginLock>, CommandFailure> {
    let path = folder.join(LOCK_FILE);
    if !path.exists() {
        return Ok(None);
    }
    let refuse = |reason: String| {
        CommandFailure::usage(format!("cannot read {}: {reason}", path.display()))
            .hinted("write it again: `veeksha-host plugin lock SCENARIO`")
    };
    let bytes = read(&path).map_err(refuse)?;
    if bytes.len() > LONGEST_LOCK {
        return Err(refuse("it is too long".to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|_| refuse("it is not UTF-8".to_owned()))?;
    let lock = PluginLock::parse(&text).map_err(|error| refuse(error.to_string()))?;
    Ok(Some(lock))
}

/// Returns the entry of a component in a lock. A reference without a digest has the entry of the
/// same tag; one with a digest only that with this digest.
pub(crate) fn entry<'l>(lock: &'l PluginLock, plugin: &PluginReference) -> Option<&'l LockedPlugin> {
    match plugin {
        PluginReference::Locked(name) => lock.by_name(name),
        PluginReference::File(path) => lock.by_source(path),
        PluginReference::Registry(wanted) => {
            let is_of = |source: &RegistryReference, locked: &LockedPlugin| {
                let has_digest = wanted.digest.is_none() || wanted.digest == locked.bundle;
                source.host == wanted.host
                    && source.repository == wanted.repository
                    && source.tag == wanted.tag
                    && has_digest
            };
            lock.plugins().iter().find(|locked| {
                RegistryReference::parse(&locked.source).is_ok_and(|source| is_of(&source, locked))
            })
        }
    }
}

/// Finds and reads the component that a scenario uses at `key`, and compares it with the lock.
pub(crate) fn resolve(
    loaded: &Loaded,
    component: &ComponentUse,
    key: &str,
) -> Result<ResolvedComponent, CommandFailure> {
    let key = format!("{key}.plugin");
    let at = |reason: &dyn std::fmt::Display| CommandFailure::usage(format!("{key}: {reason}"));
    let plugin = PluginReference::parse(&component.plugin).map_err(|error| at(&error))?;
    let lock = read_lock(loaded.folder())?;
    let locked = lock.as_ref().and_then(|lock| entry(lock, &plugin));
    let shown = &component.plugin;
    let Some(locked) = locked else {
        return match (&plugin, &lock) {
            (PluginReference::File(path), None) => {
                let (name, bytes, _) = file(loaded.folder(), path, &key)?;
                Ok(ResolvedComponent { name, bytes })
            }
            (PluginReference::Locked(name), _) => {
                let nearest = lock.as_ref().and_then(|lock| lock.nearest(name));
                let nearest = nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
                let has = if lock.is_some() {
                    "has no"
                } else {
                    "does not exist and cannot have a"
                };
                Err(
                    at(&format!("{LOCK_FILE} {has} plugin `{name}`{nearest}")).hinted(format!(
                        "a file is written with a folder or an ending: `./{name}`"
                    )),
                )
            }
            _ => Err(at(&format!("`{shown}` is not in {LOCK_FILE}")).hinted(LOCK_HINT)),
        };
    };
    let source = PluginReference::parse(&locked.source).map_err(|error| at(&error))?;
    let (name, bytes, bundle) = match &source {
        PluginReference::File(path) => file(loaded.folder(), path, &key)?,
        PluginReference::Registry(reference) => stored(reference, locked, &key)?,
        PluginReference::Locked(_) => {
            return Err(at(&format!(
                "the entry of `{shown}` in {LOCK_FILE} names an entry"
            )));
        }
    };
    let found = describe(&locked.source, &name, &bytes, bundle.as_ref()).map_err(|error| at(&error))?;
    let differences: Vec<String> = locked
        .differences(&found)
        .iter()
        .map(ToString::to_string)
        .collect();
    if !differences.is_empty() {
        return Err(at(&format!(
            "`{shown}` is not the component of {LOCK_FILE}: {}",
            differences.join("; ")
        ))
        .hinted(CHANGED_HINT));
    }
    Ok(ResolvedComponent {
        name: if bundle.is_some() {
            locked.name.clone()
        } else {
            name
        },
        bytes,
    })
}

const LOCK_HINT: &str = "`veeksha-host plugin lock SCENARIO` finds it and writes its digest to the lock";
const CHANGED_HINT: &str =
    "restore the component, or review the change and accept it: `veeksha-host plugin lock SCENARIO`";

/// Reads a component, or the component of a bundle, from a file. Returns its name, its content and
/// the digest of the bundle.
pub(crate) fn file(
    folder: &Path,
    path: &str,
    key: &str,
) -> Result<(String, Vec<u8>, Option<BlobDigest>), CommandFailure> {
    let path = folder.join(path);
    let shown = path.display().to_string();
    let bytes = read(&path)
        .map_err(|reason| CommandFailure::usage(format!("{key}: cannot read {shown}: {reason}")))?;
    let name = path
        .file_stem()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned();
    if !is_bundle(&path) {
        return Ok((name, bytes, None));
    }
    let bundle = bundle_of(&shown, &bytes)?;
    Ok((
        name_in(&bundle, name),
        bundle.component().to_vec(),
        Some(bundle.digest().clone()),
    ))
}

fn is_bundle(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "tar")
}

/// Returns the bundle of a file; none for a component.
pub(crate) fn read_bundle_of(folder: &Path, path: &str) -> Result<Option<Bundle>, CommandFailure> {
    let path = folder.join(path);
    is_bundle(&path).then(|| read_bundle(&path)).transpose()
}

/// The version of a bundle's file is part of its name; the name of the plugin is not.
fn name_in(bundle: &Bundle, file: String) -> String {
    match bundle.plugin_manifest() {
        Ok(Some(manifest)) => manifest.name,
        _ => file,
    }
}

/// Takes the locked bundle of a reference from the store.
fn stored(
    reference: &RegistryReference,
    locked: &LockedPlugin,
    key: &str,
) -> Result<(String, Vec<u8>, Option<BlobDigest>), CommandFailure> {
    let digest = locked.bundle.as_deref().and_then(BlobDigest::parse);
    let digest = digest.ok_or_else(|| {
        CommandFailure::usage(format!(
            "{key}: the entry of `{reference}` in {LOCK_FILE} has no `bundle`"
        ))
        .hinted(LOCK_HINT)
    })?;
    let Some(bundle) = BundleStore::of_user()?.get(&digest)? else {
        let mut exact = reference.clone();
        exact.digest = Some(digest.to_string());
        return Err(CommandFailure::usage(format!(
            "{key}: the bundle of `{reference}` is not on this machine"
        ))
        .hinted(format!("get it: `veeksha-host plugin pull {exact}`")));
    };
    Ok((locked.name.clone(), bundle.component().to_vec(), Some(digest)))
}

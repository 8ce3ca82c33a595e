//! Conversion of a scenario's paths to absolute ones, so that `config.yml` is valid wherever it is
//! read from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use veeksha_manifest::PluginReference;
use veeksha_manifest::lock::PluginLock;
use veeksha_scenario::{Flavor, Generator, Scenario};

use crate::scenario::source::Loaded;
use crate::workload::component_source;
use crate::workload::flavors::FILE_KEYS;

/// Makes the path of a run absolute. Links are followed: `latest` will be another run.
fn resolve_run(run: &mut PathBuf, folder: &Path) {
    let joined = folder.join(&*run);
    *run = joined
        .canonicalize()
        .or_else(|_| std::path::absolute(&joined))
        .unwrap_or(joined);
}

/// Makes the path of a component absolute, and adds the locked digest to a reference.
fn pin(plugin: &mut String, folder: &Path, lock: Option<&PluginLock>) {
    match PluginReference::parse(plugin) {
        Ok(PluginReference::File(path)) => {
            let joined = folder.join(path);
            let path = std::path::absolute(&joined).unwrap_or(joined);
            *plugin = path.to_string_lossy().into_owned();
        }
        Ok(PluginReference::Registry(mut reference)) => {
            let locked = lock.and_then(|lock| {
                let reference = PluginReference::Registry(reference.clone());
                component_source::entry(lock, &reference)
            });
            reference.digest = locked
                .and_then(|locked| locked.bundle.clone())
                .or(reference.digest);
            *plugin = reference.to_string();
        }
        // The run folder has a copy of the lock.
        Ok(PluginReference::Locked(_)) | Err(_) => {}
    }
}

/// Returns the text of the entries of a lock that a scenario uses, with absolute paths as in
/// `config.yml`; none if it uses none.
pub(crate) fn used_lock(scenario: &Scenario, folder: &Path, lock: Option<&PluginLock>) -> Option<String> {
    let lock = lock?;
    let mut copy = PluginLock::default();
    for (_, component) in scenario.components() {
        let plugin = PluginReference::parse(&component.plugin);
        let used = plugin
            .ok()
            .and_then(|plugin| component_source::entry(lock, &plugin));
        let Some(mut used) = used.cloned() else { continue };
        if let Ok(PluginReference::File(_)) = PluginReference::parse(&used.source) {
            pin(&mut used.source, folder, None);
        }
        copy.insert(used);
    }
    (!copy.plugins().is_empty()).then(|| copy.text())
}

impl Loaded {
    /// Returns the files on which the scenario depends: its file, those that it requires or
    /// includes, and those that its keys name, whether they exist or not. Paths are absolute.
    pub fn input_files(&self) -> Vec<PathBuf> {
        let profiles = self.scenario.all_clients();
        let profiles = profiles.filter_map(|named| Some(self.folder().join(named.client.sim_profile()?)));
        let own = self
            .files
            .iter()
            .cloned()
            .chain(profiles.filter(|path| path.is_file()));
        let own = own.chain([self.folder().join(veeksha_manifest::lock::LOCK_FILE)]);
        own.filter_map(|path| std::path::absolute(path).ok())
            .chain(named_files(&self.scenario, self.folder()))
            .collect()
    }
}

/// Returns the files that the keys of a scenario name, as absolute paths.
fn named_files(scenario: &Scenario, folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let absolute = with_absolute_paths(scenario, folder, None);
    for (_, component) in absolute.components() {
        let is_file = matches!(
            PluginReference::parse(&component.plugin),
            Ok(PluginReference::File(_))
        );
        found.extend(is_file.then(|| PathBuf::from(&component.plugin)));
        found.extend(component.files.values().cloned());
    }
    match absolute.session_generator {
        Generator::Trace(trace) => found.push(trace.keys.trace_file),
        Generator::Lua { files, .. } | Generator::Replay { files, .. } => found.extend(files.into_values()),
        Generator::Shipped { .. } | Generator::Wasm { .. } => {}
    }
    let clients = std::iter::once(absolute.client).chain(absolute.clients.into_values());
    found.extend(clients.filter_map(|client| client.chat_template));
    found
}

/// Returns the scenario with every path relative to its folder made absolute, and with the digests
/// of the lock in references to registries.
pub(crate) fn with_absolute_paths(scenario: &Scenario, folder: &Path, lock: Option<&PluginLock>) -> Scenario {
    let mut scenario = scenario.clone();
    let make_absolute = |path: &mut PathBuf| {
        let joined = folder.join(&*path);
        *path = std::path::absolute(&joined).unwrap_or(joined);
    };
    let all = |files: &mut BTreeMap<String, PathBuf>| files.values_mut().for_each(make_absolute);
    match &mut scenario.session_generator {
        Generator::Shipped { .. } => {}
        Generator::Wasm { recorded_run, .. } => {
            recorded_run.iter_mut().for_each(|run| resolve_run(run, folder));
        }
        Generator::Replay { run, files } => {
            resolve_run(run, folder);
            all(files);
        }
        Generator::Lua {
            files, recorded_run, ..
        } => {
            all(files);
            recorded_run.iter_mut().for_each(|run| resolve_run(run, folder));
        }
        Generator::Trace(trace) => {
            make_absolute(&mut trace.keys.trace_file);
            trace.keys.media_folder.iter_mut().for_each(make_absolute);
            match &mut trace.flavor {
                Flavor::Shipped { config, .. } => {
                    for key in FILE_KEYS {
                        let named = config.get(key).and_then(|value| value.as_str());
                        if let Some(mut path) = named.filter(|name| !name.is_empty()).map(PathBuf::from) {
                            make_absolute(&mut path);
                            config[key] = path.to_string_lossy().into_owned().into();
                        }
                    }
                }
                Flavor::Wasm(_) | Flavor::Lua { .. } => {}
            }
        }
    }
    for component in scenario.components_mut() {
        pin(&mut component.plugin, folder, lock);
        all(&mut component.files);
    }
    let Scenario { client, clients, .. } = &mut scenario;
    for client in std::iter::once(client).chain(clients.values_mut()) {
        client.chat_template.iter_mut().for_each(make_absolute);
        let own = client.targets.iter_mut().filter_map(|target| target.tls.as_mut());
        for tls in own.chain([&mut client.tls]) {
            let files = [&mut tls.ca_file, &mut tls.client_certificate, &mut tls.client_key];
            files.into_iter().flatten().for_each(make_absolute);
        }
    }
    if let Some(tokenizer) = &mut scenario.client.tokenizer {
        let there = folder.join(&*tokenizer);
        if there.exists() {
            *tokenizer = std::path::absolute(&there)
                .unwrap_or(there)
                .to_string_lossy()
                .into_owned();
        }
    }
    scenario
}

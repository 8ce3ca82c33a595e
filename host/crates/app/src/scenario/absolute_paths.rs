//! Conversion of a scenario's paths to absolute ones, so that `config.yml` is valid wherever it is
//! read from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use veeksha_scenario::{
    ArrivalPlugin, ArrivalProcess, ComponentUse, Evaluator, Flavor, Generator, Scenario, Traffic,
};

use crate::workload::flavors::FILE_KEYS;

/// Makes the path of a run absolute. Links are followed: `latest` will be another run.
fn resolve_run(run: &mut PathBuf, folder: &Path) {
    let joined = folder.join(&*run);
    *run = joined
        .canonicalize()
        .or_else(|_| std::path::absolute(&joined))
        .unwrap_or(joined);
}

/// Returns the scenario with every path relative to its folder made absolute.
pub(crate) fn with_absolute_paths(scenario: &Scenario, folder: &Path) -> Scenario {
    let mut scenario = scenario.clone();
    let make_absolute = |path: &mut PathBuf| {
        let joined = folder.join(&*path);
        *path = std::path::absolute(&joined).unwrap_or(joined);
    };
    let all = |files: &mut BTreeMap<String, PathBuf>| files.values_mut().for_each(make_absolute);
    let resolve_component = |component: &mut ComponentUse| {
        let mut file = PathBuf::from(&component.plugin);
        make_absolute(&mut file);
        component.plugin = file.to_string_lossy().into_owned();
        all(&mut component.files);
    };
    match &mut scenario.session_generator {
        Generator::Shipped { .. } => {}
        Generator::Wasm {
            component,
            recorded_run,
        } => {
            resolve_component(component);
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
                Flavor::Wasm(component) => resolve_component(component),
                Flavor::Lua { .. } => {}
            }
        }
    }
    for evaluator in &mut scenario.evaluators {
        if let Evaluator::Wasm(component) = evaluator {
            resolve_component(component);
        }
    }
    if let Traffic::ArrivalProcess(ArrivalProcess {
        process: ArrivalPlugin::Wasm(component),
        ..
    }) = &mut scenario.traffic_scheduler
    {
        resolve_component(component);
    }
    let Scenario { client, clients, .. } = &mut scenario;
    for client in std::iter::once(client).chain(clients.values_mut()) {
        client.chat_template.iter_mut().for_each(make_absolute);
        let own = client.targets.iter_mut().filter_map(|target| target.tls.as_mut());
        for tls in own.chain([&mut client.tls]) {
            let files = [&mut tls.ca_file, &mut tls.client_certificate, &mut tls.client_key];
            files.into_iter().flatten().for_each(make_absolute);
        }
        if let Some(codec) = &mut client.codec {
            resolve_component(codec);
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

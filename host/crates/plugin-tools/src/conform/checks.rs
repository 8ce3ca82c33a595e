//! The checks of a plugin: those of all kinds, then those of each kind.

use veeksha_manifest::PluginKind;
use veeksha_ports::{PluginFailure, PluginFailureKind};

use super::report::{ConformReport, shown};
use super::{evaluators, generators};
use crate::opened::{OpenError, OpenedPlugin, PluginSettings};

/// Configurations that no schema of a plugin accepts as its own, or that are not objects.
const WRONG_CONFIGURATIONS: [&str; 4] = [
    "{\"veeksha_conform_unknown_key\": [1, {\"a\": null}]}",
    "[]",
    "\"text\"",
    "-1e308",
];

/// Checks a plugin with the configuration of `settings`.
pub fn conform(plugin: &OpenedPlugin, settings: &PluginSettings) -> ConformReport {
    // Calls are repeated, so the lines of the log are repeated too.
    let settings = &PluginSettings {
        silent: true,
        ..settings.clone()
    };
    let mut report = ConformReport::default();
    if let Some(component) = plugin.component() {
        let described = component.describe().and_then(|descriptor| {
            serde_json::from_str::<serde_json::Value>(&descriptor.config_schema).map_err(|error| {
                PluginFailure::new(
                    plugin.name(),
                    "describe",
                    PluginFailureKind::Result,
                    error.to_string(),
                )
            })
        });
        report.add("describes itself", described.map(drop));
    }
    for kind in plugin.kinds() {
        let opened = open(plugin, kind, settings);
        let is_open = opened.is_ok();
        report.add(
            format!("{kind}: opens with its configuration"),
            opened.map_err(shown),
        );
        if plugin.component().is_some() {
            report.add(
                format!("{kind}: answers wrong configurations"),
                wrong_configurations(plugin, kind, settings),
            );
        }
        if !is_open {
            // Every other check would repeat the failure.
            continue;
        }
        match kind {
            PluginKind::SessionGenerator | PluginKind::AgentGenerator => {
                generators::generator(plugin, kind, settings, &mut report);
            }
            PluginKind::ArrivalProcess => generators::arrivals(plugin, settings, &mut report),
            PluginKind::TraceFlavor => generators::flavor(plugin, settings, &mut report),
            PluginKind::EndpointCodec => evaluators::codec(plugin, settings, &mut report),
            PluginKind::Metric => evaluators::metric(plugin, settings, &mut report),
            PluginKind::RequestCheck => evaluators::request_check(plugin, settings, &mut report),
            PluginKind::SloCheck => evaluators::slo_check(plugin, settings, &mut report),
        }
    }
    report
}

/// Opens an instance of a kind.
fn open(plugin: &OpenedPlugin, kind: PluginKind, settings: &PluginSettings) -> Result<(), OpenError> {
    match kind {
        PluginKind::SessionGenerator | PluginKind::AgentGenerator => {
            plugin.workload(kind, settings)?.open_silent()?;
        }
        PluginKind::ArrivalProcess => {
            plugin.arrivals(settings)?.open_silent()?;
        }
        PluginKind::TraceFlavor => {
            plugin.flavor(settings)?.open_silent()?.layout()?;
        }
        PluginKind::EndpointCodec => {
            plugin.codec(settings)?;
        }
        PluginKind::Metric => {
            plugin.metric(settings)?.open()?;
        }
        PluginKind::RequestCheck => {
            plugin.request_check(settings)?.open()?;
        }
        PluginKind::SloCheck => {
            plugin.slo_check(settings)?;
        }
    }
    Ok(())
}

/// Opens the plugin with configurations that do not fit. It may ignore or refuse them, but must not
/// trap. The host's check against the schema is bypassed, because a scenario's values may have
/// forms that no schema describes.
fn wrong_configurations(
    plugin: &OpenedPlugin,
    kind: PluginKind,
    settings: &PluginSettings,
) -> Result<(), String> {
    for config in WRONG_CONFIGURATIONS {
        let settings = PluginSettings {
            config: config.to_owned(),
            unchecked: true,
            ..settings.clone()
        };
        if let Err(OpenError::Plugin(failure)) = open(plugin, kind, &settings)
            && !matches!(failure.kind, PluginFailureKind::Refused { .. })
        {
            return Err(format!(
                "the configuration {config} must be refused with an error, not by a trap: {failure}"
            ));
        }
    }
    Ok(())
}

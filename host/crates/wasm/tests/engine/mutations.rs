//! Components with changed bytes: they are refused, or run within their limits. Nothing panics.

use std::time::Duration;

use proptest::prelude::*;
use veeksha_manifest::{PluginManifest, section};
use veeksha_wasm::{EngineLimits, EngineOptions, PluginComponent, PluginEngine};

use crate::support::{fixture, grants};

fn engine() -> PluginEngine {
    let limits = EngineLimits {
        call_deadline: Duration::from_millis(200),
        memory_bytes: 64 << 20,
        lift_bytes: 1 << 20,
        ..EngineLimits::default()
    };
    // Without a cache, in which every changed component would remain.
    PluginEngine::new(EngineOptions {
        limits,
        ..EngineOptions::default()
    })
    .unwrap()
}

fn run(plugin: &PluginComponent) {
    let Ok(factory) = plugin.workload("{}".into(), grants()) else {
        return;
    };
    if let Ok(veeksha_ports::Workload::Planned(mut source)) = factory.open() {
        let _ = source.length();
        for first in [0, 1_000_000] {
            let _ = source.sessions(first, 4);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn changed_components_are_refused_or_run(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)
    ) {
        let mut bytes = fixture("planned");
        for (place, value) in &changes {
            let place = place.index(bytes.len());
            bytes[place] = *value;
        }
        let _ = section::read(&bytes).map(|text| text.map(PluginManifest::parse));
        if let Ok(plugin) = engine().load("changed", &bytes) {
            run(&plugin);
        }
    }

    #[test]
    fn components_that_are_cut_short_are_refused(cut in any::<prop::sample::Index>()) {
        let bytes = fixture("planned");
        let cut = cut.index(bytes.len());
        prop_assert!(engine().load("cut", &bytes[..cut]).is_err());
    }

    #[test]
    fn damaged_manifests_never_hide_a_component(text in "\\PC{0,200}") {
        let bytes = section::write(&fixture("planned"), &text).unwrap();
        prop_assert_eq!(section::read(&bytes).unwrap(), Some(text.as_str()));
        let _ = PluginManifest::parse(&text);
        prop_assert!(engine().load("with-manifest", &bytes).is_ok());
    }
}

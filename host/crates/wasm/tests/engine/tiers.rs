//! The SLO check in JavaScript from the repository: a bound for each tier.

use std::path::PathBuf;
use std::sync::Arc;

use veeksha_model::{Label, Nanos};
use veeksha_ports::{MetricStats, PluginFailureKind, RunResults, SloVerdict, WindowStats};
use veeksha_wasm::{EngineLimits, Kinds, PluginComponent};

use crate::support::{engine, grants};

fn file(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../plugins/tiered_slo");
    std::fs::read(folder.join(name)).unwrap()
}

/// Metadata that `build.mjs` of the plugin writes into a component: the digest of its world and its
/// script.
#[test]
fn the_component_is_made_of_the_source_beside_it() {
    use sha2::{Digest, Sha256};
    let source = Sha256::new()
        .chain_update(file("world.wit"))
        .chain_update(file("tiered_slo.js"))
        .finalize();
    let mut expected = b"veeksha-source".to_vec();
    expected.extend(source.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
    assert!(
        file("tiered_slo.wasm").ends_with(&expected),
        "tiered_slo.js or world.wit has changed since tiered_slo.wasm was built: run `node build.mjs` in plugins/tiered_slo"
    );
}

fn plugin() -> PluginComponent {
    engine(EngineLimits::default())
        .load("tiered_slo", &file("tiered_slo.wasm"))
        .unwrap()
}

/// 1000 requests of the tier `gold` and 50 of the tier `free`: TTFC is 0.001 s, 0.002 s, ... in
/// each.
struct Tiers;

impl Tiers {
    fn count(metric: &str, filter: &[Label]) -> u64 {
        match (metric, filter) {
            ("ttfc", [(label, tier)]) if label == "tier" => match tier.as_str() {
                "gold" => 1000,
                "free" => 50,
                _ => 0,
            },
            _ => 0,
        }
    }
}

impl RunResults for Tiers {
    fn metrics(&self) -> Vec<String> {
        vec!["ttfc".into()]
    }

    fn run_metric(&self, _name: &str) -> Option<f64> {
        None
    }

    fn stats(&self, metric: &str, filter: &[Label]) -> MetricStats {
        MetricStats {
            count: Self::count(metric, filter),
            ..MetricStats::default()
        }
    }

    fn percentile(&self, metric: &str, percent: f64, filter: &[Label]) -> Option<f64> {
        let count = Self::count(metric, filter);
        (count > 0).then(|| (1.0 + (count - 1) as f64 * percent / 100.0) / 1000.0)
    }

    fn windows(&self, _metric: &str, _filter: &[Label], _length: Nanos) -> Vec<WindowStats> {
        Vec::new()
    }
}

#[test]
fn each_tier_has_its_bound() {
    let plugin = plugin();
    let kinds = Kinds {
        slo_check: true,
        ..Kinds::default()
    };
    assert_eq!(plugin.kinds(), kinds);
    assert_eq!(
        plugin.imports(),
        ["wasi"],
        "what its engine insists on, and no more"
    );
    let config = r#"{"objectives": [
        {"metric": "ttfc", "at_most": {"gold": 1.5, "free": 0.049}},
        {"metric": "ttfc", "percentile": 50, "at_most": {"gold": 0.5, "free": 1, "silver": 1}}
    ]}"#;
    let check = plugin.slo_check(config.into(), grants()).unwrap();
    assert_eq!(check.info().name, "tiered_slo");
    let verdicts = check.check(Arc::new(Tiers)).unwrap();
    let verdict = |name: &str, met, observed, threshold, detail: &str| SloVerdict {
        name: name.into(),
        met,
        observed,
        threshold,
        detail: detail.into(),
    };
    // p99 of 1..=1000 ms is at 1 + 999 * 0.99 = 990.01; of 1..=50 ms at 1 + 49 * 0.99 = 49.51.
    assert_eq!(
        verdicts,
        [
            verdict(
                r#"p99(ttfc{tier="gold"})"#,
                true,
                Some(0.99001),
                1.5,
                "1000 samples"
            ),
            verdict(
                r#"p99(ttfc{tier="free"})"#,
                false,
                Some(0.04951),
                0.049,
                "50 samples, too few for p99"
            ),
            verdict(
                r#"p50(ttfc{tier="gold"})"#,
                false,
                Some(0.5005),
                0.5,
                "1000 samples"
            ),
            verdict(r#"p50(ttfc{tier="free"})"#, true, Some(0.0255), 1.0, "50 samples"),
            verdict(
                r#"p50(ttfc{tier="silver"})"#,
                false,
                None,
                1.0,
                "no samples of requests labelled tier = silver"
            ),
        ]
    );
}

#[test]
fn a_configuration_is_refused_with_its_place() {
    let plugin = plugin();
    let refused = |config: &str| {
        let failure = plugin.slo_check(config.into(), grants()).err().unwrap();
        assert_eq!(failure.function, "checker.open", "{failure}");
        match failure.kind {
            PluginFailureKind::Refused { path, .. } => (path.unwrap(), failure.message),
            other => panic!("{other:?}"),
        }
    };
    let path = |config| refused(config).0;
    assert_eq!(
        refused(r#"{"objectives": [], "labels": "x"}"#),
        (
            "/labels".into(),
            "unknown key `labels`; known here: `label`, `objectives`".into()
        )
    );
    assert_eq!(path(r#"{"objectives": []}"#), "/objectives");
    assert_eq!(
        path(r#"{"objectives": [{"at_most": {"a": 1}}]}"#),
        "/objectives/0/metric"
    );
    assert_eq!(
        path(r#"{"objectives": [{"metric": "ttfc", "at_most": {}}]}"#),
        "/objectives/0/at_most"
    );
    assert_eq!(
        path(r#"{"objectives": [{"metric": "ttfc", "at_most": {"gold": "1"}}]}"#),
        "/objectives/0/at_most/gold"
    );
    assert_eq!(
        path(r#"{"objectives": [{"metric": "ttfc", "percentile": 101, "at_most": {"gold": 1}}]}"#),
        "/objectives/0/percentile"
    );
    assert!(refused("[").1.starts_with("the configuration is not JSON"));
}

//! Loading: invalid plugins are refused with a clear message before compilation.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use veeksha_ports::PluginFailureKind;
use veeksha_wasm::{EngineLimits, EngineOptions, PluginEngine};

use crate::support::{dist, engine, fixture};

fn refusal(bytes: &[u8]) -> String {
    refusal_of(&engine(EngineLimits::default()), bytes)
}

fn refusal_of(engine: &PluginEngine, bytes: &[u8]) -> String {
    let failure = engine.load("x", bytes).err().expect("no plugin");
    assert_eq!(
        (failure.function.as_str(), &failure.kind),
        ("load", &PluginFailureKind::Load)
    );
    failure.message
}

#[test]
fn distinguishes_core_module_from_component() {
    let module = wat::parse_str("(module (func (export \"f\")))").unwrap();
    assert_eq!(
        refusal(&module),
        "not a component but a core module; wrap it with `veeksha-host plugin build FILE`"
    );
}

#[test]
fn rejects_bytes_that_are_not_webassembly() {
    let none = "not a component: the file is not WebAssembly (it does not begin with `\\0asm`)";
    for bytes in [
        &b""[..],
        b"#!/bin/sh\n",
        b"\x7fELF\x02\x01\x01",
        &[0xFF; 4096],
        b"\0as",
    ] {
        assert_eq!(refusal(bytes), none);
    }
    assert_eq!(
        refusal(b"\n(component)"),
        "not a component: WebAssembly in text form; translate it with `wasm-tools parse`"
    );
}

#[test]
fn names_missing_exports_of_a_component() {
    assert_eq!(
        refusal(&fixture("kindless")),
        "exports none of `session-generator`, `agent-generator`, `arrival-process`, `trace-flavor`, \
         `endpoint-codec`, `metric`, `request-check`, `slo-check` of veeksha:plugin@0.2.0; it exports `fixtures:kindless/greeting@1.0.0`"
    );
    let empty = wat::parse_str("(component)").unwrap();
    assert!(refusal(&empty).ends_with("it exports nothing"));
}

#[test]
fn another_version_of_the_contract_is_named() {
    assert_eq!(
        refusal(&fixture("future")),
        "was built for veeksha:plugin@0.3.0, this host supports 0.2.0"
    );
}

#[test]
fn an_unknown_import_is_named() {
    assert_eq!(
        refusal(&fixture("stranger")),
        "imports `acme:cloud/upload@1.0.0`, which this host does not offer; it offers log, random, tokens and blobs of \
         veeksha:plugin@0.2.0 and a stand-in for WASI 0.2"
    );
}

/// The interface's name is not sufficient: its functions must have the contract's types.
#[test]
fn an_export_of_the_wrong_shape_is_refused() {
    let wrong = wat::parse_str(
        r#"(component
            (component $inner)
            (instance $i (instantiate $inner))
            (export "veeksha:plugin/session-generator@0.2.0" (instance $i)))"#,
    )
    .unwrap();
    let message = refusal(&wrong);
    assert!(
        message.contains("describe") || message.contains("workload"),
        "{message}"
    );
}

#[test]
fn a_component_that_is_cut_short_is_refused_wherever_it_was_cut() {
    let engine = engine(EngineLimits::default());
    let whole = fixture("kindless");
    let mut ends: Vec<usize> = (0..64).chain((64..whole.len()).step_by(331)).collect();
    ends.push(whole.len() - 1);
    for end in ends {
        let message = refusal_of(&engine, &whole[..end]);
        assert!(
            message.starts_with("not a component") || message.starts_with("exports none of"),
            "at {end}: {message}"
        );
    }
    assert_eq!(
        refusal(&fixture("planned")[..50_000]),
        "not a component: the file is cut short"
    );
}

/// A patch release of the contract is compatible: the version is raised here in the bytes, where it
/// has the same length.
#[test]
fn a_patch_release_of_the_contract_is_taken() {
    let bytes = fixture("planned");
    let (old, new) = (b"@0.2.0", b"@0.2.7");
    let mut newer = bytes.clone();
    let places: Vec<usize> = (0..bytes.len() - old.len())
        .filter(|&at| bytes[at..].starts_with(old))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        newer[at..at + new.len()].copy_from_slice(new);
    }
    let plugin = engine(EngineLimits::default()).load("x", &newer).unwrap();
    assert_eq!(plugin.describe().unwrap().name, "planned");
}

/// Returns the text of every file in a folder.
fn sources(path: &Path) -> String {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap();
        entries.map(|entry| sources(&entry.unwrap().path())).collect()
    } else {
        fs::read_to_string(path).unwrap()
    }
}

#[test]
fn compilation_ends_at_its_deadline() {
    let limits = EngineLimits {
        compile_deadline: std::time::Duration::ZERO,
        ..EngineLimits::default()
    };
    let engine = PluginEngine::new(EngineOptions {
        limits,
        ..EngineOptions::default()
    });
    let failure = engine.unwrap().load("x", &fixture("planned")).err().unwrap();
    assert_eq!(failure.kind, PluginFailureKind::Deadline { allowed_ms: 0 });
    assert!(
        failure
            .message
            .ends_with("bytes took longer than 0 s; make the component smaller or allow more time"),
        "{failure}"
    );
}

/// Every committed component is used by one of these tests.
#[test]
fn no_fixture_is_idle() {
    let sources = sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/engine")));
    let mut seen = 0;
    for entry in fs::read_dir(dist()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let used = sources.contains(&format!("fixture(\"{name}\")"))
                || sources.contains(&format!(", \"{name}\")"));
            assert!(used, "no test uses {}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 8, "only {seen} fixtures in {}", dist().display());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// For any bytes, loading returns; damage to a valid component is an error or has no effect.
    #[test]
    fn damaged_components_do_no_harm(at in any::<prop::sample::Index>(), bytes in proptest::collection::vec(any::<u8>(), 1..8)) {
        static ENGINE: std::sync::OnceLock<PluginEngine> = std::sync::OnceLock::new();
        let engine = ENGINE.get_or_init(|| engine(crate::support::tight()));
        let mut damaged = fixture("kindless");
        let at = at.index(damaged.len() - bytes.len());
        damaged[at..at + bytes.len()].copy_from_slice(&bytes);
        prop_assert!(engine.load("x", &damaged).is_err());
    }
}

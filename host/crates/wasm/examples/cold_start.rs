//! Measures the start of cached components, from the engine to an open workload:
//! `cargo run --release -p veeksha-wasm --example cold_start [COMPONENT…]`.
//!
//! Without arguments it measures the fixture `planned` of `tests/guests`. Each start is a separate
//! process, so that nothing is mapped or allocated before; the files are in the page cache.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use veeksha_wasm::{EngineOptions, Grants, NoLog, PluginEngine};

/// Starts of each component.
const STARTS: usize = 30;
/// The phases of a start.
const PHASES: [&str; 5] = ["engine", "read", "load", "describe", "open"];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, component, cache] = &arguments[..]
        && flag == "--once"
    {
        return start(Path::new(component), Path::new(cache));
    }
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/guests/dist/planned.wasm");
    let components = if arguments.is_empty() {
        vec![fixture]
    } else {
        arguments.iter().map(PathBuf::from).collect()
    };
    let cache = std::env::temp_dir().join(format!("veeksha-cold-start-{}", std::process::id()));
    println!("times in ms, the median of {STARTS} processes; the goal is 5 ms for Rust, 20 ms for Python");
    for component in components {
        // Compiles.
        times(&component, &cache)?;
        let mut all = Vec::with_capacity(STARTS);
        for _ in 0..STARTS {
            all.push(times(&component, &cache)?);
        }
        let median = |of: &dyn Fn(&[f64; 5]) -> f64| {
            let mut values: Vec<f64> = all.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[STARTS / 2]
        };
        let phases = (0..PHASES.len()).map(|phase| {
            let time = median(&|times| times[phase]);
            format!("{} {time:.2}", PHASES[phase])
        });
        println!(
            "{:>8.2}: {} ({} KiB; {})",
            median(&|times| times.iter().sum()),
            component.file_name().unwrap_or_default().display(),
            std::fs::metadata(&component)?.len() >> 10,
            phases.collect::<Vec<_>>().join(", ")
        );
    }
    std::fs::remove_dir_all(cache)?;
    Ok(())
}

/// Starts a component in a separate process, and returns the milliseconds of each phase.
fn times(component: &Path, cache: &Path) -> Result<[f64; 5], Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?)
        .arg("--once")
        .args([component, cache])
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let times: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
    let message = || String::from_utf8_lossy(&output.stderr).into_owned();
    times?.try_into().map_err(|_| message().into())
}

/// Starts a component and prints the milliseconds of each phase.
fn start(component: &Path, cache: &Path) -> Result<(), Box<dyn Error>> {
    let begun = now();
    let engine = PluginEngine::new(EngineOptions {
        cache_dir: Some(cache.to_owned()),
        ..EngineOptions::default()
    })?;
    let made = now();
    let bytes = std::fs::read(component)?;
    let read = now();
    let plugin = engine.load("cold", &bytes)?;
    let loaded = now();
    plugin.describe()?;
    let described = now();
    let generates = plugin.kinds().session_generator || plugin.kinds().agent_generator;
    if generates {
        // Also where the plugin refuses the empty configuration, it was instantiated.
        let factory = plugin.workload("{}".into(), Grants::new(42, Arc::new(NoLog)))?;
        drop(factory.open());
    }
    let opened = now();
    let phases = [
        (begun, made),
        (made, read),
        (read, loaded),
        (loaded, described),
        (described, opened),
    ];
    for (from, to) in phases {
        println!("{:.4}", (to - from).as_secs_f64() * 1e3);
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads time")]
fn now() -> Instant {
    Instant::now()
}

//! The costs of a plugin: loading, instances, calls.

use serde_json::{Value, json};
use veeksha_app::{CommandFailure, StandaloneHost};
use veeksha_clock::RunClock;
use veeksha_manifest::PluginKind;
use veeksha_model::{SessionId, seconds};
use veeksha_ports::{Workload, WorkloadFactory};

use crate::opened::{OpenedPlugin, PluginSettings};
use crate::play::{AnswerScript, play_agent};
use crate::plugin_file::PluginFile;
use crate::preview::play_failure;
use crate::table_test::RequestInput;

/// The time that each call is repeated for, in seconds.
const SECONDS: f64 = 0.5;
/// Sessions of a batch: as many as the host asks for at most.
const BATCH: u32 = 64;
/// Instances and live agents whose memory is measured.
const INSTANCES: usize = 16;
const LIVE_AGENTS: u64 = 256;
/// Requests of a batch of a metric or a check.
const REQUESTS: usize = 64;

/// A measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchValue {
    /// Its name.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
}

/// The measured values of a plugin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginBench {
    /// The values, in order.
    pub values: Vec<BenchValue>,
}

impl PluginBench {
    fn add(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        self.values.push(BenchValue {
            name: name.into(),
            value,
            unit,
        });
    }

    /// Returns a table.
    pub fn text(&self) -> String {
        let width = self
            .values
            .iter()
            .map(|value| value.name.len())
            .max()
            .unwrap_or(0);
        let line = |value: &BenchValue| {
            let digits = if value.value >= 100.0 { 0 } else { 3 };
            format!(
                "{:width$}  {:>14.digits$} {}",
                value.name, value.value, value.unit
            )
        };
        self.values.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Returns the values as JSON.
    pub fn json(&self) -> Value {
        let value =
            |value: &BenchValue| json!({ "name": value.name, "value": value.value, "unit": value.unit });
        json!({ "values": self.values.iter().map(value).collect::<Vec<_>>() })
    }
}

/// Measures a plugin. `progress` is called before each part.
///
/// # Errors
/// If the plugin fails.
pub fn bench(
    file: &PluginFile,
    settings: &PluginSettings,
    progress: &mut dyn FnMut(&str),
) -> Result<PluginBench, CommandFailure> {
    let mut bench = PluginBench::default();
    let host = |no_cache| StandaloneHost::new(std::path::PathBuf::new(), &[], no_cache);
    progress("loading");
    // The tokenizer of the host is not a cost of the plugin.
    let uncached = host(true)?;
    let (plugin, cold) = timed(|| OpenedPlugin::open(uncached, file))?;
    if plugin.component().is_some() {
        bench.add("compile and link", cold * 1e3, "ms");
        // The first load fills the cache.
        OpenedPlugin::open(host(false)?, file)?;
        let cache = host(false)?;
        let (cached, warm) = timed(|| OpenedPlugin::open(cache, file))?;
        let is_cached = cached
            .component()
            .is_some_and(|component| component.compiled_from_cache());
        if is_cached {
            bench.add("load from the cache", warm * 1e3, "ms");
        }
    } else {
        bench.add("load", cold * 1e3, "ms");
    }
    for kind in plugin.kinds() {
        progress(kind.name());
        measure(&plugin, kind, settings, &mut bench)?;
    }
    Ok(bench)
}

fn measure(
    plugin: &OpenedPlugin,
    kind: PluginKind,
    settings: &PluginSettings,
    bench: &mut PluginBench,
) -> Result<(), CommandFailure> {
    match kind {
        PluginKind::SessionGenerator | PluginKind::AgentGenerator => {
            generator(&*plugin.workload(kind, settings)?, bench)
        }
        PluginKind::ArrivalProcess => {
            let mut process = plugin.arrivals(settings)?.open_silent()?;
            let each = repeat(|| Ok(process.next(1024)?.len() as u64))?;
            bench.add("process.next, each arrival", each * 1e9, "ns");
            Ok(())
        }
        PluginKind::Metric => {
            let records = records()?;
            let batch: Vec<_> = records.iter().collect();
            let mut opened = plugin.metric(settings)?.open()?;
            let each = repeat(|| {
                opened.collector.observe(&batch)?;
                Ok(REQUESTS as u64)
            })?;
            bench.add("collector.observe, each request", each * 1e9, "ns");
            Ok(())
        }
        PluginKind::RequestCheck => {
            let records = records()?;
            let batch: Vec<_> = records.iter().collect();
            let mut check = plugin.request_check(settings)?.open()?;
            let each = repeat(|| Ok(veeksha_ports::judge(check.as_mut(), &batch)?.len() as u64))?;
            bench.add("checker.judge, each request", each * 1e9, "ns");
            Ok(())
        }
        PluginKind::EndpointCodec => {
            let endpoint = plugin.codec(settings)?;
            let events: Vec<&[u8]> = vec![b"{}"; REQUESTS];
            let each = repeat(|| {
                Ok(endpoint
                    .codec
                    .decode(&events)
                    .map_or(REQUESTS, |parts| parts.len()) as u64)
            })?;
            bench.add("codec.decode, each empty event", each * 1e9, "ns");
            Ok(())
        }
        // A flavor depends on its trace, and an SLO check is called once in a run.
        PluginKind::TraceFlavor | PluginKind::SloCheck => Ok(()),
    }
}

fn generator(factory: &dyn WorkloadFactory, bench: &mut PluginBench) -> Result<(), CommandFailure> {
    let open = repeat(|| {
        factory.open_silent()?;
        Ok(1)
    })?;
    bench.add("open an instance", open * 1e6, "µs");
    let before = resident();
    let instances: Result<Vec<Workload>, _> = (0..INSTANCES).map(|_| factory.open_silent()).collect();
    if let (Some(before), Some(after)) = (before, resident()) {
        bench.add(
            "memory of an instance",
            after.saturating_sub(before) as f64 / INSTANCES as f64 / 1024.0,
            "KiB",
        );
    }
    drop(instances?);
    match factory.open_silent()? {
        Workload::Planned(mut source) => {
            let mut next = 0;
            let mut requests = 0_u64;
            let mut sessions = 0_u64;
            let each = repeat(|| {
                let made = source.sessions(next, BATCH)?;
                next = if made.len() < BATCH as usize {
                    0
                } else {
                    next + u64::from(BATCH)
                };
                sessions += made.len() as u64;
                requests += made
                    .iter()
                    .map(|session| session.requests.len() as u64)
                    .sum::<u64>();
                Ok(made.len() as u64)
            })?;
            bench.add("workload.sessions, each session", each * 1e9, "ns");
            bench.add("sessions", 1.0 / each, "per second and thread");
            bench.add(
                "requests",
                requests as f64 / sessions.max(1) as f64 / each,
                "per second and thread",
            );
            Ok(())
        }
        Workload::Reactive(mut agents) => {
            let count = |text: &str| text.len() as u32;
            let mut index = 0;
            let (mut steps, mut requests, mut sessions) = (0_u64, 0_u64, 0_u64);
            let each = repeat(|| {
                let played = play_agent(
                    agents.as_mut(),
                    SessionId(index),
                    &AnswerScript::default(),
                    &count,
                )
                .map_err(play_failure)?;
                index += 1;
                sessions += 1;
                steps += played.steps.len() as u64;
                requests += played
                    .steps
                    .iter()
                    .map(|step| step.step.added.requests.len() as u64)
                    .sum::<u64>();
                Ok(1)
            })?;
            let per_session = |count: u64| count as f64 / sessions.max(1) as f64;
            bench.add("agent, each step", each / per_session(steps).max(1.0) * 1e9, "ns");
            bench.add("sessions", 1.0 / each, "per second and thread");
            bench.add("steps", per_session(steps) / each, "per second and thread");
            bench.add("requests", per_session(requests) / each, "per second and thread");
            live_agents(factory, bench)?;
            Ok(())
        }
    }
}

/// Measures the memory of agents that have started and wait.
fn live_agents(factory: &dyn WorkloadFactory, bench: &mut PluginBench) -> Result<(), CommandFailure> {
    let Workload::Reactive(mut agents) = factory.open_silent()? else {
        return Ok(());
    };
    let live = agents.length()?.unwrap_or(u64::MAX).min(LIVE_AGENTS);
    let before = resident();
    for session in 0..live {
        agents.start(SessionId(session))?;
    }
    if let (Some(before), Some(after)) = (before, resident()) {
        let each = after.saturating_sub(before) as f64 / live.max(1) as f64 / 1024.0;
        bench.add("memory of a live agent", each, "KiB");
    }
    Ok(())
}

/// Returns finished requests of 64 chunks.
fn records() -> Result<Vec<veeksha_model::RequestRecord>, CommandFailure> {
    let input = RequestInput {
        ttfc: Some(0.1),
        gap: Some(0.01),
        output_tokens: Some(64),
        prompt_tokens: 100,
        ..RequestInput::default()
    };
    let records = (0..REQUESTS).map(|index| input.record(index).map_err(CommandFailure::internal));
    records.collect()
}

/// Returns a result and the seconds that it took.
fn timed<T>(work: impl FnOnce() -> Result<T, CommandFailure>) -> Result<(T, f64), CommandFailure> {
    let clock = RunClock::starting_now();
    let begin = clock.now();
    let result = work()?;
    Ok((result, seconds(clock.now() - begin)))
}

/// Repeats a call, which returns the number of things that it made, and returns the seconds of
/// each.
fn repeat(mut call: impl FnMut() -> Result<u64, CommandFailure>) -> Result<f64, CommandFailure> {
    // The first call is not representative.
    call()?;
    let clock = RunClock::starting_now();
    let begin = clock.now();
    let mut made = 0;
    loop {
        made += call()?.max(1);
        let taken = seconds(clock.now() - begin);
        if taken >= SECONDS {
            return Ok(taken / made as f64);
        }
    }
}

/// Returns the resident memory of this process in bytes, where the system states it.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

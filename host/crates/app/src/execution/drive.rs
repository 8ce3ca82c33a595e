//! Execution of a plan against a target in real time, for a run and for its self-test.

use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::Sender;
use veeksha_clock::RunClock;
use veeksha_machine::{LEAST_OPEN_FILES, MachineError};
use veeksha_model::Nanos;
use veeksha_pipeline::{Control, EventEntry, PipelineError, RunEnd};
use veeksha_ports::{Sinks, Transport};
use veeksha_present::{CoreSetting, RealtimePriority, RefusedSettings, terminal};
use veeksha_scenario::{NamedClient, Runtime, Scenario};
use veeksha_transport::{HttpTransport, RoutedTransport, ThreadStart, TransportConfig, TransportError};

use crate::cores::cores;
use crate::execution::thread_watch::Watch;
use crate::execution::wiring::Wired;
use crate::failure::CommandFailure;
use crate::target::{self, ClientTarget};

/// Settings of threads that the system refused, collected from all threads.
pub(crate) type SharedRefusals = Arc<Mutex<RefusedSettings>>;

/// Carries out a plan until it ends. Events go to `events`; scheduling requests that were refused
/// go to `refused`.
pub(crate) fn drive(
    scenario: &Scenario,
    wired: &mut Wired,
    targets: Vec<ClientTarget>,
    events: &Sender<EventEntry>,
    control: &Control,
    refused: &SharedRefusals,
) -> Result<RunEnd, CommandFailure> {
    let runtime = &scenario.runtime;
    let priority = realtime_priority(scenario).level();
    let threads = runtime.client_threads(&scenario.traffic_scheduler, cores());
    let prepared = prepare(priority, CoreSetting::Client, &runtime.client_cores, refused);
    let on_thread_start = prepared.map(|prepare| Arc::new(prepare) as ThreadStart);
    let of_client = |(named, settled): (NamedClient<'_>, ClientTarget)| {
        let config = TransportConfig {
            run_id: wired.plan.run_id.clone().unwrap_or_default(),
            on_thread_start: on_thread_start.clone(),
            ..target::transport(named.client, settled.target, threads)
        };
        (settled.name, config)
    };
    let configs: Vec<_> = scenario.all_clients().zip(targets).map(of_client).collect();
    if let Some(prepare) = prepare(
        priority,
        CoreSetting::Dispatcher,
        &runtime.dispatcher_cores,
        refused,
    ) {
        wired.plan.on_dispatcher_start = Some(Arc::new(move |index| prepare(index as usize)));
    }
    wired.plan.spin = (runtime.spin_microseconds * 1e3) as Nanos;
    wired.plan.thread_watch = Some(Watch::of_a_run());
    let start_transport = |clock, sinks: Sinks| {
        start(configs, clock, sinks).map_err(|error| PipelineError::Transport(Box::new(error)))
    };
    let ended = veeksha_pipeline::run(
        &wired.plan,
        &wired.factory,
        &wired.tokenizer,
        wired.materializer.clone(),
        start_transport,
        events,
        control,
    );
    Ok(ended?)
}

/// Starts the transport of the clients. One client needs no routing.
fn start(
    mut configs: Vec<(String, TransportConfig)>,
    clock: RunClock,
    sinks: Sinks,
) -> Result<Arc<dyn Transport>, TransportError> {
    Ok(match (configs.pop(), configs.is_empty()) {
        (Some((_, only)), true) => Arc::new(HttpTransport::start(only, clock, sinks)?),
        (last, _) => {
            configs.extend(last);
            Arc::new(RoutedTransport::start(configs, clock, &sinks)?)
        }
    })
}

/// Returns the initialization of a thread, if the scenario requests one: its priority, and its
/// core. A refused request is reported, and the thread continues without it.
fn prepare(
    priority: Option<u8>,
    setting: CoreSetting,
    cores: &[u32],
    refused: &SharedRefusals,
) -> Option<impl Fn(usize) + Send + Sync + use<>> {
    if priority.is_none() && cores.is_empty() {
        return None;
    }
    let cores: Vec<usize> = cores.iter().map(|core| *core as usize).collect();
    let refused = refused.clone();
    let report = move |reason: MachineError, refuse: &dyn Fn(&mut RefusedSettings)| {
        let reason = reason.to_string();
        let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
        refuse(&mut refused);
        if refused.reasons.insert(reason.clone()) {
            terminal::err(format!("warning: {reason}"));
        }
    };
    Some(move |index: usize| {
        if let Some(core) = cores.iter().cycle().nth(index)
            && let Err(reason) = veeksha_machine::pin_to(&[*core])
        {
            report(reason, &|refused| {
                refused.cores.insert(setting);
            });
        }
        if let Some(Err(reason)) = priority.map(veeksha_machine::set_realtime) {
            report(reason, &|refused| refused.priority = true);
        }
    })
}

/// Returns the priority that the measuring threads request: the scenario's, or the default.
pub(crate) fn realtime_priority(scenario: &Scenario) -> RealtimePriority {
    match scenario.runtime.realtime_priority {
        Some(0) => RealtimePriority::Normal,
        Some(priority) => RealtimePriority::Level(priority),
        // The simulator's threads share the cores of the client's and would starve: at 2,000
        // requests per second on two cores, requests waited until the limit of open files.
        None if scenario.has_simulated_client() => RealtimePriority::Normal,
        // Without it, late reads at few cores falsify times by a multiple of the metric; with it,
        // errors stayed below 0.6 % in the same runs.
        None if veeksha_machine::realtime_is_permitted() => {
            RealtimePriority::Level(veeksha_machine::DEFAULT_REALTIME_PRIORITY)
        }
        None => RealtimePriority::NotPermitted,
    }
}

/// Raises the soft limit of open files to the hard limit, which is often far above it: every stream
/// is an open file.
///
/// # Errors
/// If the limit is too low for any run, or for the connections to the simulator in this process:
/// those that it cannot accept would wait for their timeout.
pub(crate) fn provide_open_files(scenario: &Scenario) -> Result<(), CommandFailure> {
    match veeksha_machine::raise_open_files() {
        Ok(files) => enough_open_files(files.soft, scenario),
        Err(error) => {
            terminal::err(format!("note: {error}"));
            Ok(())
        }
    }
}

fn enough_open_files(limit: u64, scenario: &Scenario) -> Result<(), CommandFailure> {
    let streams = u64::from(scenario.traffic_scheduler.concurrent_sessions().unwrap_or(1));
    let is_simulated = scenario.has_simulated_client();
    // The simulator in this process has the other end of each connection.
    let (ends, note) = if is_simulated {
        (
            2,
            "two per concurrent request, as the simulator is in this process",
        )
    } else {
        (1, "one per concurrent request")
    };
    let needed = LEAST_OPEN_FILES + ends * streams;
    // A session that thinks may hold no connection; a server reports what it cannot accept.
    let least = if is_simulated { needed } else { LEAST_OPEN_FILES };
    if limit >= least {
        return Ok(());
    }
    Err(CommandFailure::internal(format!(
        "too many open files (EMFILE): the limit is {limit}, and this run needs at least {needed} \
         ({LEAST_OPEN_FILES} of the program, and {note})"
    ))
    .hinted(format!(
        "raise the limit in this shell: `ulimit -n {}`",
        needed.max(1024)
    )))
}

/// Validates the cores of a scenario before anything is sent.
pub(crate) fn check_cores(runtime: &Runtime) -> Result<(), CommandFailure> {
    let usable = veeksha_machine::usable_cores();
    for (key, cores) in [
        ("dispatcher_cores", &runtime.dispatcher_cores),
        ("client_cores", &runtime.client_cores),
    ] {
        if let Some(core) = cores.iter().find(|core| !usable.contains(&(**core as usize))) {
            let usable: Vec<String> = usable.iter().map(usize::to_string).collect();
            return Err(CommandFailure::usage(format!(
                "runtime.{key}: this process may not run on core {core}; use one of {}",
                usable.join(", ")
            )));
        }
    }
    Ok(())
}

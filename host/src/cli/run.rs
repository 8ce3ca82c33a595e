//! `veeksha-host run`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use veeksha_dialect::{Api, Dialect};
use veeksha_model::Role;
use veeksha_pipeline::{Control, PipelineError};
use veeksha_ports::{Sinks, Transport};
use veeksha_report::RunFolder;
use veeksha_scenario::{ClientKind, Scenario};
use veeksha_simulator::{SimOptions, SimServer};
use veeksha_transport::{
    HttpTransport, Secret, Target, TlsOptions, TransportConfig, TransportError, untimed,
};

use crate::cli::args::RunArgs;
use crate::collect::{self, Collector, Live};
use crate::failure::Failure;
use crate::mode::Mode;
use crate::say;
use crate::{interrupt, prompts, results, rooted, wire_up};

pub(super) fn run(args: &RunArgs, overrides: &[(String, String)]) -> Result<u8, Failure> {
    let mut loaded = wire_up::load(&args.scenario, overrides)?;
    let (api_base, simulated) = target_address(&loaded.scenario, &args.scenario.scenario, &loaded)?;
    let mut target = target(&loaded.scenario, api_base);
    if simulated.is_none() {
        find_model(&loaded.scenario, &mut target)?;
    } else if target.api.model.is_empty() {
        target.api.model = "sim".into();
    }
    loaded.scenario.client.model = Some(target.api.model.clone());
    let wired = wire_up::wire(&mut loaded, Mode::Run(args.shard))?;
    if loaded.scenario.client.apply_chat_template {
        let materialiser = wired.materialiser.clone();
        target.api.render = Some(Arc::new(move |messages: &[(Role, &str)]| {
            materialiser
                .render_conversation(messages)
                .map_err(|error| error.to_string())
        }));
    }
    let config = rooted::rooted(&loaded.scenario, loaded.folder()).to_yaml();
    let scenario = loaded.scenario;
    for note in &wired.notes {
        say::err(format!("note: {note}"));
    }

    let control = Control::default();
    interrupt::stop_on_signal(control.clone())?;
    let stamp = veeksha_clock::utc_stamp(veeksha_clock::wall_nanos());
    let folder = RunFolder::create(&scenario.output_dir, &config, &stamp).map_err(Failure::usage)?;
    let collector = Collector::new(&scenario, &wired, &folder)?;
    let live = if args.quiet {
        Live::Quiet
    } else {
        collect::live_of(&scenario)
    };
    let (events, thread) = collect::on_a_thread(collector, live, scenario.runtime.session_limit())?;

    let threads = scenario
        .runtime
        .client_threads(&scenario.traffic_scheduler, wire_up::cores());
    let config = TransportConfig {
        target,
        request_timeout: scenario.client.deadline(),
        threads,
    };
    let start_transport = |clock, sinks: Sinks| {
        let transport = HttpTransport::start(config, clock, sinks);
        let transport = transport.map_err(|error| PipelineError::Transport(Box::new(error)))?;
        Ok(Arc::new(transport) as Arc<dyn Transport>)
    };
    let ended = veeksha_pipeline::run(
        &wired.plan,
        &wired.factory,
        &wired.tokenizer,
        wired.materialiser.clone(),
        start_transport,
        &events,
        &control,
    );
    drop(events);
    let collected = thread
        .join()
        .map_err(|_| Failure::internal("the collector of results has died"))?;
    if let Some(server) = simulated {
        server.stop();
    }
    prompts::report(&wired.materialiser);
    results::conclude(&folder, collected, &ended?, results::Clock::Real, args.quiet)
}

/// Where requests go; for `sim://PROFILE`, a server in this process on a loopback port.
fn target_address(
    scenario: &Scenario,
    path: &Path,
    loaded: &wire_up::Loaded,
) -> Result<(String, Option<SimServer>), Failure> {
    let Some(api_base) = &scenario.client.api_base else {
        return Err(Failure::usage(format!(
            "{}: client.api_base: the target is missing",
            path.display()
        ))
        .hinted(
            "set it, or OPENAI_API_BASE, to a URL such as http://localhost:8000/v1, or to sim://default",
        ));
    };
    let Some(name) = api_base.strip_prefix("sim://") else {
        return Ok((api_base.clone(), None));
    };
    let profile = super::sim::profile(name, loaded.folder())?;
    // Nobody reads this server's own log.
    let options = SimOptions {
        truth_capacity: 0,
        ..super::sim::options(profile, scenario.seed)?
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let clock = veeksha_clock::RunClock::starting_now();
    let server = SimServer::start(address, options, clock).map_err(Failure::internal)?;
    Ok((format!("http://{}/v1", server.addr()), Some(server)))
}

fn target(scenario: &Scenario, api_base: String) -> Target {
    let client = &scenario.client;
    Target {
        api_base,
        path: Some(client.address_append_value.clone()),
        api: Api {
            dialect: match client.kind {
                ClientKind::OpenaiChatCompletions => Dialect::ChatCompletions,
                ClientKind::OpenaiCompletions => Dialect::Completions,
            },
            model: client.model.clone().unwrap_or_default(),
            max_tokens_param: client.max_tokens_param.clone(),
            min_tokens_param: client.min_tokens_param.clone(),
            ignore_eos: client.ignore_eos,
            sampling: client.additional_sampling_params.clone(),
            stream_options: true,
            // Known once the tokenizer is.
            render: None,
        },
        api_key: client
            .api_key
            .as_ref()
            .map(|key| Secret::new(key.expose().to_owned())),
        headers: client.headers.clone().into_iter().collect(),
        tls: TlsOptions {
            ca_file: client.tls.ca_file.clone(),
            insecure: client.tls.insecure,
        },
    }
}

/// Whether an error is in what the user wrote, not in what the server did.
fn is_configuration(error: &TransportError) -> bool {
    matches!(
        error,
        TransportError::Url { .. } | TransportError::Header { .. } | TransportError::CaFile { .. }
    )
}

/// Asks the server for its models: finds the one to use if none is named, and a dead server before the clock starts.
fn find_model(scenario: &Scenario, target: &mut Target) -> Result<(), Failure> {
    let patience = scenario.client.deadline().min(std::time::Duration::from_secs(10));
    match (
        untimed::list_models(target, patience),
        target.api.model.is_empty(),
    ) {
        (Ok(models), true) => match models.into_iter().next() {
            Some(model) => target.api.model = model,
            None => {
                return Err(Failure::target(format!("{} has no models", target.api_base))
                    .hinted("name the model: --client.model NAME"));
            }
        },
        (Ok(_), false) => {}
        (Err(error @ TransportError::Unreachable { .. }), _) => {
            return Err(Failure::target(error).hinted(
                "is the server running there? For a certificate of your own: client.tls.ca_file or client.tls.insecure",
            ));
        }
        (Err(error), _) if is_configuration(&error) => return Err(Failure::usage(error)),
        (Err(error), true) => {
            return Err(Failure::target(error).hinted("name the model: --client.model NAME"));
        }
        // A server without a list of models may still answer.
        (Err(_), false) => {}
    }
    Ok(())
}

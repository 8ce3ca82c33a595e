//! Servers of a scenario: their addresses, endpoints and models.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use veeksha_endpoint::Api;
use veeksha_model::{DEFAULT_CLIENT, Role, printable, redact_address};
use veeksha_scenario::{
    Balance, Client, ClientKind, Connections, HttpVersion, NamedClient, Scenario, TargetServer, Tls,
    secret_texts,
};
use veeksha_simulator::{SimOptions, SimServer};
use veeksha_transport::{
    ApiKey, ConnectionPolicy, HttpTransport, Server, Target, TlsOptions, TransportConfig, TransportError,
    untimed,
};

use crate::codec;
use crate::endpoint::{endpoint, template_endpoint};
use crate::execution::wiring::Wired;
use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;
use crate::sim_profile;
use veeksha_present::terminal;

/// Timeout for a server's list of models.
const MODEL_LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// The target of a client.
pub(crate) struct ClientTarget {
    /// The name of the client.
    pub(crate) name: String,
    pub(crate) target: Target,
    /// Simulator behind a `sim://` target.
    pub(crate) simulator: Option<SimServer>,
}

/// Determines the properties of each client's target that do not depend on the workload: its
/// servers (for `sim://PROFILE`, one in this process) and its model. The targets are those of
/// [`Scenario::all_clients`], in the same order.
pub(crate) fn settle(loaded: &mut Loaded, path: &Path) -> Result<Vec<ClientTarget>, CommandFailure> {
    let mut targets = Vec::new();
    for named in loaded.scenario.all_clients() {
        targets.push(settle_one(loaded, &named, path).map_err(|failure| of_client(&named, failure))?);
    }
    let Scenario { client, clients, .. } = &mut loaded.scenario;
    for (client, settled) in std::iter::once(client).chain(clients.values_mut()).zip(&targets) {
        client.model = Some(settled.target.api.model.clone());
    }
    Ok(targets)
}

fn settle_one(loaded: &Loaded, named: &NamedClient<'_>, path: &Path) -> Result<ClientTarget, CommandFailure> {
    let (servers, simulator) = servers(loaded, named, path)?;
    let mut target = target(named, servers)?;
    check_transport(named.client, target.clone())?;
    if simulator.is_none() {
        find_model(named, &mut target)?;
    } else if target.api.model.is_empty() {
        target.api.model = "sim".into();
    }
    Ok(ClientTarget {
        name: named.name.to_owned(),
        target,
        simulator,
    })
}

/// Names the client in a failure that may concern any of them.
fn of_client(named: &NamedClient<'_>, mut failure: CommandFailure) -> CommandFailure {
    if named.name != DEFAULT_CLIENT && !failure.message.contains(&named.path) {
        failure.message = format!("{}: {}", named.path, failure.message);
    }
    failure
}

/// Adds the properties that depend on the workload: the chat template of the model, for endpoints
/// that accept a single text, and the components of the endpoints.
pub(crate) fn complete(
    targets: &mut [ClientTarget],
    loaded: &Loaded,
    wired: &Wired,
) -> Result<(), CommandFailure> {
    for (named, settled) in loaded.scenario.all_clients().zip(targets) {
        let target = &mut settled.target;
        if named.client.apply_chat_template {
            let materializer = wired.materializer.clone();
            target.api.render = Some(Arc::new(move |messages: &[(Role, &str)]| {
                materializer
                    .render_conversation(messages)
                    .map_err(|error| error.to_string())
            }));
        }
        if let Some(known) = codec::open(loaded, &named, &wired.tokenizer)? {
            if named.client.address_append_value.is_empty() {
                target.path = Some(known.path);
            }
            // User-defined headers take precedence.
            target.headers.splice(0..0, known.headers);
            target.api.endpoint = known.endpoint;
            target.codec = Some(known.codec);
        }
    }
    Ok(())
}

/// Reports problems of the endpoints that a run would find before it sends anything.
pub(crate) fn check(loaded: &Loaded, wired: &Wired) -> Result<(), CommandFailure> {
    loaded
        .scenario
        .all_clients()
        .try_for_each(|named| check_one(loaded, &named, wired).map_err(|failure| of_client(&named, failure)))
}

fn check_one(loaded: &Loaded, named: &NamedClient<'_>, wired: &Wired) -> Result<(), CommandFailure> {
    let client = named.client;
    if client.template.is_some() {
        template_endpoint(named)?;
    }
    codec::open(loaded, named, &wired.tokenizer)?;
    // A simulator has no address yet; without a target there is nothing to check.
    if client.targets.is_empty() {
        if client.api_base.is_none() {
            return Ok(());
        }
        if let Some(profile) = client.sim_profile() {
            return sim_profile::profile(profile, loaded.folder()).map(|_| ());
        }
    }
    let (servers, _) = servers(loaded, named, Path::new(""))?;
    check_transport(client, target(named, servers)?)
}

/// Validates addresses, headers, certificates and proxies before anything is sent.
fn check_transport(client: &Client, target: Target) -> Result<(), CommandFailure> {
    HttpTransport::check(transport(client, target, 1)).map_err(CommandFailure::usage)
}

/// Returns the transport of a client for its target.
pub(crate) fn transport(client: &Client, target: Target, threads: usize) -> TransportConfig {
    TransportConfig {
        request_timeout: client.deadline(),
        connect_timeout: client.connect_deadline(),
        threads,
        connections: match client.connections {
            Connections::Pooled => ConnectionPolicy::Pooled,
            Connections::PerSession => ConnectionPolicy::PerSession,
            Connections::Never => ConnectionPolicy::Never,
        },
        http: match client.http_version {
            HttpVersion::Http1 => veeksha_transport::HttpProtocol::Http1,
            HttpVersion::Http2 => veeksha_transport::HttpProtocol::Http2,
        },
        source_addresses: client.sources(),
        traceparent: client.traceparent,
        ..TransportConfig::new(target)
    }
}

/// Returns the servers of the target, and the simulator if it runs in this process.
fn servers(
    loaded: &Loaded,
    named: &NamedClient<'_>,
    path: &Path,
) -> Result<(Vec<Server>, Option<SimServer>), CommandFailure> {
    let client = named.client;
    if !client.targets.is_empty() {
        let servers = client
            .targets
            .iter()
            .map(|target| server_of(client, target, loaded));
        return Ok((servers.collect(), None));
    }
    let Some(api_base) = &client.api_base else {
        return Err(missing_target(path));
    };
    let (api_base, simulated) = match client.sim_profile() {
        None => (api_base.clone(), None),
        Some(name) => {
            let server = simulated(name, loaded, named)?;
            (format!("http://{}/v1", server.addr()), Some(server))
        }
    };
    let server = Server {
        api_base,
        api_key: secret(client.api_key.as_ref()),
        headers: Vec::new(),
        tls: tls(&client.tls, loaded),
        // A loopback port of this process needs no proxy.
        proxy: client.proxy.clone().filter(|_| simulated.is_none()),
    };
    Ok((vec![server], simulated))
}

/// Checks that a scenario states the target that a run needs; a simulation needs none. `path` is
/// the file of the scenario, for the message.
///
/// # Errors
/// If there is no target.
pub fn require_target(scenario: &Scenario, path: &Path) -> Result<(), CommandFailure> {
    let client = &scenario.client;
    if client.targets.is_empty() && client.api_base.is_none() {
        return Err(missing_target(path));
    }
    Ok(())
}

fn missing_target(path: &Path) -> CommandFailure {
    CommandFailure::usage(format!(
        "{}: client.api_base: the target is missing",
        path.display()
    ))
    .hinted("set it, or OPENAI_API_BASE, to a URL such as http://localhost:8000/v1, or to sim://default")
}

fn server_of(client: &Client, target: &TargetServer, loaded: &Loaded) -> Server {
    Server {
        api_base: target.api_base.clone(),
        api_key: secret(target.api_key.as_ref().or(client.api_key.as_ref())),
        headers: target.headers.clone().into_iter().collect(),
        tls: tls(target.tls.as_ref().unwrap_or(&client.tls), loaded),
        proxy: target.proxy.clone().or_else(|| client.proxy.clone()),
    }
}

fn secret(key: Option<&veeksha_scenario::Secret>) -> Option<ApiKey> {
    key.map(|key| ApiKey::new(key.expose().to_owned()))
}

/// Converts TLS options; paths in a scenario are relative to its folder.
fn tls(tls: &Tls, loaded: &Loaded) -> TlsOptions {
    let below = |path: &Option<PathBuf>| path.as_ref().map(|path| loaded.folder().join(path));
    TlsOptions {
        ca_file: below(&tls.ca_file),
        insecure: tls.insecure,
        client_certificate: below(&tls.client_certificate),
        client_key: below(&tls.client_key),
    }
}

/// Starts the simulator on a loopback port of this process.
fn simulated(profile: &str, loaded: &Loaded, named: &NamedClient<'_>) -> Result<SimServer, CommandFailure> {
    let profile = sim_profile::profile(profile, loaded.folder())?;
    let client = Some(named.name).filter(|name| *name != DEFAULT_CLIENT);
    let seed = veeksha_pipeline::engine_seed(loaded.scenario.seed, client);
    // The log of this server is not used.
    let options = SimOptions {
        truth_capacity: 0,
        ..sim_profile::options(profile, seed)?
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let clock = veeksha_clock::RunClock::starting_now();
    SimServer::start(address, options, clock).map_err(CommandFailure::internal)
}

fn target(named: &NamedClient<'_>, servers: Vec<Server>) -> Result<Target, CommandFailure> {
    let client = named.client;
    let endpoint = endpoint(named)?;
    let api = Api {
        endpoint,
        model: client.model.clone().unwrap_or_default(),
        max_tokens_param: client.max_tokens_param.clone(),
        min_tokens_param: client.min_tokens_param.clone(),
        ignore_eos: client.ignore_eos,
        reasoning_param: client.reasoning_param.clone(),
        sampling: client.additional_sampling_params.clone(),
        stream_options: true,
        // Set after the tokenizer is known.
        render: None,
    };
    api.check_sampling().map_err(|error| {
        CommandFailure::usage(format!("{}.additional_sampling_params: {error}", named.path))
    })?;
    Ok(Target {
        servers,
        balance: match client.balance {
            Balance::RoundRobin => veeksha_transport::BalanceRule::RoundRobin,
            Balance::LeastInFlight => veeksha_transport::BalanceRule::LeastInFlight,
        },
        path: Some(client.address_append_value.clone()),
        api,
        headers: headers(client),
        codec: None,
        body_secrets: secret_texts(&client.additional_sampling_params.clone().into()),
    })
}

/// Returns the headers of the scenario; later ones replace earlier ones.
fn headers(client: &Client) -> Vec<(String, String)> {
    let sets = client.session_headers.iter().map(|headers| headers.set());
    let of_sets = sets.flat_map(|set| set.headers);
    let of_sets = of_sets.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    of_sets.chain(client.headers.clone()).collect()
}

/// Returns true if an error is in the configuration rather than in the server.
fn is_configuration(error: &TransportError) -> bool {
    matches!(
        error,
        TransportError::Url { .. }
            | TransportError::Header { .. }
            | TransportError::CaFile { .. }
            | TransportError::ClientCertificate { .. }
            | TransportError::Proxy { .. }
    )
}

/// Returns true if requests to this endpoint name a model.
fn names_a_model(kind: ClientKind) -> bool {
    match kind {
        ClientKind::OpenaiChatCompletions
        | ClientKind::OpenaiCompletions
        | ClientKind::OpenaiResponses
        | ClientKind::AnthropicMessages => true,
        ClientKind::TgiGenerateStream | ClientKind::Template | ClientKind::Wasm => false,
    }
}

/// Queries the servers for their models: selects the model if none is named, and detects an
/// unreachable server before the run starts.
fn find_model(named: &NamedClient<'_>, target: &mut Target) -> Result<(), CommandFailure> {
    let client = named.client;
    let hint = format!("set the model with --{}.model NAME", named.path);
    let timeout = client.deadline().min(MODEL_LIST_TIMEOUT);
    for server in &target.servers {
        let models = untimed::list_models(target, server, timeout);
        let unknown = target.api.model.is_empty();
        match models {
            Ok(models) if unknown => match models.into_iter().next() {
                Some(model) => {
                    target.api.model = model;
                    // All servers receive the same model name; the others are only checked.
                    return check_other_servers(named, target, timeout);
                }
                None if !names_a_model(client.kind) => {}
                None => {
                    return Err(CommandFailure::target(format!(
                        "{} lists no models",
                        redact_address(&server.api_base)
                    ))
                    .hinted(hint));
                }
            },
            Ok(_) => {}
            Err(error @ (TransportError::Unreachable { .. } | TransportError::ProxyFailed { .. })) => {
                return Err(unreachable(named, error));
            }
            Err(error) if is_configuration(&error) => return Err(CommandFailure::usage(error)),
            Err(error) if unknown && names_a_model(client.kind) => {
                return Err(CommandFailure::target(error).hinted(hint));
            }
            // A server without a list of models may still answer.
            Err(_) => {}
        }
    }
    Ok(())
}

fn check_other_servers(
    named: &NamedClient<'_>,
    target: &Target,
    timeout: Duration,
) -> Result<(), CommandFailure> {
    for server in target.servers.iter().skip(1) {
        match untimed::list_models(target, server, timeout) {
            Err(error @ (TransportError::Unreachable { .. } | TransportError::ProxyFailed { .. })) => {
                return Err(unreachable(named, error));
            }
            Err(error) if is_configuration(&error) => return Err(CommandFailure::usage(error)),
            Ok(models) if !models.is_empty() && !models.contains(&target.api.model) => {
                terminal::err(format!(
                    "note: {} does not list the model `{}`; it has {}",
                    redact_address(&server.api_base),
                    printable(&target.api.model),
                    printable(&models.join(", "))
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn unreachable(named: &NamedClient<'_>, error: TransportError) -> CommandFailure {
    let at = &named.path;
    let hint = match &error {
        TransportError::ProxyFailed { .. } => {
            format!(
                "is the proxy running? Its address is {at}.proxy; a user and a password are part of it, as in \
                 http://user:password@proxy:3128"
            )
        }
        TransportError::Unreachable { url, .. } if url.starts_with("https:") => {
            format!(
                "is the server running? For a self-signed certificate, set {at}.tls.ca_file or {at}.tls.insecure"
            )
        }
        _ => format!("is the server running, and is its address in {at}.api_base or {at}.targets correct?"),
    };
    CommandFailure::target(error).hinted(hint)
}

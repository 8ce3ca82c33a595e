//! Opening of connections: name resolution, TCP, proxy and TLS, each measured separately.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::atomic::Ordering;

use nix::sys::socket::{setsockopt, sockopt};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use rustls::pki_types::ServerName;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use veeksha_endpoint::Failure;
use veeksha_model::ErrorClass;
use veeksha_ports::ConnectionUse;

use crate::prepared_server::PreparedServer;
use crate::proxy::{Proxy, Tunnel, TunnelAnswer};
use crate::receiver::{Receiver, StampedSocket};
use crate::route::Route;
use crate::tls::handshake_message;
use crate::wire::Wire;

/// Progress of opening a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OpeningStep {
    #[default]
    Resolving,
    Connecting,
    Tunnelling,
    Handshaking,
}

impl OpeningStep {
    /// Returns a human-readable description of the step.
    pub(crate) fn description(self) -> &'static str {
        match self {
            OpeningStep::Resolving => "while resolving the name",
            OpeningStep::Connecting => "while connecting",
            OpeningStep::Tunnelling => "while the proxy opened the tunnel",
            OpeningStep::Handshaking => "in the TLS handshake",
        }
    }
}

/// Opens a connection to a server and records the duration of each step. The client thread enforces
/// the time limit.
pub(crate) async fn open(
    route: &Route,
    server: &PreparedServer,
    receiver: &Rc<Receiver>,
    used: &Cell<ConnectionUse>,
    step: &Cell<OpeningStep>,
) -> Result<Wire, Failure> {
    let note = |change: &dyn Fn(&mut ConnectionUse)| {
        let mut known = used.get();
        change(&mut known);
        used.set(known);
    };
    let (host, port) = match &server.proxy {
        Some(proxy) => (proxy.host.as_str(), proxy.port),
        None => (server.address.host.as_str(), server.address.port),
    };
    let name = server.first_hop();
    step.set(OpeningStep::Resolving);
    let addresses = match host.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => {
            let started = route.clock.now();
            let addresses = resolve(&name, host, port).await?;
            let taken = route.clock.now() - started;
            note(&|used| used.resolve = Some(taken));
            addresses
        }
    };
    step.set(OpeningStep::Connecting);
    let started = route.clock.now();
    let socket = connect(route, server, &addresses).await?;
    let stamped = StampedSocket::new(socket, Rc::clone(receiver));
    let stamped = match server.tunnel() {
        Some(proxy) => {
            step.set(OpeningStep::Tunnelling);
            tunnel(proxy, server, stamped).await?
        }
        None => stamped,
    };
    let connected = route.clock.now();
    note(&|used| used.connect = Some(connected - started));
    let Some(connector) = &server.tls else {
        return Ok(Wire::Plain(stamped));
    };
    step.set(OpeningStep::Handshaking);
    let stream = handshake(server, connector, stamped).await?;
    let secured = route.clock.now();
    note(&|used| used.tls = Some(secured - connected));
    Ok(Wire::Tls(Box::new(stream)))
}

async fn resolve(name: &str, host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    let addresses = lookup_host((host, port)).await.map_err(|error| {
        let words =
            no_descriptor(&error).unwrap_or_else(|| format!("the host name does not resolve: {error}"));
        Failure::new(ErrorClass::Connect, format!("{name}: {words}"))
    })?;
    Ok(addresses.collect())
}

/// Connects to the first address that accepts a connection.
async fn connect(
    route: &Route,
    server: &PreparedServer,
    addresses: &[SocketAddr],
) -> Result<TcpStream, Failure> {
    let fail = |words: String| Failure::new(ErrorClass::Connect, format!("{}: {words}", server.first_hop()));
    let listener = server.proxy.as_ref().map_or("server", |_| "proxy");
    let mut last = None;
    for address in addresses {
        let source = match source(route, *address) {
            Ok(source) => source,
            Err(words) => {
                last = Some(words);
                continue;
            }
        };
        match connect_one(*address, source).await {
            Ok(socket) => return Ok(socket),
            Err(error) => last = Some(connect_message(&error, source, listener)),
        }
    }
    Err(fail(
        last.unwrap_or_else(|| "the host name has no address".to_owned()),
    ))
}

/// Returns the next configured local address of the same IP version, if any are configured.
fn source(route: &Route, address: SocketAddr) -> Result<Option<IpAddr>, String> {
    if route.source_addresses.is_empty() {
        return Ok(None);
    }
    let fitting = || {
        route
            .source_addresses
            .iter()
            .filter(|source| source.is_ipv4() == address.is_ipv4())
    };
    let number = fitting().count();
    if number == 0 {
        let kind = if address.is_ipv4() { "IPv4" } else { "IPv6" };
        return Err(format!(
            "the server's address {} is {kind}, and client.source_addresses has none of that kind",
            address.ip()
        ));
    }
    let turn = route.next_source.fetch_add(1, Ordering::Relaxed) % number;
    Ok(fitting().nth(turn).copied())
}

async fn connect_one(address: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_nodelay(true)?;
    // If the kernel refuses, reads use their own time, and every record marks this.
    let _ = setsockopt(&socket, sockopt::ReceiveTimestampns, &true);
    if let Some(source) = source {
        // The port is chosen once the server is known, so that each server has the whole range. If
        // the kernel refuses, the servers share the range, which is not an error.
        let _ = setsockopt(&socket, sockopt::IpBindAddressNoPort, &true);
        socket.bind(SocketAddr::new(source, 0))?;
    }
    socket.connect(address).await
}

/// Returns the message for a failed connection to `listener`: a server or a proxy.
fn connect_message(error: &io::Error, source: Option<IpAddr>, listener: &str) -> String {
    if let Some(words) = no_descriptor(error) {
        return words;
    }
    match (Errno::from_io_error(error), source) {
        (Some(Errno::CONNREFUSED), _) => {
            format!("the connection was refused; is the {listener} running there?")
        }
        (Some(Errno::ADDRNOTAVAIL), Some(source)) => format!(
            "no connection from {source}: it is not an address of this machine, or has no free local port; see client.source_addresses and net.ipv4.ip_local_port_range"
        ),
        (Some(Errno::ADDRNOTAVAIL), None) => {
            "no local port is left (some 28,000 for each pair of addresses; net.ipv4.ip_local_port_range): spread the streams over several addresses with client.source_addresses, or let connections be reused"
                .to_owned()
        }
        (_, Some(source)) => format!("no connection from {source}: {error}"),
        (_, None) => format!("no connection: {error}"),
    }
}

/// Returns the message for a process or a system that cannot open another file.
fn no_descriptor(error: &io::Error) -> Option<String> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => {
            let limit = getrlimit(Resource::Nofile).current;
            let limit = limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
            Some(format!(
                "no file descriptor is left (the limit is {limit}); raise it with `ulimit -n`"
            ))
        }
        Errno::NFILE => Some("the system has no file descriptor left (fs.file-max)".to_owned()),
        _ => None,
    }
}

/// Asks the proxy to open a tunnel to the server.
async fn tunnel(
    proxy: &Proxy,
    server: &PreparedServer,
    mut socket: StampedSocket,
) -> Result<StampedSocket, Failure> {
    let fail = |words: String| Failure::new(ErrorClass::Connect, format!("{} {words}", server.first_hop()));
    let lost = |error: io::Error| fail(format!("closed the connection: {error}"));
    socket
        .write_all(&proxy.connect_request(&server.address.place()))
        .await
        .map_err(lost)?;
    let mut answer = TunnelAnswer::new();
    let mut buffer = vec![0; 4 * 1024];
    loop {
        let size = std::future::poll_fn(|cx| socket.poll_receive(cx, &mut buffer))
            .await
            .map_err(lost)?;
        match answer.take(&buffer[..size]) {
            _ if size == 0 => {
                return Err(fail("closed the connection when asked for a tunnel".to_owned()));
            }
            Tunnel::More => {}
            Tunnel::Open(rest) => {
                socket.give_back(rest);
                return Ok(socket);
            }
            Tunnel::Refused(words) => return Err(fail(words)),
        }
    }
}

async fn handshake(
    server: &PreparedServer,
    connector: &TlsConnector,
    socket: StampedSocket,
) -> Result<tokio_rustls::client::TlsStream<StampedSocket>, Failure> {
    let place = server.address.place();
    let name = ServerName::try_from(server.address.host.clone()).map_err(|error| {
        Failure::new(
            ErrorClass::Tls,
            format!("{place}: not a name a certificate can have: {error}"),
        )
    })?;
    connector
        .connect(name, socket)
        .await
        .map_err(|error| Failure::new(ErrorClass::Tls, handshake_message(&place, &error)))
}

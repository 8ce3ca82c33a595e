//! Connections, servers, and proxies between them, through the whole program.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::results::{json, latest, lines};
use crate::server::Sim;
use crate::support::{assert_code, scenario, stderr, stdout, veeksha};

const SMALL: &str = r#"
session_generator:
  type: synthetic
  session_graph: { type: linear, num_request_generator: { type: fixed, value: 3 }, request_wait_generator: { type: fixed, interval: 0 } }
  channels: [ { type: text, body_length_generator: { type: fixed, value: 20 } } ]
  output_spec: { text: { output_length_generator: { type: fixed, value: 4 } } }
traffic_scheduler: { type: concurrent, target_concurrent_sessions: 4, rampup_seconds: 0 }
client: { model: sim, request_timeout: 10 }
runtime: { max_sessions: 40, benchmark_timeout: 0, num_client_threads: 1 }
"#;

fn run(folder: &Path, flags: &[&str]) -> std::process::Output {
    let file = scenario(folder, "small.yml", SMALL);
    let output_dir = folder.to_str().expect("UTF-8");
    let mut arguments = vec!["run", &file, "--output_dir", output_dir];
    arguments.extend(flags);
    veeksha(arguments)
}

fn rows(folder: &Path) -> Vec<Value> {
    lines(&latest(folder), "metrics/request_level_metrics.jsonl")
}

fn good(flags: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    assert_code(&run(folder.path(), flags), 0);
    let rows = rows(folder.path());
    assert_eq!(rows.len(), 120);
    assert!(rows.iter().all(|row| row["success"] == true), "{rows:?}");
    rows
}

fn reused(rows: &[Value]) -> usize {
    rows.iter().filter(|row| row["connection_reused"] == true).count()
}

#[test]
fn pooled_connections_are_opened_once_for_each_that_is_needed_at_a_time() {
    let rows = good(&["--client.api_base", "sim://fast"]);
    assert!(
        reused(&rows) >= 120 - 4,
        "four at a time need four: {}",
        reused(&rows)
    );
    for row in rows.iter().filter(|row| row["connection_reused"] == false) {
        assert!(
            row["connect_seconds"]
                .as_f64()
                .is_some_and(|seconds| seconds > 0.0),
            "{row}"
        );
    }
}

#[test]
fn connections_can_be_per_session_or_per_request() {
    let own = good(&[
        "--client.api_base",
        "sim://fast",
        "--client.connections",
        "per_session",
    ]);
    assert_eq!(reused(&own), 80, "the first of three requests opens one");
    for row in &own {
        assert_eq!(row["connection_reused"] == true, row["node_id"] != 0, "{row}");
    }
    let none = good(&["--client.api_base", "sim://fast", "--client.connections", "never"]);
    assert_eq!(reused(&none), 0);
}

#[test]
fn sessions_are_dealt_out_over_servers_and_stay() {
    let (one, two) = (
        Sim::start(&["--profile", "fast"]),
        Sim::start(&["--profile", "fast"]),
    );
    let targets = format!(
        "client.targets=[{{api_base: '{}'}}, {{api_base: '{}'}}]",
        one.api_base, two.api_base
    );
    for balance in ["round_robin", "least_in_flight"] {
        let rows = good(&["--set", &targets, "--client.balance", balance]);
        let mut seen = [0; 2];
        for session in 0..40 {
            let of: Vec<&Value> = rows.iter().filter(|row| row["session_id"] == session).collect();
            let server = of[0]["server"].as_u64().expect("a server") as usize;
            assert!(of.iter().all(|row| row["server"] == server), "{balance}: {of:?}");
            seen[server] += 1;
        }
        if balance == "round_robin" {
            assert_eq!(seen, [20, 20]);
        }
        assert!(seen.iter().all(|sessions| *sessions > 0), "{balance}: {seen:?}");
    }
    one.stop();
    two.stop();
}

#[test]
fn one_dead_server_of_two_is_named_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let sim = Sim::start(&["--profile", "fast"]);
    let targets = format!(
        "client.targets=[{{api_base: '{}'}}, {{api_base: 'http://127.0.0.1:1/v1'}}]",
        sim.api_base
    );
    let output = run(folder.path(), &["--set", &targets]);
    assert_code(&output, 5);
    assert!(stderr(&output).contains("127.0.0.1:1"), "{}", stderr(&output));
    sim.stop();
}

#[test]
fn connections_use_the_configured_source_addresses() {
    let rows = good(&[
        "--client.api_base",
        "sim://fast",
        "--set",
        "client.source_addresses=[127.0.0.2, 127.0.0.3]",
    ]);
    assert!(reused(&rows) >= 116);
    let folder = tempfile::tempdir().expect("a folder");
    // An address that no server here has.
    let flags = [
        "--client.api_base",
        "sim://fast",
        "--set",
        "client.source_addresses=[203.0.113.7]",
    ];
    let output = run(folder.path(), &flags);
    assert_code(&output, 5);
    assert!(stderr(&output).contains("203.0.113.7"), "{}", stderr(&output));
}

/// Forwards bytes in both directions until one side closes the connection.
fn pass_on(one: TcpStream, other: TcpStream) {
    let (Ok(one_reader), Ok(other_reader)) = (one.try_clone(), other.try_clone()) else {
        return;
    };
    for (mut from, mut to) in [(one_reader, other), (other_reader, one)] {
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
    }
}

/// Starts a proxy that requires a password and forwards requests to `server`.
fn proxy(server: &str, asked: Arc<AtomicUsize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = server.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (server, asked) = (server.clone(), Arc::clone(&asked));
            std::thread::spawn(move || {
                let mut begin = [0; 4096];
                let Ok(length) = stream.peek(&mut begin) else {
                    return;
                };
                let head = String::from_utf8_lossy(&begin[..length]).to_lowercase();
                // `proxy-user:proxy-password-17` in Base64.
                if !head.contains("proxy-authorization: basic chjvehktdxnlcjpwcm94es1wyxnzd29yzc0xnw==") {
                    let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                    let _ = stream.write_all(refusal.as_bytes());
                    return;
                }
                // A server accepts an absolute address, too.
                assert!(head.contains(&format!(" http://{server}/")), "{head}");
                asked.fetch_add(1, Ordering::SeqCst);
                if let Ok(to) = TcpStream::connect(&server) {
                    pass_on(stream, to);
                }
            });
        }
    });
    format!("http://proxy-user:proxy-password-17@{address}")
}

#[test]
fn proxy_password_is_sent_and_redacted() {
    let sim = Sim::start(&["--profile", "fast"]);
    let server = sim.api_base.replace("http://", "").replace("/v1", "");
    let asked = Arc::new(AtomicUsize::new(0));
    let proxy = proxy(&server, Arc::clone(&asked));
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["--client.api_base", &sim.api_base, "--client.proxy", &proxy];
    let output = run(folder.path(), &flags);
    assert_code(&output, 0);
    assert!(
        asked.load(Ordering::SeqCst) >= 4,
        "requests went through the proxy"
    );
    let config = std::fs::read_to_string(latest(folder.path()).join("config.yml")).expect("config.yml");
    let said = stderr(&output) + &stdout(&output) + &config;
    assert!(!said.contains("proxy-password-17"), "{said}");
    let wrong = proxy.replace("proxy-password-17", "other");
    let output = run(
        folder.path(),
        &["--client.api_base", &sim.api_base, "--client.proxy", &wrong],
    );
    assert_code(&output, 5);
    assert!(!stderr(&output).contains("other@"), "{}", stderr(&output));
    sim.stop();
}

/// A TLS server in front of another server, with a certificate from an unknown authority.
struct Tls {
    api_base: String,
    certificate: String,
}

fn tls_before(server: &str) -> Tls {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a configuration");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = server.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let (config, server) = (Arc::clone(&config), server.clone());
            std::thread::spawn(move || serve(config, stream, &server));
        }
    });
    Tls {
        api_base: format!("https://localhost:{port}/v1"),
        certificate: made.cert.pem(),
    }
}

/// Returns true if a request has its head and the declared length of its body.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .and_then(|length| length.trim().parse::<usize>().ok());
    body.len() >= length.unwrap_or(0)
}

/// Serves one connection: forwards the data of both sides, one request at a time.
fn serve(config: Arc<rustls::ServerConfig>, stream: TcpStream, server: &str) {
    let Ok(session) = rustls::ServerConnection::new(config) else {
        return;
    };
    let mut tls = rustls::StreamOwned::new(session, stream);
    let Ok(mut plain) = TcpStream::connect(server) else {
        return;
    };
    let mut bytes = [0; 65_536];
    loop {
        let mut request = Vec::new();
        while !is_whole(&request) {
            match tls.read(&mut bytes) {
                Ok(length) if length > 0 => request.extend_from_slice(&bytes[..length]),
                _ => return,
            }
        }
        if plain.write_all(&request).is_err() {
            return;
        }
        // A response ends with an empty chunk, or is short.
        let mut tail: Vec<u8> = Vec::new();
        loop {
            let Ok(length) = plain.read(&mut bytes) else {
                return;
            };
            if length == 0 || tls.write_all(&bytes[..length]).is_err() || tls.flush().is_err() {
                return;
            }
            tail.extend_from_slice(&bytes[..length]);
            let streamed = tail.ends_with(b"\r\n0\r\n\r\n");
            let short = tail
                .windows(15)
                .any(|w| w.eq_ignore_ascii_case(b"content-length:"));
            if streamed || short {
                break;
            }
        }
    }
}

#[test]
fn self_signed_certificate_needs_ca_file() {
    let sim = Sim::start(&["--profile", "fast"]);
    let tls = tls_before(&sim.api_base.replace("http://", "").replace("/v1", ""));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("ca.pem"), &tls.certificate).expect("a file");
    let refused = run(folder.path(), &["--client.api_base", &tls.api_base]);
    assert_code(&refused, 5);
    assert!(
        stderr(&refused).contains("client.tls.ca_file"),
        "{}",
        stderr(&refused)
    );
    let authority = folder.path().join("ca.pem");
    let flags = [
        "--client.api_base",
        &tls.api_base,
        "--client.tls.ca_file",
        authority.to_str().expect("UTF-8"),
    ];
    assert_code(&run(folder.path(), &flags), 0);
    let rows = rows(folder.path());
    let failed = rows.iter().find(|row| row["success"] == false);
    assert!(failed.is_none(), "{failed:?}");
    assert_eq!(rows.len(), 120);
    let opened: Vec<&Value> = rows
        .iter()
        .filter(|row| row["connection_reused"] == false)
        .collect();
    assert!(!opened.is_empty() && opened.len() <= 8);
    for row in &opened {
        assert!(
            row["tls_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0),
            "{row}"
        );
        assert!(
            row["resolve_seconds"].as_f64().is_some(),
            "a name was resolved: {row}"
        );
        let parts = ["resolve_seconds", "connect_seconds", "tls_seconds"];
        let opening: f64 = parts.iter().map(|key| row[*key].as_f64().expect("a time")).sum();
        let ttfc = row["ttfc"].as_f64().expect("a time");
        assert!(opening <= ttfc, "the opening lies within the TTFC: {row}");
    }
    assert!(
        rows.iter().all(|row| row["arrival_stamps"] == "kernel"),
        "also below TLS"
    );
    let summary = json(&latest(folder.path()), "metrics/summary_stats.json");
    assert_eq!(summary["Number of Errored Requests"], 0);
    sim.stop();
}

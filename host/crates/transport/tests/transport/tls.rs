//! TLS against a server with a generated certificate.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::support::*;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use veeksha_model::ErrorClass;
use veeksha_transport::{Target, TransportConfig, untimed};

/// Starts a server that speaks TLS for the given name. Returns it with its certificate as PEM.
pub(crate) fn tls_server(name: &str, answers: Vec<String>) -> (Server, String) {
    tls_server_with(
        generate_simple_self_signed(vec![name.to_owned()]).unwrap(),
        answers,
    )
}

fn tls_server_with(ours: CertifiedKey<rcgen::KeyPair>, answers: Vec<String>) -> (Server, String) {
    let CertifiedKey { cert, signing_key } = ours;
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let server = Server::start(move |_, stream, log| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream: StreamOwned<_, TcpStream> = StreamOwned::new(connection, stream);
        while let Some(request) = read_request(&mut stream) {
            log.lock().unwrap().push(request);
            for part in &answers {
                if stream.write_all(part.as_bytes()).is_err() {
                    return;
                }
            }
        }
    });
    (server, cert.pem())
}

pub(crate) fn https(server: &Server) -> Target {
    target(&format!("https://localhost:{}/v1", server.address.port()))
}

/// Writes a file to a folder of the test.
pub(crate) fn file(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

fn two_events() -> Vec<String> {
    vec![
        STREAM_HEAD.to_owned(),
        chunk(&text_event("Hello")),
        chunk(FINISH),
        "0\r\n\r\n".to_owned(),
    ]
}

#[test]
fn a_trusted_certificate_is_enough_and_the_handshake_is_timed() {
    let (server, pem) = tls_server("localhost", two_events());
    let mut target = https(&server);
    target.servers[0].tls.ca_file = Some(file("trusted.pem", &pem));
    let client = Client::new(target);
    let first = client.ask(0);
    assert_eq!(first.result.as_ref().unwrap().text, "Hello");
    assert!(first.connection.tls.is_some() && first.connection.connect.is_some());
    let timings = first.timings;
    assert!(timings.sent_at <= timings.first_byte_at && timings.first_byte_at <= Some(first.chunks[0].at));
    let second = client.ask(0);
    assert!(
        second.connection.reused && second.connection.tls.is_none(),
        "{:?}",
        second.connection
    );
    assert!(second.timings.sent_at <= second.timings.first_byte_at);
    assert_eq!(server.connections(), 1);
}

#[test]
fn an_unknown_certificate_is_refused_with_advice() {
    let (server, _) = tls_server("localhost", two_events());
    let outcome = Client::new(https(&server)).ask(0);
    let failure = outcome.result.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Tls);
    assert!(
        failure.message.contains("certificate of localhost:"),
        "{}",
        failure.message
    );
    assert!(
        failure.message.contains("client.tls.ca_file"),
        "{}",
        failure.message
    );
    assert!(outcome.connection.connect.is_some() && outcome.connection.tls.is_none());
    assert_eq!(outcome.timings.sent_at, None);
    assert!(
        server.requests().is_empty(),
        "nothing was sent to a server that is not trusted"
    );
}

#[test]
fn a_certificate_for_another_name_is_refused_and_insecure_accepts_it() {
    let (server, pem) = tls_server("elsewhere.example", two_events());
    let mut trusted = https(&server);
    trusted.servers[0].tls.ca_file = Some(file("elsewhere.pem", &pem));
    assert_eq!(
        Client::new(trusted).ask(0).result.unwrap_err().class,
        ErrorClass::Tls
    );

    let mut insecure = https(&server);
    insecure.servers[0].tls.insecure = true;
    assert_eq!(Client::new(insecure).ask(0).result.unwrap().text, "Hello");
}

#[test]
fn recognizes_server_without_tls() {
    let server = Server::start(|_, mut stream, _| {
        let mut hello = [0u8; 64];
        let _ = stream.read(&mut hello);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    });
    let failure = Client::new(https(&server)).ask(0).result.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Tls);
    assert!(
        failure.message.contains("does not speak TLS"),
        "{}",
        failure.message
    );
}

#[test]
fn a_handshake_that_is_cut_off_is_a_tls_failure() {
    let server = Server::start(|_, mut stream, _| {
        let _ = stream.read(&mut [0u8; 8]);
    });
    let failure = Client::new(https(&server)).ask(0).result.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Tls);
    assert!(
        failure.message.contains("handshake with localhost:"),
        "{}",
        failure.message
    );
}

#[test]
fn a_file_without_certificates_is_refused_at_the_start() {
    for text in [
        "",
        "hello",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let mut target = target("https://localhost:1/v1");
        target.servers[0].tls.ca_file = Some(file("bad.pem", text));
        let error = untimed::list_models(&target, &target.servers[0], PATIENCE)
            .unwrap_err()
            .to_string();
        assert!(error.contains("bad.pem"), "{error}");
    }
}

#[test]
fn the_models_are_listed_over_tls_too() {
    let body = r#"{"object":"list","data":[{"id":"tiny"}]}"#;
    let (server, pem) = tls_server(
        "localhost",
        vec![plain_answer("200 OK", "application/json", body)],
    );
    let mut target = https(&server);
    target.servers[0].tls.ca_file = Some(file("models.pem", &pem));
    assert_eq!(
        untimed::list_models(&target, &target.servers[0], PATIENCE).unwrap(),
        ["tiny"]
    );
}

#[test]
fn stalled_handshake_times_out_and_names_the_step() {
    let stalled = || {
        Server::start(|_, mut stream, _| {
            let _ = stream.read(&mut [0u8; 4096]);
            std::thread::sleep(PATIENCE);
        })
    };
    let limit = Duration::from_millis(300);
    let server = stalled();
    let outcome = Client::of(TransportConfig {
        connect_timeout: Some(limit),
        ..TransportConfig::new(https(&server))
    })
    .ask(0);
    assert_eq!(class(&outcome), ErrorClass::Tls);
    assert!(
        message(&outcome).ends_with("the limit of 300ms for connecting passed in the TLS handshake"),
        "{}",
        message(&outcome)
    );
    assert!(outcome.connection.connect.is_some() && outcome.connection.tls.is_none());

    // Without a separate limit, the deadline of the request expires.
    let outcome = Client::with(https(&stalled()), limit, 1).ask(0);
    assert_eq!(class(&outcome), ErrorClass::Timeout);
    assert_eq!(
        message(&outcome),
        "the total deadline of 300ms passed in the TLS handshake"
    );
}

/// Starts a server that requests a certificate and trusts exactly one.
fn strict_server(trusted: &CertifiedKey<rcgen::KeyPair>) -> (Server, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.cert.der().clone()).unwrap();
    let verifier =
        rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let server = Server::start(move |_, stream, log| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream: StreamOwned<_, TcpStream> = StreamOwned::new(connection, stream);
        while let Some(request) = read_request(&mut stream) {
            log.lock().unwrap().push(request);
            stream.write_all(good_answer().as_bytes()).unwrap();
        }
    });
    (server, cert.pem())
}

#[test]
fn sends_client_certificate_if_requested() {
    let ours = generate_simple_self_signed(vec!["client".to_owned()]).unwrap();
    let (server, pem) = strict_server(&ours);
    let mut target = https(&server);
    target.servers[0].tls.ca_file = Some(file("strict.pem", &pem));
    let refused = Client::new(target.clone()).ask(0);
    assert!(refused.result.is_err() && server.requests().is_empty());

    target.servers[0].tls.client_certificate = Some(file("client.pem", &ours.cert.pem()));
    target.servers[0].tls.client_key = Some(file("client.key", &ours.signing_key.serialize_pem()));
    assert!(Client::new(target.clone()).ask(0).result.is_ok());

    // Both in one file.
    let both = ours.cert.pem() + &ours.signing_key.serialize_pem();
    target.servers[0].tls.client_certificate = Some(file("both.pem", &both));
    target.servers[0].tls.client_key = None;
    assert!(Client::new(target).ask(0).result.is_ok());
}

#[test]
fn unusable_client_certificate_fails_at_start() {
    let one = generate_simple_self_signed(vec!["one".to_owned()]).unwrap();
    let other = generate_simple_self_signed(vec!["other".to_owned()]).unwrap();
    let certificate = file("one.pem", &one.cert.pem());
    let cases = [
        (Some(certificate.clone()), None, "not contain a private key"),
        (None, Some(certificate.clone()), "without a certificate"),
        (Some(file("empty.pem", "")), None, "not contain a certificate"),
        (
            Some(certificate),
            Some(file("other.key", &other.signing_key.serialize_pem())),
            "do not go together",
        ),
    ];
    for (client_certificate, client_key, words) in cases {
        let mut target = target("https://localhost:1/v1");
        target.servers[0].tls.client_certificate = client_certificate;
        target.servers[0].tls.client_key = client_key;
        let error = untimed::list_models(&target, &target.servers[0], PATIENCE)
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn arrivals_under_tls_are_the_kernels() {
    let (server, pem) = tls_server("localhost", two_events());
    let mut target = https(&server);
    target.servers[0].tls.ca_file = Some(file("stamps.pem", &pem));
    let client = Client::new(target);
    for _ in 0..2 {
        let outcome = client.ask(0);
        assert_eq!(outcome.timings.stamps, veeksha_model::StampSource::Kernel);
        assert!(!outcome.chunks.is_empty());
        assert!(outcome.chunks.iter().all(|chunk| chunk.lag > 0));
    }
}

/// Returns a certificate that is its own CA, as `openssl req -x509 -newkey ...` makes it.
fn ca_certificate(name: &str, is_expired: bool) -> CertifiedKey<rcgen::KeyPair> {
    let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    if is_expired {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    }
    let signing_key = rcgen::KeyPair::generate().unwrap();
    let cert = params.self_signed(&signing_key).unwrap();
    CertifiedKey { cert, signing_key }
}

#[test]
fn self_signed_ca_certificate_is_accepted_if_it_is_listed() {
    let ask = |ours: CertifiedKey<rcgen::KeyPair>, trusted: Option<String>| {
        let pem = ours.cert.pem();
        let (server, _) = tls_server_with(ours, two_events());
        let mut target = https(&server);
        let ca = trusted.unwrap_or(pem);
        target.servers[0].tls.ca_file = Some(file(&format!("ca-{}.pem", server.address.port()), &ca));
        Client::new(target).ask(0).result
    };
    assert_eq!(
        ask(ca_certificate("localhost", false), None).unwrap().text,
        "Hello"
    );
    // Another certificate of the same name, another name, and another time.
    let other = ca_certificate("localhost", false).cert.pem();
    for refused in [
        ask(ca_certificate("localhost", false), Some(other)),
        ask(ca_certificate("elsewhere.example", false), None),
        ask(ca_certificate("localhost", true), None),
    ] {
        let failure = refused.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Tls);
        assert!(
            failure.message.contains("client.tls.ca_file"),
            "{}",
            failure.message
        );
    }
}

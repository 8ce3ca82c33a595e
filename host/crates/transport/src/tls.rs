//! TLS setup: ring, the certificates of the system (those of Mozilla if the system has none), and
//! user-defined certificates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;

use crate::config::HttpProtocol;
use crate::error::TransportError;
use crate::target::TlsOptions;

/// Returns the client configuration for `options`. Reads files, so it must not run in a timed
/// section.
pub(crate) fn client_config(options: &TlsOptions) -> Result<ClientConfig, TransportError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_provider(Arc::<CryptoProvider>::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| TransportError::Tls(error.to_string()))?;
    let builder = if options.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate { algorithms }))
    } else {
        let listed = listed_certificates(options)?;
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots(&listed, options)?), provider)
            .build()
            .map_err(|error| TransportError::Tls(error.to_string()))?;
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(ListedCertificates { inner, listed }))
    };
    let mut config = match own_certificate(options)? {
        None => builder.with_no_client_auth(),
        Some((path, certificates, key)) => {
            builder
                .with_client_auth_cert(certificates, key)
                .map_err(|error| TransportError::ClientCertificate {
                    path,
                    reason: format!("certificate and key do not go together: {error}"),
                })?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Sets the ALPN protocol for the HTTP version.
pub(crate) fn set_alpn(mut config: ClientConfig, http: HttpProtocol) -> ClientConfig {
    config.alpn_protocols = match http {
        HttpProtocol::Http1 => vec![b"http/1.1".to_vec()],
        HttpProtocol::Http2 => vec![b"h2".to_vec()],
    };
    config
}

/// Returns the connector for a configuration.
pub(crate) fn connector(config: ClientConfig) -> TlsConnector {
    TlsConnector::from(Arc::new(config))
}

/// The client certificate for a server that requests one: its file, its chain, and its key.
type OwnCertificate = (PathBuf, Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn own_certificate(options: &TlsOptions) -> Result<Option<OwnCertificate>, TransportError> {
    let refuse = |path: &PathBuf, reason: String| TransportError::ClientCertificate {
        path: path.clone(),
        reason,
    };
    let (path, key_path) = match (&options.client_certificate, &options.client_key) {
        (None, None) => return Ok(None),
        (None, Some(key)) => {
            return Err(refuse(
                key,
                "a key without a certificate is of no use; name it as client_certificate".to_owned(),
            ));
        }
        (Some(certificate), key) => (certificate, key.as_ref().unwrap_or(certificate)),
    };
    for file in [path, key_path] {
        regular(file).map_err(|reason| refuse(file, reason))?;
    }
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(|error| refuse(path, error.to_string()))?;
    if certificates.is_empty() {
        return Err(refuse(
            path,
            "it does not contain a certificate in PEM form".to_owned(),
        ));
    }
    let key = PrivateKeyDer::from_pem_file(key_path).map_err(|error| {
        refuse(
            key_path,
            format!("it does not contain a private key in PEM form: {error}"),
        )
    })?;
    Ok(Some((path.clone(), certificates, key)))
}

/// Rejects everything but regular files: a device or a pipe could be endless.
fn regular(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(about) if about.is_file() && about.len() <= LARGEST_FILE => Ok(()),
        Ok(about) if about.is_file() => Err(format!("it is larger than {} MiB", LARGEST_FILE >> 20)),
        Ok(_) => Err("it is not a regular file".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Maximum size in bytes. All certificates of a system together have some hundred KiB.
const LARGEST_FILE: u64 = 16 << 20;

/// Returns a message if the peer rejected the connection with a TLS alert, for example because of a
/// missing client certificate. With TLS 1.3 this alert arrives after the handshake.
pub(crate) fn alert(error: &std::io::Error) -> Option<String> {
    let cause = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    match cause {
        rustls::Error::AlertReceived(alert) => Some(format!(
            "the server refused the connection in TLS ({alert:?}); if it asks for a certificate of this client, name it as \
             client.tls.client_certificate (or client_certificate of its entry in client.targets)"
        )),
        _ => None,
    }
}

/// Returns the certificates of `ca_file`.
fn listed_certificates(options: &TlsOptions) -> Result<Vec<CertificateDer<'static>>, TransportError> {
    let Some(path) = &options.ca_file else {
        return Ok(Vec::new());
    };
    let refuse = |reason: String| TransportError::CaFile {
        path: path.clone(),
        reason,
    };
    regular(path).map_err(refuse)?;
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(|error| refuse(error.to_string()))?;
    if certificates.is_empty() {
        return Err(refuse("it does not contain a certificate in PEM form".to_owned()));
    }
    Ok(certificates)
}

/// Returns the trust anchors: those of the system and `listed`.
fn roots(listed: &[CertificateDer<'static>], options: &TlsOptions) -> Result<RootCertStore, TransportError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    for certificate in listed {
        roots
            .add(certificate.clone())
            .map_err(|error| TransportError::CaFile {
                path: options.ca_file.clone().unwrap_or_default(),
                reason: error.to_string(),
            })?;
    }
    Ok(roots)
}

/// Returns the message for a failed handshake.
pub(crate) fn handshake_message(place: &str, error: &std::io::Error) -> String {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(reason)) => format!(
            "the certificate of {place} is not accepted ({reason}); to trust it, set client.tls.ca_file (or ca_file of its entry in client.targets) to a PEM file with the certificate itself or its CA's; client.tls.insecure trusts any certificate"
        ),
        Some(rustls::Error::InvalidMessage(reason)) => {
            format!(
                "{place} does not speak TLS ({reason:?}); is its address in client.api_base or client.targets an http:// one?"
            )
        }
        Some(cause) => format!("the TLS handshake with {place} failed: {cause}"),
        None => format!("the TLS handshake with {place} failed: {error}"),
    }
}

/// Verifies certificates as usual, and also accepts a certificate of `ca_file` as the server
/// certificate.
///
/// `openssl req -x509` makes self-signed certificates that claim to be a CA. RFC 5280 does not
/// allow a server to present one, and webpki rejects it; curl and Python accept it if it is in the
/// file of trusted certificates. A certificate that the user listed is trusted without a chain:
/// only its validity period and its name are checked.
#[derive(Debug)]
struct ListedCertificates {
    inner: Arc<WebPkiServerVerifier>,
    listed: Vec<CertificateDer<'static>>,
}

impl ListedCertificates {
    fn is_listed(&self, certificate: &CertificateDer<'_>) -> bool {
        self.listed.iter().any(|listed| listed == certificate)
    }
}

/// Returns true if the certificate is currently valid and was only rejected because it is a CA's:
/// webpki checks the period first.
fn is_ca_refused(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(other)) = error else {
        return false;
    };
    matches!(
        other.0.downcast_ref::<webpki::Error>(),
        Some(webpki::Error::CaUsedAsEndEntity)
    )
}

impl ServerCertVerifier for ListedCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified =
            self.inner
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(error) if is_ca_refused(&error) && self.is_listed(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Accepts every certificate, but still checks that the server holds its key.
#[derive(Debug)]
struct AnyCertificate {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

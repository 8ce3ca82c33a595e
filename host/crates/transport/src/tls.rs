//! How TLS is set up: ring, the system's certificates (the public ones of Mozilla where the system has none), the user's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;

use crate::config::HttpVersion;
use crate::error::TransportError;
use crate::target::TlsOptions;

/// The client configuration for `options`. Reads files: untimed.
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
        builder.with_root_certificates(roots(options)?)
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

/// Offers the version of HTTP that is to be spoken.
pub(crate) fn set_alpn(mut config: ClientConfig, http: HttpVersion) -> ClientConfig {
    config.alpn_protocols = match http {
        HttpVersion::Http1 => vec![b"http/1.1".to_vec()],
        HttpVersion::Http2 => vec![b"h2".to_vec()],
    };
    config
}

/// The connector for a configuration.
pub(crate) fn connector(config: ClientConfig) -> TlsConnector {
    TlsConnector::from(Arc::new(config))
}

/// What is shown to a server that asks: the file, the chain in it, and the key.
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
        return Err(refuse(path, "it holds no certificate in PEM form".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(key_path)
        .map_err(|error| refuse(key_path, format!("it holds no private key in PEM form: {error}")))?;
    Ok(Some((path.clone(), certificates, key)))
}

/// A device or a pipe could go on for ever.
fn regular(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(about) if about.is_file() && about.len() <= LARGEST_FILE => Ok(()),
        Ok(about) if about.is_file() => Err(format!("it is larger than {} MiB", LARGEST_FILE >> 20)),
        Ok(_) => Err("it is not a regular file".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// All the certificates of a system have some hundred KiB.
const LARGEST_FILE: u64 = 16 << 20;

/// Whether the other side has refused us in the words of TLS: for want of a certificate, say, which with TLS 1.3 comes after the
/// handshake. Why, in words that help.
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

fn roots(options: &TlsOptions) -> Result<RootCertStore, TransportError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    if let Some(path) = &options.ca_file {
        let refuse = |reason: String| TransportError::CaFile {
            path: path.clone(),
            reason,
        };
        regular(path).map_err(refuse)?;
        let certificates = CertificateDer::pem_file_iter(path)
            .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
            .map_err(|error| refuse(error.to_string()))?;
        if certificates.is_empty() {
            return Err(refuse("it holds no certificate in PEM form".to_owned()));
        }
        for certificate in certificates {
            roots
                .add(certificate)
                .map_err(|error| refuse(error.to_string()))?;
        }
    }
    Ok(roots)
}

/// What a failed handshake means, in words that help.
pub(crate) fn handshake_message(place: &str, error: &std::io::Error) -> String {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(reason)) => format!(
            "the certificate of {place} is not accepted ({reason}); for a certificate of your own name the file of its CA as client.tls.ca_file (or ca_file of its entry in client.targets); client.tls.insecure trusts anyone"
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

/// Accepts every certificate, and still checks that the server holds its key.
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

//! How TLS is set up: ring, the system's certificates (the public ones of Mozilla where the system has none), the user's own.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::{TlsOptions, TransportError};

/// The client configuration for `options`. Reads files: untimed.
pub(crate) fn client_config(options: &TlsOptions) -> Result<ClientConfig, TransportError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_provider(Arc::<CryptoProvider>::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| TransportError::Tls(error.to_string()))?;
    let mut config = if options.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate { algorithms }))
            .with_no_client_auth()
    } else {
        builder
            .with_root_certificates(roots(options)?)
            .with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
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
            "the certificate of {place} is not accepted ({reason}); for a certificate of your own give its file as the trusted CA"
        ),
        Some(rustls::Error::InvalidMessage(reason)) => {
            format!("{place} does not speak TLS ({reason:?}); is it an http:// address?")
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

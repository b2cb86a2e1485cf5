//! TLS for the gRPC listener, out of a certificate chain and a key in PEM.

use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use trefoil::{Error, Result};

use crate::config::Tls;

/// How connections are encrypted with this certificate.
pub(crate) fn server_config(tls: &Tls) -> Result<Arc<ServerConfig>> {
    let wrong = |what: &str, error: &dyn std::fmt::Display| {
        Error::invalid(format!("the TLS {what} cannot be used: {error}"))
    };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&tls.certificate)
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| wrong("certificate", &error))?;
    if chain.is_empty() {
        return Err(wrong("certificate", &"there is none in the file"));
    }
    let key = PrivateKeyDer::from_pem_slice(&tls.key).map_err(|error| wrong("key", &error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("library", &error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong("certificate and key", &error))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

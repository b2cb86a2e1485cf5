//! TLS of the listeners for clients: one certificate for all protocols, out of two files in PEM. They are
//! read again when they change, so a certificate that is renewed needs no restart. Connections that are
//! open keep the one they began with.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use trefoil::{Error, Result};

use crate::connections::Protocol;
use crate::service::blocking;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Where the certificate for TLS is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The file with the chain of certificates in PEM, the server's own first.
    pub certificate: PathBuf,
    /// The file with the private key in PEM.
    pub key: PathBuf,
}

/// TLS of all listeners for clients.
pub(crate) struct ListenerTls {
    certificate: Arc<ServedCertificate>,
    http: TlsAcceptor,
    grpc: TlsAcceptor,
    resp: TlsAcceptor,
}

impl std::fmt::Debug for ListenerTls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.certificate.fmt(formatter)
    }
}

impl ListenerTls {
    /// Reads the files.
    pub(crate) fn read(files: &Tls) -> Result<Self> {
        let certificate = ServedCertificate::read(files)?;
        Ok(Self {
            http: certificate.acceptor(&[b"h2", b"http/1.1"])?,
            grpc: certificate.acceptor(&[b"h2"])?,
            resp: certificate.acceptor(&[])?,
            certificate,
        })
    }

    /// Returns what begins TLS on a connection on which this is spoken.
    pub(crate) fn of(&self, protocol: Protocol) -> &TlsAcceptor {
        match protocol {
            Protocol::Http => &self.http,
            Protocol::Grpc => &self.grpc,
            Protocol::Resp => &self.resp,
        }
    }

    /// Looks at the files now and then, for as long as this is polled.
    pub(crate) fn follow(&self) -> impl Future<Output = ()> + Send + use<> {
        Arc::clone(&self.certificate).follow()
    }
}

/// A certificate, as its files were when they were read last.
#[derive(Debug)]
struct ServedCertificate {
    files: Tls,
    provider: Arc<CryptoProvider>,
    current: RwLock<ReadCertificate>,
}

struct ReadCertificate {
    pem: CertificatePem,
    key: Arc<CertifiedKey>,
}

/// Without the key.
impl std::fmt::Debug for ReadCertificate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ReadCertificate")
            .finish_non_exhaustive()
    }
}

/// What the files hold.
#[derive(PartialEq, Eq)]
struct CertificatePem {
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl CertificatePem {
    fn read(files: &Tls) -> Result<Self> {
        let read = |path: &Path| {
            std::fs::read(path)
                .map_err(|error| Error::invalid(format!("cannot read {}: {error}", path.display())))
        };
        Ok(Self {
            chain: read(&files.certificate)?,
            key: read(&files.key)?,
        })
    }

    /// Returns the certificate with its key, which must be its own.
    fn parse(&self, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>> {
        let wrong = |what: &str, error: &dyn std::fmt::Display| {
            Error::invalid(format!("the TLS {what} cannot be used: {error}"))
        };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&self.chain)
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| wrong("certificate", &error))?;
        if chain.is_empty() {
            return Err(wrong("certificate", &"there is none in the file"));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| wrong("key", &error))?;
        let key = CertifiedKey::from_der(chain, key, provider);
        Ok(Arc::new(
            key.map_err(|error| wrong("certificate and key", &error))?,
        ))
    }
}

impl ServedCertificate {
    /// Reads the files.
    fn read(files: &Tls) -> Result<Arc<Self>> {
        let provider = Arc::new(ring::default_provider());
        let pem = CertificatePem::read(files)?;
        let key = pem.parse(&provider)?;
        Ok(Arc::new(Self {
            files: files.clone(),
            provider,
            current: RwLock::new(ReadCertificate { pem, key }),
        }))
    }

    /// Returns what begins TLS on connections of a protocol, whose names are those for ALPN.
    fn acceptor(self: &Arc<Self>, alpn: &[&[u8]]) -> Result<TlsAcceptor> {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Internal(format!("TLS cannot be used: {error}")))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Reads the files again. Returns whether there is another certificate now. If they cannot be used,
    /// the last one stays.
    fn read_again(&self) -> Result<bool> {
        let pem = CertificatePem::read(&self.files)?;
        if pem == self.current.read().pem {
            return Ok(false);
        }
        let key = pem.parse(&self.provider)?;
        *self.current.write() = ReadCertificate { pem, key };
        Ok(true)
    }

    /// Looks at the files now and then, for as long as this is polled.
    async fn follow(self: Arc<Self>) {
        let mut last_error = None;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let certificate = Arc::clone(&self);
            let Ok(read) = blocking(move || certificate.read_again()).await else {
                return;
            };
            match read {
                Ok(true) => tracing::info!("the TLS certificate was renewed"),
                Ok(false) => {}
                // Said once: between two files that change one after the other, or until somebody mends it.
                Err(error) if last_error.as_ref() != Some(&error.to_string()) => {
                    tracing::error!(%error, "the TLS certificate is not renewed");
                    last_error = Some(error.to_string());
                    continue;
                }
                Err(_) => continue,
            }
            last_error = None;
        }
    }
}

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().key))
    }
}

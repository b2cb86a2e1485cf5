//! Who belongs to the cluster: the certificate authority that the store keeps for all nodes, and the
//! certificate that a node issues itself at its start.
//!
//! Nodes share a store and nothing else, so the store has the key of the authority. Whoever can read it
//! can read all data, so it opens no door that was closed.

use std::fmt::Display;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName,
};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use trefoil::home::Cluster;
use trefoil::{Error, Result};

use crate::connections::Protocol;

/// Under which name the store keeps the authority.
const AUTHORITY: &str = "ca";

/// The name that every certificate of a node has. Addresses change, and do not prove anything.
pub(super) const NODE_NAME: &str = "node.trefoil.internal";

/// What two nodes speak is agreed upon with these names.
const PROTOCOLS: [(Protocol, &[u8]); 3] = [
    (Protocol::Http, b"trefoil-http/1"),
    (Protocol::Grpc, b"trefoil-grpc/1"),
    (Protocol::Resp, b"trefoil-resp/1"),
];

/// How a node shows who it is, and finds out who another one is.
#[derive(Debug)]
pub(super) struct NodeIdentity {
    /// For connections that peers open.
    pub(super) server: Arc<ServerConfig>,
    /// For connections to peers, without a protocol.
    client: ClientConfig,
}

impl NodeIdentity {
    /// Takes the authority from the store, which gets one if it has none, and issues a certificate. May
    /// wait for a network.
    pub(super) fn of(cluster: &dyn Cluster) -> Result<Self> {
        let authority = cluster.shared_bytes(AUTHORITY, &mut make_authority)?;
        Self::issued_by(&authority)
    }

    fn issued_by(authority: &[u8]) -> Result<Self> {
        let root = CertificateDer::from_pem_slice(authority).map_err(unusable)?;
        let key = PrivatePkcs8KeyDer::from_pem_slice(authority).map_err(unusable)?;
        let key = KeyPair::try_from(&key).map_err(unusable)?;
        let (chain, key) = issue(&Issuer::new(authority_parameters(), key)).map_err(failed)?;
        let mut roots = RootCertStore::empty();
        roots.add(root).map_err(unusable)?;
        let (roots, provider) = (Arc::new(roots), Arc::new(ring::default_provider()));
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(failed)?
            .with_client_cert_verifier(verifier.build().map_err(failed)?)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(failed)?;
        server.alpn_protocols = PROTOCOLS.map(|(_, name)| name.to_vec()).into();
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(failed)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(failed)?;
        Ok(Self {
            server: Arc::new(server),
            client,
        })
    }

    /// Returns how to open a connection to a peer on which this is spoken.
    pub(super) fn client(&self, protocol: Protocol) -> Arc<ClientConfig> {
        let mut config = self.client.clone();
        let named = PROTOCOLS.iter().filter(|(known, _)| *known == protocol);
        config.alpn_protocols = named.map(|(_, name)| name.to_vec()).collect();
        Arc::new(config)
    }
}

/// Returns the name that the certificate of a peer must have.
pub(super) fn node_name() -> Result<ServerName<'static>> {
    ServerName::try_from(NODE_NAME).map_err(failed)
}

/// Returns what is spoken on a connection for which this name was agreed upon.
pub(super) fn protocol_of(name: Option<&[u8]>) -> Option<Protocol> {
    let found = PROTOCOLS.iter().find(|(_, known)| Some(*known) == name);
    found.map(|(protocol, _)| *protocol)
}

fn authority_parameters() -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    parameters.distinguished_name = name("Trefoil cluster");
    parameters
}

fn name(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

/// Makes an authority: its certificate and its key, both in PEM.
fn make_authority() -> Result<Vec<u8>> {
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = authority_parameters().self_signed(&key).map_err(failed)?;
    Ok((certificate.pem() + &key.serialize_pem()).into_bytes())
}

type IssuedCertificate = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn issue(authority: &Issuer<'_, KeyPair>) -> std::result::Result<IssuedCertificate, rcgen::Error> {
    let mut parameters = CertificateParams::new([NODE_NAME.to_owned()])?;
    parameters.distinguished_name = name("Trefoil node");
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let key = KeyPair::generate()?;
    let certificate = parameters.signed_by(&key, authority)?;
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    Ok((vec![certificate.der().clone()], key.into()))
}

fn unusable(error: impl Display) -> Error {
    Error::Internal(format!(
        "the certificate authority that the store keeps for its nodes cannot be used: {error}"
    ))
}

fn failed(error: impl Display) -> Error {
    Error::Internal(format!("cannot prepare TLS between nodes: {error}"))
}

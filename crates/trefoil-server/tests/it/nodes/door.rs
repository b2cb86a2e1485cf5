//! The door between nodes: only those come in whom the cluster's own authority has issued a certificate.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, Stream, version::TLS13,
};
use trefoil::Namespaces;

use super::TestCluster;

type Certified = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A certificate authority as the store keeps one.
pub(super) struct Authority {
    root: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// The one of a cluster.
    pub(super) fn of(namespaces: &Namespaces) -> Self {
        let none = &mut || panic!("the first node has made it");
        let pem = namespaces
            .cluster()
            .unwrap()
            .shared_bytes("ca", none)
            .unwrap();
        let key = PrivatePkcs8KeyDer::from_pem_slice(&pem).unwrap();
        let root = CertificateDer::from_pem_slice(&pem).unwrap();
        Self::new(root, KeyPair::try_from(&key).unwrap())
    }

    fn new(root: CertificateDer<'static>, key: KeyPair) -> Self {
        let issuer = Issuer::new(Self::parameters(), key);
        Self { root, issuer }
    }

    fn parameters() -> CertificateParams {
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, "Trefoil cluster");
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = name;
        parameters
    }

    /// Another one that calls itself the same.
    fn forged() -> Self {
        let key = KeyPair::generate().unwrap();
        let root = Self::parameters().self_signed(&key).unwrap();
        Self::new(root.der().clone(), key)
    }

    fn issue(&self, name: &str) -> Certified {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new([name.to_owned()]).unwrap();
        let issued = parameters.signed_by(&key, &self.issuer).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        (vec![issued.der().clone()], key.into())
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        roots
    }

    /// How a node of the cluster accepts connections; whoever comes.
    pub(super) fn server(&self, protocols: &[&str]) -> ServerConfig {
        let (chain, key) = self.issue("node.trefoil.internal");
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider);
        let config = config.with_protocol_versions(&[&TLS13]).unwrap();
        let config = config.with_no_client_auth().with_single_cert(chain, key);
        let mut config = config.unwrap();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        config
    }
}

/// Somebody at the door, who trusts the cluster and shows a certificate or none.
fn client(trusted: &Authority, shown: Option<Certified>, protocols: &[&str]) -> ClientConfig {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_protocol_versions(&[&TLS13]).unwrap();
    let config = config.with_root_certificates(trusted.roots());
    let mut config = match shown {
        Some((chain, key)) => config.with_client_auth_cert(chain, key).unwrap(),
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    config
}

/// Asks for `/health` through the door. Returns what came back: nothing, if nobody was let in.
fn knock(address: SocketAddr, config: ClientConfig) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let name = "node.trefoil.internal".try_into().unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = Stream::new(&mut connection, &mut socket);
    let request = b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    if stream.write_all(request).is_err() {
        return String::new();
    }
    let mut answer = Vec::new();
    // A refusal is an error of the handshake, or of the connection.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn only_peers_come_in() {
    let cluster = TestCluster::new();
    let node = cluster.node("a");
    let address = node.server.peers.unwrap();
    let own = Authority::of(&node.namespaces);
    let http = ["trefoil-http/1"];
    let certificate = || own.issue("node.trefoil.internal");
    let peer = knock(address, client(&own, Some(certificate()), &http));
    assert!(peer.starts_with("HTTP/1.1 200 OK"), "{peer:?}");
    let nobody = [
        ("no certificate", client(&own, None, &http)),
        (
            "another authority",
            client(
                &own,
                Some(Authority::forged().issue("node.trefoil.internal")),
                &http,
            ),
        ),
        ("no protocol", client(&own, Some(certificate()), &[])),
        (
            "another protocol",
            client(&own, Some(certificate()), &["h2"]),
        ),
    ];
    for (who, config) in nobody {
        assert_eq!(knock(address, config), "", "{who}");
    }
}

#[test]
fn who_does_not_begin_with_tls_is_hung_up_on() {
    let cluster = TestCluster::new();
    let node = cluster.node("a");
    let address = node.server.peers.unwrap();
    let read_all = |socket: &mut TcpStream| {
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
        rest
    };
    let mut plain = TcpStream::connect(address).unwrap();
    plain
        .write_all(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        .unwrap();
    let answer = read_all(&mut plain);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    // One that says nothing, and one that never comes to an end.
    let began = Instant::now();
    let mut silent = TcpStream::connect(address).unwrap();
    let mut slow = TcpStream::connect(address).unwrap();
    slow.write_all(&[22, 3, 1, 0, 200, 1]).unwrap();
    assert_eq!(read_all(&mut silent), b"");
    assert_eq!(read_all(&mut slow), b"");
    let elapsed = began.elapsed();
    assert!(elapsed < Duration::from_secs(15), "{elapsed:?}");
}

#[test]
fn strangers_keep_no_peer_out() {
    let cluster = TestCluster::new();
    let node = cluster.node("a");
    let address = node.server.peers.unwrap();
    let strangers: Vec<TcpStream> = (0..400)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let own = Authority::of(&node.namespaces);
    let certificate = own.issue("node.trefoil.internal");
    let config = client(&own, Some(certificate), &["trefoil-http/1"]);
    let peer = knock(address, config);
    assert!(peer.starts_with("HTTP/1.1 200 OK"), "{peer:?}");
    drop(strangers);
}

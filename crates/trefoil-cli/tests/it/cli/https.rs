//! Client commands over TLS, through a proxy that terminates it, as in front of a server in
//! production.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::{errors, text};
use crate::harness::{Server, binary};

/// A certificate for `localhost`, and the authority that signed it in PEM.
fn certificate() -> (ServerConfig, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let own = names.signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![own.der().clone()], key);
    (config.unwrap(), authority.pem())
}

/// Passes on what arrives over TLS, for as long as the runtime lives.
async fn terminate(listener: TcpListener, config: ServerConfig, port: u16) {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    while let Ok((socket, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(mut encrypted) = acceptor.accept(socket).await else {
                return;
            };
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let mut plain = TcpStream::connect(address).await.unwrap();
            // Either side may leave first.
            let _ = tokio::io::copy_bidirectional(&mut encrypted, &mut plain).await;
        });
    }
}

#[test]
fn a_server_behind_tls_is_used_if_its_certificate_is_vouched_for() {
    let server = Server::in_test_mode();
    let directory = TempDir::new().unwrap();
    let (config, authority) = certificate();
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, authority).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!(
        "https://localhost:{}",
        listener.local_addr().unwrap().port()
    );
    runtime.spawn(terminate(listener, config, server.port));

    let run = |words: &[&str], file: Option<&std::path::Path>| {
        let mut command = binary();
        command.env("TREFOIL_URL", &url).env_remove("SSL_CERT_FILE");
        command.envs(file.map(|file| ("SSL_CERT_FILE", file)));
        command.args(words).output().unwrap()
    };
    let written = run(&["write", "account-1", "Opened"], Some(&file));
    assert!(written.status.success(), "{}", errors(&written));
    let read = run(&["read", "account-1"], Some(&file));
    assert!(
        text(&read).contains("account-1@0  Opened"),
        "{}",
        errors(&read)
    );
    let strange = run(&["read", "account-1"], None);
    assert_eq!(strange.status.code(), Some(1));
    assert!(
        errors(&strange).contains("certificate"),
        "{}",
        errors(&strange)
    );
    let empty = directory.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    assert_eq!(
        run(&["read", "account-1"], Some(&empty)).status.code(),
        Some(2)
    );
}

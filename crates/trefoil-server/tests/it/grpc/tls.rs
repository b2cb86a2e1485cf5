//! TLS: with a certificate the server speaks nothing else.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use trefoil::Token;
use trefoil_grpc::{Client, Connect};
use trefoil_server::{Config, Server, Tls};

use super::fill;
use crate::harness::TestServer;

/// A certificate for `localhost` in a directory, and the one that signed it.
fn certificate(directory: &TempDir) -> (Tls, String) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let certificate = CertificateParams::new(names)
        .unwrap()
        .signed_by(&key, &authority)
        .unwrap();
    let tls = Tls {
        certificate: directory.path().join("certificate.pem"),
        key: directory.path().join("key.pem"),
    };
    std::fs::write(&tls.certificate, certificate.pem()).unwrap();
    std::fs::write(&tls.key, key.serialize_pem()).unwrap();
    (tls, authority.pem())
}

fn with_tls(tls: Tls) -> Config {
    Config {
        tls: Some(tls),
        ..Config::default()
    }
}

#[tokio::test]
async fn a_client_that_trusts_the_certificate_is_served_and_no_other() {
    let directory = TempDir::new().unwrap();
    let (tls, authority) = certificate(&directory);
    let server = TestServer::with(with_tls(tls));
    let port = server.grpc.port();
    let connect = |url: String, ca_certificate| {
        Client::connect(Connect {
            url,
            token: Some(Token::development().reveal().to_owned()),
            ca_certificate,
        })
    };
    let https = format!("https://127.0.0.1:{port}");
    let mut client = connect(https.clone(), Some(authority)).await.unwrap();
    fill(&mut client, 2).await;
    assert_eq!(client.head().await.unwrap(), Some(2));
    let (_, stranger) = certificate(&TempDir::new().unwrap());
    assert!(connect(https, Some(stranger)).await.is_err());
    let plain = connect(format!("http://127.0.0.1:{port}"), None).await;
    if let Ok(mut plain) = plain {
        assert!(plain.head().await.is_err());
    }
    assert_eq!(client.head().await.unwrap(), Some(2));
}

#[tokio::test]
async fn files_that_are_no_certificate_or_no_key_are_refused() {
    let (directory, others) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (good, _) = certificate(&directory);
    let (other, _) = certificate(&others);
    let nothing = directory.path().join("nothing.pem");
    std::fs::write(&nothing, "").unwrap();
    let missing = PathBuf::from("missing.pem");
    for (certificate, key, expected) in [
        (&missing, &good.key, "cannot read missing.pem"),
        (&nothing, &good.key, "the TLS certificate cannot be used"),
        (&good.key, &good.key, "the TLS certificate cannot be used"),
        (&good.certificate, &nothing, "the TLS key cannot be used"),
        (&good.certificate, &other.key, "the TLS certificate and key"),
    ] {
        let tls = Tls {
            certificate: certificate.clone(),
            key: key.clone(),
        };
        let namespaces = trefoil::Namespaces::in_memory(Default::default()).unwrap();
        let mut config = with_tls(tls);
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        let error = Server::bind(config, namespaces).await.unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

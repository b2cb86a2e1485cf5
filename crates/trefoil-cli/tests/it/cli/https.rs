//! Client commands over TLS.

use tempfile::TempDir;

use super::{errors, text};
use crate::harness::{ADMIN, binary};
use crate::tls::CertificateFiles;

#[test]
fn a_server_is_used_over_tls_if_its_certificate_is_vouched_for() {
    let (files, directory) = (CertificateFiles::new(), TempDir::new().unwrap());
    let server = files.server(&directory.path().join("data"));
    let url = format!("https://localhost:{}", server.port);

    let run = |words: &[&str], file: Option<&std::path::Path>| {
        let mut command = binary();
        command.env("TREFOIL_URL", &url).env("TREFOIL_TOKEN", ADMIN);
        command.env_remove("SSL_CERT_FILE");
        command.envs(file.map(|file| ("SSL_CERT_FILE", file)));
        command.args(words).output().unwrap()
    };
    let file = files.authority();
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

#[test]
fn a_context_names_who_vouches_for_its_server() {
    let (files, directory) = (CertificateFiles::new(), TempDir::new().unwrap());
    let server = files.server(&directory.path().join("data"));
    let url = format!("https://localhost:{}", server.port);
    let run = |words: &[&str]| {
        let mut command = binary();
        command
            .env("XDG_CONFIG_HOME", directory.path())
            .env_remove("SSL_CERT_FILE");
        command
            .env("TREFOIL_TOKEN", ADMIN)
            .args(words)
            .output()
            .unwrap()
    };
    let file = files.authority();
    let added = run(&[
        "context",
        "add",
        "prod",
        &url,
        "--cacert",
        file.to_str().unwrap(),
    ]);
    assert!(added.status.success(), "{}", errors(&added));
    let read = run(&["streams"]);
    assert!(read.status.success(), "{}", errors(&read));
    // Nobody else's server.
    let other = format!("https://127.0.0.1:{}", server.port);
    assert_eq!(run(&["streams", "--url", &other]).status.code(), Some(1));
}

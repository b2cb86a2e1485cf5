//! Whom an `https://` server must be vouched for by: the authorities in the file that
//! `SSL_CERT_FILE` names, as other programs have it, or else those that browsers trust.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Context as _;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::exit::UsageError;

/// How connections are encrypted; `file` is the value of `SSL_CERT_FILE`.
pub(super) fn config(file: Option<OsString>) -> anyhow::Result<TlsConfig> {
    let roots = match file.filter(|path| !path.is_empty()) {
        Some(path) => RootCerts::new_with_certs(&read(Path::new(&path))?),
        None => RootCerts::WebPki,
    };
    Ok(TlsConfig::builder().root_certs(roots).build())
}

fn read(path: &Path) -> anyhow::Result<Vec<Certificate<'static>>> {
    let shown = path.display();
    let text =
        std::fs::read(path).with_context(|| format!("SSL_CERT_FILE: cannot read {shown}"))?;
    let mut certificates = Vec::new();
    for item in parse_pem(&text) {
        let item = item.with_context(|| format!("SSL_CERT_FILE: {shown} is not PEM"))?;
        if let PemItem::Certificate(certificate) = item {
            certificates.push(certificate);
        }
    }
    match certificates.is_empty() {
        true => Err(UsageError(format!("SSL_CERT_FILE: {shown} holds no certificate")).into()),
        false => Ok(certificates),
    }
}

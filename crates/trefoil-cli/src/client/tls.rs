//! Whom an `https://` server must be vouched for by: the authorities in a file that somebody named, or
//! else those that browsers trust.

use anyhow::Context as _;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::AuthorityFile;
use crate::exit::UsageError;

/// How connections are encrypted.
pub(super) fn config(authorities: Option<&AuthorityFile>) -> anyhow::Result<TlsConfig> {
    let roots = match authorities {
        Some(file) => RootCerts::new_with_certs(&file.read()?),
        None => RootCerts::WebPki,
    };
    Ok(TlsConfig::builder().root_certs(roots).build())
}

impl AuthorityFile {
    fn read(&self) -> anyhow::Result<Vec<Certificate<'static>>> {
        let (source, shown) = (self.source, self.path.display());
        let text =
            std::fs::read(&self.path).with_context(|| format!("{source}: cannot read {shown}"))?;
        let mut certificates = Vec::new();
        for item in parse_pem(&text) {
            let item = item.with_context(|| format!("{source}: {shown} is not PEM"))?;
            if let PemItem::Certificate(certificate) = item {
                certificates.push(certificate);
            }
        }
        match certificates.is_empty() {
            true => Err(UsageError(format!("{source}: {shown} holds no certificate")).into()),
            false => Ok(certificates),
        }
    }
}

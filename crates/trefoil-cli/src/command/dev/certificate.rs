//! The certificate of `trefoil dev --tls`, for the names of this machine. It is made once, together with the
//! authority that vouches for it, whose key nobody keeps: it can vouch for nothing else.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use trefoil_server::Tls;

const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A certificate, and what clients need to trust it.
pub(super) struct DevCertificate {
    pub(super) tls: Tls,
    /// The file that they are given.
    pub(super) authority: PathBuf,
}

impl DevCertificate {
    /// Returns the certificate in a directory. It is made if it is not there.
    pub(super) fn in_directory(directory: &Path) -> anyhow::Result<Self> {
        let certificate = Self {
            tls: Tls {
                certificate: directory.join("certificate.pem"),
                key: directory.join("key.pem"),
            },
            authority: directory.join("authority.pem"),
        };
        // What is written last is there only if the rest is.
        if !certificate.authority.exists() {
            let cannot = || format!("cannot make a certificate in {}", directory.display());
            certificate.make(directory).with_context(cannot)?;
        }
        Ok(certificate)
    }

    fn make(&self, directory: &Path) -> anyhow::Result<()> {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let name = "trefoil dev, on this machine only";
        authority.distinguished_name.push(DnType::CommonName, name);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let mut own = CertificateParams::new(NAMES.map(str::to_owned))?;
        own.distinguished_name.push(DnType::CommonName, NAMES[0]);
        let own = own.signed_by(&key, &authority)?;
        std::fs::create_dir_all(directory)?;
        std::fs::write(&self.tls.key, key.serialize_pem())?;
        std::fs::write(&self.tls.certificate, own.pem())?;
        std::fs::write(&self.authority, authority.pem())?;
        Ok(())
    }
}

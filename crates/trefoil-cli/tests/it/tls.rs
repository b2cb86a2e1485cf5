//! TLS on every listener: with the clients that applications use, and with a certificate that is renewed.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::harness::{ADMIN, Server, binary};
use crate::python;

/// How long a server may take to read its files again.
const PATIENCE: Duration = Duration::from_secs(30);

/// A certificate for `localhost` in files, and who signed it.
pub(crate) struct CertificateFiles {
    directory: TempDir,
}

impl CertificateFiles {
    pub(crate) fn new() -> Self {
        let files = Self {
            directory: TempDir::new().unwrap(),
        };
        files.renew();
        files
    }

    /// Writes another one, of another signer.
    fn renew(&self) {
        let mut signer = CertificateParams::default();
        signer.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let name = "the signer of the tests";
        signer.distinguished_name.push(DnType::CommonName, name);
        let signer = CertifiedIssuer::self_signed(signer, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let own = own.signed_by(&key, &signer).unwrap();
        std::fs::write(self.path("certificate.pem"), own.pem()).unwrap();
        std::fs::write(self.path("key.pem"), key.serialize_pem()).unwrap();
        std::fs::write(self.authority(), signer.pem()).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The file that clients are given.
    pub(crate) fn authority(&self) -> PathBuf {
        self.path("authority.pem")
    }

    /// A server that has the certificate.
    pub(crate) fn server(&self, data: &Path) -> Server {
        let [certificate, key] = self.arguments();
        Server::on(data, &[&certificate, &key])
    }

    /// What curl gets from a server that has the certificate.
    pub(crate) fn curl(&self, server: &Server, path: &str, arguments: &[&str]) -> String {
        let url = format!("https://localhost:{}{path}", server.port);
        let mut curl = Command::new("curl");
        curl.arg("-sS").arg("--cacert").arg(self.authority());
        let got = curl.arg(url).args(arguments).output().unwrap();
        assert!(got.status.success(), "{got:?}");
        String::from_utf8(got.stdout).unwrap()
    }

    /// What a server is started with.
    pub(crate) fn arguments(&self) -> [String; 2] {
        let flag = |flag, name| format!("--{flag}={}", self.path(name).display());
        [
            flag("tls-cert", "certificate.pem"),
            flag("tls-key", "key.pem"),
        ]
    }
}

/// A connection over TLS on which HTTP is spoken.
struct Encrypted(StreamOwned<ClientConnection, TcpStream>);

impl Encrypted {
    /// Connects, if the authority in the file vouches for the server.
    fn connect(port: u16, authority: &Path) -> std::io::Result<Self> {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(authority).unwrap();
        roots.add(authority).unwrap();
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        let socket = TcpStream::connect(("127.0.0.1", port))?;
        let mut connection = Self(StreamOwned::new(session, socket));
        connection.is_healthy()?;
        Ok(connection)
    }

    fn is_healthy(&mut self) -> std::io::Result<()> {
        self.0
            .write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"{\"status\":\"ok\"}") {
            let mut byte = [0];
            self.0.read_exact(&mut byte)?;
            answer.extend(byte);
        }
        Ok(())
    }
}

#[test]
fn the_clients_of_every_protocol_speak_tls_and_nothing_else_is_spoken() {
    if !python::has("httpx, umadb") {
        return;
    }
    let (files, data) = (CertificateFiles::new(), TempDir::new().unwrap());
    let server = files.server(data.path());
    let ports = [server.port, server.grpc_port, server.resp_port];
    let mut script = python::script("tls.py");
    script.arg(env!("CARGO_BIN_EXE_trefoil")).arg(ADMIN);
    script.arg(files.authority());
    python::run(script.args(ports.map(|port| port.to_string())));
    assert!(server.terminate().success());
}

#[test]
fn a_certificate_is_renewed_without_a_restart() {
    let (files, data) = (CertificateFiles::new(), TempDir::new().unwrap());
    let server = files.server(data.path());
    let mut before = Encrypted::connect(server.port, &files.authority()).unwrap();
    let old_authority = files.path("old.pem");
    std::fs::copy(files.authority(), &old_authority).unwrap();

    // What cannot be used changes nothing.
    let certificate = std::fs::read(files.path("certificate.pem")).unwrap();
    std::fs::write(files.path("certificate.pem"), "no certificate").unwrap();
    let began = Instant::now();
    while !server.log().contains("the TLS certificate is not renewed") {
        assert!(began.elapsed() < PATIENCE, "{}", server.log());
        thread::sleep(Duration::from_millis(50));
    }
    std::fs::write(files.path("certificate.pem"), certificate).unwrap();
    Encrypted::connect(server.port, &old_authority).unwrap();

    files.renew();
    let began = Instant::now();
    while Encrypted::connect(server.port, &files.authority()).is_err() {
        assert!(began.elapsed() < PATIENCE, "{}", server.log());
        thread::sleep(Duration::from_millis(50));
    }
    assert!(Encrypted::connect(server.port, &old_authority).is_err());
    before.is_healthy().unwrap();
    assert!(server.terminate().success());
}

#[test]
fn a_server_for_development_makes_a_certificate_of_its_own_and_keeps_it() {
    let data = TempDir::new().unwrap();
    let authority = data.path().join("_meta/tls/authority.pem");
    let mut seen = Vec::new();
    for _ in 0..2 {
        let directory = data.path().to_str().unwrap();
        let server = Server::in_development_with(&["--data-dir", directory, "--tls"]);
        let url = format!("https://localhost:{}", server.port);
        let mut write = binary();
        write.args(["write", "account-1", "Opened", "--url", &url]);
        let written = write.arg("--cacert").arg(&authority).output().unwrap();
        assert!(written.status.success(), "{written:?}");
        assert!(server.log().contains("rediss://"), "{}", server.log());
        seen.push(std::fs::read(&authority).unwrap());
        assert!(server.terminate().success());
    }
    assert_eq!(seen[0], seen[1]);
    let key = std::fs::metadata(data.path().join("_meta/tls/key.pem")).unwrap();
    assert_eq!(key.permissions().mode() & 0o077, 0);
}

//! `trefoil dev`: a server for development, with something to copy and paste.

mod certificate;

use std::path::{Path, PathBuf};

use trefoil::Token;

use super::configured::Configured;
use super::serve::{self, Bound};
use crate::exit::UsageError;
use crate::logging;
use crate::output::CommandOutput;
use crate::settings::{DevSettings, StorageSetting};
use certificate::DevCertificate;

const EXAMPLES: &str = "Examples:
  trefoil dev
  trefoil dev --port 9000 --data-dir /tmp/trefoil
  trefoil dev --tls";

/// Starts a server for development: it listens on this machine only and uses the well-known
/// development token.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Encrypt connections, with a certificate that is made for this machine
    #[arg(long, conflicts_with_all = ["tls-cert", "tls-key"])]
    tls: bool,
    #[command(flatten)]
    configured: Configured<DevSettings>,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let Some(mut settings) = self.configured.settings(output)? else {
            return Ok(());
        };
        let mut authority = None;
        if self.tls {
            let certificate =
                DevCertificate::in_directory(&certificate_directory(&settings.storage)?)?;
            settings.tls = Some(certificate.tls);
            authority = Some(certificate.authority);
        }
        settings.token = Some(Token::development());
        // Every page knows the token too.
        settings.web.is_local = true;
        // Nobody else can reach it: keys may be as short as an example.
        settings.namespaces.token_bytes_min = 1;
        if let Some(grpc) = &mut settings.grpc {
            grpc.anonymous = true;
        }
        if let Some(resp) = &mut settings.resp {
            resp.anonymous = true;
            if !resp.listen.iter().all(|address| address.ip().is_loopback()) {
                let text = "resp: a server for development listens on this machine only";
                return Err(UsageError(text.to_owned()).into());
            }
        }
        logging::start(settings.log_level, settings.log_format)?;
        serve::run(settings, |bound, _| {
            announce(output, bound, authority.as_deref())
        })
    }
}

/// Where the certificate is kept: beside the data, or where this machine keeps its part of it.
fn certificate_directory(storage: &StorageSetting) -> anyhow::Result<PathBuf> {
    match storage {
        StorageSetting::Directory(directory) => Ok(directory.join("_meta").join("tls")),
        StorageSetting::Storage(place) => Ok(place.cache.join("tls")),
        StorageSetting::Memory => {
            let text = "tls: a server that keeps nothing has no place for a certificate";
            Err(UsageError(text.to_owned()).into())
        }
    }
}

fn announce(
    output: &mut CommandOutput,
    bound: &Bound,
    authority: Option<&Path>,
) -> std::io::Result<()> {
    let token = Token::development();
    let token = token.reveal();
    if !output.is_text() {
        output.value(&bound.to_json(Some(token), None))?;
        return output.flush();
    }
    output.line(
        "Trefoil is ready for development. Never use this token where others can reach it.\n",
    )?;
    output.line(format_args!("Token  {token}"))?;
    for url in bound.http_urls() {
        output.line(format_args!("HTTP   {url}   (the console, in a browser)"))?;
    }
    for url in bound.grpc_urls() {
        output.line(format_args!(
            "gRPC   {url}   (UmaDB clients, no key needed)"
        ))?;
    }
    for url in bound.resp_urls() {
        output.line(format_args!(
            "RESP   {url}   (Redis clients, no password needed)"
        ))?;
    }
    if let Some(authority) = authority {
        let shown = authority.display();
        output.line(format_args!("CA     {shown}   (clients need it)"))?;
    }
    if let Some(url) = bound.http_urls().next() {
        output.line(first_requests(&url, token, authority))?;
    }
    if let Some(url) = bound.grpc_urls().next() {
        output.line(first_call(&url, authority))?;
    }
    if let Some(address) = bound.resp.first() {
        output.line(first_command(address.port(), authority))?;
    }
    output.flush()
}

/// A transaction to copy, for Redis' own client: state and an event in one commit.
fn first_command(port: u16, authority: Option<&Path>) -> String {
    let tls = authority.map_or_else(String::new, |file| {
        format!(" --tls --cacert {}", file.display())
    });
    format!(
        "Change state and append an event in one transaction:\n  \
         printf 'MULTI\\nHINCRBY account:1 balance 5\\nEVENT.APPEND account-1 Deposited {{}}\\nEXEC\\n' \
         | redis-cli -p {port}{tls}\n"
    )
}

/// An append to copy, for UmaDB's client.
fn first_call(url: &str, authority: Option<&Path>) -> String {
    let authority = authority.map_or_else(String::new, |file| {
        format!(", ca_path=\"{}\"", file.display())
    });
    format!(
        "Append an event with tags over gRPC (pip install umadb):\n  \
         python3 -c 'import umadb; print(umadb.Client(\"{url}\"{authority}).append(\n    \
         [umadb.Event(\"Opened\", b\"{{}}\", tags=[\"account:1\"])]))'\n"
    )
}

/// Requests to copy: write an event, read it, follow what comes.
fn first_requests(url: &str, token: &str, authority: Option<&Path>) -> String {
    let option = authority.map_or_else(String::new, |file| format!(" --cacert {}", file.display()));
    let variables = authority.map_or_else(String::new, |file| {
        format!(
            "export TREFOIL_URL={url} TREFOIL_CACERT={}; ",
            file.display()
        )
    });
    let call = |body: &str| {
        format!(
            "  curl -s{option} {url}/rpc -H 'Authorization: Bearer {token}' \\\n    -d '{body}'"
        )
    };
    let write = r#"["stream.write","account-1",{"type":"Opened","data":{"owner":"Ada"}}]"#;
    let read = r#"["stream.get","account-1"]"#;
    format!(
        "\nWrite an event:\n{}\n\nRead the stream:\n{}\n\nFollow the category:\n  \
         curl -sN{option} '{url}/subscribe?category=account' -H 'Authorization: Bearer {token}'\n\n\
         Or: {variables}trefoil write account-1 Deposited '{{\"amount\":5}}'; trefoil read account-1\n",
        call(write),
        call(read)
    )
}

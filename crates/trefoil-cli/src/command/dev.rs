//! `trefoil dev`: a server for development, with something to copy and paste.

use trefoil::Token;

use super::configured::Configured;
use super::serve::{self, Bound};
use crate::exit::UsageError;
use crate::logging;
use crate::output::CommandOutput;
use crate::settings::DevSettings;

const EXAMPLES: &str = "Examples:
  trefoil dev
  trefoil dev --port 9000 --data-dir /tmp/trefoil";

/// Starts a server for development: it listens on this machine only and uses the well-known
/// development token.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    configured: Configured<DevSettings>,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let Some(mut settings) = self.configured.settings(output)? else {
            return Ok(());
        };
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
        serve::run(settings, |bound, _| announce(output, bound))
    }
}

fn announce(output: &mut CommandOutput, bound: &Bound) -> std::io::Result<()> {
    let token = Token::development();
    let token = token.reveal();
    if !output.is_text() {
        output.value(&bound.to_json(Some(token)))?;
        return output.flush();
    }
    output.line(
        "Trefoil is ready for development. Never use this token where others can reach it.\n",
    )?;
    output.line(format_args!("Token  {token}"))?;
    for address in &bound.http {
        output.line(format_args!(
            "HTTP   http://{address}   (the console, in a browser)"
        ))?;
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
    if let Some(address) = bound.http.first() {
        output.line(first_requests(&format!("http://{address}"), token))?;
    }
    if let Some(url) = bound.grpc_urls().next() {
        output.line(first_call(&url))?;
    }
    if let Some(address) = bound.resp.first() {
        output.line(first_command(address.port()))?;
    }
    output.flush()
}

/// A transaction to copy, for Redis' own client: state and an event in one commit.
fn first_command(port: u16) -> String {
    format!(
        "Change state and append an event in one transaction:\n  \
         printf 'MULTI\\nHINCRBY account:1 balance 5\\nEVENT.APPEND account-1 Deposited {{}}\\nEXEC\\n' \
         | redis-cli -p {port}\n"
    )
}

/// An append to copy, for UmaDB's client.
fn first_call(url: &str) -> String {
    format!(
        "Append an event with tags over gRPC (pip install umadb):\n  \
         python3 -c 'import umadb; print(umadb.Client(\"{url}\").append(\n    \
         [umadb.Event(\"Opened\", b\"{{}}\", tags=[\"account:1\"])]))'\n"
    )
}

/// Requests to copy: write an event, read it, follow what comes.
fn first_requests(url: &str, token: &str) -> String {
    let call = |body: &str| {
        format!("  curl -s {url}/rpc -H 'Authorization: Bearer {token}' \\\n    -d '{body}'")
    };
    let write = r#"["stream.write","account-1",{"type":"Opened","data":{"owner":"Ada"}}]"#;
    let read = r#"["stream.get","account-1"]"#;
    format!(
        "\nWrite an event:\n{}\n\nRead the stream:\n{}\n\nFollow the category:\n  \
         curl -sN '{url}/subscribe?category=account' -H 'Authorization: Bearer {token}'\n\n\
         Or: trefoil write account-1 Deposited '{{\"amount\":5}}'; trefoil read account-1\n",
        call(write),
        call(read)
    )
}

//! `trefoil ns token`: another token for a namespace, on a running server or on a stopped one's
//! files.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::json;
use trefoil::Token;
use trefoil::tools::rotate_token;

use super::Administrator;
use crate::exit::UsageError;
use crate::output::CommandOutput;
use crate::places::HomePlace;

pub(super) const EXAMPLES: &str = "A token is never stored, so it cannot be shown again. If the \
token of `default` is lost, stop the server and give the data directory.

Examples:
  trefoil ns token tenant-a --rotate
  trefoil ns token default --rotate --data-dir /var/lib/trefoil";

/// Where something of a storage may be kept meanwhile, which is next to nothing.
const CACHE: &str = "./cache";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The namespace
    id: String,
    /// Make a new token; the old one stops working
    #[arg(long, required = true)]
    rotate: bool,
    /// The token to be [default: a random one]
    #[arg(long, value_name = "TOKEN")]
    namespace_token: Option<String>,
    /// Data directory of a server that is stopped [default: ask the running one]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// The same for a server whose data is in an object storage
    #[arg(long, value_name = "URL", conflicts_with = "data_dir")]
    storage: Option<String>,
    #[command(flatten)]
    administrator: Administrator,
    /// The former name of `--admin-token`
    #[arg(long, value_name = "TOKEN", hide = true)]
    token: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Rotated {
    namespace: String,
    token: String,
}

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let rotated = match self.data_dir.as_ref().or(self.storage.as_ref()) {
            Some(place) => self.rotate_in(place)?,
            None => self.rotate_on_server()?,
        };
        if !output.is_text() {
            return Ok(output.value(&rotated)?);
        }
        let namespace = &rotated.namespace;
        eprintln!("'{namespace}' has a new token. It is shown this once:");
        Ok(output.line(rotated.token)?)
    }

    fn rotate_on_server(&self) -> anyhow::Result<Rotated> {
        let options = json!({"token": self.namespace_token});
        let Administrator {
            address,
            admin_token,
        } = &self.administrator;
        let token = self.token.as_deref().or(admin_token.as_deref());
        let client = address.client(token)?;
        client.call(&("ns.token", &self.id, options))
    }

    fn rotate_in(&self, place: &str) -> anyhow::Result<Rotated> {
        let token = self.namespace_token.as_deref().map(Token::read);
        let token = token
            .transpose()
            .map_err(|error| UsageError(format!("--namespace-token: {error}")))?;
        let home = HomePlace::parse(place, Path::new(CACHE))?.open_existing()?;
        let token = rotate_token(home, &self.id, token)?;
        Ok(Rotated {
            namespace: self.id.clone(),
            token: token.reveal().to_owned(),
        })
    }
}

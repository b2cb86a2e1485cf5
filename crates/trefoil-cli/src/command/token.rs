//! `trefoil token`: the tokens of a namespace.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{ConnectionArguments, HttpClient};
use crate::input::confirm;
use crate::output::{Column, CommandOutput};
use crate::settings::parse_duration;

const EXAMPLES: &str = "Scopes: read, write (events), state (keys), seats, subscribe, admin (tokens, \
import, export, backup). A token with prefixes may use only streams and keys that it names, and only \
those that begin so. A namespace is created with the token `main`, which may do everything.

Examples:
  trefoil token create reports --scope read,subscribe --expires-in 30d
  trefoil token create orders --scope read,write --stream order-
  trefoil token list
  trefoil token rotate reports --overlap 1h
  trefoil token revoke reports --yes";

/// Makes, lists, replaces and revokes the tokens of a namespace.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: TokenAction,
}

#[derive(Debug, clap::Subcommand)]
enum TokenAction {
    /// Make a token and print it, which is shown only once
    #[command(
        after_help = "Example:\n  trefoil token create orders --scope read,write --stream order-"
    )]
    Create(CreateToken),
    /// List the tokens, without showing them
    #[command(after_help = "Example:\n  trefoil token list --json")]
    List {
        #[command(flatten)]
        target: TokenTarget,
    },
    /// Replace a token by a new one and print that
    #[command(after_help = "Example:\n  trefoil token rotate reports --overlap 1h")]
    Rotate {
        /// The token
        name: String,
        /// How long the old one goes on to count, like 90s, 30m, 24h or 7d [default: not at all]
        #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
        overlap: Option<std::time::Duration>,
        /// The token to be [default: a random one]
        #[arg(long, value_name = "TOKEN")]
        value: Option<String>,
        #[command(flatten)]
        target: TokenTarget,
    },
    /// Revoke a token: what is connected with it ends
    #[command(after_help = "Example:\n  trefoil token revoke reports --yes")]
    Revoke {
        /// The token
        name: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        target: TokenTarget,
    },
}

/// Whose tokens are meant.
#[derive(Debug, clap::Args)]
struct TokenTarget {
    /// The namespace [default: that of the token]
    #[arg(long, value_name = "ID")]
    namespace: Option<String>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Debug, clap::Args)]
struct CreateToken {
    /// Its name: letters, digits, '-', '_' and '.'
    name: String,
    /// What it permits [default: everything]
    #[arg(long, value_name = "SCOPES", value_delimiter = ',')]
    scope: Vec<String>,
    /// What the names of streams begin with; may be repeated [default: any stream]
    #[arg(long, value_name = "PREFIX")]
    stream: Vec<String>,
    /// What the names of keys begin with; may be repeated [default: any key]
    #[arg(long, value_name = "PREFIX")]
    key: Vec<String>,
    /// When it expires, a time as in RFC 3339 [default: never]
    #[arg(long, value_name = "TIME", conflicts_with = "expires_in")]
    expires: Option<String>,
    /// After how long it expires, like 90s, 30m, 24h or 7d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    expires_in: Option<std::time::Duration>,
    /// The token to be: any text of at least 16 bytes [default: a random one]
    #[arg(long, value_name = "TOKEN")]
    value: Option<String>,
    #[command(flatten)]
    target: TokenTarget,
}

/// A token, as the server tells of it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedToken {
    namespace: String,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    scopes: Vec<String>,
    streams: Vec<String>,
    keys: Vec<String>,
    created: String,
    expires: Option<String>,
    last_used: Option<String>,
    previous_expires: Option<String>,
    server: bool,
}

#[derive(Serialize, Deserialize)]
struct RevokedToken {
    namespace: String,
    name: String,
}

const COLUMNS: &[Column<ListedToken>] = &[
    Column::Text("TOKEN", |row| row.name.clone()),
    Column::Text("SCOPES", |row| row.scopes.join(",")),
    Column::Text("STREAMS", |row| prefixes(&row.streams)),
    Column::Text("KEYS", |row| prefixes(&row.keys)),
    Column::Time("CREATED", |row| row.created.clone()),
    Column::Time("EXPIRES", |row| time_or_never(row.expires.as_ref())),
    Column::Time("LAST USED", |row| time_or_never(row.last_used.as_ref())),
];

fn prefixes(prefixes: &[String]) -> String {
    match prefixes {
        [] => "any".to_owned(),
        some => some.join(","),
    }
}

fn time_or_never(time: Option<&String>) -> String {
    time.cloned().unwrap_or_else(|| "never".to_owned())
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        match self.action {
            TokenAction::Create(arguments) => create(&arguments, output),
            TokenAction::List { target } => {
                let request = target.request("token.list", json!({}));
                let tokens: Vec<ListedToken> = target.client()?.call(&request)?;
                Ok(output.table(&tokens, COLUMNS)?)
            }
            TokenAction::Rotate {
                name,
                overlap,
                value,
                target,
            } => {
                let overlap = overlap.map(|overlap| overlap.as_secs());
                let options = json!({"name": name, "overlap": overlap, "token": value});
                let request = target.request("token.rotate", options);
                let rotated = target.client()?.call(&request)?;
                show(&rotated, "has been replaced", output)
            }
            TokenAction::Revoke { name, yes, target } => {
                confirm(&format!("Revoke the token '{name}'?"), yes)?;
                let request = target.request("token.revoke", json!({"name": name}));
                let revoked: RevokedToken = target.client()?.call(&request)?;
                if !output.is_text() {
                    return Ok(output.value(&revoked)?);
                }
                let RevokedToken { namespace, name } = revoked;
                eprintln!("Revoked the token '{name}' of '{namespace}'.");
                Ok(())
            }
        }
    }
}

impl TokenTarget {
    fn client(&self) -> anyhow::Result<HttpClient> {
        self.connection.client()
    }

    /// A call with these options, and the namespace if it was named.
    fn request(&self, method: &str, mut options: Value) -> Value {
        if let (Some(namespace), Some(options)) = (&self.namespace, options.as_object_mut()) {
            options.insert("namespace".to_owned(), json!(namespace));
        }
        json!([method, options])
    }
}

fn create(arguments: &CreateToken, output: &mut CommandOutput) -> anyhow::Result<()> {
    let scopes = Some(&arguments.scope).filter(|scopes| !scopes.is_empty());
    let options = json!({
        "name": arguments.name,
        "scopes": scopes,
        "streams": arguments.stream,
        "keys": arguments.key,
        "expires": arguments.expires,
        "expiresIn": arguments.expires_in.map(|time| time.as_secs()),
        "token": arguments.value,
    });
    let request = arguments.target.request("token.create", options);
    let created = arguments.target.client()?.call(&request)?;
    show(&created, "has been made", output)
}

/// Shows a token that was made.
fn show(token: &ListedToken, what: &str, output: &mut CommandOutput) -> anyhow::Result<()> {
    if !output.is_text() {
        return Ok(output.value(token)?);
    }
    let ListedToken {
        namespace, name, ..
    } = token;
    eprintln!("The token '{name}' of '{namespace}' {what}. It is shown this once:");
    if let Some(until) = &token.previous_expires {
        eprintln!("(The old one counts until {until}.)");
    }
    Ok(output.line(token.token.as_deref().unwrap_or_default())?)
}

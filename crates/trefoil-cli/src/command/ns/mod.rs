//! `trefoil ns`: namespaces.

mod set;
mod token;

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::client::{Address, ConnectionArguments, HttpClient, NamespaceInfo};
use crate::input::{confirm, json_object};
use crate::output::{Column, CommandOutput};

const EXAMPLES: &str = "The token of the namespace `default` is allowed to do all of this.

Examples:
  trefoil ns create tenant-a --description 'Our first tenant'
  trefoil ns list
  trefoil ns info tenant-a --json
  trefoil ns set tenant-a --disk 10GiB
  trefoil ns reopen tenant-a
  trefoil ns token tenant-a --rotate
  trefoil ns delete tenant-a --yes";

/// Creates, lists, inspects, changes, reopens and deletes namespaces, and gives them other tokens.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: NamespaceAction,
}

#[derive(Debug, clap::Subcommand)]
enum NamespaceAction {
    /// Create a namespace and print its token, which is shown only once
    #[command(
        after_help = "Example:\n  trefoil ns create tenant-a --metadata '{\"plan\":\"big\"}'"
    )]
    Create(Create),
    /// Give a namespace another token and print it
    #[command(after_help = token::EXAMPLES)]
    Token(token::Arguments),
    /// List the namespaces
    #[command(after_help = "Example:\n  trefoil ns list --json")]
    List {
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Change how a namespace is operated, and its quotas
    #[command(after_help = set::EXAMPLES)]
    Set(set::Arguments),
    /// Show counts and times of a namespace
    #[command(after_help = "Example:\n  trefoil ns info tenant-a")]
    Info {
        /// The namespace
        id: String,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Open a namespace again that refuses writes after an I/O error
    #[command(after_help = "Example:\n  trefoil ns reopen tenant-a")]
    Reopen {
        /// The namespace
        id: String,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Delete a namespace with everything in it
    #[command(after_help = "Example:\n  trefoil ns delete tenant-a --yes")]
    Delete {
        /// The namespace
        id: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
}

#[derive(Debug, clap::Args)]
struct Create {
    /// The namespace: letters, digits, '-', '_' and '.'
    id: String,
    /// What people should know about it
    #[arg(long, default_value = "")]
    description: String,
    /// Its token: one made by Trefoil, or any text of at least 16 bytes, such as the API key of a
    /// UmaDB [default: a random one]
    #[arg(long, value_name = "TOKEN", alias = "token")]
    namespace_token: Option<String>,
    /// A JSON object of yours
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Has no effect any more: all namespaces share one cache
    #[arg(long, value_name = "WEIGHT", default_value_t = 1)]
    cache_share: u32,
    /// Open it when the server starts, not when it is first used
    #[arg(long)]
    warm: bool,
    #[command(flatten)]
    administrator: Administrator,
}

/// Where the server is, and who asks. The token is not called `--token` where a namespace gets
/// one.
#[derive(Debug, clap::Args)]
struct Administrator {
    #[command(flatten)]
    address: Address,
    /// Token that is allowed to do it: that of `default`, or of the namespace if it has one [env:
    /// TREFOIL_TOKEN] [default: that of the context, else the development token]
    #[arg(long, value_name = "TOKEN")]
    admin_token: Option<String>,
}

#[derive(Serialize)]
struct CreateOptions<'a> {
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Box<RawValue>>,
    settings: CreateSettings,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CreateSettings {
    cache_share: u32,
    warm: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    namespace: String,
    created_at: String,
    token: String,
}

#[derive(Serialize, Deserialize)]
struct Reopened {
    namespace: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedNamespace {
    namespace: String,
    description: String,
    created_at: String,
    /// Unknown if another node of a cluster may have it.
    message_count: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deleted {
    namespace: String,
    deleted_at: String,
    messages_deleted: u64,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        match self.action {
            NamespaceAction::Create(arguments) => create(arguments, output),
            NamespaceAction::Token(arguments) => arguments.run(output),
            NamespaceAction::Set(arguments) => arguments.run(output),
            NamespaceAction::List { connection } => list(&connection.client()?, output),
            NamespaceAction::Info { id, connection } => info(&connection.client()?, &id, output),
            NamespaceAction::Reopen { id, connection } => {
                reopen(&connection.client()?, &id, output)
            }
            NamespaceAction::Delete {
                id,
                yes,
                connection,
            } => {
                let client = connection.client()?;
                confirm(
                    &format!("Delete namespace '{id}' with everything in it?"),
                    yes,
                )?;
                delete(&client, &id, output)
            }
        }
    }
}

fn create(arguments: Create, output: &mut CommandOutput) -> anyhow::Result<()> {
    let metadata = arguments.metadata.as_deref();
    let options = CreateOptions {
        description: &arguments.description,
        token: arguments.namespace_token.as_deref(),
        metadata: metadata
            .map(|text| json_object("metadata", text))
            .transpose()?,
        settings: CreateSettings {
            cache_share: arguments.cache_share,
            warm: arguments.warm,
        },
    };
    let Administrator {
        address,
        admin_token,
    } = arguments.administrator;
    let client = address.client(admin_token.as_deref())?;
    let created: Created = client.call(&("ns.create", &arguments.id, options))?;
    if !output.is_text() {
        return Ok(output.value(&created)?);
    }
    eprintln!(
        "Created '{}'. Its token is shown this once:",
        created.namespace
    );
    Ok(output.line(created.token)?)
}

fn list(client: &HttpClient, output: &mut CommandOutput) -> anyhow::Result<()> {
    const COLUMNS: &[Column<ListedNamespace>] = &[
        Column::Text("NAMESPACE", |row| row.namespace.clone()),
        Column::Text("EVENTS", |row| {
            let count = row.message_count.map(|count| count.to_string());
            count.unwrap_or_else(|| "-".to_owned())
        }),
        Column::Time("CREATED", |row| row.created_at.clone()),
        Column::Text("DESCRIPTION", |row| row.description.clone()),
    ];
    let listed: Vec<ListedNamespace> = client.call(&("ns.list",))?;
    Ok(output.table(&listed, COLUMNS)?)
}

fn info(client: &HttpClient, id: &str, output: &mut CommandOutput) -> anyhow::Result<()> {
    const COLUMNS: &[Column<NamespaceInfo>] = &[
        Column::Text("NAMESPACE", |row| row.namespace.clone()),
        Column::Text("EVENTS", |row| row.message_count.to_string()),
        Column::Text("STREAMS", |row| row.stream_count.to_string()),
        Column::Time("CREATED", |row| row.created_at.clone()),
        Column::Time("LAST ACTIVITY", |row| {
            row.last_activity.clone().unwrap_or_else(|| "never".into())
        }),
        Column::Text("DESCRIPTION", |row| row.description.clone()),
    ];
    let info = client.namespace_info(id)?;
    if let Some(reason) = info.refuses_writes.as_ref().filter(|_| output.is_text()) {
        eprintln!("'{id}' takes no writes before `trefoil ns reopen {id}`: {reason}");
    }
    Ok(output.record(&info, COLUMNS)?)
}

fn reopen(client: &HttpClient, id: &str, output: &mut CommandOutput) -> anyhow::Result<()> {
    let reopened: Reopened = client.call(&("ns.reopen", id))?;
    if !output.is_text() {
        return Ok(output.value(&reopened)?);
    }
    eprintln!("Opened '{}' again.", reopened.namespace);
    Ok(())
}

fn delete(client: &HttpClient, id: &str, output: &mut CommandOutput) -> anyhow::Result<()> {
    let deleted: Deleted = client.call(&json!(["ns.delete", id]))?;
    if !output.is_text() {
        return Ok(output.value(&deleted)?);
    }
    let Deleted {
        namespace,
        messages_deleted,
        ..
    } = deleted;
    eprintln!("Deleted '{namespace}' with {messages_deleted} events.");
    Ok(())
}

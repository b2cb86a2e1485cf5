//! `trefoil context`: servers that have a name.

use std::io::BufRead as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use serde::Serialize;
use trefoil::Token;

use crate::client::{ConnectionArguments, is_encrypted};
use crate::contexts::{self, Contexts, NamedServer, PREVIOUS};
use crate::exit::UsageError;
use crate::output::{Column, CommandOutput};

const EXAMPLES: &str = "A context is the address of a server, with the file that has its token. Commands use the one that is
selected, unless a flag or the environment names another server. The token of a context is sent to
its own server only, and never shown.

Examples:
  trefoil context add prod https://events.example.org --token-file ~/prod.token
  trefoil context select prod
  trefoil context select -
  trefoil context ls
  trefoil streams --context prod";

/// Adds, selects, lists, shows and removes contexts.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: ContextAction,
}

#[derive(Debug, clap::Subcommand)]
enum ContextAction {
    /// Add a context; the first one is selected
    #[command(after_help = "Examples:
  trefoil context add prod https://events.example.org --token-file ~/prod.token
  trefoil context add local http://127.0.0.1:8080")]
    Add(AddContext),
    /// Select a context, or with - the one before
    #[command(after_help = "Examples:\n  trefoil context select prod\n  trefoil context select -")]
    Select {
        /// The context, or -
        #[arg(allow_hyphen_values = true)]
        name: String,
    },
    /// List the contexts
    #[command(after_help = "Example:\n  trefoil context ls --output csv")]
    Ls,
    /// Show which server and which token commands use, and why
    #[command(after_help = "Examples:\n  trefoil context show\n  trefoil context show prod")]
    Show {
        /// As if this context was named [default: the one in use]
        name: Option<String>,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Remove a context; its token file stays
    #[command(after_help = "Example:\n  trefoil context rm prod")]
    Rm {
        /// The context
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct AddContext {
    /// Its name: letters, digits, '-', '_' and '.'
    name: String,
    /// Address of the server
    url: String,
    /// The file that has the token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Store the token itself: that of TREFOIL_TOKEN, or a line of standard input
    #[arg(long, conflicts_with = "token_file")]
    store_token: bool,
    /// The file with the certificates of those who vouch for an https:// server
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Select it
    #[arg(long)]
    select: bool,
}

/// A line of the list.
#[derive(Serialize)]
struct ListedContext {
    name: String,
    url: String,
    token: String,
    selected: bool,
}

/// What a command would use.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownContext {
    url: String,
    url_from: String,
    /// Of a token that names one.
    namespace: Option<String>,
    token_from: String,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        match self.action {
            ContextAction::Add(arguments) => arguments.run(),
            ContextAction::Select { name } => {
                let mut contexts = Contexts::load()?;
                let selected = contexts.select(&name)?.to_owned();
                contexts.save()?;
                eprintln!("Selected '{selected}'.");
                Ok(())
            }
            ContextAction::Ls => list(output),
            ContextAction::Show { name, connection } => match name {
                Some(name) => show(&connection.with_context(name), output),
                None => show(&connection, output),
            },
            ContextAction::Rm { name } => {
                let mut contexts = Contexts::load()?;
                contexts.remove(&name)?;
                contexts.save()?;
                eprintln!("Removed '{name}'.");
                Ok(())
            }
        }
    }
}

impl AddContext {
    fn run(self) -> anyhow::Result<()> {
        let Self { name, url, .. } = &self;
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name == PREVIOUS || !name.chars().all(is_allowed) {
            let text = format!("{name:?} is not a name of letters, digits, '-', '_' and '.'");
            return Err(UsageError(text).into());
        }
        is_encrypted(url)?;
        let mut contexts = Contexts::load()?;
        if contexts.contexts.contains_key(name) {
            bail!(UsageError(format!(
                "there is a context '{name}': run `trefoil context rm {name}` first"
            )));
        }
        let server = NamedServer {
            url: url.clone(),
            token_file: self.token_file()?,
            token: self.stored_token()?,
            // By its whole name: commands run in other directories too.
            cacert: self.cacert.as_ref().map(std::path::absolute).transpose()?,
        };
        contexts.contexts.insert(name.clone(), server);
        let is_selected = self.select || contexts.selected.is_none();
        if is_selected {
            contexts.select(name)?;
        }
        contexts.save()?;
        match is_selected {
            true => eprintln!("Added '{name}' and selected it."),
            false => eprintln!("Added '{name}'."),
        }
        Ok(())
    }

    /// The file by its whole name: commands run in other directories too.
    fn token_file(&self) -> anyhow::Result<Option<PathBuf>> {
        let Some(path) = &self.token_file else {
            return Ok(None);
        };
        let path = std::path::absolute(path)?;
        contexts::read_token(&path)?;
        Ok(Some(path))
    }

    fn stored_token(&self) -> anyhow::Result<Option<String>> {
        if !self.store_token {
            return Ok(None);
        }
        let text = match std::env::var("TREFOIL_TOKEN") {
            Ok(token) if !token.is_empty() => token,
            _ => {
                let mut line = String::new();
                let read = std::io::stdin().lock().read_line(&mut line);
                read.context("cannot read the token from standard input")?;
                line
            }
        };
        let token = contexts::check_token(&text);
        let token = token.map_err(|wrong| UsageError(format!("the token {wrong}")))?;
        Ok(Some(token))
    }
}

fn list(output: &mut CommandOutput) -> anyhow::Result<()> {
    const COLUMNS: &[Column<ListedContext>] = &[
        Column::Text("CONTEXT", |row| row.name.clone()),
        Column::Text("URL", |row| row.url.clone()),
        Column::Text("TOKEN", |row| row.token.clone()),
        Column::Text("SELECTED", |row| match row.selected {
            true => "yes".to_owned(),
            false => String::new(),
        }),
    ];
    let Contexts {
        selected, contexts, ..
    } = Contexts::load()?;
    let rows = contexts.into_iter().map(|(name, server)| ListedContext {
        selected: selected.as_ref() == Some(&name),
        token: server.token_place(),
        url: server.url,
        name,
    });
    Ok(output.table(&rows.collect::<Vec<_>>(), COLUMNS)?)
}

fn show(connection: &ConnectionArguments, output: &mut CommandOutput) -> anyhow::Result<()> {
    const COLUMNS: &[Column<ShownContext>] = &[
        Column::Text("URL", |row| row.url.clone()),
        Column::Text("URL FROM", |row| row.url_from.clone()),
        Column::Text("NAMESPACE", |row| {
            row.namespace.clone().unwrap_or_else(|| "-".to_owned())
        }),
        Column::Text("TOKEN FROM", |row| row.token_from.clone()),
    ];
    let chosen = connection.chosen()?;
    let token = Token::read(&chosen.token).ok();
    let shown = ShownContext {
        url: chosen.url,
        url_from: chosen.url_source,
        namespace: token.and_then(|token| token.namespace().map(str::to_owned)),
        token_from: chosen.token_source,
    };
    Ok(output.record(&shown, COLUMNS)?)
}

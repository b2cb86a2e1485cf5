//! `trefoil move`: namespaces from one place to another.

use anyhow::Context as _;
use serde_json::json;
use trefoil::home::Home;
use trefoil::tools::{Copied, CopyStep, copy_namespace};
use trefoil::{NamespaceId, Options};

use super::databases::CacheArgument;
use crate::exit::{self, NotFound, UsageError};
use crate::output::{CommandOutput, count_progress};
use crate::places::HomePlace;

const EXAMPLES: &str =
    "Stop the server first. FROM is not changed: remove it when the new place has \
proven itself. A namespace that is there already is not touched; one whose copy was cut short is \
copied again. Check the result with `trefoil verify`.

Examples:
  trefoil move data s3://bucket/prefix
  trefoil move s3://bucket/prefix /var/lib/trefoil --namespace default
  trefoil move data file:///mnt/store";

/// Copies namespaces, with their tokens, between data directories and object storages: the log with
/// its positions and times, and the state. The index is made anew.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A data directory, or the URL of an object storage
    #[arg(value_name = "FROM")]
    from: String,
    /// Where to: a data directory or a URL; made if it is not there
    #[arg(value_name = "TO")]
    to: String,
    /// Only this namespace; may be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    namespace: Vec<String>,
    #[command(flatten)]
    cache: CacheArgument,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        if self.from == self.to {
            return Err(UsageError("FROM and TO are the same place".to_owned()).into());
        }
        let from = HomePlace::parse(&self.from, &self.cache.cache_dir)?;
        let to = HomePlace::parse(&self.to, &self.cache.cache_dir)?;
        let source = from.open_existing()?;
        let names = self.names(source.as_ref(), &from)?;
        let target = to.open()?;
        output.begin_list();
        let moved = move_all(source.as_ref(), target.as_ref(), &names, output);
        source.close()?;
        target.close()?;
        moved
    }

    fn names(&self, source: &dyn Home, from: &HomePlace) -> anyhow::Result<Vec<NamespaceId>> {
        let all = source.entries()?.into_iter().map(|(name, _)| name);
        let all: Vec<String> = all.collect();
        let chosen = match self.namespace.is_empty() {
            true => &all,
            false => &self.namespace,
        };
        if let Some(absent) = chosen.iter().find(|name| !all.contains(name)) {
            return Err(NotFound(format!("{from} has no namespace '{absent}'")).into());
        }
        let ids = chosen.iter().map(|name| NamespaceId::new(name));
        Ok(ids.collect::<trefoil::Result<_>>()?)
    }
}

/// Copies one after the other. One that fails does not keep the others from their turn.
fn move_all(
    from: &dyn Home,
    to: &dyn Home,
    names: &[NamespaceId],
    output: &mut CommandOutput,
) -> anyhow::Result<()> {
    let mut last: Option<anyhow::Error> = None;
    for id in names {
        match move_one(from, to, id) {
            Ok(copied) => print(id, copied, output)?,
            Err(error) => {
                if let Some(earlier) = last.replace(error.context(id.to_string())) {
                    exit::tell(&earlier, output.format.is_json());
                }
            }
        }
    }
    last.map_or(Ok(()), Err)
}

fn move_one(from: &dyn Home, to: &dyn Home, id: &NamespaceId) -> anyhow::Result<Copied> {
    let bar = count_progress()?;
    let listened = bar.clone();
    let options = Options::default().with_replay_listener(move |done, total| {
        listened.set_length(total);
        listened.set_position(done);
    });
    let copied = copy_namespace(from, to, id, &options, &mut |step| {
        let (done, total, unit) = match step {
            CopyStep::Log { done, total } => (done, total, "commits"),
            CopyStep::State { done, total } => (done, total, "entries of the state"),
            CopyStep::Index => (0, 0, "commits indexed"),
        };
        bar.set_length(total);
        bar.set_position(done);
        bar.set_message(format!("{unit} of {id}"));
    });
    bar.finish_and_clear();
    copied.context("cannot be moved")
}

fn print(id: &NamespaceId, copied: Copied, output: &mut CommandOutput) -> anyhow::Result<()> {
    let Copied { commits, events } = copied;
    match output.is_text() {
        true => output.line(format_args!("{id}  {events} events in {commits} commits"))?,
        false => {
            let id = id.as_str();
            output.item(&json!({"namespace": id, "commits": commits, "events": events}))?;
        }
    }
    Ok(output.flush()?)
}

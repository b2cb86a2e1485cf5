//! `trefoil backup create`.

use anyhow::{Context as _, bail};
use indicatif::ProgressBar;
use serde_json::json;
use trefoil::Clock;
use trefoil::backup::NamespaceBackup;

use super::RepositoryArguments;
use super::source::BackupSource;
use super::writer::{NamespaceWriter, ReadingPace, RepositoryWriter};
use crate::backups::{BackedUpNamespace, BackupDocument, Repository, Use};
use crate::client::ConnectionArguments;
use crate::exit::NotFound;
use crate::output::{CommandOutput, count_progress, size};
use crate::settings::parse_bytes;

pub(super) const EXAMPLES: &str = "With the token of `default` all namespaces are backed up, with \
that of another namespace only this one. The server goes on meanwhile. A backup that was cut off \
does not count; the next one goes on from where it was.

Examples:
  trefoil backup create /mnt/backups
  trefoil backup create s3://bucket/backups --limit-rate 20MiB
  trefoil backup create /mnt/backups --namespace tenant-a
  trefoil backup create /mnt/backups --data-dir data";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    repository: RepositoryArguments,
    /// Only this namespace; may be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    namespace: Vec<String>,
    /// Data directory of a server that is stopped [default: ask the running one]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// The same for a server whose data is in an object storage
    #[arg(long, value_name = "URL", conflicts_with = "data_dir")]
    storage: Option<String>,
    /// Read at most this many bytes per second, like 20MiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    limit_rate: Option<u64>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let source = self.source()?;
        let names = self.names(&source)?;
        let repository = self.repository.open(Use::Add)?;
        let earlier = repository.backups()?;
        let mut writer = RepositoryWriter {
            repository: &repository,
            known: repository.parts()?,
            pace: ReadingPace::new(self.limit_rate),
            written: 0,
        };
        let created = Clock::default().now().to_string();
        let mut namespaces = Vec::new();
        for name in &names {
            let before = newest(&repository, &earlier, name);
            let before = before.filter(|before| writer.has_all(before));
            match back_up(&source, &mut writer, name, before) {
                // It was deleted meanwhile.
                Err(error) if self.namespace.is_empty() && BackupSource::is_missing(&error) => {}
                made => namespaces.push(made.with_context(|| name.clone())?),
            }
        }
        check_parts(&repository, &namespaces)?;
        let document = BackupDocument {
            id: created.replace(['-', ':'], ""),
            created,
            source: source.to_string(),
            namespaces,
        };
        repository.add_backup(&document)?;
        for namespace in &document.namespaces {
            repository.forget_unfinished(&namespace.namespace)?;
        }
        if let BackupSource::Home(home, _) = &source {
            home.close()?;
        }
        print(&document, writer.written, output)
    }

    fn source(&self) -> anyhow::Result<BackupSource> {
        match self.data_dir.as_ref().or(self.storage.as_ref()) {
            None => Ok(BackupSource::Server(self.connection.client()?)),
            Some(text) => {
                let place = self.repository.place(text)?;
                Ok(BackupSource::Home(
                    place.open_existing()?,
                    place.to_string(),
                ))
            }
        }
    }

    fn names(&self, source: &BackupSource) -> anyhow::Result<Vec<String>> {
        if self.namespace.is_empty() {
            return source.names();
        }
        if let BackupSource::Home(..) = source {
            let all = source.names()?;
            if let Some(absent) = self.namespace.iter().find(|name| !all.contains(name)) {
                return Err(NotFound(format!("{source} has no namespace '{absent}'")).into());
            }
        }
        Ok(self.namespace.clone())
    }
}

/// Looks whether all parts are there before the backup counts: in an object storage nothing can be locked, so
/// somebody may have removed some meanwhile.
fn check_parts(repository: &Repository, namespaces: &[BackedUpNamespace]) -> anyhow::Result<()> {
    let there = repository.parts()?;
    for namespace in namespaces {
        let list = repository.list_of(namespace)?;
        let mut names = list.parts().map(|(_, part)| repository.name_of(&part.hash));
        if let Some(gone) = names.find(|name| !there.contains(name)) {
            bail!(
                "{gone} was removed while the backup was made, which does not count therefore: make it again"
            );
        }
    }
    Ok(())
}

/// Returns the newest backup of a namespace, whole or not.
fn newest(
    repository: &Repository,
    earlier: &[BackupDocument],
    name: &str,
) -> Option<NamespaceBackup> {
    let mut namespaces = earlier.iter().rev().flat_map(|backup| &backup.namespaces);
    let last = namespaces.find(|namespace| namespace.namespace == name);
    let last = last.and_then(|last| repository.list_of(last).ok());
    let unfinished = repository.unfinished(name);
    let reach = |list: &NamespaceBackup| list.log.last().map_or(0, |part| part.last);
    match (last, unfinished) {
        (Some(last), Some(unfinished)) if reach(&last) > reach(&unfinished) => Some(last),
        (last, unfinished) => unfinished.map(NamespaceBackup::usable).or(last),
    }
}

fn back_up(
    source: &BackupSource,
    writer: &mut RepositoryWriter<'_>,
    name: &str,
    before: Option<NamespaceBackup>,
) -> anyhow::Result<BackedUpNamespace> {
    let bar = count_progress()?;
    bar.set_message(format!("commits of {name}"));
    let made = match attempt(source, writer, name, before, &bar) {
        // Another namespace has the name now: nothing of the one before is of use.
        Ok(None) => attempt(source, writer, name, None, &bar),
        made => made,
    };
    bar.finish_and_clear();
    made?.context("the log changes while it is read")
}

/// Makes the backup of a namespace; `None` if it does not continue the one before.
fn attempt(
    source: &BackupSource,
    to: &mut RepositoryWriter<'_>,
    name: &str,
    before: Option<NamespaceBackup>,
    bar: &ProgressBar,
) -> anyhow::Result<Option<BackedUpNamespace>> {
    let base = before.as_ref().map(NamespaceBackup::base);
    let mut writer = NamespaceWriter::new(to, name, before, bar);
    let read = source.read(name, &base.unwrap_or_default(), &mut |step| {
        writer.take(step)
    });
    if writer.is_another {
        return Ok(None);
    }
    if let Some(failure) = writer.failure.take() {
        return Err(failure);
    }
    read?;
    writer.finish().map(Some)
}

fn print(
    document: &BackupDocument,
    written: u64,
    output: &mut CommandOutput,
) -> anyhow::Result<()> {
    let BackupDocument { id, namespaces, .. } = document;
    if !output.is_text() {
        return Ok(output.value(&json!({
            "backup": id,
            "writtenBytes": written,
            "namespaces": namespaces,
        }))?);
    }
    for namespace in namespaces {
        let content = size(namespace.content_bytes as f64);
        let (name, commit) = (&namespace.namespace, namespace.commit);
        output.line(format_args!("{name}  commit {commit}, {content}"))?;
    }
    let written = size(written as f64);
    Ok(output.line(format_args!("backup {id}, {written} written"))?)
}

//! `trefoil backup verify`.

use anyhow::{Context as _, bail};
use serde_json::json;
use trefoil::backup::{CheckedBackup, NamespaceBackup, PartReference, check_backup};

use super::RepositoryArguments;
use crate::archive::ArchiveReader;
use crate::backups::Use;
use crate::exit::{self, NotFound};
use crate::output::{CommandOutput, count_progress};

pub(super) const EXAMPLES: &str = "Every part is read and checked, and every commit, event and \
entry in it. Nothing is written.

Examples:
  trefoil backup verify /mnt/backups
  trefoil backup verify /mnt/backups --backup 20261116T142600.5Z
  trefoil backup verify /mnt/backups --archive";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    repository: RepositoryArguments,
    /// The backup [default: the newest]
    #[arg(long, value_name = "BACKUP")]
    backup: Option<String>,
    /// Check the archive instead
    #[arg(long, conflicts_with = "backup")]
    archive: bool,
}

/// Returns the content of a part.
type FetchContent<'a> = dyn Fn(&PartReference) -> trefoil::Result<Vec<u8>> + 'a;

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let repository = self.repository.open(Use::Read)?;
        if self.archive {
            let archive = ArchiveReader::open(&repository)?;
            let names = archive.names(None)?;
            if names.is_empty() {
                return Err(NotFound(format!("{repository} has no archive")).into());
            }
            let list = |name: &str| archive.backup(name, None);
            let fetch = |part: &PartReference| match archive.fetch(part) {
                Some(content) => content,
                None => repository.fetch(part),
            };
            return verify("the archive", &names, &list, &fetch, output);
        }
        let backup = repository.backup(self.backup.as_deref())?;
        let names = backup.namespaces.iter();
        let names: Vec<String> = names.map(|named| named.namespace.clone()).collect();
        let list = |name: &str| {
            let mut named = backup.namespaces.iter();
            let named = named.find(|named| named.namespace == name);
            repository.list_of(named.context("it is not listed")?)
        };
        let fetch = |part: &PartReference| repository.fetch(part);
        let what = format!("backup {}", backup.id);
        verify(&what, &names, &list, &fetch, output)
    }
}

/// Checks namespaces, and tells of each what it has or what is wrong with it.
fn verify(
    what: &str,
    names: &[String],
    list: &dyn Fn(&str) -> anyhow::Result<NamespaceBackup>,
    fetch: &FetchContent<'_>,
    output: &mut CommandOutput,
) -> anyhow::Result<()> {
    output.begin_list();
    let mut damaged = Vec::new();
    for name in names {
        match list(name).and_then(|list| check(&list, fetch)) {
            Ok(checked) => print(name, checked, output)?,
            Err(error) => {
                exit::tell(&error.context(name.clone()), output.format.is_json());
                damaged.push(name.as_str());
            }
        }
    }
    match damaged.as_slice() {
        [] => Ok(()),
        damaged => bail!("{what} is damaged: {}", damaged.join(", ")),
    }
}

/// Checks a namespace. If something is wrong, all parts that are damaged are named.
fn check(list: &NamespaceBackup, fetch: &FetchContent<'_>) -> anyhow::Result<CheckedBackup> {
    let bar = count_progress()?;
    bar.set_length(list.parts().count() as u64);
    bar.set_message(format!("parts of {}", list.namespace));
    let checked = check_backup(list, &mut |part| {
        bar.inc(1);
        fetch(part)
    });
    bar.finish_and_clear();
    let error = match checked {
        Ok(checked) => return Ok(checked),
        Err(error) => error,
    };
    let parts = list.parts().map(|(_, part)| fetch(part));
    let mut damaged: Vec<String> = parts
        .filter_map(Result::err)
        .map(|error| error.to_string())
        .collect();
    // The events and the changes of an archive may be in the same piece.
    damaged.dedup();
    match damaged.is_empty() {
        true => Err(error.into()),
        false => bail!("{}", damaged.join("; ")),
    }
}

fn print(name: &str, checked: CheckedBackup, output: &mut CommandOutput) -> anyhow::Result<()> {
    let CheckedBackup {
        commits,
        events,
        entries,
        changes,
    } = checked;
    match output.is_text() {
        true => output.line(format_args!(
            "{name}  {events} events in {commits} commits, {entries} entries and {changes} changes \
             of the state: sound"
        ))?,
        false => output.item(&json!({
            "namespace": name,
            "commits": commits,
            "events": events,
            "entries": entries,
            "changes": changes,
        }))?,
    }
    Ok(output.flush()?)
}

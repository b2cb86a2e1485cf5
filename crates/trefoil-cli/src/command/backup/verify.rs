//! `trefoil backup verify`.

use anyhow::bail;
use serde_json::json;
use trefoil::Error;
use trefoil::backup::{CheckedBackup, PartReference, check_backup};

use super::RepositoryArguments;
use crate::backups::{BackedUpNamespace, Repository, Use};
use crate::exit;
use crate::output::{CommandOutput, count_progress};

pub(super) const EXAMPLES: &str = "Every part is read and checked, and every commit, event and \
entry in it. Nothing is written.

Examples:
  trefoil backup verify /mnt/backups
  trefoil backup verify /mnt/backups --backup 20261116T142600.5Z";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    repository: RepositoryArguments,
    /// The backup [default: the newest]
    #[arg(long, value_name = "BACKUP")]
    backup: Option<String>,
}

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let repository = self.repository.open(Use::Read)?;
        let backup = repository.backup(self.backup.as_deref())?;
        output.begin_list();
        let mut damaged = Vec::new();
        for namespace in &backup.namespaces {
            match check(&repository, namespace) {
                Ok(checked) => print(namespace, checked, output)?,
                Err(error) => {
                    let error = error.context(namespace.namespace.clone());
                    exit::tell(&error, output.format.is_json());
                    damaged.push(namespace.namespace.as_str());
                }
            }
        }
        match damaged.as_slice() {
            [] => Ok(()),
            damaged => bail!("backup {} is damaged: {}", backup.id, damaged.join(", ")),
        }
    }
}

/// Checks a namespace. If something is wrong, all parts that are damaged are named.
fn check(repository: &Repository, namespace: &BackedUpNamespace) -> anyhow::Result<CheckedBackup> {
    let list = repository.list_of(namespace)?;
    let bar = count_progress()?;
    bar.set_length(list.parts().count() as u64);
    bar.set_message(format!("parts of {}", namespace.namespace));
    let checked = check_backup(&list, &mut |part| {
        bar.inc(1);
        fetch(repository, part)
    });
    bar.finish_and_clear();
    let error = match checked {
        Ok(checked) => return Ok(checked),
        Err(error) => error,
    };
    let parts = list.parts().map(|(_, part)| repository.part(&part.hash));
    let damaged: Vec<String> = parts
        .filter_map(Result::err)
        .map(|error| format!("{error:#}"))
        .collect();
    match damaged.is_empty() {
        true => Err(error.into()),
        false => bail!("{}", damaged.join("; ")),
    }
}

/// Returns the content of a part, for the library.
pub(super) fn fetch(repository: &Repository, part: &PartReference) -> trefoil::Result<Vec<u8>> {
    let content = repository.part(&part.hash);
    content.map_err(|error| Error::invalid(format!("{error:#}")))
}

fn print(
    namespace: &BackedUpNamespace,
    checked: CheckedBackup,
    output: &mut CommandOutput,
) -> anyhow::Result<()> {
    let CheckedBackup {
        commits,
        events,
        entries,
        changes,
    } = checked;
    let name = &namespace.namespace;
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

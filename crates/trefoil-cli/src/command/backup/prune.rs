//! `trefoil backup prune`.

use std::collections::HashSet;

use serde_json::json;

use super::RepositoryArguments;
use crate::backups::{Repository, Use};
use crate::output::CommandOutput;

pub(super) const EXAMPLES: &str = "Nobody may make a backup meanwhile: in a directory that is \
refused, in an object storage you have to see to it.

Example:
  trefoil backup prune /mnt/backups --keep 7";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    repository: RepositoryArguments,
    /// How many backups stay: the newest ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
}

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let repository = self.repository.open(Use::Remove)?;
        let mut old = repository.backups()?;
        let kept = old.split_off(old.len().saturating_sub(self.keep as usize));
        // All that is needed is known before anything is removed.
        let mut needed = needed_by_unfinished(&repository)?;
        for namespace in kept.iter().flat_map(|backup| &backup.namespaces) {
            let list = repository.list_of(namespace)?;
            needed.insert(repository.name_of(&namespace.list));
            needed.extend(list.parts().map(|(_, part)| repository.name_of(&part.hash)));
        }
        for backup in &old {
            repository.remove_backup(&backup.id)?;
        }
        let parts = repository.parts()?;
        let mut removed = 0;
        for name in parts.difference(&needed) {
            repository.remove_part(name)?;
            removed += 1;
        }
        let (backups, kept) = (old.len(), kept.len());
        match output.is_text() {
            true => Ok(output.line(format_args!(
                "removed {backups} backups and {removed} parts, {kept} backups are left"
            ))?),
            false => {
                let told = json!({"removed": backups, "removedParts": removed, "kept": kept});
                Ok(output.value(&told)?)
            }
        }
    }
}

/// What the next backup need not write again.
fn needed_by_unfinished(repository: &Repository) -> anyhow::Result<HashSet<String>> {
    let unfinished = repository.all_unfinished()?;
    let parts = unfinished.iter().flat_map(|list| list.parts());
    Ok(parts
        .map(|(_, part)| repository.name_of(&part.hash))
        .collect())
}

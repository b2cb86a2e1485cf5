//! `trefoil backup list`.

use super::RepositoryArguments;
use crate::backups::{BackupDocument, Use};
use crate::output::{Column, CommandOutput, size};

pub(super) const EXAMPLES: &str = "Example:
  trefoil backup list /mnt/backups --json";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    repository: RepositoryArguments,
}

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let backups = self.repository.open(Use::Read)?.backups()?;
        Ok(output.table(
            &backups,
            &[
                Column::Text("BACKUP", |backup: &BackupDocument| backup.id.clone()),
                Column::Time("CREATED", |backup| backup.created.clone()),
                Column::Text("NAMESPACES", |backup| backup.namespaces.len().to_string()),
                Column::Text("CONTENT", |backup| size(content_bytes(backup))),
                Column::Text("SOURCE", |backup| backup.source.clone()),
            ],
        )?)
    }
}

fn content_bytes(backup: &BackupDocument) -> f64 {
    let bytes = backup.namespaces.iter();
    bytes.map(|namespace| namespace.content_bytes).sum::<u64>() as f64
}

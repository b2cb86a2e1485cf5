//! `trefoil backup list`.

use super::RepositoryArguments;
use crate::archive::{ArchiveReader, ArchivedReach};
use crate::backups::{BackupDocument, Use};
use crate::output::{Column, CommandOutput, size};

const ARCHIVE_COLUMNS: &[Column<ArchivedReach>] = &[
    Column::Text("NAMESPACE", |reach| reach.namespace.clone()),
    Column::Text("COMMIT", |reach| reach.commit.to_string()),
    Column::Text("POSITION", |reach| reach.position.to_string()),
    Column::Time("ARCHIVED", |reach| reach.time.clone()),
    Column::Time("BEGUN", |reach| reach.begun.clone()),
    Column::Text("CONTENT", |reach| size(reach.bytes as f64)),
];

pub(super) const EXAMPLES: &str = "Examples:
  trefoil backup list /mnt/backups --json
  trefoil backup list /mnt/backups --archive";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    repository: RepositoryArguments,
    /// Show how far each namespace is archived instead
    #[arg(long)]
    archive: bool,
}

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let repository = self.repository.open(Use::Read)?;
        if self.archive {
            let reaches = ArchiveReader::open(&repository)?.reaches();
            return Ok(output.table(&reaches, ARCHIVE_COLUMNS)?);
        }
        let backups = repository.backups()?;
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

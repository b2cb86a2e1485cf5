//! Verifying the registry of a data directory that no server has open.

use std::path::Path;

use trefoil_core::{Error, Result};
use trefoil_storage::local::Finding;

use super::files::Files;
use crate::home::Home;

/// What the registry holds and what is wrong with it.
#[derive(Debug, Clone, Default)]
pub struct RegistryReport {
    /// How many namespaces there are.
    pub namespaces: u64,
    /// All that is wrong; empty for a sound registry.
    pub findings: Vec<Finding>,
}

/// Reads every registry file and looks whether what it speaks of is there.
pub(crate) fn verify(data: &Path) -> Result<Option<RegistryReport>> {
    if !Files::exist(data) {
        return Ok(None);
    }
    let files = Files::open(data)?;
    let mut report = RegistryReport::default();
    for (id, record) in files.read_each()? {
        report.namespaces += 1;
        let home = Home::Directory(data.join(&id));
        let checked = record.and_then(|record| match record.is_made || home.has_generations() {
            true => home.require(),
            false => Ok(()),
        });
        if let Err(error) = checked {
            report.findings.push(finding(data, error));
        }
    }
    files.unlock()?;
    Ok(Some(report))
}

fn finding(data: &Path, error: Error) -> Finding {
    match error {
        Error::Damaged(damage) => Finding {
            file: damage.file,
            offset: damage.offset,
            position: damage.position,
            what: format!("{}; {}", damage.what, damage.help),
        },
        other => Finding {
            file: data.to_owned(),
            offset: 0,
            position: 0,
            what: other.to_string(),
        },
    }
}

//! Verifying the registry of a home that no server has open.

use std::path::Path;

use trefoil_core::{Error, NamespaceId, Result};
use trefoil_storage::local::Finding;

use super::registry::read_entry;
use crate::home::{Home, StoredEntry};

/// What the registry holds and what is wrong with it.
#[derive(Debug, Clone, Default)]
pub struct RegistryReport {
    /// How many namespaces there are.
    pub namespaces: u64,
    /// All that is wrong; empty for a sound registry.
    pub findings: Vec<Finding>,
}

/// Reads every entry and looks whether what it speaks of is there.
pub(crate) fn verify(home: &dyn Home) -> Result<RegistryReport> {
    let mut report = RegistryReport::default();
    for (name, entry) in home.entries()? {
        report.namespaces += 1;
        if let Err(error) = entry.and_then(|entry| verify_one(home, &name, &entry)) {
            report.findings.push(finding(&name, error));
        }
    }
    Ok(report)
}

fn verify_one(home: &dyn Home, name: &str, entry: &StoredEntry) -> Result<()> {
    let is_made = read_entry(name, entry)?.is_made;
    let id = NamespaceId::new(name)?;
    if is_made || home.has_storage(&id)? {
        home.claim(&id, entry.stamp.incarnation, true)?.release();
    }
    Ok(())
}

fn finding(name: &str, error: Error) -> Finding {
    match error {
        Error::Damaged(damage) => Finding {
            file: damage.file,
            offset: damage.offset,
            position: damage.position,
            what: format!("{}; {}", damage.what, damage.help),
        },
        other => Finding {
            file: Path::new(name).to_owned(),
            offset: 0,
            position: 0,
            what: other.to_string(),
        },
    }
}

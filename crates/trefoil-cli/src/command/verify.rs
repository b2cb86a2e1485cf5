//! `trefoil verify`: whether everything on disk is what was written.

use std::path::Path;

use anyhow::bail;
use serde_json::json;
use trefoil::tools::{Report, Step, verify};

use super::databases::{Directory, for_each};
use crate::output::{Output, count_progress};

const EXAMPLES: &str =
    "Stop the server first. Repair a damaged index with `trefoil repair`; if the log \
is damaged, restore a backup.

Examples:
  trefoil verify data
  trefoil verify data/default --json";

/// Reads the whole log and the snapshot of the state, checks every checksum and compares the index
/// and the state with them. It changes nothing, and fails if anything is wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    directory: Directory,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut Output) -> anyhow::Result<()> {
        let (databases, is_json) = (self.directory.databases()?, output.json);
        if databases.is_empty() && !is_json {
            output.line("no namespace holds anything yet: sound")?;
        }
        for_each(&databases, is_json, |database| verify_one(database, output))
    }
}

fn verify_one(database: &Path, output: &mut Output) -> anyhow::Result<()> {
    let bar = count_progress()?;
    let report = verify(database, &mut |step| {
        let (done, total, unit) = match step {
            Step::Log { done, total } => (done, total, "segments"),
            Step::Index { done, total } => (done, total, "events indexed"),
        };
        bar.set_length(total);
        bar.set_position(done);
        bar.set_message(unit);
    });
    bar.finish_and_clear();
    let report = report?;
    match output.json {
        true => output.value(&to_json(database, &report))?,
        false => print(database, &report, output)?,
    }
    output.flush()?;
    match report.findings.len() {
        0 => Ok(()),
        findings => bail!("{findings} things are wrong"),
    }
}

fn print(database: &Path, report: &Report, output: &mut Output) -> std::io::Result<()> {
    let Report {
        segments,
        commits,
        events,
        bytes,
        postings,
        ..
    } = report;
    output.line(format_args!(
        "{}  {events} events in {commits} commits, {segments} segments, {bytes} bytes, {postings} \
         postings: {}",
        database.display(),
        if report.findings.is_empty() {
            "sound"
        } else {
            "damaged"
        }
    ))?;
    report.findings.iter().try_for_each(|finding| {
        output.line(format_args!(
            "  {} at offset {}, global position {}: {}",
            finding.file.display(),
            finding.offset,
            finding.position,
            finding.what
        ))
    })
}

fn to_json(database: &Path, report: &Report) -> serde_json::Value {
    let findings = report.findings.iter().map(|finding| {
        json!({
            "file": finding.file, "offset": finding.offset, "globalPosition": finding.position,
            "what": finding.what,
        })
    });
    json!({
        "database": database, "segments": report.segments, "records": report.records,
        "commits": report.commits, "events": report.events, "bytes": report.bytes,
        "postings": report.postings, "snapshotCommit": report.snapshot.map(|snapshot| snapshot.commit), "findings": findings.collect::<Vec<_>>(),
    })
}

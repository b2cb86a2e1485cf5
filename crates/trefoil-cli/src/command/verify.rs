//! `trefoil verify`: whether everything on disk is what was written.

use anyhow::bail;
use serde_json::json;
use trefoil::tools::{Finding, RegistryReport, VerifyReport, VerifyStep, verify, verify_registry};

use super::databases::{ClosedDatabase, DatabaseArguments, for_each};
use crate::output::{CommandOutput, count_progress};

const EXAMPLES: &str =
    "Stop the server first. Repair a damaged index with `trefoil repair`; if the log \
is damaged, restore a backup.

Examples:
  trefoil verify data
  trefoil verify data/default --json
  trefoil verify s3://bucket/prefix --namespace default";

/// Reads the whole log and the snapshot of the state, checks every checksum and compares the index
/// and the state with them. It changes nothing, and fails if anything is wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    databases: DatabaseArguments,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let found = self.databases.find()?;
        let is_json = output.format.is_json();
        output.begin_list();
        let checked = match &found.home {
            Some((name, home)) => print_registry(name, &verify_registry(home.as_ref())?, output),
            None => Ok(()),
        };
        let verify = |database: &ClosedDatabase| verify_one(database, output);
        for_each(&found.databases, is_json, verify).and(checked)
    }
}

fn print_registry(
    meta: &str,
    registry: &RegistryReport,
    output: &mut CommandOutput,
) -> anyhow::Result<()> {
    let RegistryReport {
        namespaces,
        findings,
    } = registry;
    match output.is_text() {
        false => output.item(&json!({
            "registry": meta, "namespaces": namespaces, "findings": findings_json(findings),
        }))?,
        true => {
            let verdict = verdict(findings);
            output.line(format_args!("{meta}  {namespaces} namespaces: {verdict}"))?;
            print_findings(findings, output)?;
        }
    }
    output.flush()?;
    fail_on(findings)
}

fn fail_on(findings: &[Finding]) -> anyhow::Result<()> {
    match findings.len() {
        0 => Ok(()),
        1 => bail!("1 thing is wrong"),
        findings => bail!("{findings} things are wrong"),
    }
}

fn verdict(findings: &[Finding]) -> &'static str {
    match findings.is_empty() {
        true => "sound",
        false => "damaged",
    }
}

fn verify_one(database: &ClosedDatabase, output: &mut CommandOutput) -> anyhow::Result<()> {
    let claim = database.claim()?;
    let bar = count_progress()?;
    let report = verify(claim.as_ref(), &mut |step| {
        let (done, total, unit) = match step {
            VerifyStep::Log { done, total } => (done, total, "segments"),
            VerifyStep::Index { done, total } => (done, total, "events indexed"),
        };
        bar.set_length(total);
        bar.set_position(done);
        bar.set_message(unit);
    });
    bar.finish_and_clear();
    let report = report?;
    match output.is_text() {
        false => output.item(&to_json(&database.name, &report))?,
        true => print(&database.name, &report, output)?,
    }
    output.flush()?;
    fail_on(&report.findings)
}

fn print(database: &str, report: &VerifyReport, output: &mut CommandOutput) -> std::io::Result<()> {
    let VerifyReport {
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
        database,
        verdict(&report.findings)
    ))?;
    print_findings(&report.findings, output)
}

fn print_findings(findings: &[Finding], output: &mut CommandOutput) -> std::io::Result<()> {
    findings.iter().try_for_each(|finding| {
        output.line(format_args!(
            "  {} at offset {}, global position {}: {}",
            finding.file.display(),
            finding.offset,
            finding.position,
            finding.what
        ))
    })
}

fn to_json(database: &str, report: &VerifyReport) -> serde_json::Value {
    json!({
        "database": database, "segments": report.segments, "records": report.records,
        "commits": report.commits, "events": report.events, "bytes": report.bytes,
        "postings": report.postings, "snapshotCommit": report.snapshot.map(|snapshot| snapshot.commit), "findings": findings_json(&report.findings),
    })
}

fn findings_json(findings: &[Finding]) -> Vec<serde_json::Value> {
    let findings = findings.iter().map(|finding| {
        json!({
            "file": finding.file, "offset": finding.offset, "globalPosition": finding.position,
            "what": finding.what,
        })
    });
    findings.collect()
}

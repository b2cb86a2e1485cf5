//! `trefoil inspect`: what the files of a database hold.

use serde_json::{Value, json};
use trefoil::tools::{
    Inspection, RecordInfo, RunInfo, SegmentInfo, SegmentKind, Snapshot, inspect,
};

use super::databases::{ClosedDatabase, DatabaseArguments, for_each};
use crate::output::{Column, CommandOutput, visible};

const EXAMPLES: &str =
    "Stop the server first. Like any start, this cuts an unfinished write from the \
end of the log and keeps it aside.

Examples:
  trefoil inspect data/default
  trefoil inspect data/default --records 1
  trefoil inspect data/default --keys RUN --limit 20";

/// Shows the segments of the log and the runs of the index, the records of one segment, or the
/// entries of one run.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    databases: DatabaseArguments,
    /// The records of this segment
    #[arg(long, value_name = "SEGMENT")]
    records: Option<u64>,
    /// The entries of this run
    #[arg(long, value_name = "RUN", conflicts_with = "records")]
    keys: Option<String>,
    /// At most this many records or entries [default: all]
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let limit = self.limit.unwrap_or(usize::MAX);
        let is_json = output.format.is_json();
        output.begin_list();
        for_each(&self.databases.find()?.databases, is_json, |database| {
            let inspection = inspect(database.claim()?)?;
            match (self.records, &self.keys) {
                (Some(segment), _) => print_records(&inspection, segment, limit, output),
                (None, Some(run)) => print_keys(&inspection, run, limit, output),
                (None, None) => print_summary(database, &inspection, output),
            }
        })
    }
}

const SEGMENTS: &[Column<Value>] = &[
    Column::Text("SEGMENT", |row| row["segment"].to_string()),
    Column::Text("KIND", |row| text(&row["kind"])),
    Column::Text("EVENTS", |row| row["events"].to_string()),
    Column::Text("RECORDS", |row| row["records"].to_string()),
    Column::Text("POSITIONS", |row| {
        range(row, "firstPosition", "lastPosition")
    }),
    Column::Text("COMMITS", |row| range(row, "firstCommit", "lastCommit")),
    Column::Text("FILE BYTES", |row| row["fileBytes"].to_string()),
    Column::Text("PLAIN BYTES", |row| row["plainBytes"].to_string()),
];

const RUNS: &[Column<Value>] = &[
    Column::Text("RUN", |row| text(&row["run"])),
    Column::Text("EVENTS", |row| row["events"].to_string()),
    Column::Text("POSITIONS", |row| {
        range(row, "firstPosition", "lastPosition")
    }),
];

const RECORDS: &[Column<Value>] = &[
    Column::Text("OFFSET", |row| {
        row["offset"]
            .as_u64()
            .map_or("-".into(), |offset| offset.to_string())
    }),
    Column::Text("FIRST COMMIT", |row| row["firstCommit"].to_string()),
    Column::Text("COMMITS", |row| row["commits"].to_string()),
    Column::Text("FIRST POSITION", |row| row["firstPosition"].to_string()),
    Column::Text("EVENTS", |row| row["events"].to_string()),
    Column::Text("BYTES", |row| row["bytes"].to_string()),
];

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn range(row: &Value, first: &str, last: &str) -> String {
    format!("{}..{}", row[first], row[last])
}

fn print_summary(
    database: &ClosedDatabase,
    inspection: &Inspection,
    output: &mut CommandOutput,
) -> anyhow::Result<()> {
    let segments: Vec<Value> = inspection.segments.iter().map(segment).collect();
    let runs: Vec<Value> = inspection.runs.iter().map(run).collect();
    let commit = inspection.checkpoint_commit;
    if !output.is_text() {
        let summary = json!({
            "database": database.name, "checkpointCommit": commit, "segments": segments, "runs": runs,
            "snapshot": inspection.snapshot.map(snapshot),
        });
        return Ok(output.item(&summary)?);
    }
    output.line(&database.name)?;
    output.line(format_args!(
        "The index on disk covers commits up to {commit}."
    ))?;
    if let Some(Snapshot {
        commit,
        entries,
        bytes,
    }) = inspection.snapshot
    {
        output.line(format_args!(
            "The snapshot of the state is of commit {commit}: {entries} entries, {bytes} bytes."
        ))?;
    }
    output.line("")?;
    output.table(&segments, SEGMENTS)?;
    output.line("")?;
    Ok(output.table(&runs, RUNS)?)
}

fn segment(info: &SegmentInfo) -> Value {
    let kind = match info.kind {
        SegmentKind::Active => "active",
        SegmentKind::Plain => "plain",
        SegmentKind::Compressed => "compressed",
    };
    json!({
        "segment": info.number, "kind": kind, "path": info.path, "events": info.items,
        "records": info.records, "firstPosition": info.first_position,
        "lastPosition": info.last_position, "firstCommit": info.first_commit,
        "lastCommit": info.last_commit, "fileBytes": info.file_bytes,
        "plainBytes": info.plain_bytes, "droppableBytes": info.droppable_bytes,
    })
}

fn snapshot(info: Snapshot) -> Value {
    json!({"commit": info.commit, "entries": info.entries, "bytes": info.bytes})
}

fn run(info: &RunInfo) -> Value {
    json!({
        "run": info.map, "events": info.events, "firstPosition": info.first_position,
        "lastPosition": info.last_position,
    })
}

fn record(info: &RecordInfo) -> Value {
    json!({
        "segment": info.segment, "offset": info.offset, "firstCommit": info.first_commit,
        "commits": info.commits, "firstPosition": info.first_position, "events": info.items,
        "bytes": info.bytes,
    })
}

fn print_records(
    inspection: &Inspection,
    segment: u64,
    limit: usize,
    output: &mut CommandOutput,
) -> anyhow::Result<()> {
    let mut records = Vec::new();
    inspection.records(segment, &mut |info| {
        if records.len() < limit {
            records.push(record(&info));
        }
    })?;
    Ok(output.table(&records, RECORDS)?)
}

fn print_keys(
    inspection: &Inspection,
    run: &str,
    limit: usize,
    output: &mut CommandOutput,
) -> anyhow::Result<()> {
    let mut left = limit;
    let mut printed = Ok(());
    inspection.keys(run, &mut |key, value| {
        if left == 0 {
            return false;
        }
        left -= 1;
        printed = match output.is_text() {
            false => output.item(&json!({"key": key, "value": value})),
            true => output.line(format_args!("{}  {}", visible(key), visible(value))),
        };
        printed.is_ok()
    })?;
    Ok(printed?)
}

//! `trefoil export`: events, and the state if asked for, as NDJSON, out of the database.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use anyhow::Context as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use indicatif::ProgressBar;
use serde_json::json;
use trefoil::Timestamp;

use crate::client::ConnectionArguments;
use crate::input::parse_time;
use crate::output::{OutputFlag, progress};

const BUFFER_BYTES: usize = 64 * 1024;

const EXAMPLES: &str = "Examples:
  trefoil export --output backup.ndjson.gz --gzip
  trefoil export --categories account,order --since 2026-01-01
  trefoil export --with-state --output all.ndjson
  trefoil export | wc -l";

/// Writes events as NDJSON, oldest first, in the form that `import` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Only these categories, separated by commas
    #[arg(long, value_name = "NAMES", default_value = "")]
    categories: String,
    /// Only events from this time on: 2026-01-31, or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Only events before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,
    /// Write the state as well: keys, seats, tracked positions and timers
    #[arg(long, conflicts_with_all = ["categories", "since", "until"])]
    with_state: bool,
    /// Compress
    #[arg(long)]
    gzip: bool,
    /// Write to this file, which appears when it is complete [default: standard output]
    #[arg(long, value_name = "FILE", value_parser = OutputFlag::file_parser())]
    output: Option<OutputFlag>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

impl Arguments {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<()> {
        let bar = progress(None)?;
        let lines = match &self.output {
            Some(OutputFlag::File(path)) => self.write_file(path, &bar)?,
            _ => self.write_to(io::stdout().lock(), &bar)?.0,
        };
        bar.finish_and_clear();
        let ExportedLines { events, state, .. } = lines;
        match (json, self.with_state) {
            (true, true) => eprintln!("{}", json!({"exported": events, "state": state})),
            (true, false) => eprintln!("{}", json!({"exported": events})),
            (false, true) => eprintln!("exported {events} events and {state} lines of state"),
            (false, false) => eprintln!("exported {events} events"),
        }
        Ok(())
    }

    /// Half an export must not look like a whole one, so that it gets its name at the end.
    fn write_file(&self, path: &Path, bar: &ProgressBar) -> anyhow::Result<ExportedLines> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let shown = path.display();
        let file = File::create(&partial).with_context(|| format!("cannot create {shown}"))?;
        let (lines, file) = self.write_to(file, bar)?;
        file.sync_all()
            .with_context(|| format!("cannot write {shown}"))?;
        std::fs::rename(&partial, path).with_context(|| format!("cannot create {shown}"))?;
        Ok(lines)
    }

    fn write_to<W: Write>(
        &self,
        target: W,
        bar: &ProgressBar,
    ) -> anyhow::Result<(ExportedLines, W)> {
        let mut query = Vec::new();
        if !self.categories.is_empty() {
            query.push(("categories", self.categories.as_str()));
        }
        let [since, until] = [self.since, self.until].map(|time| time.map(|time| time.to_string()));
        query.extend(since.as_deref().map(|since| ("since", since)));
        query.extend(until.as_deref().map(|until| ("until", until)));
        query.extend(self.with_state.then_some(("state", "true")));
        let body = self
            .connection
            .client()?
            .get("/export", &query, None)?
            .into_reader();
        let mut target = BufWriter::new(target);
        let lines = match self.gzip {
            false => copy(body, &mut target, bar)?,
            true => {
                let mut encoder = GzEncoder::new(&mut target, Compression::default());
                let lines = copy(body, &mut encoder, bar)?;
                encoder.finish()?;
                lines
            }
        };
        let target = target
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        Ok((lines, target))
    }
}

/// What the server's line of an event begins with.
const EVENT_BEGIN: &[u8] = b"{\"id\":";

/// Counts lines by what they hold.
#[derive(Debug, Default)]
struct ExportedLines {
    events: u64,
    state: u64,
    /// How many bytes of the present line were as in that of an event; `None` if one was not.
    like_event: Option<usize>,
    has_begun: bool,
}

impl ExportedLines {
    fn count(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if !std::mem::replace(&mut self.has_begun, true) {
                self.like_event = Some(0);
            }
            if *byte == b'\n' {
                match self.like_event {
                    Some(_) => self.events += 1,
                    None => self.state += 1,
                }
                self.has_begun = false;
            } else if let Some(n_like) =
                self.like_event.filter(|n_like| *n_like < EVENT_BEGIN.len())
            {
                let is_like = EVENT_BEGIN[n_like] == *byte;
                self.like_event = is_like.then_some(n_like + 1);
            }
        }
    }
}

/// Copies lines and counts them.
fn copy(
    mut from: impl Read,
    mut to: impl Write,
    bar: &ProgressBar,
) -> anyhow::Result<ExportedLines> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut lines = ExportedLines::default();
    loop {
        let length = from.read(&mut buffer).map_err(|error| {
            // Not the error of a pipe that nobody reads: that one would go unsaid.
            let events = lines.events;
            anyhow::anyhow!("the export broke off after {events} events: {error}")
        })?;
        if length == 0 {
            break;
        }
        to.write_all(&buffer[..length])?;
        lines.count(&buffer[..length]);
        bar.inc(length as u64);
        bar.set_message(format!("{} events", lines.events));
    }
    to.flush()?;
    Ok(lines)
}

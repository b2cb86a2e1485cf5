//! `trefoil import`: NDJSON into the database.
//!
//! The lines travel in requests of a few megabytes, so that neither side has to hold much and a
//! mistake is answered soon. Batches that were imported before a mistake stay imported.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use flate2::bufread::MultiGzDecoder;
use indicatif::ProgressBar;
use serde::Deserialize;
use serde_json::json;

use crate::client::{Client, Connection, Frames, ServerError};
use crate::input::confirm;
use crate::output::{Output, progress};

/// A request is sent when it holds this many bytes.
const REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// The longest line, far above what the largest event takes.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What a file compressed with gzip begins with.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

const EXAMPLES: &str = "Examples:
  trefoil import --input backup.ndjson.gz --gzip
  trefoil export --url http://old:8080 --token $OLD | trefoil import
  trefoil import --input all.ndjson --force --yes";

/// Loads events from NDJSON, with the positions and times they had.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Read this file [default: standard input]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// The input is compressed; it is noticed without this too
    #[arg(long)]
    gzip: bool,
    /// Delete all events of the namespace first
    #[arg(long)]
    force: bool,
    /// Do not ask before deleting
    #[arg(long, short, requires = "force")]
    yes: bool,
    #[command(flatten)]
    connection: Connection,
}

/// What the server says while it imports, and last.
#[derive(Debug, Deserialize)]
struct Progress {
    #[serde(default)]
    imported: u64,
    #[serde(default)]
    done: bool,
    error: Option<String>,
    message: Option<String>,
    line: Option<u64>,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut Output) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        if self.force {
            confirm(
                "Delete all events of the namespace before the import?",
                self.yes,
            )?;
        }
        let (input, bar) = self.open()?;
        let mut import = Import {
            client,
            force: self.force,
            imported: 0,
            lines: 0,
            bar,
        };
        import.run(input)?;
        import.bar.finish_and_clear();
        let imported = import.imported;
        match output.json {
            true => output.value(&json!({"imported": imported}))?,
            false => output.line(format_args!("imported {imported} events"))?,
        }
        Ok(())
    }

    /// The lines of the input. The bar counts what is read of the file, compressed or not.
    fn open(&self) -> anyhow::Result<(Box<dyn BufRead>, ProgressBar)> {
        let (raw, length): (Box<dyn Read>, _) = match &self.input {
            None => (Box::new(std::io::stdin().lock()), None),
            Some(path) => {
                let cannot = || format!("cannot read {}", path.display());
                let file = File::open(path).with_context(cannot)?;
                let length = file.metadata().with_context(cannot)?.len();
                (Box::new(file), Some(length))
            }
        };
        let bar = progress(length)?;
        let mut input = BufReader::new(bar.wrap_read(raw));
        let is_gzip = self.gzip || input.fill_buf()?.starts_with(&GZIP_MAGIC);
        match is_gzip {
            true => Ok((Box::new(BufReader::new(MultiGzDecoder::new(input))), bar)),
            false => Ok((Box::new(input), bar)),
        }
    }
}

struct Import {
    client: Client,
    /// Whether the next request deletes first: only the first one does.
    force: bool,
    imported: u64,
    /// Lines of requests that were answered.
    lines: u64,
    bar: ProgressBar,
}

impl Import {
    fn run(&mut self, mut input: impl BufRead) -> anyhow::Result<()> {
        let mut body = Vec::new();
        let mut lines = 0;
        loop {
            let mut limited = input.by_ref().take(LINE_BYTES_MAX);
            let length = limited
                .read_until(b'\n', &mut body)
                .context("cannot read the input")?;
            if length == 0 {
                break;
            }
            lines += 1;
            if length as u64 == LINE_BYTES_MAX {
                let line = self.lines + lines;
                bail!("line {line} is too long, the limit is {LINE_BYTES_MAX} bytes");
            }
            if body.len() >= REQUEST_BYTES {
                self.send(&body, lines)?;
                body.clear();
                lines = 0;
            }
        }
        // An empty import is one request too: it may be there to delete.
        match body.is_empty() && self.lines > 0 {
            true => Ok(()),
            false => self.send(&body, lines),
        }
    }

    fn send(&mut self, body: &[u8], lines: u64) -> anyhow::Result<()> {
        let force = std::mem::take(&mut self.force);
        let query: &[_] = if force { &[("force", "true")] } else { &[] };
        let answer = self.client.post("/import", query, body)?;
        let (mut imported, mut done) = (0, false);
        for frame in Frames::new(answer.into_reader()) {
            let data = frame.context("the answer of the server broke off")?.data;
            let progress: Progress = serde_json::from_str(&data)
                .context("the server's answer is not what was expected")?;
            if let Some(code) = progress.error {
                self.imported += imported;
                return Err(self.failure(code, progress.message, progress.line));
            }
            (imported, done) = (progress.imported, progress.done);
            self.bar
                .set_message(format!("{} events", self.imported + imported));
        }
        ensure!(done, "the server did not finish the import");
        self.imported += imported;
        self.lines += lines;
        Ok(())
    }

    /// The server counts the lines of one request; the user those of the input.
    fn failure(&self, code: String, message: Option<String>, line: Option<u64>) -> anyhow::Error {
        let line = line.map_or(self.lines, |line| self.lines + line);
        let status = if code == "POSITION_EXISTS" { 409 } else { 400 };
        let imported = self.imported;
        anyhow::Error::new(ServerError {
            status,
            code,
            message: message.unwrap_or_default(),
        })
        .context(format!(
            "the import stopped at line {line}, after {imported} events"
        ))
    }
}

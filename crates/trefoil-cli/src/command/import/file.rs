//! NDJSON from a file or from standard input.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use flate2::bufread::MultiGzDecoder;
use indicatif::ProgressBar;
use serde_json::json;

use super::request::{ImportFailure, ImportRequests, REQUEST_BYTES};
use crate::client::ConnectionArguments;
use crate::input::confirm;
use crate::output::{CommandOutput, progress};

/// The longest line, far above what the largest event takes.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What a file compressed with gzip begins with.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// What is imported if no database is named.
#[derive(Debug, clap::Args)]
pub(super) struct FileArguments {
    /// Read this file [default: standard input]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// The input is compressed; this is also detected without the flag
    #[arg(long)]
    gzip: bool,
    /// Delete all events of the namespace first
    #[arg(long, conflicts_with = "with_state")]
    force: bool,
    /// Take the state as well, into a namespace that has no keys
    #[arg(long)]
    with_state: bool,
    /// Do not ask before deleting
    #[arg(long, short, requires = "force")]
    yes: bool,
    /// Give new ids to events whose ids are not UUIDs or belong to other events
    #[arg(long)]
    new_ids: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

impl FileArguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        if self.force {
            confirm(
                "Delete all events of the namespace before the import?",
                self.yes,
            )?;
        }
        let (input, bar) = self.open()?;
        let mut lines = InputLines {
            import: ImportRequests {
                client,
                force: self.force,
                new_ids: self.new_ids,
                with_state: self.with_state,
                imported: 0,
                state: 0,
                bar,
            },
            sent: 0,
        };
        lines.run(input)?;
        lines.import.bar.finish_and_clear();
        let imported = lines.import.imported;
        let state = lines.import.state;
        match (output.is_text(), self.with_state) {
            (false, true) => output.value(&json!({"imported": imported, "state": state}))?,
            (false, false) => output.value(&json!({"imported": imported}))?,
            (true, true) => {
                let text = format_args!("imported {imported} events and {state} lines of state");
                output.line(text)?;
            }
            (true, false) => output.line(format_args!("imported {imported} events"))?,
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

struct InputLines {
    import: ImportRequests,
    /// Lines of requests that were answered.
    sent: u64,
}

impl InputLines {
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
                let line = self.sent + lines;
                bail!("line {line} is too long, the limit is {LINE_BYTES_MAX} bytes");
            }
            if body.len() >= REQUEST_BYTES {
                self.send(&body, lines)?;
                body.clear();
                lines = 0;
            }
        }
        // An empty import is one request too: it may be there to delete.
        match body.is_empty() && self.sent > 0 {
            true => Ok(()),
            false => self.send(&body, lines),
        }
    }

    fn send(&mut self, body: &[u8], lines: u64) -> anyhow::Result<()> {
        let tell = |bar: &ProgressBar, imported| bar.set_message(format!("{imported} events"));
        match self.import.send(body, tell) {
            Ok(()) => self.sent += lines,
            Err(ImportFailure::Other(error)) => return Err(error),
            // The server counts the lines of one request; the user those of the input.
            Err(ImportFailure::Stopped { line, error }) => {
                let line = self.sent + line;
                let imported = self.import.imported;
                return Err(anyhow::Error::new(error).context(format!(
                    "the import stopped at line {line}, after {imported} events"
                )));
            }
        }
        Ok(())
    }
}

//! What commands print: lines and tables for people, NDJSON for programs, progress for the patient.
//!
//! `print!` panics when the reader of a pipe has gone; this writer returns an error instead.

use std::borrow::Cow;
use std::io::{BufWriter, IsTerminal as _, Stdout, Write as _};
use std::time::Duration;

use comfy_table::{Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

/// Standard output in the form the user chose.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) json: bool,
    writer: BufWriter<Stdout>,
}

impl CommandOutput {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            writer: BufWriter::new(std::io::stdout()),
        }
    }

    /// One line of text.
    pub(crate) fn line(&mut self, line: impl std::fmt::Display) -> std::io::Result<()> {
        writeln!(self.writer, "{line}")
    }

    /// One JSON value on one line.
    pub(crate) fn value(&mut self, value: &impl Serialize) -> std::io::Result<()> {
        serde_json::to_writer(&mut self.writer, value)?;
        self.writer.write_all(b"\n")
    }

    /// A table with a head, or each row as a JSON object. `columns` names a column and how it is
    /// made from a row.
    pub(crate) fn table<Row: Serialize>(
        &mut self,
        rows: &[Row],
        columns: &[Column<Row>],
    ) -> std::io::Result<()> {
        if self.json {
            return rows.iter().try_for_each(|row| self.value(row));
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(columns.iter().map(|(name, _)| *name));
        for row in rows {
            table.add_row(
                columns
                    .iter()
                    .map(|(_, cell)| visible(&cell(row)).into_owned()),
            );
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        self.line(table.trim_fmt())
    }

    /// Sends what is buffered on its way.
    pub(crate) fn flush(&mut self) -> std::io::Result<()> {
        self.writer.flush()
    }
}

/// A column of a table: its name and how a cell is made.
pub(crate) type Column<Row> = (&'static str, fn(&Row) -> String);

/// Text of others with its control characters escaped: a name must not be able to drive the
/// terminal.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escape = |character: char| match character {
        control if control.is_control() => control.escape_default().to_string(),
        other => other.to_string(),
    };
    Cow::Owned(text.chars().map(escape).collect())
}

/// A bar if the length is known, else a spinner; nothing where standard error is no terminal.
pub(crate) fn progress(bytes: Option<u64>) -> anyhow::Result<ProgressBar> {
    bar(
        bytes,
        match bytes {
            Some(_) => "{wide_bar} {bytes}/{total_bytes}  {msg}  {eta}",
            None => "{spinner} {bytes}  {msg}  {elapsed}",
        },
    )
}

/// A bar for things that are counted; how many there are is told later.
pub(crate) fn count_progress() -> anyhow::Result<ProgressBar> {
    bar(Some(0), "{wide_bar} {pos}/{len} {msg}  {eta}")
}

/// A sign of life for work whose progress nobody knows.
pub(crate) fn spinner() -> anyhow::Result<ProgressBar> {
    bar(None, "{spinner} {msg}  {elapsed}")
}

fn bar(length: Option<u64>, template: &str) -> anyhow::Result<ProgressBar> {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(length, target);
    bar.set_style(ProgressStyle::with_template(template)?);
    bar.enable_steady_tick(Duration::from_millis(200));
    Ok(bar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_not_sent() {
        assert_eq!(visible("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(visible("größe"), "größe");
    }
}

//! What commands print: lines and tables for people, JSON and CSV for programs, progress for the
//! patient.
//!
//! `print!` panics when the reader of a pipe has gone; this writer returns an error instead.

mod csv;
mod format;
mod look;
mod progress;
mod units;

pub(crate) use format::{OutputFlag, OutputFormat};
pub(crate) use look::{BAD, GOOD, HEAD, Look, QUIET, STREAM, TAGS, TYPE, WORRYING};
pub(crate) use progress::{count_progress, progress, spinner};
pub(crate) use units::{count, duration, short, size};

use std::borrow::Cow;
use std::io::{BufWriter, Stdout, Write as _};

use comfy_table::{Table, presets};
use serde::Serialize;

use crate::exit::UsageError;
use csv::CsvRows;

/// Standard output in the form the user chose.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) format: OutputFormat,
    pub(crate) look: Look,
    writer: BufWriter<Stdout>,
    csv: CsvRows,
    /// How many items the JSON array has that was begun.
    n_items: Option<u64>,
}

impl CommandOutput {
    pub(crate) fn new(format: OutputFormat) -> Self {
        Self {
            format,
            look: Look::of_stdout(),
            writer: BufWriter::new(std::io::stdout()),
            csv: CsvRows::default(),
            n_items: None,
        }
    }

    /// Whether people read it, as lines and tables.
    pub(crate) fn is_text(&self) -> bool {
        self.format == OutputFormat::Table
    }

    /// One line of text.
    pub(crate) fn line(&mut self, line: impl std::fmt::Display) -> std::io::Result<()> {
        writeln!(self.writer, "{line}")
    }

    /// One line of any bytes.
    pub(crate) fn bytes_line(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.writer.write_all(line)?;
        self.writer.write_all(b"\n")
    }

    /// The whole answer, for programs.
    pub(crate) fn value(&mut self, value: &impl Serialize) -> std::io::Result<()> {
        if self.format == OutputFormat::Csv {
            return self.csv.put(&mut self.writer, value);
        }
        serde_json::to_writer(&mut self.writer, value)?;
        self.writer.write_all(b"\n")
    }

    /// Begins a list: it is one even if no item follows.
    pub(crate) fn begin_list(&mut self) {
        self.n_items.get_or_insert(0);
    }

    /// An item of a list, for programs.
    pub(crate) fn item(&mut self, item: &impl Serialize) -> std::io::Result<()> {
        if self.format != OutputFormat::Json {
            return self.value(item);
        }
        let n_items = self.n_items.get_or_insert(0);
        self.writer
            .write_all(if *n_items == 0 { b"[\n" } else { b",\n" })?;
        *n_items += 1;
        Ok(serde_json::to_writer(&mut self.writer, item)?)
    }

    /// Refuses the form that a list without an end cannot have.
    pub(crate) fn require_lines(&self) -> anyhow::Result<()> {
        match self.format {
            OutputFormat::Json => {
                let text = "what has no end cannot be one JSON document: use --output ndjson";
                Err(UsageError(text.to_owned()).into())
            }
            _ => Ok(()),
        }
    }

    /// A table with a head, or a list of what its rows are made of.
    pub(crate) fn table<Row: Serialize>(
        &mut self,
        rows: &[Row],
        columns: &[Column<Row>],
    ) -> std::io::Result<()> {
        if self.is_text() {
            return self.draw(rows, columns);
        }
        self.begin_list();
        rows.iter().try_for_each(|row| self.item(row))
    }

    /// A table of one row, or what it is made of.
    pub(crate) fn record<Row: Serialize>(
        &mut self,
        row: &Row,
        columns: &[Column<Row>],
    ) -> std::io::Result<()> {
        match self.is_text() {
            true => self.draw(std::slice::from_ref(row), columns),
            false => self.value(row),
        }
    }

    fn draw<Row>(&mut self, rows: &[Row], columns: &[Column<Row>]) -> std::io::Result<()> {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(columns.iter().map(Column::name));
        for row in rows {
            let cells = columns.iter().map(|column| column.cell(row, &self.look));
            table.add_row(cells.collect::<Vec<_>>());
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let text = table.trim_fmt();
        let (head, body) = text.split_once('\n').unwrap_or((&text, ""));
        let head = self.look.paint(HEAD, head);
        self.line(head)?;
        match body.is_empty() {
            true => Ok(()),
            false => self.line(body),
        }
    }

    /// Names and what they stand for, a line each. A time is told as in a table.
    pub(crate) fn facts(&mut self, facts: &[(&str, String)]) -> std::io::Result<()> {
        let names = facts.iter().map(|(name, _)| name.chars().count());
        let width = names.max().unwrap_or(0);
        facts.iter().try_for_each(|(name, fact)| {
            let name = self.look.paint(HEAD, format_args!("{name:<width$}"));
            let fact = self.look.time(fact);
            writeln!(self.writer, "{name}  {}", visible(&fact))
        })
    }

    /// Sends what is buffered on its way.
    pub(crate) fn flush(&mut self) -> std::io::Result<()> {
        self.writer.flush()
    }

    /// Ends what was begun. After an error there is no list without items.
    pub(crate) fn finish(&mut self, has_failed: bool) -> std::io::Result<()> {
        let end: &[u8] = match (self.format, self.n_items.take()) {
            (OutputFormat::Json, Some(0)) if has_failed => b"",
            (OutputFormat::Json, Some(0)) => b"[]\n",
            (OutputFormat::Json, Some(_)) => b"\n]\n",
            _ => b"",
        };
        self.writer.write_all(end)?;
        self.flush()
    }
}

/// A column of a table: its name and how a cell is made.
pub(crate) enum Column<Row> {
    Text(&'static str, fn(&Row) -> String),
    /// RFC 3339, or text that stands for no time.
    Time(&'static str, fn(&Row) -> String),
}

impl<Row> Column<Row> {
    fn name(&self) -> &'static str {
        match self {
            Self::Text(name, _) | Self::Time(name, _) => name,
        }
    }

    fn cell(&self, row: &Row, look: &Look) -> String {
        match self {
            Self::Text(_, cell) => visible(&cell(row)).into_owned(),
            Self::Time(_, cell) => visible(&look.time(&cell(row))).into_owned(),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_not_sent() {
        assert_eq!(visible("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(visible("größe"), "größe");
    }
}

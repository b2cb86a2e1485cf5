//! The report: tables on standard output as they are measured, or one JSON document at the end.
//!
//! Tables are Markdown, so that they can be pasted into a page as they are. Every row may carry a
//! target; the last table says which were reached.

use std::time::Duration;

use comfy_table::{Table, presets};
use serde_json::{Value, json};

use crate::latency::Percentiles;

/// The system whose figures the others are compared with.
pub(crate) const BASELINE: &str = "fjall";

/// What a row must reach.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// The ratio to the baseline is at least this.
    RatioAtLeast(f64),
    /// The ratio to another system, or to the better one of several, is at least this.
    TimesAtLeast(f64, &'static str),
    /// The ratio to the baseline is at most this.
    RatioAtMost(f64),
    /// The figure itself is at least this.
    AtLeast(f64),
    /// The figure itself is at most this.
    AtMost(f64),
}

impl Target {
    fn text(self) -> String {
        match self {
            Self::RatioAtLeast(bound) => format!(">= {bound}x"),
            Self::TimesAtLeast(bound, of) => format!(">= {bound}x {of}"),
            Self::RatioAtMost(bound) => format!("<= {bound}x"),
            Self::AtLeast(bound) => format!(">= {bound}"),
            Self::AtMost(bound) => format!("<= {bound}"),
        }
    }

    /// `None` if there is nothing to compare with.
    fn reached(self, figure: f64, ratio: Option<f64>) -> Option<bool> {
        match self {
            Self::RatioAtLeast(bound) | Self::TimesAtLeast(bound, _) => {
                ratio.map(|ratio| ratio >= bound)
            }
            Self::RatioAtMost(bound) => ratio.map(|ratio| ratio <= bound),
            Self::AtLeast(bound) => Some(figure >= bound),
            Self::AtMost(bound) => Some(figure <= bound),
        }
    }
}

/// One measured figure, and what is known besides.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) system: String,
    /// The figure in the unit of its table; `None` if it could not be measured, `note` says why.
    pub(crate) figure: Option<f64>,
    pub(crate) ratio: Option<f64>,
    pub(crate) target: Option<Target>,
    pub(crate) latency: Option<Percentiles>,
    /// Microseconds of CPU per event or request.
    pub(crate) cpu: Option<f64>,
    pub(crate) note: String,
}

impl Row {
    pub(crate) fn new(system: impl Into<String>, figure: f64) -> Self {
        Self {
            system: system.into(),
            figure: Some(figure),
            ratio: None,
            target: None,
            latency: None,
            cpu: None,
            note: String::new(),
        }
    }

    /// A row for what was not measured.
    pub(crate) fn missing(system: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            figure: None,
            ..Self::new(system, 0.0)
        }
        .note(why)
    }

    pub(crate) fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    pub(crate) fn ratio(mut self, ratio: f64) -> Self {
        self.ratio = Some(ratio);
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    fn reached(&self) -> Option<bool> {
        self.target?.reached(self.figure?, self.ratio)
    }

    fn json(&self) -> Value {
        let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
        json!({
            "system": self.system,
            "figure": self.figure,
            "ratio": self.ratio,
            "target": self.target.map(Target::text),
            "reached": self.reached(),
            "latencyMs": self.latency.map(|latency| json!({
                "p50": millis(latency.p50),
                "p90": millis(latency.p90),
                "p99": millis(latency.p99),
                "p99.9": millis(latency.p999),
                "max": millis(latency.max),
            })),
            "cpuMicroseconds": self.cpu,
            "note": self.note,
        })
    }
}

/// Everything measured so far.
#[derive(Debug)]
pub(crate) struct Report {
    as_json: bool,
    tables: Vec<Measured>,
}

#[derive(Debug)]
struct Measured {
    title: String,
    unit: &'static str,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(as_json: bool) -> Self {
        Self {
            as_json,
            tables: Vec::new(),
        }
    }

    /// Prints a line of context, such as the machine.
    pub(crate) fn line(&self, text: &str) {
        if !self.as_json {
            println!("{text}");
        }
    }

    /// Adds a table and prints it. Ratios to the baseline are filled in if the table has one.
    pub(crate) fn table(&mut self, title: &str, unit: &'static str, mut rows: Vec<Row>) {
        let baseline = rows
            .iter()
            .find(|row| row.system == BASELINE)
            .and_then(|row| row.figure);
        if let Some(baseline) = baseline {
            for row in rows.iter_mut().filter(|row| row.ratio.is_none()) {
                row.ratio = row.figure.map(|figure| figure / baseline);
            }
        }
        if !self.as_json {
            println!("\n{title}\n\n{}", render(unit, &rows));
        }
        self.tables.push(Measured {
            title: title.to_owned(),
            unit,
            rows,
        });
    }

    /// Prints which targets were reached, or the JSON document.
    pub(crate) fn finish(self, context: &Value) {
        if self.as_json {
            let table = |table: &Measured| {
                let rows: Vec<Value> = table.rows.iter().map(Row::json).collect();
                json!({"title": table.title, "unit": table.unit, "rows": rows})
            };
            let tables: Vec<Value> = self.tables.iter().map(table).collect();
            println!("{}", json!({"context": context, "tables": tables}));
            return;
        }
        let mut targets = markdown(&["measurement", "system", "target", "measured", "reached"]);
        let rows = self
            .tables
            .iter()
            .flat_map(|table| table.rows.iter().map(move |row| (table, row)));
        for (table, row) in rows {
            let Some(target) = row.target else { continue };
            let measured = match (target, row.ratio, row.figure) {
                (Target::AtMost(_) | Target::AtLeast(_), _, Some(figure)) => figure_text(figure),
                (_, Some(ratio), _) => format!("{ratio:.2}x"),
                _ => "-".to_owned(),
            };
            let reached = row
                .reached()
                .map_or("not measured", |yes| if yes { "yes" } else { "NO" });
            let cells = [
                &table.title,
                &row.system,
                &target.text(),
                &measured,
                reached,
            ];
            targets.add_row(cells.map(String::from));
        }
        if targets.row_count() > 0 {
            println!("\nTargets\n\n{targets}");
        }
    }
}

fn markdown(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_header(header.to_vec());
    table
}

/// A table with only those columns that some row fills.
fn render(unit: &str, rows: &[Row]) -> Table {
    type Column<'a> = (&'a str, fn(&Row) -> Option<String>);
    let columns: [Column<'_>; 11] = [
        ("system", |row| Some(row.system.clone())),
        (unit, |row| row.figure.map(figure_text)),
        ("ratio", |row| row.ratio.map(|ratio| format!("{ratio:.2}"))),
        ("target", |row| row.target.map(Target::text)),
        ("p50", |row| {
            row.latency.map(|latency| duration_text(latency.p50))
        }),
        ("p90", |row| {
            row.latency.map(|latency| duration_text(latency.p90))
        }),
        ("p99", |row| {
            row.latency.map(|latency| duration_text(latency.p99))
        }),
        ("p99.9", |row| {
            row.latency.map(|latency| duration_text(latency.p999))
        }),
        ("max", |row| {
            row.latency.map(|latency| duration_text(latency.max))
        }),
        ("CPU us", |row| row.cpu.map(|cpu| format!("{cpu:.1}"))),
        ("note", |row| {
            Some(row.note.clone()).filter(|note| !note.is_empty())
        }),
    ];
    let filled: Vec<&Column<'_>> = columns
        .iter()
        .filter(|(_, cell)| rows.iter().any(|row| cell(row).is_some()))
        .collect();
    let header: Vec<&str> = filled.iter().map(|(name, _)| *name).collect();
    let mut table = markdown(&header);
    for row in rows {
        table.add_row(filled.iter().map(|(_, cell)| cell(row).unwrap_or_default()));
    }
    table
}

fn figure_text(figure: f64) -> String {
    match figure {
        value if value >= 1000.0 => thousands(value as u64),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn duration_text(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    match micros {
        value if value < 10.0 => format!("{value:.1} us"),
        value if value < 1000.0 => format!("{value:.0} us"),
        value if value < 10_000.0 => format!("{:.2} ms", value / 1e3),
        value => format!("{:.0} ms", value / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_from_the_baseline_and_targets_judged_by_them() {
        let mut report = Report::new(true);
        let rows = vec![
            Row::new(BASELINE, 50.0),
            Row::new("trefoil", 200.0).target(Target::RatioAtLeast(4.0)),
            Row::new("slow", 20.0).target(Target::RatioAtLeast(1.0)),
            Row::missing("absent", "not built in").target(Target::AtMost(1.0)),
        ];
        report.table("t", "events/s", rows);
        let rows = &report.tables[0].rows;
        assert_eq!(rows[1].ratio, Some(4.0));
        let reached: Vec<_> = rows.iter().map(Row::reached).collect();
        assert_eq!(reached, [None, Some(true), Some(false), None]);
    }

    #[test]
    fn numbers_are_short_and_readable() {
        assert_eq!(figure_text(1_234_567.8), "1,234,567");
        assert_eq!(figure_text(12.34), "12.3");
        assert_eq!(duration_text(Duration::from_micros(1500)), "1.50 ms");
        assert_eq!(duration_text(Duration::from_nanos(2500)), "2.5 us");
    }

    #[test]
    fn a_table_shows_only_columns_that_say_something() {
        let text = render("ms", &[Row::new("a", 1.0)]).to_string();
        assert!(text.contains("| system | ms  |"), "{text}");
        assert!(!text.contains("p99"), "{text}");
    }
}

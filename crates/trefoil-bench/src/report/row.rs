//! A row of a table: one figure of one system, and what is known besides.

use std::time::Duration;

use comfy_table::Table;
use serde_json::{Value, json};

use super::markdown;
use super::target::Target;
use super::text::{duration_text, figure_text};
use crate::latency::Percentiles;

/// One measured figure, and what is known besides.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) system: String,
    /// The figure in the unit of its table; `None` if it could not be measured, `note` says why.
    pub(crate) figure: Option<f64>,
    /// The lowest and the highest figure, if there were several.
    pub(crate) spread: Option<(f64, f64)>,
    pub(crate) ratio: Option<f64>,
    pub(crate) targets: Vec<Target>,
    pub(crate) latency: Option<Percentiles>,
    /// Microseconds of processor time per event, operation or request: of the system, ...
    pub(crate) cpu: Option<f64>,
    /// ... and of its clients.
    pub(crate) client_cpu: Option<f64>,
    /// The share of a core that the clients used.
    pub(crate) client_busy: Option<f64>,
    /// Syncs of the disk per second, ...
    pub(crate) syncs: Option<f64>,
    /// ... how many commits there were to one, ...
    pub(crate) per_sync: Option<f64>,
    /// ... and how many the system wrote together, by its own account.
    pub(crate) per_group: Option<f64>,
    pub(crate) note: String,
}

impl Row {
    pub(crate) fn new(system: impl Into<String>, figure: f64) -> Self {
        Self {
            system: system.into(),
            figure: Some(figure),
            spread: None,
            ratio: None,
            targets: Vec::new(),
            latency: None,
            cpu: None,
            client_cpu: None,
            client_busy: None,
            syncs: None,
            per_sync: None,
            per_group: None,
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
        self.targets.push(target);
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// The row as JSON; `table` has the rows that its targets are compared with.
    pub(super) fn json(&self, table: &[Self]) -> Value {
        let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
        let targets = self.targets.iter().map(|target| {
            let (measured, reached) = target.judge(self, table);
            json!({"target": target.text(), "measured": measured, "reached": reached})
        });
        json!({
            "system": self.system,
            "figure": self.figure,
            "spread": self.spread,
            "ratio": self.ratio,
            "targets": targets.collect::<Vec<_>>(),
            "latencyMs": self.latency.map(|latency| json!({
                "p50": millis(latency.p50),
                "p90": millis(latency.p90),
                "p99": millis(latency.p99),
                "p99.9": millis(latency.p999),
                "max": millis(latency.max),
            })),
            "cpuMicroseconds": self.cpu,
            "clientCpuMicroseconds": self.client_cpu,
            "clientBusy": self.client_busy,
            "syncsPerSecond": self.syncs,
            "commitsPerSync": self.per_sync,
            "commitsPerGroup": self.per_group,
            "note": self.note,
        })
    }

    pub(super) fn figure_text(&self) -> Option<String> {
        self.figure.map(figure_text)
    }

    pub(super) fn spread_text(&self) -> Option<String> {
        let (least, most) = self.spread?;
        Some(format!("{} to {}", figure_text(least), figure_text(most)))
    }

    pub(super) fn targets_text(&self) -> Option<String> {
        let targets: Vec<String> = self.targets.iter().map(|target| target.text()).collect();
        (!targets.is_empty()).then(|| targets.join(", "))
    }

    /// A percentile, or whatever else is taken of the latency.
    pub(super) fn latency_text(&self, of: fn(Percentiles) -> Duration) -> Option<String> {
        self.latency.map(|latency| duration_text(of(latency)))
    }
}

/// One decimal.
fn short(figure: f64) -> String {
    format!("{figure:.1}")
}

/// A table with only those columns that some row fills.
pub(super) fn render(unit: &str, rows: &[Row]) -> Table {
    type Column<'a> = (&'a str, fn(&Row) -> Option<String>);
    let columns: [Column<'_>; 17] = [
        ("system", |row| Some(row.system.clone())),
        (unit, Row::figure_text),
        ("lowest to highest", Row::spread_text),
        ("ratio", |row| row.ratio.map(|ratio| format!("{ratio:.2}"))),
        ("target", Row::targets_text),
        ("p50", |row| row.latency_text(|latency| latency.p50)),
        ("p90", |row| row.latency_text(|latency| latency.p90)),
        ("p99", |row| row.latency_text(|latency| latency.p99)),
        ("p99.9", |row| row.latency_text(|latency| latency.p999)),
        ("max", |row| row.latency_text(|latency| latency.max)),
        ("CPU us", |row| row.cpu.map(short)),
        ("client us", |row| row.client_cpu.map(short)),
        ("client busy", |row| {
            row.client_busy
                .map(|share| format!("{:.0} %", share * 100.0))
        }),
        ("syncs/s", |row| row.syncs.map(figure_text)),
        ("per sync", |row| row.per_sync.map(short)),
        ("per group", |row| row.per_group.map(short)),
        ("note", |row| {
            Some(row.note.clone()).filter(|note| !note.is_empty())
        }),
    ];
    let filled: Vec<&Column<'_>> = columns
        .iter()
        .filter(|(_, cell)| rows.iter().any(|row| cell(row).is_some()))
        .collect();
    let mut table = markdown(filled.iter().map(|(name, _)| *name));
    for row in rows {
        table.add_row(filled.iter().map(|(_, cell)| cell(row).unwrap_or_default()));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_shows_only_columns_that_say_something() {
        let mut row = Row::new("a", 1.0);
        let text = render("ms", &[row.clone()]).to_string();
        assert!(text.contains("| system | ms  |"), "{text}");
        assert!(!text.contains("p99"), "{text}");
        row.spread = Some((0.5, 2000.0));
        let text = render("ms", &[row]).to_string();
        assert!(text.contains("| 0.500 to 2,000"), "{text}");
    }
}

//! The report: tables on standard output as they are measured, or one JSON document at the end.
//!
//! Tables are Markdown, so that they can be pasted into a page as they are. At the end come a summary
//! of each part, with a column per system, and the targets with what was reached.

mod row;
mod summary;
mod target;
mod text;

use anyhow::{Result, ensure};
use comfy_table::{Table, presets};
use serde_json::{Value, json};

pub(crate) use row::Row;
pub(crate) use target::Target;

use crate::options::{AGAINST, TREFOIL};

/// The system whose figures the others are compared with.
pub(crate) const BASELINE: &str = "fjall";
/// The share of what the other one of `--against` reaches that counts as no worse.
const NO_WORSE: f64 = 0.9;

/// Everything measured so far.
#[derive(Debug)]
pub(crate) struct Report {
    as_json: bool,
    parts: Vec<Part>,
}

/// Tables that belong together.
#[derive(Debug)]
struct Part {
    title: String,
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
            parts: Vec::new(),
        }
    }

    /// Prints a line of context, such as the machine.
    pub(crate) fn line(&self, text: &str) {
        if !self.as_json {
            println!("{text}");
        }
    }

    /// Begins a part: tables with a row per system, of which a summary is printed at the end if the
    /// part has a name.
    pub(crate) fn part(&mut self, title: impl Into<String>) {
        self.parts.push(Part {
            title: title.into(),
            tables: Vec::new(),
        });
    }

    /// Adds a table and prints it. Ratios to the baseline are filled in if the table has one.
    pub(crate) fn table(&mut self, title: &str, unit: &'static str, mut rows: Vec<Row>) {
        if let Some(baseline) = figure_of(&rows, BASELINE) {
            for row in rows.iter_mut().filter(|row| row.ratio.is_none()) {
                row.ratio = row.figure.map(|figure| figure / baseline);
            }
        }
        if unit.ends_with("/s") && figure_of(&rows, AGAINST).is_some() {
            for row in rows.iter_mut().filter(|row| row.system == TREFOIL) {
                row.targets.push(Target::Times(NO_WORSE, &[AGAINST]));
            }
        }
        if !self.as_json {
            println!("\n{title}\n\n{}", row::render(unit, &rows));
        }
        if self.parts.is_empty() {
            self.part("");
        }
        if let Some(part) = self.parts.last_mut() {
            part.tables.push(Measured {
                title: title.to_owned(),
                unit,
                rows,
            });
        }
    }

    /// Prints summaries and which targets were reached, or the JSON document. It is an error if
    /// Trefoil is slower than the other one of `--against`.
    pub(crate) fn finish(self, context: &Value) -> Result<()> {
        if self.as_json {
            println!("{}", self.json(context));
        } else {
            self.parts.iter().for_each(summary::print);
            self.print_targets();
        }
        let slower = self.tables().filter(|table| table.is_slower());
        let slower: Vec<&str> = slower.map(|table| table.title.as_str()).collect();
        ensure!(
            slower.is_empty(),
            "slower than the other one: {}",
            slower.join("; ")
        );
        Ok(())
    }

    fn tables(&self) -> impl Iterator<Item = &Measured> {
        self.parts.iter().flat_map(|part| &part.tables)
    }

    fn json(&self, context: &Value) -> Value {
        let tables: Vec<Value> = self.tables().map(Measured::json).collect();
        json!({"context": context, "tables": tables})
    }

    fn print_targets(&self) {
        let mut targets = markdown(["measurement", "system", "target", "measured", "reached"]);
        for table in self.tables() {
            for (row, target) in table.targets() {
                let (measured, reached) = target.judge(row, &table.rows);
                let reached = reached.map_or("not measured", |yes| if yes { "yes" } else { "NO" });
                let (title, system) = (table.title.clone(), row.system.clone());
                targets.add_row([title, system, target.text(), measured, reached.to_owned()]);
            }
        }
        if targets.row_count() > 0 {
            println!("\nTargets\n\n{targets}");
        }
    }
}

impl Measured {
    /// The targets, each with its row.
    fn targets(&self) -> impl Iterator<Item = (&Row, &Target)> {
        let rows = self.rows.iter();
        rows.flat_map(|row| row.targets.iter().map(move |target| (row, target)))
    }

    /// Whether the target that `--against` sets is missed.
    fn is_slower(&self) -> bool {
        self.targets().any(|(row, target)| {
            let is_it = matches!(target, Target::Times(_, peers) if *peers == [AGAINST]);
            is_it && target.judge(row, &self.rows).1 == Some(false)
        })
    }

    fn json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(|row| row.json(&self.rows)).collect();
        json!({"title": self.title, "unit": self.unit, "rows": rows})
    }
}

/// The figure of a system.
fn figure_of(rows: &[Row], system: &str) -> Option<f64> {
    rows.iter().find(|row| row.system == system)?.figure
}

fn markdown<T: Into<String>>(header: impl IntoIterator<Item = T>) -> Table {
    let header: Vec<String> = header.into_iter().map(Into::into).collect();
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header);
    table
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
        let table = &report.parts[0].tables[0];
        assert_eq!(table.rows[1].ratio, Some(4.0));
        let reached: Vec<_> = table
            .targets()
            .map(|(row, target)| target.judge(row, &table.rows).1)
            .collect();
        assert_eq!(reached, [Some(true), Some(false), None]);
    }

    #[test]
    fn what_is_slower_than_the_other_one_is_an_error() {
        for (figure, unit, is_fine) in [
            (95.0, "events/s", true),
            (80.0, "events/s", false),
            (80.0, "ms", true),
        ] {
            let mut report = Report::new(true);
            let rows = vec![Row::new(AGAINST, 100.0), Row::new(TREFOIL, figure)];
            report.table("t", unit, rows);
            assert_eq!(
                report.finish(&json!({})).is_ok(),
                is_fine,
                "{figure} {unit}"
            );
        }
    }
}

//! The summary of a part: a row per table, a column per system. These are the tables of the page on
//! performance, in the same layout.

use comfy_table::Table;

use super::row::Row;
use super::{Measured, Part, markdown};
use crate::options::TREFOIL;

/// Prints the summary, if the part has a name.
pub(super) fn print(part: &Part) {
    if part.title.is_empty() || part.tables.is_empty() {
        return;
    }
    let systems = systems(part);
    println!("\n## {}\n\n{}", part.title, figures(part, &systems));
    let latency = pivot(part, &systems, |row| {
        let p50 = row.latency_text(|latency| latency.p50)?;
        let p999 = row.latency_text(|latency| latency.p999)?;
        Some(format!("{p50}, {p999}"))
    });
    print_if_filled("Latency, p50 and p99.9", &latency);
    let cost = pivot(part, &systems, |row| {
        let (server, client) = (row.cpu?, row.client_cpu?);
        let busy = row.client_busy? * 100.0;
        Some(format!("{server:.1} + {client:.1} ({busy:.0} %)"))
    });
    print_if_filled(
        "Processor time in us, of the server + of the clients (share of a core)",
        &cost,
    );
    let syncs = pivot(part, &systems, |row| {
        Some(format!("{:.1} at {:.0}/s", row.per_sync?, row.syncs?))
    });
    print_if_filled("Commits per sync of the disk, at so many syncs", &syncs);
}

fn print_if_filled(title: &str, table: &Table) {
    if table.row_count() > 0 {
        println!("\n{title}\n\n{table}");
    }
}

/// The systems of a part, in the order in which they come.
fn systems(part: &Part) -> Vec<&str> {
    let mut systems: Vec<&str> = Vec::new();
    for row in part.tables.iter().flat_map(|table| &table.rows) {
        if !systems.contains(&row.system.as_str()) {
            systems.push(&row.system);
        }
    }
    systems
}

fn of<'a>(table: &'a Measured, system: &str) -> Option<&'a Row> {
    table.rows.iter().find(|row| row.system == system)
}

/// Figures, and how many times those of the others Trefoil's are. A name with a comma is a variant
/// of a system, with which nothing is compared.
fn figures(part: &Part, systems: &[&str]) -> Table {
    let is_peer = |system: &&str| *system != TREFOIL && !system.contains(',');
    let peers: Vec<&str> = systems.iter().copied().filter(is_peer).collect();
    let ratios = peers.iter().map(|peer| format!("to {peer}"));
    let names = systems.iter().map(ToString::to_string);
    let mut out = markdown(["".to_owned()].into_iter().chain(names).chain(ratios));
    for table in &part.tables {
        let figure = |system: &str| of(table, system).and_then(|row| row.figure);
        let texts = systems.iter().map(|system| {
            let row = of(table, system);
            row.and_then(Row::figure_text).unwrap_or_default()
        });
        let own = figure(TREFOIL);
        let ratios = peers.iter().map(|peer| {
            let ratio = own.zip(figure(peer)).map(|(own, peer)| own / peer);
            ratio.map_or(String::new(), |ratio| format!("{ratio:.2}x"))
        });
        let title = format!("{}, {}", table.title, table.unit);
        out.add_row([title].into_iter().chain(texts).chain(ratios));
    }
    out
}

/// One text per table and system; tables without any are left out.
fn pivot(part: &Part, systems: &[&str], text: impl Fn(&Row) -> Option<String>) -> Table {
    let names = systems.iter().map(ToString::to_string);
    let mut out = markdown(["".to_owned()].into_iter().chain(names));
    for table in &part.tables {
        let texts: Vec<String> = systems
            .iter()
            .map(|system| of(table, system).and_then(&text).unwrap_or_default())
            .collect();
        if texts.iter().any(|text| !text.is_empty()) {
            out.add_row([table.title.clone()].into_iter().chain(texts));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_become_columns_and_the_others_ratios() {
        let rows = |figures: [(&str, f64); 3]| {
            figures
                .map(|(system, figure)| Row::new(system, figure))
                .into()
        };
        let table = |title: &str, rows| Measured {
            title: title.to_owned(),
            unit: "events/s",
            rows,
        };
        let part = Part {
            title: "Events".to_owned(),
            tables: vec![
                table(
                    "one",
                    rows([("A", 10.0), (TREFOIL, 15.0), ("A, lean", 30.0)]),
                ),
                table(
                    "two",
                    rows([("B", 5.0), (TREFOIL, 20.0), ("A, lean", 10.0)]),
                ),
            ],
        };
        let systems = systems(&part);
        assert_eq!(systems, ["A", TREFOIL, "A, lean", "B"]);
        let text = figures(&part, &systems).to_string();
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(lines[0], "| | A | Trefoil | A, lean | B | to A | to B |");
        assert_eq!(
            lines[2],
            "| one, events/s | 10.0 | 15.0 | 30.0 | | 1.50x | |"
        );
        assert_eq!(
            lines[3],
            "| two, events/s | | 20.0 | 10.0 | 5.0 | | 4.00x |"
        );
        let none = pivot(&part, &systems, |row| row.cpu.map(|cpu| cpu.to_string()));
        assert_eq!(none.row_count(), 0);
    }
}

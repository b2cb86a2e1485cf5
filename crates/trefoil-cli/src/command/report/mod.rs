//! `trefoil report`: what a namespace holds, counted.
//!
//! Everything comes from the server's indexes, page by page: no report reads the events themselves,
//! and none holds more than its own lines.

mod categories;
mod growth;
mod streams;
mod types;

use serde::Deserialize;
use serde_json::json;

use crate::client::{ConnectionArguments, EventRow, HttpClient, ShownEvent};
use crate::output::{CommandOutput, count_progress};

const EXAMPLES: &str = "Examples:
  trefoil report streams --top 10
  trefoil report types
  trefoil report categories --output csv
  trefoil report growth --by hour";

/// Reports streams, types, categories and growth.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    report: ReportKind,
}

#[derive(Debug, clap::Subcommand)]
enum ReportKind {
    /// The longest streams: events, first and last
    #[command(after_help = "Example:\n  trefoil report streams account- --top 10")]
    Streams(TopArguments),
    /// The most frequent types: events, first and last
    #[command(after_help = "Example:\n  trefoil report types --top 50")]
    Types(TopArguments),
    /// The categories: events, streams, mean length, longest stream
    #[command(after_help = "Example:\n  trefoil report categories --output csv")]
    Categories(categories::Arguments),
    /// Events per day or hour
    #[command(after_help = "Example:\n  trefoil report growth --by hour --last 48")]
    Growth(growth::Arguments),
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        match self.report {
            ReportKind::Streams(arguments) => streams::run(&arguments, output),
            ReportKind::Types(arguments) => types::run(&arguments, output),
            ReportKind::Categories(arguments) => arguments.run(output),
            ReportKind::Growth(arguments) => arguments.run(output),
        }
    }
}

/// Which names a report counts, how many lines it has, and of which server.
#[derive(Debug, clap::Args)]
struct TopArguments {
    /// Only names that begin with this
    #[arg(default_value = "")]
    prefix: String,
    #[command(flatten)]
    most: Most,
}

/// How many lines a report has, and of which server.
#[derive(Debug, clap::Args)]
struct Most {
    /// So many lines
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    top: u16,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// Those with the highest counts, as many as are wanted.
struct Top<T> {
    wanted: usize,
    found: Vec<(u64, T)>,
}

impl<T> Top<T> {
    fn new(wanted: u16) -> Self {
        Self {
            wanted: usize::from(wanted),
            found: Vec::new(),
        }
    }

    fn note(&mut self, count: u64, what: T) {
        self.found.push((count, what));
        // Sorting now and then keeps it small and is cheap.
        if self.found.len() >= 2 * self.wanted + 1000 {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.found.sort_by(|(one, _), (other, _)| other.cmp(one));
        self.found.truncate(self.wanted);
    }

    /// The highest first.
    fn into_sorted(mut self) -> Vec<(u64, T)> {
        self.cut();
        self.found
    }

    /// Makes a line of each, the highest first, and shows how far it is.
    fn into_lines<L>(
        self,
        mut line: impl FnMut(u64, T) -> anyhow::Result<L>,
    ) -> anyhow::Result<Vec<L>> {
        let found = self.into_sorted();
        let bar = count_progress()?;
        bar.set_length(found.len() as u64);
        let mut lines = Vec::with_capacity(found.len());
        for (count, what) in found {
            lines.push(line(count, what)?);
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(lines)
    }
}

#[derive(Deserialize)]
struct FoundEvents {
    events: Vec<EventRow>,
}

/// The first event of a query, in a direction.
fn first_event(
    client: &HttpClient,
    query: &serde_json::Value,
    direction: &str,
) -> anyhow::Result<Option<ShownEvent>> {
    let options = json!({"direction": direction, "batchSize": 1});
    let found: FoundEvents = client.call(&("events.query", query, options))?;
    Ok(found.events.into_iter().next().map(EventRow::into_event))
}

/// The times of the first and of the last event of a query.
fn first_and_last(
    client: &HttpClient,
    query: &serde_json::Value,
) -> anyhow::Result<(Option<String>, Option<String>)> {
    let time = |event: Option<ShownEvent>| event.map(|event| event.time);
    let first = first_event(client, query, "forwards")?;
    let last = first_event(client, query, "backwards")?;
    Ok((time(first), time(last)))
}

/// What a table shows of something that may be missing.
fn or_dash(text: Option<&String>) -> String {
    text.cloned().unwrap_or_else(|| "-".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_counts_are_kept() {
        let mut top = Top::new(3);
        for number in 0..10_000u64 {
            top.note(number * 7919 % 10_007, number);
            assert!(top.found.len() < 2000);
        }
        let mut all: Vec<u64> = (0..10_000u64).map(|n| n * 7919 % 10_007).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        let kept: Vec<u64> = top
            .into_sorted()
            .into_iter()
            .map(|(count, _)| count)
            .collect();
        assert_eq!(kept, all[..3]);
    }
}

//! `trefoil report growth`: how many events each day or hour had.
//!
//! Positions ascend with time, so that the positions at the ends of a day tell how many events it
//! had, however many there are.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;
use trefoil::{Clock, Timestamp};

use super::first_event;
use crate::client::{ConnectionArguments, HttpClient};
use crate::output::{Column, CommandOutput, count_progress};

/// The longest bar in a table.
const BAR_MAX: u64 = 30;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The length of a step, in UTC
    #[arg(long, value_enum, default_value_t = GrowthStep::Day)]
    by: GrowthStep,
    /// So many steps, up to now
    #[arg(long, value_name = "COUNT", default_value_t = 14, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    last: u16,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum GrowthStep {
    Day,
    Hour,
}

#[derive(Serialize)]
struct GrowthLine {
    from: String,
    events: u64,
    /// All events up to the end of the step.
    total: u64,
    #[serde(skip)]
    bar: String,
}

const COLUMNS: &[Column<GrowthLine>] = &[
    Column::Text("FROM", |row| row.from.clone()),
    Column::Text("EVENTS", |row| row.events.to_string()),
    Column::Text("TOTAL", |row| row.total.to_string()),
    Column::Text("", |row| row.bar.clone()),
];

impl GrowthStep {
    fn nanoseconds(self) -> i64 {
        let hour = 3600 * 1_000_000_000;
        match self {
            Self::Day => 24 * hour,
            Self::Hour => hour,
        }
    }
}

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        let head: u64 = client.call(&("events.head",))?;
        let Some(first) = first_event(&client, &json!({}), "forwards")? else {
            return Ok(output.table(&[], COLUMNS)?);
        };
        let step = self.by.nanoseconds();
        let begin_of = |time: i64| time - time.rem_euclid(step);
        let earliest = Timestamp::parse(&first.time).map_or(0, |time| time.0);
        let end = begin_of(Clock::default().now().0) + step;
        let begin = (end - i64::from(self.last) * step).max(begin_of(earliest));
        // Events of an import may come from the future.
        let end = end.max(begin + step);
        let steps: Vec<i64> = (begin..end).step_by(usize::try_from(step)?).collect();
        let bar = count_progress()?;
        bar.set_length(steps.len() as u64);
        let mut before = position(&client, begin, head)?;
        let mut lines = Vec::with_capacity(steps.len());
        for from in steps {
            let next = position(&client, from + step, head)?.max(before);
            lines.push(GrowthLine {
                from: Timestamp(from).to_string(),
                events: next - before,
                total: next - 1,
                bar: String::new(),
            });
            before = next;
            bar.inc(1);
        }
        bar.finish_and_clear();
        draw_bars(&mut lines);
        tell_gaps(&client, head)?;
        Ok(output.table(&lines, COLUMNS)?)
    }
}

/// The first position at or after a time; the next one if there is none yet.
fn position(client: &HttpClient, time: i64, head: u64) -> anyhow::Result<u64> {
    let time = Timestamp(time).to_string();
    let found: Option<u64> = client.call(&("position.at", time))?;
    Ok(found.unwrap_or(head + 1))
}

fn draw_bars(lines: &mut [GrowthLine]) {
    let most = lines.iter().map(|line| line.events).max().unwrap_or(0);
    for line in lines {
        let share = (line.events * BAR_MAX).checked_div(most).unwrap_or(0);
        let length = share.max(u64::from(line.events > 0));
        line.bar = "▇".repeat(usize::try_from(length).unwrap_or(0));
    }
}

/// Positions that an import left out are counted as events here: then it is said.
fn tell_gaps(client: &HttpClient, head: u64) -> anyhow::Result<()> {
    let Some(current) = client.current()? else {
        return Ok(());
    };
    let events = client.namespace_info(&current.namespace)?.message_count;
    if events < head {
        let missing = head - events;
        eprintln!("{missing} positions have no event, and are counted as if they had one.");
    }
    Ok(())
}

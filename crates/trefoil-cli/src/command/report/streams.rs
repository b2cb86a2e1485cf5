//! `trefoil report streams`: the longest streams.

use serde::Serialize;
use serde_json::json;

use super::super::streams::for_each_page;
use super::{Most, Top, first_event, time_or_dash};
use crate::output::{Column, CommandOutput, count_progress, spinner};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Only names that begin with this
    #[arg(default_value = "")]
    prefix: String,
    #[command(flatten)]
    most: Most,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StreamLine {
    stream: String,
    events: u64,
    first: Option<String>,
    last: String,
}

const COLUMNS: &[Column<StreamLine>] = &[
    Column::Text("STREAM", |row| row.stream.clone()),
    Column::Text("EVENTS", |row| row.events.to_string()),
    Column::Time("FIRST", |row| time_or_dash(row.first.as_ref())),
    Column::Time("LAST", |row| row.last.clone()),
];

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.most.connection.client()?;
        let bar = spinner()?;
        let mut top = Top::new(self.most.top);
        let mut seen = 0;
        for_each_page(&client, &self.prefix, usize::MAX, |page| {
            seen += page.len();
            bar.set_message(format!("{seen} streams"));
            for stream in page {
                top.note(stream.version + 1, stream);
            }
        })?;
        bar.finish_and_clear();
        let longest = top.into_sorted();
        let bar = count_progress()?;
        bar.set_length(longest.len() as u64);
        let mut lines = Vec::with_capacity(longest.len());
        for (events, listed) in longest {
            let query = json!({"stream": listed.stream});
            let first = first_event(&client, &query, "forwards")?;
            lines.push(StreamLine {
                events,
                first: first.map(|event| event.time),
                last: listed.last_activity,
                stream: listed.stream,
            });
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(output.table(&lines, COLUMNS)?)
    }
}

//! `trefoil report categories`: how much each category has, and its longest stream.

use std::collections::HashMap;

use serde::Serialize;

use super::super::categories::list;
use super::super::streams::for_each_page;
use super::{Most, Top, or_dash};
use crate::output::{Column, CommandOutput, count_progress};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    most: Most,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CategoryLine {
    category: String,
    events: u64,
    streams: u64,
    mean_length: f64,
    longest_stream: Option<String>,
    longest_length: u64,
    last: Option<String>,
}

const COLUMNS: &[Column<CategoryLine>] = &[
    Column::Text("CATEGORY", |row| row.category.clone()),
    Column::Text("EVENTS", |row| row.events.to_string()),
    Column::Text("STREAMS", |row| row.streams.to_string()),
    Column::Text("MEAN LENGTH", |row| format!("{:.1}", row.mean_length)),
    Column::Text("LONGEST STREAM", |row| or_dash(row.longest_stream.as_ref())),
    Column::Text("ITS EVENTS", |row| row.longest_length.to_string()),
    Column::Time("LAST", |row| or_dash(row.last.as_ref())),
];

/// What the streams of a category add to what is counted.
#[derive(Default)]
struct CategoryStreams {
    longest: Option<String>,
    length: u64,
    last: Option<String>,
}

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.most.connection.client()?;
        let categories = list(&client)?;
        let bar = count_progress()?;
        bar.set_length(categories.iter().map(|row| row.stream_count).sum());
        bar.set_message("streams");
        let mut top = Top::new(self.most.top);
        for row in categories {
            top.note(row.message_count, row);
        }
        let top = top.into_sorted();
        let names = top.iter().map(|(_, row)| row.category.clone());
        let mut found: HashMap<String, CategoryStreams> = names
            .map(|name| (name, CategoryStreams::default()))
            .collect();
        for_each_page(&client, "", usize::MAX, |page| {
            bar.inc(page.len() as u64);
            for listed in page {
                let category = listed.stream.split('-').next().unwrap_or_default();
                let Some(streams) = found.get_mut(category) else {
                    continue;
                };
                streams.last = streams.last.take().max(Some(listed.last_activity));
                if listed.version + 1 > streams.length {
                    streams.length = listed.version + 1;
                    streams.longest = Some(listed.stream);
                }
            }
        })?;
        bar.finish_and_clear();
        let lines = top.into_iter().map(|(events, row)| {
            let streams = found.remove(&row.category).unwrap_or_default();
            CategoryLine {
                events,
                streams: row.stream_count,
                mean_length: events as f64 / (row.stream_count.max(1)) as f64,
                longest_stream: streams.longest,
                longest_length: streams.length,
                last: streams.last,
                category: row.category,
            }
        });
        Ok(output.table(&lines.collect::<Vec<_>>(), COLUMNS)?)
    }
}

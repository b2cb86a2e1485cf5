//! `trefoil report streams`: the longest streams.

use serde::Serialize;
use serde_json::json;

use super::super::streams::for_each_page;
use super::{Top, TopArguments, first_event, or_dash};
use crate::output::{Column, CommandOutput, spinner};

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
    Column::Time("FIRST", |row| or_dash(row.first.as_ref())),
    Column::Time("LAST", |row| row.last.clone()),
];

pub(super) fn run(arguments: &TopArguments, output: &mut CommandOutput) -> anyhow::Result<()> {
    let client = arguments.most.connection.client()?;
    let bar = spinner()?;
    let mut top = Top::new(arguments.most.top);
    let mut seen = 0;
    for_each_page(&client, &arguments.prefix, usize::MAX, |page| {
        seen += page.len();
        bar.set_message(format!("{seen} streams"));
        for stream in page {
            top.note(stream.version + 1, stream);
        }
    })?;
    bar.finish_and_clear();
    let lines = top.into_lines(|events, listed| {
        let query = json!({"stream": listed.stream});
        let first = first_event(&client, &query, "forwards")?;
        Ok(StreamLine {
            events,
            first: first.map(|event| event.time),
            last: listed.last_activity,
            stream: listed.stream,
        })
    })?;
    Ok(output.table(&lines, COLUMNS)?)
}

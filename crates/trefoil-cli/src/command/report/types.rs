//! `trefoil report types`: the most frequent types of events.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Top, TopArguments, first_and_last, or_dash};
use crate::output::{Column, CommandOutput, spinner};

/// How many types are asked for at a time.
const PAGE: usize = 1000;

#[derive(Deserialize)]
struct ListedType {
    name: String,
    events: u64,
}

#[derive(Serialize)]
struct TypeLine {
    #[serde(rename = "type")]
    name: String,
    events: u64,
    first: Option<String>,
    last: Option<String>,
}

const COLUMNS: &[Column<TypeLine>] = &[
    Column::Text("TYPE", |row| row.name.clone()),
    Column::Text("EVENTS", |row| row.events.to_string()),
    Column::Time("FIRST", |row| or_dash(row.first.as_ref())),
    Column::Time("LAST", |row| or_dash(row.last.as_ref())),
];

pub(super) fn run(arguments: &TopArguments, output: &mut CommandOutput) -> anyhow::Result<()> {
    let client = arguments.most.connection.client()?;
    let bar = spinner()?;
    let mut top = Top::new(arguments.most.top);
    let (mut cursor, mut seen) = (String::new(), 0);
    loop {
        let options = json!({"prefix": arguments.prefix, "limit": PAGE, "cursor": cursor});
        let page: Vec<ListedType> = client.call(&("events.types", options))?;
        seen += page.len();
        bar.set_message(format!("{seen} types"));
        let is_last = page.len() < PAGE;
        if let Some(last) = page.last() {
            cursor.clone_from(&last.name);
        }
        for listed in page {
            top.note(listed.events, listed.name);
        }
        if is_last {
            break;
        }
    }
    bar.finish_and_clear();
    let lines = top.into_lines(|events, name| {
        let query = json!({"items": [{"types": [name]}]});
        let (first, last) = first_and_last(&client, &query)?;
        Ok(TypeLine {
            name,
            events,
            first,
            last,
        })
    })?;
    Ok(output.table(&lines, COLUMNS)?)
}

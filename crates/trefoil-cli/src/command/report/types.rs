//! `trefoil report types`: the most frequent types of events.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Most, Top, first_and_last, time_or_dash};
use crate::output::{Column, CommandOutput, count_progress, spinner};

/// How many types are asked for at a time.
const PAGE: usize = 1000;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Only names that begin with this
    #[arg(default_value = "")]
    prefix: String,
    #[command(flatten)]
    most: Most,
}

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
    Column::Time("FIRST", |row| time_or_dash(row.first.as_ref())),
    Column::Time("LAST", |row| time_or_dash(row.last.as_ref())),
];

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.most.connection.client()?;
        let bar = spinner()?;
        let mut top = Top::new(self.most.top);
        let (mut cursor, mut seen) = (String::new(), 0);
        loop {
            let options = json!({"prefix": self.prefix, "limit": PAGE, "cursor": cursor});
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
        let most = top.into_sorted();
        let bar = count_progress()?;
        bar.set_length(most.len() as u64);
        let mut lines = Vec::with_capacity(most.len());
        for (events, name) in most {
            let query = json!({"items": [{"types": [name]}]});
            let (first, last) = first_and_last(&client, &query)?;
            lines.push(TypeLine {
                name,
                events,
                first,
                last,
            });
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(output.table(&lines, COLUMNS)?)
    }
}

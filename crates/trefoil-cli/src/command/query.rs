//! `trefoil query`: events by type and tags.

use serde::{Deserialize, Serialize};

use super::follow::Follower;
use super::plan::ShownPlan;
use super::read::print;
use super::terms::{ItemArguments, QueryArguments};
use crate::client::{ConnectionArguments, EventRow, HttpClient, ShownEvent};
use crate::output::CommandOutput;

/// How many events are asked for at a time.
const PAGE: u64 = 500;

const EXAMPLES: &str = "--type and --tag describe one alternative: an event of any of the types with all of the tags. --item
adds another: type=A,type=B,tag=x,tag=y, or {\"types\":[\"A\"],\"tags\":[\"a,b\"]} for names with commas.
Events that any alternative matches are printed in the order of their global positions; without
alternatives that is every event. A line shows the global position, the time, the stream with the
position in it or a dash, the type, the tags and the data.

Examples:
  trefoil query --tag course:c1 --tag student:s1
  trefoil query --type CourseDefined --tag course:c1 --item type=Enrolled,tag=student:s1
  trefoil query --type InvoiceCreated --last 1 --json
  trefoil query --tag course:c1 --after 41 --follow
  trefoil query --tag course:c1 --explain";

/// Finds events by type and tags, oldest first.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Events of this type; repeat it to allow several
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Events with this tag; repeat it to demand several
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Another alternative, as type=A,tag=x; repeat it for several
    #[arg(long = "item", value_name = "TERMS", value_parser = ItemArguments::parse)]
    items: Vec<ItemArguments>,
    /// Only events of this stream
    #[arg(long, value_name = "NAME", conflicts_with = "category")]
    stream: Option<String>,
    /// Only events of the streams of this category
    #[arg(long, value_name = "NAME")]
    category: Option<String>,
    /// Begin after this global position
    #[arg(long, value_name = "POSITION", conflicts_with = "from")]
    after: Option<u64>,
    /// Begin at this global position
    #[arg(long, value_name = "POSITION")]
    from: Option<u64>,
    /// At most this many [default: all]
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Only this many of the newest
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["after", "from", "limit"])]
    last: Option<u64>,
    /// Go on with events as they are written, until stopped
    #[arg(long, conflicts_with = "limit")]
    follow: bool,
    /// Show how the events would be found instead of the events
    #[arg(long, conflicts_with = "follow")]
    explain: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// One page of a read.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct QueryRange {
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<u64>,
    direction: &'static str,
    batch_size: u64,
}

#[derive(Deserialize)]
struct QueryReply {
    events: Vec<EventRow>,
    head: u64,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        let given = ItemArguments {
            types: self.types.clone(),
            tags: self.tags.clone(),
        };
        let mut items: Vec<&ItemArguments> = self.items.iter().collect();
        if given != ItemArguments::default() {
            items.insert(0, &given);
        }
        let criteria = QueryArguments {
            items,
            stream: self.stream.as_deref(),
            category: self.category.as_deref(),
        };
        if !self.explain {
            output.begin_list();
        }
        match (self.explain, self.last) {
            (true, _) => self.explain(&client, &criteria, output),
            (false, Some(last)) => {
                let head = print_last(&client, &criteria, last, output)?;
                self.go_on(&client, &criteria, Some(head), output)
            }
            (false, None) if self.follow => self.go_on(&client, &criteria, self.start(), output),
            (false, None) => self.print_pages(&client, &criteria, output),
        }
    }

    /// The position after which events are wanted.
    fn start(&self) -> Option<u64> {
        self.after.or(self.from.map(|from| from.saturating_sub(1)))
    }

    fn print_pages(
        &self,
        client: &HttpClient,
        criteria: &QueryArguments<'_>,
        output: &mut CommandOutput,
    ) -> anyhow::Result<()> {
        let mut page = QueryRange {
            after: self.start(),
            direction: "forwards",
            batch_size: 0,
        };
        let mut left = self.limit.unwrap_or(u64::MAX);
        while left > 0 {
            page.batch_size = left.min(PAGE);
            let (events, _) = read(client, criteria, &page)?;
            events.iter().try_for_each(|event| print(event, output))?;
            let count = events.len() as u64;
            if count < page.batch_size {
                break;
            }
            left -= count;
            page.after = events.last().map(|event| event.global_position);
        }
        Ok(())
    }

    /// Prints what is written from now on, if that is wanted.
    fn go_on(
        &self,
        client: &HttpClient,
        criteria: &QueryArguments<'_>,
        after: Option<u64>,
        output: &mut CommandOutput,
    ) -> anyhow::Result<()> {
        if !self.follow {
            return Ok(());
        }
        output.flush()?;
        let criteria = serde_json::to_string(criteria)?;
        let follower = Follower {
            parameters: &[("query", &criteria)],
            last_seen: after,
        };
        follower.run(client, output)
    }

    fn explain(
        &self,
        client: &HttpClient,
        criteria: &QueryArguments<'_>,
        output: &mut CommandOutput,
    ) -> anyhow::Result<()> {
        let direction = match self.last {
            Some(_) => "backwards",
            None => "forwards",
        };
        let options = serde_json::json!({
            "after": self.start(), "direction": direction, "explain": true,
        });
        let plan: ShownPlan = client.call(&("events.query", criteria, options))?;
        plan.print(output)
    }
}

fn read(
    client: &HttpClient,
    criteria: &QueryArguments<'_>,
    page: &QueryRange,
) -> anyhow::Result<(Vec<ShownEvent>, u64)> {
    let QueryReply { events, head } = client.call(&("events.query", criteria, page))?;
    let events = events.into_iter().map(EventRow::into_event).collect();
    Ok((events, head))
}

/// Prints the newest events, oldest first, and returns the position up to which it looked.
fn print_last(
    client: &HttpClient,
    criteria: &QueryArguments<'_>,
    count: u64,
    output: &mut CommandOutput,
) -> anyhow::Result<u64> {
    let mut page = QueryRange {
        after: None,
        direction: "backwards",
        batch_size: count.min(PAGE),
    };
    let (mut found, head) = read(client, criteria, &page)?;
    let mut is_full = found.len() as u64 == page.batch_size;
    while is_full && (found.len() as u64) < count {
        page.after = found.last().map(|event| event.global_position);
        page.batch_size = PAGE.min(count - found.len() as u64);
        let (more, _) = read(client, criteria, &page)?;
        is_full = more.len() as u64 == page.batch_size;
        found.extend(more);
    }
    found
        .iter()
        .rev()
        .try_for_each(|event| print(event, output))?;
    Ok(head)
}

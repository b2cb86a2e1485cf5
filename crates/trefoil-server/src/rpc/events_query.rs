//! `["events.query", {items?, stream? | category?}, {after? | from?, direction?, batchSize?,
//! explain?, as?}]`
//!
//! Reads the events that a query matches, by global position, and answers `{"events": [row, …],
//! "head": n}`, where `head` is the position up to which the read saw every event. Without a
//! `batchSize` there is no limit: a decision that depends on a read must have read all of it. With
//! `explain` the answer is how the events would be found. It goes beyond EventoDB.

use trefoil::{Direction, Event, Selection, StartAt};

use super::Context;
use super::arguments::{batch_size, direction, shape_option};
use super::explanation;
use super::rows::{EventRows, EventShape};
use crate::criteria::Criteria;
use crate::error::{Failure, Result};
use crate::json::{RpcCall, present, put_number};
use crate::pages::Pages;
use crate::reading::{EventWriter, Reading};
use crate::response::{self, HttpAnswer};
use crate::strict;

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let QueryRequest {
        read,
        shape,
        explain,
    } = parse(call)?;
    context.access.grant.require_source(&read.source)?;
    let database = context.database().await?;
    if explain {
        let explanation = database.explain_async(&read).await?;
        return Ok(response::json(explanation::to_json(&explanation)));
    }
    let pages = Pages::new(database, read)?;
    let writer = RowsAndHead {
        rows: EventRows::new(shape),
        head: pages.head(),
    };
    let body = Reading::new(pages, writer, context.share).body().await?;
    Ok(response::json_body(body))
}

struct QueryRequest {
    read: Selection,
    shape: EventShape,
    explain: bool,
}

fn parse(call: &RpcCall<'_>) -> Result<QueryRequest> {
    let missing = "events.query requires at least 1 argument: query";
    let query = call.argument(0).ok_or_else(|| Failure::invalid(missing))?;
    let mut read = Criteria::parse(query, "query")?.into_read();
    let Some(options) = present(call.argument(1)) else {
        return Ok(QueryRequest {
            read,
            shape: EventShape::WHOLE_ROW,
            explain: false,
        });
    };
    let names = ["after", "from", "direction", "batchSize", "explain", "as"];
    let options = strict::object(options, "options", names)?;
    let [after, from, order, size, explain, shape] = options.map(present);
    read.direction = direction(order)?;
    let after = strict::optional_position(after, "options.after")?;
    read.from = match (after, strict::optional_position(from, "options.from")?) {
        (None, None) => StartAt::Edge,
        (None, Some(from)) => StartAt::Position(from),
        (Some(after), None) => StartAt::Position(following(after, read.direction)),
        (Some(_), Some(_)) => {
            return Err(Failure::invalid(
                "options.after and options.from exclude each other",
            ));
        }
    };
    if size.is_some() {
        read.limit = batch_size(size)?;
    }
    Ok(QueryRequest {
        read,
        shape: shape_option(shape, EventShape::WHOLE_ROW)?,
        explain: strict::flag(explain, "options.explain")?,
    })
}

/// The position behind one that is left out.
fn following(after: u64, direction: Direction) -> u64 {
    match direction {
        Direction::Forwards => after.saturating_add(1),
        Direction::Backwards => after.saturating_sub(1),
    }
}

/// Writes rows, and last the head: an answer that was cut short has none.
struct RowsAndHead {
    rows: EventRows,
    head: u64,
}

impl EventWriter for RowsAndHead {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"events\":");
        self.rows.begin(out);
    }

    fn event(&mut self, out: &mut Vec<u8>, event: &Event) {
        self.rows.event(out, event);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.rows.end(out);
        out.extend_from_slice(b",\"head\":");
        put_number(out, self.head);
        out.push(b'}');
    }
}

//! `["commit.get", {commit | globalPosition}, {limit?, eventsFrom?, changesFrom?, as?}]`
//!
//! Answers one commit, by its number or by the position of one of its events, or `null`:
//! `{"commit", "eventCount", "events": [event, …], "changeCount", "changes": [change, …]}`. Events and
//! changes of the state come at most `limit` at a time, from these indexes on. `changeCount` and
//! `changes` are `null` if the log has dropped what the commit changed. It goes beyond EventoDB.

use serde_json::value::RawValue;
use trefoil::{ChangePage, Event, Selection, StoredCommit};

use super::Context;
use super::arguments::{shape_option, strict_limit};
use super::changes::put_changes;
use super::rows::{EventRows, EventShape};
use crate::error::{Failure, Result};
use crate::json::{RpcCall, present, put_number};
use crate::pages::Pages;
use crate::reading::{EventWriter, Reading};
use crate::response::{self, HttpAnswer};
use crate::strict;

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let request = SoughtCommit::parse(call)?;
    let database = context.database().await?;
    let commit = match request.address {
        CommitAddress::Number(commit) => Some(commit),
        CommitAddress::Position(position) => {
            let event = database.event_at_async(position).await?;
            event.map(|event| event.commit())
        }
    };
    let stored = match commit {
        None => None,
        Some(commit) => {
            let (from, limit) = (request.changes_from, request.limit);
            database.stored_commit_async(commit, from, limit).await?
        }
    };
    let Some(stored) = stored else {
        return Ok(response::json("null"));
    };
    let left = stored.events.saturating_sub(request.events_from);
    let limit = usize::try_from(left).unwrap_or(usize::MAX);
    let from = stored.first_position.saturating_add(request.events_from);
    let read = Selection::all()
        .from_position(from)
        .limit(limit.min(request.limit));
    let pages = Pages::new(database, read)?;
    let writer = CommitWriter {
        rows: EventRows::new(request.shape),
        stored,
    };
    let body = Reading::new(pages, writer, context.share).body().await?;
    Ok(response::json_body(body))
}

/// Which commit is meant.
enum CommitAddress {
    Number(u64),
    /// The one that wrote the event at this position.
    Position(u64),
}

/// Which commit, and which part of it.
struct SoughtCommit {
    address: CommitAddress,
    limit: usize,
    events_from: u64,
    changes_from: u64,
    shape: EventShape,
}

impl SoughtCommit {
    fn parse(call: &RpcCall<'_>) -> Result<Self> {
        let missing =
            "commit.get requires at least 1 argument: {\"commit\": n} or {\"globalPosition\": n}";
        let address = present(call.argument(0)).ok_or_else(|| Failure::invalid(missing))?;
        let address = strict::object(address, "address", ["commit", "globalPosition"])?;
        let address = match address.map(present) {
            [Some(commit), None] => {
                CommitAddress::Number(strict::position(Some(commit), "commit")?)
            }
            [None, Some(position)] => {
                CommitAddress::Position(strict::position(Some(position), "globalPosition")?)
            }
            _ => {
                let text = "address must have one of commit and globalPosition";
                return Err(Failure::invalid(text));
            }
        };
        let names = ["limit", "eventsFrom", "changesFrom", "as"];
        let [limit, events_from, changes_from, shape] = match present(call.argument(1)) {
            None => [None; 4],
            Some(options) => strict::object(options, "options", names)?.map(present),
        };
        Ok(Self {
            address,
            limit: strict_limit(limit)?,
            events_from: index(events_from, "options.eventsFrom")?,
            changes_from: index(changes_from, "options.changesFrom")?,
            shape: shape_option(shape, EventShape::WHOLE_ROW)?,
        })
    }
}

/// An index from which on something is wanted; the first one if it is not said.
fn index(value: Option<&RawValue>, what: &str) -> Result<u64> {
    Ok(strict::optional_position(value, what)?.unwrap_or(0))
}

/// Writes a commit around the rows of its events.
struct CommitWriter {
    rows: EventRows,
    stored: StoredCommit,
}

impl EventWriter for CommitWriter {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"commit\":");
        put_number(out, self.stored.commit);
        out.extend_from_slice(b",\"eventCount\":");
        put_number(out, self.stored.events);
        out.extend_from_slice(b",\"events\":");
        self.rows.begin(out);
    }

    fn event(&mut self, out: &mut Vec<u8>, event: &Event) {
        if event.commit() == self.stored.commit {
            self.rows.event(out, event);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.rows.end(out);
        match &self.stored.changes {
            None => out.extend_from_slice(b",\"changeCount\":null,\"changes\":null}"),
            Some(ChangePage { total, changes, .. }) => {
                out.extend_from_slice(b",\"changeCount\":");
                put_number(out, *total);
                out.extend_from_slice(b",\"changes\":");
                put_changes(out, changes);
                out.push(b'}');
            }
        }
    }
}

//! `POST /dcb/append {"events": [{"type", "tags", "data"}], "condition"?: {"failIfEventsMatch":
//! query, "after"?}}`: answers `{"durationInMicroseconds", "appendConditionFailed"}`.
//!
//! A condition that fails is an answer here, not an error. A single event may stand without the
//! array around it. Events may have all that a commit allows.

use bytes::Bytes;
use serde_json::value::RawValue;
use trefoil::limits::EVENTS_PER_COMMIT_MAX;
use trefoil::{Commit, Condition, Error, NewEvent};

use super::read::json;
use crate::auth::Access;
use crate::criteria::Criteria;
use crate::error::{Failure, Result};
use crate::json::{is_object, present, put_number};
use crate::new_event;
use crate::response::{self, HttpAnswer};
use crate::service::Shared;
use crate::strict;

/// Answers `/dcb/append`.
pub(crate) async fn answer(shared: &Shared, access: &Access, body: &Bytes) -> Result<HttpAnswer> {
    let began = shared.clock().steady();
    let commit = parse(body)?;
    let database = access.database(shared).await?;
    let has_failed = match database.commit_async(commit).await {
        Ok(committed) => {
            shared.metrics.count_commit(&committed);
            false
        }
        Err(Error::ConditionFailed { .. }) => true,
        Err(error) => return Err(Failure::from(error).while_doing("Failed to append")),
    };
    let mut out = b"{\"durationInMicroseconds\":".to_vec();
    let elapsed = shared.clock().since(began).as_micros();
    put_number(&mut out, u64::try_from(elapsed).unwrap_or(u64::MAX));
    out.extend_from_slice(b",\"appendConditionFailed\":");
    out.extend_from_slice(if has_failed { b"true" } else { b"false" });
    out.push(b'}');
    Ok(response::json(out))
}

fn parse(body: &Bytes) -> Result<Commit> {
    let request = json(body, "request body")?;
    let [events, condition] = strict::object(request, "request", ["events", "condition"])?;
    let mut commit = Commit::new(parse_events(body, present(events))?);
    if let Some(condition) = present(condition) {
        commit = commit.with_condition(parse_condition(condition)?);
    }
    Ok(commit)
}

fn parse_events(body: &Bytes, value: Option<&RawValue>) -> Result<Vec<NewEvent>> {
    if let Some(event) = value.filter(|value| is_object(value)) {
        return Ok(vec![new_event::parse(body, event, "events", None)?]);
    }
    let events = strict::list(value, "events", EVENTS_PER_COMMIT_MAX)?;
    if events.is_empty() {
        return Err(Failure::invalid("events must hold at least one event"));
    }
    let parse = |(index, value)| new_event::parse(body, value, &format!("events[{index}]"), None);
    events.into_iter().enumerate().map(parse).collect()
}

fn parse_condition(value: &RawValue) -> Result<Condition> {
    let names = ["failIfEventsMatch", "after"];
    let [query, after] = strict::object(value, "condition", names)?;
    let what = "condition.failIfEventsMatch";
    let query = present(query).ok_or_else(|| Failure::invalid(format!("{what} is missing")))?;
    let Criteria { source, query } = Criteria::parse(query, what)?;
    Ok(Condition::NoMatch {
        source,
        query,
        after: strict::optional_position(present(after), "condition.after")?,
    })
}

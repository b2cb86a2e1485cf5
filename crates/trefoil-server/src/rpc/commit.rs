//! `["commit", {id?, conditions?: [{stream, expectedVersion} | {query, after?} | {key, field?,
//! equals | differs | exists}], tracking?: {source, position}, events?: [{stream?, type, data,
//! metadata?, tags?, id?}], state?: [[command, …], …], strict?}]`
//!
//! Appends events to any number of streams and runs commands on the state, all or nothing, if every
//! condition holds, and answers `{"commit", "globalPosition", "events": [{"id", "stream",
//! "position", "globalPosition"}], "state": [replies]}`. With an `id`, events that have none get ids
//! made of it, so that a commit that is sent again is recognised. A command that fails answers its
//! error and the others take effect, unless the commit is `strict`. It goes beyond EventoDB.

use bytes::Bytes;
use serde_json::value::RawValue;
use trefoil::{
    Commit, Committed, Condition, Error, EventId, Executed, Guard, Reply, Step, Tracking,
    Transaction,
};
use trefoil_core::limits::{CONDITIONS_PER_COMMIT_MAX, EVENTS_PER_COMMIT_MAX};

use super::{Context, state};
use crate::criteria::Criteria;
use crate::error::{Failure, Result};
use crate::json::{Call, fields, number, present, put_id, put_number, put_string, text};
use crate::limits::COMMANDS_PER_COMMIT_MAX;
use crate::new_event::{self, event_id};
use crate::response::{self, Answer};
use crate::strict;

pub(super) async fn run(context: Context<'_>, call: &Call<'_>) -> Result<Answer> {
    let mut request = parse(context.body, call)?;
    let places = std::mem::take(&mut request.places);
    let streams: Vec<Option<String>> = { request.commit.events.iter() }
        .map(|event| event.stream.clone())
        .collect();
    let database = context.database().await?;
    let (committed, replies) = if request.has_state() {
        let n_events = streams.len();
        let executed = database.execute(vec![request.into_transaction()]).await;
        let executed = executed.and_then(|mut executed| executed.pop().unwrap_or_else(unanswered));
        let executed = executed.map_err(|error| failure(error, &places))?;
        let last = executed.events.last().map(|event| event.position);
        let committed = Committed {
            commit: executed.commit.unwrap_or_else(|| database.last_commit()),
            position: last.unwrap_or_else(|| database.head()),
            events: executed.events,
            replayed: executed.replayed,
        };
        let replies = executed.replies.into_iter().skip(n_events).collect();
        (committed, replies)
    } else {
        let committed = database.commit_async(request.commit).await;
        let committed = committed.map_err(|error| failure(error, &places))?;
        (committed, Vec::new())
    };
    context.shared.metrics.count_commit(&committed);
    Ok(response::json(answer(&committed, &streams, &replies)))
}

fn unanswered() -> trefoil::Result<Executed> {
    Err(Error::Closed("the commit was not answered".into()))
}

/// What is asked for.
struct Request {
    commit: Commit,
    id: Option<EventId>,
    guards: Vec<Guard>,
    places: Places,
    commands: Vec<trefoil::Call>,
    is_strict: bool,
}

impl Request {
    fn has_state(&self) -> bool {
        !self.commands.is_empty() || !self.guards.is_empty()
    }

    /// The events come first, so that their replies do.
    fn into_transaction(self) -> Transaction {
        let append = |event| Step::Append {
            event: Box::new(event),
            expected: None,
        };
        let events = self.commit.events.into_iter().map(append);
        Transaction {
            steps: events
                .chain(self.commands.into_iter().map(Step::Call))
                .collect(),
            conditions: self.commit.conditions,
            guards: self.guards,
            is_strict: self.is_strict,
            id: self.id.map(|id| Bytes::from(id.to_string())),
            tracking: self.commit.tracking,
            ..Transaction::default()
        }
    }
}

/// Which of the request's conditions became which condition on the log, and which on the state.
#[derive(Default)]
struct Places {
    conditions: Vec<u64>,
    guards: Vec<u64>,
}

/// As everywhere, but a conflict also says which condition failed.
fn failure(error: Error, places: &Places) -> Failure {
    let place = match &error {
        Error::VersionConflict { condition, .. } | Error::ConditionFailed { condition, .. } => {
            places.conditions.get(*condition)
        }
        Error::GuardFailed { guard } => places.guards.get(*guard),
        _ => None,
    };
    let error = match (error, place) {
        (Error::ConditionFailed { position, .. }, Some(&place)) => Error::ConditionFailed {
            condition: place as usize,
            position,
        },
        (Error::GuardFailed { .. }, Some(&place)) => Error::GuardFailed {
            guard: place as usize,
        },
        (error, _) => error,
    };
    let is_version = matches!(error, Error::VersionConflict { .. });
    let failure = Failure::from(error).while_doing("Failed to commit");
    match place.filter(|_| is_version) {
        Some(&place) => failure.with_number("condition", place),
        None => failure,
    }
}

fn answer(committed: &Committed, streams: &[Option<String>], replies: &[Reply]) -> Vec<u8> {
    let mut out = Vec::with_capacity(128 + committed.events.len() * 128);
    out.extend_from_slice(b"{\"commit\":");
    put_number(&mut out, committed.commit);
    out.extend_from_slice(b",\"globalPosition\":");
    put_number(&mut out, committed.position);
    out.extend_from_slice(b",\"events\":[");
    for (index, (event, stream)) in committed.events.iter().zip(streams).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"id\":");
        put_id(&mut out, event.id);
        out.extend_from_slice(b",\"stream\":");
        put_string(&mut out, stream.as_deref().unwrap_or_default());
        out.extend_from_slice(b",\"position\":");
        put_number(&mut out, event.stream_position.map_or(-1, i128::from));
        out.extend_from_slice(b",\"globalPosition\":");
        put_number(&mut out, event.position);
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"state\":");
    state::put_replies(&mut out, replies.iter());
    out.push(b'}');
    out
}

fn parse(body: &Bytes, call: &Call<'_>) -> Result<Request> {
    let missing = "commit requires 1 argument: an object with events";
    let commit = call.argument(0).ok_or_else(|| Failure::invalid(missing))?;
    let names = ["id", "conditions", "events", "tracking", "state", "strict"];
    let [id, conditions, events, tracked, state, strict] =
        fields(commit, names).ok_or_else(|| Failure::invalid("commit must be an object"))?;
    let id = event_id(present(id), "commit.id")?;
    let events = strict::list(present(events), "commit.events", EVENTS_PER_COMMIT_MAX)?;
    let events = events.into_iter().enumerate().map(|(index, value)| {
        let what = format!("commit.events[{index}]");
        new_event::parse(body, value, &what, id.map(|id| (id, index)))
    });
    let commands = strict::list(present(state), "commit.state", COMMANDS_PER_COMMIT_MAX)?;
    let commands = commands.into_iter().enumerate();
    let mut request = Request {
        commit: Commit {
            tracking: present(tracked).map(tracking).transpose()?,
            conditions: Vec::new(),
            events: events.collect::<Result<_>>()?,
        },
        id,
        guards: Vec::new(),
        places: Places::default(),
        commands: commands
            .map(|(index, value)| state::command(value, &format!("commit.state[{index}]")))
            .collect::<Result<_>>()?,
        is_strict: strict::flag(present(strict), "commit.strict")?,
    };
    parse_conditions(present(conditions), &mut request)?;
    let commit = &request.commit;
    if commit.events.is_empty() && commit.tracking.is_none() && request.commands.is_empty() {
        return Err(Failure::invalid(
            "commit.events must hold at least one event",
        ));
    }
    Ok(request)
}

fn parse_conditions(value: Option<&RawValue>, request: &mut Request) -> Result<()> {
    let conditions = strict::list(value, "commit.conditions", CONDITIONS_PER_COMMIT_MAX)?;
    for (index, value) in conditions.into_iter().enumerate() {
        let what = format!("commit.conditions[{index}]");
        let is_guard = fields(value, ["key"]).is_some_and(|[key]| key.is_some());
        if is_guard {
            request.guards.push(state::guard(value, &what)?);
            request.places.guards.push(index as u64);
        } else {
            request.commit.conditions.push(condition(value, &what)?);
            request.places.conditions.push(index as u64);
        }
    }
    Ok(())
}

fn condition(value: &RawValue, what: &str) -> Result<Condition> {
    let names = ["stream", "expectedVersion", "query", "after"];
    let [stream, expected, query, after] = strict::object(value, what, names)?;
    let given = [stream, expected, query, after].map(present);
    match given {
        [stream, expected, None, None] => stream_version(stream, expected, what),
        [None, None, Some(query), after] => {
            let Criteria { source, query } = Criteria::parse(query, &format!("{what}.query"))?;
            let after = strict::optional_position(after, &format!("{what}.after"))?;
            Ok(Condition::NoMatch {
                source,
                query,
                after,
            })
        }
        _ => Err(Failure::invalid(format!(
            "{what} must have either stream and expectedVersion or query and after"
        ))),
    }
}

fn stream_version(
    stream: Option<&RawValue>,
    expected: Option<&RawValue>,
    what: &str,
) -> Result<Condition> {
    let stream = strict::name(stream, &format!("{what}.stream"))?;
    let expected = expected
        .and_then(number)
        .ok_or_else(|| Failure::invalid(format!("{what}.expectedVersion must be a number")))?;
    Ok(Condition::StreamVersion { stream, expected })
}

fn tracking(value: &RawValue) -> Result<Tracking> {
    let [source, position] = strict::object(value, "commit.tracking", ["source", "position"])?;
    let source = source.and_then(text);
    let source =
        source.ok_or_else(|| Failure::invalid("commit.tracking.source must be a string"))?;
    let position = strict::position(position, "commit.tracking.position")?;
    Ok(Tracking::new(source, position))
}

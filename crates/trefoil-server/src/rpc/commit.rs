//! `["commit", {id?, conditions?: [{stream, expectedVersion} | {query, after?} | {key, field?,
//! equals | differs | exists}], tracking?: {source, position}, events?: [{stream?, type, data,
//! metadata?, tags?, id?}], state?: [[command, …], …], strict?}]`
//!
//! Appends events to any number of streams and runs commands on the state, all or nothing, if every
//! condition holds, and answers `{"commit", "globalPosition", "events": [{"id", "stream",
//! "position", "globalPosition"}], "state": [replies]}`. With an `id`, events that have none get ids
//! made of it, so that a commit that is sent again is recognised. With `"strict": false` a command
//! that fails answers its error and the rest takes effect. It goes beyond EventoDB.

use bytes::Bytes;
use serde_json::value::RawValue;
use trefoil::limits::{CONDITIONS_PER_COMMIT_MAX, EVENTS_PER_COMMIT_MAX};
use trefoil::{
    Commit, Committed, Condition, EventId, Guard, OpenDatabase, Reply, Scope, Step, Tracking,
    Transaction,
};

use super::place::{PlaceInCommit, failure};
use super::{Context, state};
use crate::budget::Reservation;
use crate::criteria::Criteria;
use crate::error::{Failure, Result};
use crate::json::{RpcCall, number, present, put_id, put_number, put_string, text};
use crate::limits::{COMMANDS_PER_COMMIT_MAX, WORD_MEMORY};
use crate::need::Need;
use crate::new_event::{self, event_id};
use crate::permit;
use crate::reply_memory::ReplyMemory;
use crate::response::{self, HttpAnswer};
use crate::strict;

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let mut words = context.share.for_request();
    let request = parse(&context, call, &mut words)?;
    permit(&context, &request)?;
    let streams: Vec<Option<String>> = { request.commit.events.iter() }
        .map(|event| event.stream.clone())
        .collect();
    let database = context.database().await?;
    let memory = ReplyMemory::new(context.share);
    let (committed, replies) = match commit(&database, request, &memory).await {
        Ok(done) => done,
        Err(error) => {
            // Only now does it matter what was written where.
            let request = parse(&context, call, &mut words)?;
            return Err(failure(error, &request, database.event_data_bytes_max()));
        }
    };
    context.shared.metrics.count_commit(&committed);
    let out = answer(&committed, &streams, &replies);
    drop(replies);
    Ok(response::json(memory.hold(out)))
}

/// Refuses what the token does not permit.
fn permit(context: &Context<'_>, request: &ParsedCommit) -> Result<()> {
    let grant = &context.access.grant;
    if grant.permission().is_all() {
        return Ok(());
    }
    let commit = &request.commit;
    permit::events(grant, &commit.events)?;
    permit::conditions(grant, &commit.conditions)?;
    permit::guards(grant, &request.guards)?;
    if commit.tracking.is_some() {
        Need::Whole(Scope::Write).check(grant)?;
    }
    let catalogue = &context.shared.resp.catalogue;
    for call in &request.commands {
        catalogue.permit_on_state(grant, call.spec(), call.arguments())?;
    }
    Ok(())
}

/// Commits; the replies are those of the commands.
async fn commit(
    database: &OpenDatabase,
    request: ParsedCommit,
    memory: &ReplyMemory,
) -> trefoil::Result<(Committed, Vec<Reply>)> {
    if !request.has_state() {
        let committed = database.commit_async(request.commit).await?;
        return Ok((committed, Vec::new()));
    }
    let n_events = request.commit.events.len();
    let head = database.head()?;
    let mut transaction = request.into_transaction();
    transaction.allowance = Some(memory.allowance());
    let executed = database.transact_async(transaction).await?;
    let last = executed.events.last().map(|event| event.position);
    let committed = Committed {
        commit: match executed.commit {
            Some(commit) => commit,
            None => database.last_commit()?,
        },
        // It is written: that the database was closed meanwhile is no failure of it.
        position: last.unwrap_or_else(|| database.head().unwrap_or(head)),
        events: executed.events,
        replayed: executed.replayed,
    };
    let replies = executed.replies.into_iter().skip(n_events).collect();
    Ok((committed, replies))
}

/// What is asked for.
pub(super) struct ParsedCommit {
    pub(super) commit: Commit,
    id: Option<EventId>,
    guards: Vec<Guard>,
    pub(super) places: ConditionPlaces,
    commands: Vec<trefoil::Call>,
    is_strict: bool,
}

impl ParsedCommit {
    fn has_state(&self) -> bool {
        !self.commands.is_empty() || !self.guards.is_empty()
    }

    /// The events come first, so that their replies do.
    fn into_transaction(self) -> Transaction {
        let mut transaction = Transaction::new()
            .with_steps(self.commit.events.into_iter().map(Step::append))
            .with_steps(self.commands.into_iter().map(Step::Call))
            .with_conditions(self.commit.conditions)
            .with_guards(self.guards);
        transaction.is_strict = self.is_strict;
        transaction.id = self.id.map(|id| Bytes::from(id.to_string()));
        transaction.tracking = self.commit.tracking;
        transaction
    }
}

/// Which of the request's conditions became which condition on the log, and which on the state.
#[derive(Default)]
pub(super) struct ConditionPlaces {
    pub(super) conditions: Vec<usize>,
    pub(super) guards: Vec<usize>,
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

/// Understands a commit; `words` is the memory that the words of its commands take.
fn parse(
    context: &Context<'_>,
    call: &RpcCall<'_>,
    words: &mut Reservation,
) -> Result<ParsedCommit> {
    let known = context.shared.namespaces.commands();
    let missing = "commit requires 1 argument: an object with events";
    let commit = call.argument(0).ok_or_else(|| Failure::invalid(missing))?;
    let names = ["id", "conditions", "events", "tracking", "state", "strict"];
    let [id, conditions, events, tracked, state, strict] = strict::object(commit, "commit", names)?;
    let id = event_id(present(id), "commit.id")?;
    let events = strict::list(present(events), "commit.events", EVENTS_PER_COMMIT_MAX)?;
    let events = events.into_iter().enumerate().map(|(index, value)| {
        let what = format!("commit.events[{index}]");
        let event = new_event::parse(context.body, value, &what, id.map(|id| (id, index)));
        event.map_err(|failure| PlaceInCommit::Event(index).of(failure))
    });
    let tracked = present(tracked).map(tracking);
    let tracked = tracked.map(|found| found.map_err(|failure| PlaceInCommit::Tracking.of(failure)));
    let commands = strict::list(present(state), "commit.state", COMMANDS_PER_COMMIT_MAX)?;
    let mut n_words = 0;
    let commands = commands.into_iter().enumerate().map(|(index, value)| {
        let command = state::command(known, value, &format!("commit.state[{index}]"));
        let command = command.map_err(|failure| PlaceInCommit::Command(index).of(failure))?;
        n_words += command.arguments().len();
        words.grow_to(n_words * WORD_MEMORY)?;
        Ok(command)
    });
    let mut request = ParsedCommit {
        commit: Commit {
            tracking: tracked.transpose()?,
            events: events.collect::<Result<_>>()?,
            ..Commit::default()
        },
        id,
        guards: Vec::new(),
        places: ConditionPlaces::default(),
        commands: commands.collect::<Result<_>>()?,
        is_strict: strict::flag_or(present(strict), "commit.strict", true)?,
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

fn parse_conditions(value: Option<&RawValue>, request: &mut ParsedCommit) -> Result<()> {
    let conditions = strict::list(value, "commit.conditions", CONDITIONS_PER_COMMIT_MAX)?;
    for (index, value) in conditions.into_iter().enumerate() {
        let what = format!("commit.conditions[{index}]");
        let wanted = parse_condition(value, &what);
        match wanted.map_err(|failure| PlaceInCommit::Condition(index).of(failure))? {
            ParsedCondition::OfLog(condition) => {
                request.commit.conditions.push(condition);
                request.places.conditions.push(index);
            }
            ParsedCondition::OfState(guard) => {
                request.guards.push(guard);
                request.places.guards.push(index);
            }
        }
    }
    Ok(())
}

/// What a condition is about.
enum ParsedCondition {
    OfLog(Condition),
    OfState(Guard),
}

fn parse_condition(value: &RawValue, what: &str) -> Result<ParsedCondition> {
    let names = [
        "stream",
        "expectedVersion",
        "query",
        "after",
        "key",
        "field",
        "equals",
        "differs",
        "exists",
    ];
    let [stream, expected, query, after, on_state @ ..] = strict::object(value, what, names)?;
    let on_log = [stream, expected, query, after].map(present);
    match (on_log, on_state) {
        ([stream, expected, None, None], [None, None, None, None, None]) => {
            stream_version(stream, expected, what).map(ParsedCondition::OfLog)
        }
        ([None, None, Some(query), after], [None, None, None, None, None]) => {
            no_match(query, after, what).map(ParsedCondition::OfLog)
        }
        ([None, None, None, None], [Some(key), field, equals, differs, exists]) => {
            let parts = state::GuardParts {
                key,
                field,
                equals,
                differs,
                exists,
            };
            state::guard(&parts, what).map(ParsedCondition::OfState)
        }
        _ => Err(Failure::invalid(format!(
            "{what} must have either stream and expectedVersion, or query and after, or key and \
             one of equals, differs and exists"
        ))),
    }
}

fn no_match(query: &RawValue, after: Option<&RawValue>, what: &str) -> Result<Condition> {
    let Criteria { source, query } = Criteria::parse(query, &format!("{what}.query"))?;
    Ok(Condition::NoMatch {
        source,
        query,
        after: strict::optional_position(after, &format!("{what}.after"))?,
    })
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

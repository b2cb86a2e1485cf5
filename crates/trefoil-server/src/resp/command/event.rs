//! Events.
//!
//! ```text
//! EVENT.APPEND stream|- type json [META json] [TAG tag]… [ID uuid] [EXPECT version]
//! EVENT.REQUIRE VERSION stream version | NOMATCH [AFTER position] query
//! EVENT.READ stream [FROM position] [COUNT n] [REV]
//! EVENT.CATEGORY name [FROM position] [COUNT n] [GROUP member size]
//! EVENT.QUERY [FROM position] [COUNT n] [REV] query
//! EVENT.LAST stream [TYPE type]
//! EVENT.VERSION stream
//! EVENT.HEAD
//! ```

use bytes::Bytes;
use trefoil::limits::{BATCH_SIZE_DEFAULT, BATCH_SIZE_MAX, READ_BYTES_MAX};
use trefoil::{
    Allowance, Condition, ConsumerGroup, Event, NewEvent, OpenDatabase, Reply, Selection, Step,
    parse_event_id,
};

use super::super::criteria::{take_condition, take_query};
use super::super::failure::{of_error, of_failure};
use super::super::words::{ReplyResult, Words, error, syntax_error};
use crate::pages::Pages;
use crate::reading::next_events;

/// What stands for no stream.
pub(super) const NO_STREAM: &str = "-";

/// Reads `EVENT.APPEND`.
pub(in super::super) fn append(words: &[Bytes]) -> ReplyResult<Step> {
    let mut words = Words::after(words, 1);
    let stream = words.text()?;
    let event_type = words.text()?;
    let data = words.word()?.clone();
    let mut event = match stream {
        NO_STREAM => NewEvent::without_stream(event_type, data),
        stream => NewEvent::new(stream, event_type, data),
    };
    let mut expected = None;
    while !words.is_empty() {
        if words.take("meta") {
            event.metadata = Some(words.word()?.clone().into());
        } else if words.take("tag") {
            event.tags.push(words.text()?.to_owned());
        } else if words.take("id") {
            let id = words.text()?;
            let wrong = || error(format!("ERR {id:?} is not a UUID"));
            event.id = Some(parse_event_id(id).ok_or_else(wrong)?);
        } else if words.take("expect") && event.stream.is_some() {
            expected = Some(words.integer()?);
        } else {
            return Err(syntax_error());
        }
    }
    if event.event_type.is_empty() {
        return Err(error("ERR event type must be a non-empty string"));
    }
    if event.tags.iter().any(String::is_empty) {
        return Err(error("ERR a tag must be a non-empty string"));
    }
    Ok(Step::Append {
        event: Box::new(event),
        expected,
    })
}

/// Reads `EVENT.REQUIRE`.
pub(in super::super) fn requirement(words: &[Bytes]) -> ReplyResult<Condition> {
    let mut words = Words::after(words, 1);
    let condition = take_condition(&mut words)?.ok_or_else(syntax_error)?;
    if !words.is_empty() {
        return Err(syntax_error());
    }
    condition.validate().map_err(|failure| of_error(&failure))?;
    Ok(condition)
}

/// Which of the commands that look at events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum EventLookup {
    Stream,
    Category,
    Query,
    Last,
    Version,
    Head,
}

/// Looks at events.
pub(in super::super) async fn lookup(
    lookup: EventLookup,
    database: OpenDatabase,
    words: &[Bytes],
    memory: &dyn Allowance,
) -> ReplyResult {
    let mut words = Words::after(words, 1);
    match lookup {
        EventLookup::Head => {
            let head = database.head().map_err(|failure| of_error(&failure))?;
            Ok(position(head))
        }
        EventLookup::Version => {
            let stream = words.text()?;
            let version = match database.may_wait() {
                true => database.version_async(stream).await,
                false => database.version(stream),
            };
            let version = version.map_err(|failure| of_error(&failure))?;
            Ok(version.map_or(Reply::Integer(-1), position))
        }
        EventLookup::Last => last(&database, words).await,
        EventLookup::Stream => {
            let read = Selection::stream(stream_name(words.text()?)?);
            let events = read_all(database, options(read, lookup, &mut words)?, memory).await?;
            Ok(Reply::Array(events.1))
        }
        EventLookup::Category => {
            let read = Selection::category(words.text()?);
            let events = read_all(database, options(read, lookup, &mut words)?, memory).await?;
            Ok(Reply::Array(events.1))
        }
        EventLookup::Query => {
            let read = options(Selection::all(), lookup, &mut words)?;
            let (head, events) = read_all(database, read, memory).await?;
            Ok(Reply::Array(vec![position(head), Reply::Array(events)]))
        }
    }
}

fn stream_name(name: &str) -> ReplyResult<&str> {
    match name {
        "" => Err(error("ERR a stream has a name")),
        name => Ok(name),
    }
}

async fn last(database: &OpenDatabase, mut words: Words<'_>) -> ReplyResult {
    let stream = words.text()?;
    let event_type = match words.take("type") {
        true => Some(words.text()?),
        false => None,
    };
    if !words.is_empty() {
        return Err(syntax_error());
    }
    let (stream, event_type) = (stream.to_owned(), event_type.map(str::to_owned));
    let event = database.soon(move |database| database.last(&stream, event_type.as_deref()));
    let event = event.await.map_err(|failure| of_error(&failure))?;
    Ok(event.map_or(Reply::Nil, |event| describe(&event)))
}

/// Reads what a read begins with, how many events it wants, and in which order.
fn options(
    mut read: Selection,
    lookup: EventLookup,
    words: &mut Words<'_>,
) -> ReplyResult<Selection> {
    read.limit = BATCH_SIZE_DEFAULT;
    while !words.is_empty() {
        if words.take("from") {
            let from = words.number()?;
            read = match lookup {
                EventLookup::Stream => read.from_stream_position(from),
                _ => read.from_position(from),
            };
        } else if words.take("count") {
            read.limit = count(words)?;
        } else if lookup != EventLookup::Category && words.take("rev") {
            read = read.backwards();
        } else if lookup == EventLookup::Category && words.take("group") {
            let (member, size) = (words.number()?, words.number()?);
            read = read
                .for_group(ConsumerGroup::new(member, size).map_err(|failure| of_error(&failure))?);
        } else if lookup == EventLookup::Query {
            break;
        } else {
            return Err(syntax_error());
        }
    }
    if lookup == EventLookup::Query {
        read = read.matching(take_query(words)?);
    }
    if !words.is_empty() {
        return Err(syntax_error());
    }
    Ok(read)
}

fn count(words: &mut Words<'_>) -> ReplyResult<usize> {
    let count = words.integer()?;
    if !(0..=BATCH_SIZE_MAX).contains(&count) {
        return Err(error(format!(
            "ERR COUNT must be between 0 and {BATCH_SIZE_MAX}"
        )));
    }
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Reads page by page: a short read begins on this thread, where most of them end.
async fn read_all(
    database: OpenDatabase,
    read: Selection,
    memory: &dyn Allowance,
) -> ReplyResult<(u64, Vec<Reply>)> {
    let mut pages = Pages::new(database, read).map_err(|failure| of_failure(&failure))?;
    let head = pages.head();
    let (mut events, mut bytes, mut held) = (Vec::new(), 0, 0);
    while !pages.is_done() {
        let page;
        (pages, page) = next_events(pages)
            .await
            .map_err(|failure| of_failure(&failure))?;
        bytes += page.iter().map(Event::stored_bytes).sum::<usize>();
        if bytes > READ_BYTES_MAX {
            let text = format!("ERR events of more than {READ_BYTES_MAX} bytes: use a lower COUNT");
            return Err(error(text));
        }
        let first = events.len();
        events.extend(page.iter().map(describe));
        held += events[first..].iter().map(Reply::size).sum::<usize>();
        memory.allow(held).map_err(|failure| of_error(&failure))?;
    }
    Ok((head, events))
}

fn position(position: u64) -> Reply {
    Reply::Integer(i64::try_from(position).unwrap_or(i64::MAX))
}

/// An event as a map.
fn describe(event: &Event) -> Reply {
    let bulk = |bytes: &[u8]| Reply::Bulk(Bytes::copy_from_slice(bytes));
    let text = |text: &str| bulk(text.as_bytes());
    let stream_position = event.stream_position();
    let fields = [
        ("position", position(event.position())),
        ("stream", event.stream().map_or(Reply::Nil, text)),
        (
            "stream_position",
            stream_position.map_or(Reply::Integer(-1), position),
        ),
        ("type", text(event.event_type())),
        ("data", bulk(event.data())),
        ("metadata", event.metadata().map_or(Reply::Nil, bulk)),
        ("tags", Reply::Array(event.tags().map(text).collect())),
        ("id", Reply::bulk(event.id().to_string())),
        ("time", Reply::bulk(event.time().to_string())),
    ];
    Reply::Map(
        fields
            .map(|(name, value)| (Reply::bulk(name), value))
            .into(),
    )
}

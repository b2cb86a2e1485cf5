//! Carrying out a read: from the index to positions, from positions to events.

use trefoil_core::{Direction, Error, Event, From, Read, Result, Source, limits};
use trefoil_storage::{Storage, StoredItem};

use crate::index::{Cursor, Kind, Layers, Lookup};
use crate::label;

/// A term this many times more frequent than the rarest one is checked on the events themselves:
/// reading an event costs less than seeking in a long list.
const VERIFY_ON_EVENT_RATIO: u64 = 64;

/// How many positions are looked at together, at first and at most.
const CHUNK_FIRST: usize = 128;
const CHUNK_MAX: usize = 4096;

/// A part of what a read selects.
#[derive(Debug, Default)]
pub struct Page {
    /// The events.
    pub events: Vec<Event>,
    /// Whether the read ended because it had as many events or bytes as it may return; there may
    /// be more.
    pub is_cut: bool,
}

/// The event at a position that holds one.
pub(crate) fn fetch(storage: &dyn Storage, position: u64) -> Result<Event> {
    let mut found = None;
    storage.read(&[position], &mut |item| found = Some(item))?;
    let item = found.ok_or_else(|| Error::invalid(format!("no event at position {position}")))?;
    decode(item)
}

/// Turns a stored item into an event. Its checksum was right, so if this fails, what wrote it did
/// not know the same format.
pub(crate) fn decode(item: StoredItem) -> Result<Event> {
    Event::decode(item.position, item.bytes).ok_or_else(|| {
        Error::Damaged(Box::new(trefoil_core::Damage {
            file: "log".into(),
            offset: 0,
            position: item.position,
            what: "the bytes at this position are not an event".into(),
            help: "run `trefoil verify` to see all damage".into(),
        }))
    })
}

/// Reads up to `read.limit` events and about `bytes_max` bytes, none beyond `head`.
pub(crate) fn execute(
    storage: &dyn Storage,
    layers: &Layers,
    head: u64,
    read: &Read,
    bytes_max: usize,
) -> Result<Page> {
    let Some(mut plan) = plan(layers, read)? else {
        return Ok(Page::default());
    };
    let Some(from) = start(layers, head, read, &mut plan)? else {
        return Ok(Page::default());
    };
    let last = if read.direction == Direction::Forwards {
        head
    } else {
        1
    };
    let page_size = read.limit.clamp(CHUNK_FIRST, CHUNK_MAX);
    let terms = std::mem::take(&mut plan.terms);
    let mut cursor = Cursor::new(terms, read.direction, from, last, page_size);
    let mut page = Page::default();
    let mut bytes = 0;
    let mut chunk = if read.filter.group.is_some() || plan.verify {
        CHUNK_FIRST
    } else {
        0
    };
    while page.events.len() < read.limit && bytes < bytes_max {
        let missing = read.limit - page.events.len();
        let wanted = missing.max(chunk).min(CHUNK_MAX);
        let mut positions = Vec::with_capacity(wanted);
        while positions.len() < wanted
            && let Some(position) = cursor.next()?
        {
            positions.push(position);
        }
        let is_last = positions.len() < wanted;
        keep_group(storage, read, &mut positions)?;
        bytes += take(
            storage,
            read,
            &plan,
            &positions,
            bytes_max - bytes,
            &mut page,
        )?;
        if is_last && !page.is_cut {
            return Ok(page);
        }
        chunk = (chunk * 2).min(CHUNK_MAX);
    }
    page.is_cut = true;
    Ok(page)
}

/// Which terms lead to the events, and whether more has to be checked on each of them.
struct Plan<'a> {
    /// The rarest first.
    terms: Vec<Lookup<'a>>,
    /// Whether the filter must be checked on the events.
    verify: bool,
}

/// Decides how to find the events; `None` if there can be none.
fn plan<'a>(layers: &'a Layers, read: &'a Read) -> Result<Option<Plan<'a>>> {
    let source = match &read.source {
        Source::All => (Kind::All, ""),
        Source::Category(name) => (Kind::Category, name.as_str()),
        Source::Stream(name) => (Kind::Stream, name.as_str()),
    };
    let mut terms = vec![Lookup::new(layers, source.0, source.1)];
    let mut add = |kind, name: &'a Option<String>| {
        terms.extend(name.as_deref().map(|name| Lookup::new(layers, kind, name)));
    };
    add(Kind::Type, &read.filter.event_type);
    add(Kind::Correlation, &read.filter.correlation);
    if terms.len() == 1 {
        return Ok(Some(Plan {
            terms,
            verify: false,
        }));
    }
    let mut counted = Vec::with_capacity(terms.len());
    for mut term in terms {
        let Some(summary) = term.summary()? else {
            return Ok(None);
        };
        counted.push((summary.n, term));
    }
    counted.sort_by_key(|(n, _)| *n);
    let n_terms = counted.len();
    let frequent = counted[0].0.saturating_mul(VERIFY_ON_EVENT_RATIO);
    counted.retain(|(n, _)| *n <= frequent);
    let terms: Vec<_> = counted.into_iter().map(|(_, term)| term).collect();
    let verify = terms.len() < n_terms;
    Ok(Some(Plan { terms, verify }))
}

/// The position at which the read begins; `None` if there is nothing from there on.
fn start(layers: &Layers, head: u64, read: &Read, plan: &mut Plan<'_>) -> Result<Option<u64>> {
    let position = match (read.from, read.direction, &read.source) {
        (From::Edge, Direction::Forwards, _) => 1,
        (From::Edge, Direction::Backwards, _) => head,
        (From::Position(position), Direction::Forwards, _) => position.max(1),
        (From::Position(position), Direction::Backwards, _) => position.min(head),
        (From::StreamPosition(ordinal), direction, Source::Stream(stream)) => {
            // The stream is the only term of most such reads; what is found of it here is used again.
            if let [term] = plan.terms.as_mut_slice()
                && !plan.verify
            {
                return term.seek_ordinal(ordinal, direction);
            }
            return Lookup::new(layers, Kind::Stream, stream).seek_ordinal(ordinal, direction);
        }
        (From::StreamPosition(_), _, _) => {
            return Err(Error::invalid(
                "only a read of a stream can begin at a stream position",
            ));
        }
    };
    Ok((position >= 1 && position <= head).then_some(position))
}

/// Drops the positions of events that do not belong to the read's member of a consumer group.
fn keep_group(storage: &dyn Storage, read: &Read, positions: &mut Vec<u64>) -> Result<()> {
    let Some(group) = read.filter.group else {
        return Ok(());
    };
    let mut keep = Vec::with_capacity(positions.len());
    storage.read_labels(positions, &mut |label| {
        keep.push(label::belongs_to(label, group));
    })?;
    let mut keep = keep.into_iter();
    positions.retain(|_| keep.next().unwrap_or(false));
    Ok(())
}

/// Reads the events at `positions` until the page is full. Answers how many bytes it took.
fn take(
    storage: &dyn Storage,
    read: &Read,
    plan: &Plan<'_>,
    positions: &[u64],
    bytes_max: usize,
    page: &mut Page,
) -> Result<usize> {
    let mut bytes = 0;
    let mut failure = None;
    page.events
        .reserve(positions.len().min(read.limit - page.events.len()));
    // In pieces, so that large events beyond the bounds are not read.
    for piece in positions.chunks(64) {
        storage.read(piece, &mut |item| {
            if page.events.len() >= read.limit || bytes >= bytes_max || failure.is_some() {
                page.is_cut = true;
                return;
            }
            match decode(item) {
                Ok(event) if plan.verify && !matches(read, &event) => {}
                Ok(event) => {
                    bytes += event.stored_bytes();
                    page.events.push(event);
                }
                Err(error) => failure = Some(error),
            }
        })?;
        if page.is_cut || failure.is_some() {
            break;
        }
    }
    failure.map_or(Ok(bytes), Err)
}

/// Whether the parts of the filter that the index may not have checked hold for an event.
fn matches(read: &Read, event: &Event) -> bool {
    let source = match &read.source {
        Source::All => true,
        Source::Category(name) => event.stream().map(trefoil_core::category) == Some(name),
        Source::Stream(name) => event.stream() == Some(name),
    };
    let filter = &read.filter;
    source
        && filter
            .event_type
            .as_deref()
            .is_none_or(|wanted| event.event_type() == wanted)
        && filter
            .correlation
            .as_deref()
            .is_none_or(|wanted| event.correlation().as_deref() == Some(wanted))
}

/// Reads all that `read` asks for, or fails if that is more than one answer may hold.
pub(crate) fn read_all(
    storage: &dyn Storage,
    layers: &Layers,
    head: u64,
    read: &Read,
) -> Result<Vec<Event>> {
    let page = execute(storage, layers, head, read, limits::READ_BYTES_MAX)?;
    if page.is_cut && page.events.len() < read.limit {
        return Err(Error::invalid(format!(
            "the read returns more than {} bytes, the limit for one read: set a limit and read on \
             from the last position",
            limits::READ_BYTES_MAX
        )));
    }
    Ok(page.events)
}

//! Carrying out a read: from the index to positions, from positions to events.

pub(crate) mod condition;
pub(crate) mod explain;
pub(crate) mod label;
pub(crate) mod listing;
pub(crate) mod look;
mod matcher;
mod plan;
mod reader;
mod search;
mod stages;
pub(crate) mod stored_commit;
pub(crate) mod subscription;
pub(crate) mod waiting;

use std::ops::ControlFlow;

use trefoil_core::{Direction, Error, Event, Result, Selection, Source, StartAt, limits};
use trefoil_storage::StoredItem;

use crate::index::{Cursor, Effort, Layers, TermKind, TermLookup, WalkStep};
use crate::read::explain::Explanation;
use crate::removal::HiddenEvents;
pub(crate) use matcher::Matcher;
use plan::{PositionRange, ReadPlan};
pub(crate) use reader::{LogReader, ReadShortage};
pub(crate) use search::{SearchResult, SearchedLog, first_match};
pub(crate) use stages::LogMoment;
use stages::ReadStages;

/// How many positions are looked at together, at first and at most.
const CHUNK_FIRST: usize = 128;
const CHUNK_MAX: usize = 4096;

/// How many positions one call looks at before it says where to go on: some milliseconds of work.
const EFFORT_POSITIONS: usize = 64 * 1024;

/// A part of what a read selects.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Page {
    /// The events.
    pub events: Vec<Event>,
    /// Where the log ended for this read: it saw every event up to here, and none beyond.
    pub head: u64,
    /// Where to read on, if the read ended before it had looked everywhere. There may be no events
    /// in a page and still something to read on for.
    pub next: Option<u64>,
}

/// Returns the event at a position that holds one.
pub(crate) fn fetch<'a>(log: impl Into<LogReader<'a>>, position: u64) -> Result<Event> {
    let mut events = fetch_all(log, &[position])?;
    events.pop().ok_or_else(|| missing(position))
}

/// Returns the events at these positions, as far as they hold one, in the same order.
pub(crate) fn fetch_all<'a>(
    log: impl Into<LogReader<'a>>,
    positions: &[u64],
) -> Result<Vec<Event>> {
    let mut events = Vec::with_capacity(positions.len());
    let mut failure = None;
    log.into().read(positions, &mut |item| match decode(item) {
        Ok(event) => {
            events.push(event);
            ControlFlow::Continue(())
        }
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    })?;
    failure.map_or(Ok(events), Err)
}

/// Returns what says that the log has no event where there should be one.
fn missing(position: u64) -> Error {
    Error::invalid(format!("there is no event at position {position}"))
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

/// Reads up to `read.limit` events and about `bytes_max` bytes, none beyond `head`, and looks at a
/// bounded number of positions for them.
pub(crate) fn execute(log: &LogMoment<'_>, read: &Selection, bytes_max: usize) -> Result<Page> {
    let mut stages = ReadStages::begin(log);
    let page = carry_out(log, read, bytes_max, &mut stages);
    stages.note_lookups();
    let page = page?;
    stages.finish(page.events.len());
    Ok(page)
}

fn carry_out(
    log: &LogMoment<'_>,
    read: &Selection,
    bytes_max: usize,
    stages: &mut ReadStages<'_>,
) -> Result<Page> {
    let LogMoment { reader, layers, .. } = log;
    let head = read.as_of.map_or(log.head, |as_of| as_of.min(log.head));
    let mut page = Page {
        head,
        ..Page::default()
    };
    let Some(Start { from, last, plan }) = start(layers, head, read, &log.hidden)? else {
        return Ok(page);
    };
    page.next = Some(from);
    let has_lost_terms = log.hidden.have_lost_terms();
    let verify = plan.verify || has_lost_terms && Matcher::of_selection(read).asks_for_terms();
    let page_size = read.limit.clamp(CHUNK_FIRST, CHUNK_MAX);
    let Some(walk) = plan.into_walk(read.direction, page_size) else {
        page.next = None;
        return Ok(page);
    };
    let mut gathering = Gathering {
        reader: *reader,
        hidden: &log.hidden,
        read,
        verify,
        bytes_left: bytes_max,
        page,
    };
    let mut cursor = Cursor::new(walk, read.direction, from, last);
    stages.end(|figures| &mut figures.plan);
    let effort = Effort::new(EFFORT_POSITIONS);
    let may_be_hidden = log.hidden.reach(from.min(last));
    let is_sparse = read.filter.group.is_some() || verify || may_be_hidden;
    let mut chunk = if is_sparse { CHUNK_FIRST } else { 0 };
    while gathering.wants_more() && !effort.is_spent() {
        let missing = read.limit - gathering.page.events.len();
        let wanted = missing.max(chunk).min(CHUNK_MAX);
        let (positions, next) = next_positions(&mut cursor, wanted, &effort)?;
        stages.end(|figures| &mut figures.index);
        if is_sparse {
            effort.spend(positions.len());
        }
        gathering.page.next = gathering.take(positions)?.or(next);
        stages.end(|figures| &mut figures.log);
        if gathering.page.next.is_none() {
            break;
        }
        chunk = (chunk * 2).min(CHUNK_MAX);
    }
    Ok(gathering.page)
}

/// Returns up to `wanted` positions, and where the walk goes on after them, if it does.
fn next_positions(
    cursor: &mut Cursor<'_>,
    wanted: usize,
    effort: &Effort,
) -> Result<(Vec<u64>, Option<u64>)> {
    let mut positions = Vec::with_capacity(wanted);
    while positions.len() < wanted {
        match cursor.next(effort)? {
            WalkStep::At(position) => {
                positions.push(position);
                let missing = wanted - positions.len();
                cursor.take_some(missing, &mut positions);
            }
            WalkStep::Paused(_) => break,
            WalkStep::End => return Ok((positions, None)),
        }
    }
    Ok((positions, cursor.place()))
}

/// Where a read begins and ends, and how it finds its events.
struct Start<'a> {
    from: u64,
    last: u64,
    plan: ReadPlan<'a>,
}

/// Decides where and how to look; `None` if there is nothing to look at.
fn start<'a>(
    layers: &'a Layers,
    head: u64,
    read: &'a Selection,
    hidden: &HiddenEvents<'_>,
) -> Result<Option<Start<'a>>> {
    let mut stream = None;
    let from = match (read.from, read.direction, &read.source) {
        (StartAt::Edge, Direction::Forwards, _) => Some(1),
        (StartAt::Edge, Direction::Backwards, _) => Some(head),
        (StartAt::Position(position), Direction::Forwards, _) => Some(position.max(1)),
        (StartAt::Position(position), Direction::Backwards, _) => Some(position.min(head)),
        (StartAt::StreamPosition(ordinal), direction, Source::Stream(name)) => {
            let term = stream.insert(TermLookup::new(layers, TermKind::Stream, name));
            let position = term.seek_ordinal(ordinal, direction)?;
            // Backwards, what lies beyond the end is passed over; forwards, nothing is left then.
            position.map(|position| match direction {
                Direction::Forwards => position,
                Direction::Backwards => position.min(head),
            })
        }
        (StartAt::StreamPosition(_), _, _) => {
            return Err(Error::invalid(
                "only a read of a stream can begin at a stream position",
            ));
        }
    };
    // What was removed of a stream is not even walked over.
    let lowest = match &read.source {
        Source::Stream(name) => hidden.floor(name)?.max(1),
        Source::All | Source::Category(_) => 1,
    };
    let from = from.map(|from| match read.direction {
        Direction::Forwards => from.max(lowest),
        Direction::Backwards => from,
    });
    let Some(from) = from.filter(|from| (lowest..=head).contains(from)) else {
        return Ok(None);
    };
    let last = match read.direction {
        Direction::Forwards => head,
        Direction::Backwards => lowest,
    };
    let range = PositionRange {
        low: from.min(last),
        high: from.max(last),
    };
    let plan = match only_term(layers, read, stream) {
        Some(term) => ReadPlan::of_term(layers, range, term),
        None => ReadPlan::new(layers, Matcher::of_selection(read), range)?,
    };
    Ok(Some(Start { from, last, plan }))
}

/// Returns the term that leads to all events of the read, if one does, so that there is nothing to
/// plan. What was found of a stream when its beginning was sought is used again.
fn only_term<'a>(
    layers: &'a Layers,
    read: &'a Selection,
    stream: Option<TermLookup<'a>>,
) -> Option<TermLookup<'a>> {
    let filter = &read.filter;
    if !filter.query.is_all() || filter.event_type.is_some() || filter.correlation.is_some() {
        return None;
    }
    let (kind, name) = match &read.source {
        Source::All => (TermKind::All, ""),
        Source::Category(name) => (TermKind::Category, name.as_str()),
        Source::Stream(name) => (TermKind::Stream, name.as_str()),
    };
    Some(stream.unwrap_or_else(|| TermLookup::new(layers, kind, name)))
}

/// How the events of a read would be found.
pub(crate) fn explain(log: &LogMoment<'_>, read: &Selection) -> Result<Explanation> {
    let head = read.as_of.map_or(log.head, |as_of| as_of.min(log.head));
    let layers = &log.layers;
    let Some(Start { from, last, .. }) = start(layers, head, read, &log.hidden)? else {
        return Ok(Explanation::nothing(head));
    };
    let range = PositionRange {
        low: from.min(last),
        high: from.max(last),
    };
    Ok(ReadPlan::new(layers, Matcher::of_selection(read), range)?.explain())
}

/// A page that is being filled.
struct Gathering<'a> {
    reader: LogReader<'a>,
    hidden: &'a HiddenEvents<'a>,
    read: &'a Selection,
    verify: bool,
    bytes_left: usize,
    page: Page,
}

impl Gathering<'_> {
    fn wants_more(&self) -> bool {
        self.page.events.len() < self.read.limit && self.bytes_left > 0
    }

    /// Reads the events at these positions until the page is full. Returns the first position that
    /// was not taken, if any.
    fn take(&mut self, mut positions: Vec<u64>) -> Result<Option<u64>> {
        self.keep_group(&mut positions)?;
        let n_missing = self.read.limit - self.page.events.len();
        self.page.events.reserve(positions.len().min(n_missing));
        let (reader, matcher) = (self.reader, Matcher::of_selection(self.read));
        let hidden = self.hidden;
        let is_missing = |position: &u64| !hidden.may_be_dropped(*position);
        let mut expected = positions.iter().copied();
        let (mut next, mut failure) = (None, None);
        reader.read(&positions, &mut |item| {
            let before = expected.by_ref().take_while(|at| *at != item.position);
            match { before }.find(is_missing) {
                Some(position) => failure = Some(missing(position)),
                None if !self.wants_more() => next = Some(item.position),
                None => failure = self.take_item(item, matcher).err(),
            }
            match next.is_some() || failure.is_some() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        match (failure, next) {
            (Some(error), _) => Err(error),
            (None, Some(next)) => Ok(Some(next)),
            (None, None) => match { expected }.find(is_missing) {
                Some(left) => Err(missing(left)),
                None => Ok(None),
            },
        }
    }

    fn take_item(&mut self, item: StoredItem, matcher: Matcher<'_>) -> Result<()> {
        let event = self.hidden.shown(decode(item)?);
        if (!self.verify || matcher.matches(&event)) && !self.hidden.contain(&event)? {
            self.bytes_left = self.bytes_left.saturating_sub(event.stored_bytes());
            self.page.events.push(event);
        }
        Ok(())
    }

    /// Drops the positions of events that do not belong to the read's member of a consumer group.
    fn keep_group(&self, positions: &mut Vec<u64>) -> Result<()> {
        let Some(group) = self.read.filter.group else {
            return Ok(());
        };
        let mut kept = Vec::with_capacity(positions.len());
        self.reader.read_labels(positions, &mut |position, label| {
            if label::belongs_to(label, group) {
                kept.push(position);
            }
        })?;
        *positions = kept;
        Ok(())
    }
}

/// Reads all that `read` asks for, or fails if that is more than one answer may hold.
pub(crate) fn read_all(log: &LogMoment<'_>, read: &Selection) -> Result<Page> {
    let mut page = execute(log, read, limits::READ_BYTES_MAX)?;
    while page.events.len() < read.limit
        && let Some(next) = page.next
    {
        let bytes: usize = page.events.iter().map(Event::stored_bytes).sum();
        let Some(bytes_left) = limits::READ_BYTES_MAX.checked_sub(bytes + 1) else {
            return Err(Error::invalid(format!(
                "the read returns more than {} bytes, the limit for one read: set a limit and \
                 read on from the last position",
                limits::READ_BYTES_MAX
            )));
        };
        let mut rest = read.clone().from_position(next).as_of(page.head);
        rest.limit = read.limit - page.events.len();
        let more = execute(log, &rest, bytes_left + 1)?;
        page.events.extend(more.events);
        page.next = more.next;
    }
    Ok(page)
}
